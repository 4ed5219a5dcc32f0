"""Metrics, one family per file."""
