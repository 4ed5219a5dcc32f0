"""Detectors of hallucinations and contradictions, scored against labels."""
