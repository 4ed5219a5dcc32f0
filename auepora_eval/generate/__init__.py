"""Test sets generated from a corpus."""
