"""Runs over time: trends and recorded benchmarks."""
