"""Runs: evaluating, storing, resuming."""
