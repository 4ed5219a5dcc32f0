"""Calling a system: policy, limits, attempts, executors."""
