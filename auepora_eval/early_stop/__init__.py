"""Stopping a run early, as soon as the result is clear."""
