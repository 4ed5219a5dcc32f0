"""Detectors of hallucinations and contradictions, scored against labels."""

from .thresholds import SCENARIO_FHRI_THRESHOLDS

__all__ = ["SCENARIO_FHRI_THRESHOLDS"]
