"""Datasets built from raw records: splits and their manifest."""
