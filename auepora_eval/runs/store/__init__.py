"""The stored results of runs: writing, reading, verifying."""
