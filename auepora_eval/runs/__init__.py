"""Finished runs: storage and comparison."""
