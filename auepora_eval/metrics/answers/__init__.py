"""Metrics of answers: text overlap, numbers, relevance, grounding."""
