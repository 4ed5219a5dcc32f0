"""Arithmetic on arrays; knows nothing of samples or systems."""
