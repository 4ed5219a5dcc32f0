"""Comparing runs: pairing, tests, ranking, and the words, tables and pages that show it."""
