"""What the judge of a stored run said of the claims of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.display import NOT_MEASURED
from ..core.types import EvaluationRun
from ..errors import ScoringError
from ..judges.metrics.faithfulness import CheckedClaims, ClaimCheck
from ..judges.verdicts import claim_metrics, claims_of
from .components.sample import Claim


def claims_of_run(folder: Path, run: EvaluationRun) -> Mapping[str, Sequence[Claim]]:
    """Return what the judge of a stored run said of the claims of its answers, by sample."""
    claims: dict[str, list[Claim]] = {}
    for title, metric in claim_metrics(folder, run.results).items():
        for sample, output in zip(run.samples, run.outputs, strict=True):
            for check in claims_of(metric, sample, output):
                score = NOT_MEASURED if check.score is None else f"{check.score:.2f}"
                quote, source = (
                    ("", "") if check.evidence is None else (check.evidence.quote, check.evidence.passage_id)
                )
                supported = _is_supported(metric, check)
                claim = Claim(check.claim, title, score, quote or "", source, check.at, supported)
                claims.setdefault(sample.sample_id, []).append(claim)
    return claims


def _is_supported(metric: CheckedClaims, check: ClaimCheck) -> bool | None:
    """Return whether a claim is supported; None if its verdict failed, or if it is only not contradicted."""
    try:
        reaches = metric.reaches(check)
    except ScoringError:
        return None
    if metric.higher_is_better:
        return reaches
    return False if reaches else None
