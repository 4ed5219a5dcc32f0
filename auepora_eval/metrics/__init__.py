"""Metrics, one family a file."""
