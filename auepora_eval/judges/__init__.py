"""Judges: what answers small questions about given texts, and the metrics that are made of the verdicts."""
