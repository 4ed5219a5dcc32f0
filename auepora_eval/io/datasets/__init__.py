"""Formats of datasets, ground truth, predictions and label sets."""
