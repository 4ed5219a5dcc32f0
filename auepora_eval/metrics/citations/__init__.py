"""Metrics of citations."""
