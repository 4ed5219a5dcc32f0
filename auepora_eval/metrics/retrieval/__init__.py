"""Metrics of retrieval beyond the basic ones."""
