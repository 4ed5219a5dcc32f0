"""What is stored of a judge with each value that it produced: its calibration, probes and correction.

It is in the details of a metric's result under "judge", so that comparisons and gates can read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from ...core.types import MetricResult
from ...errors import DataError
from .calibration import UNCALIBRATED, JudgeCalibration
from .correction import Corrected, corrected_value

if TYPE_CHECKING:
    from .probes import ProbeReport


class JudgeTrust(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the judge of a value. `labels` has people's score of each labelled sample, by its id.

    `degraded` names the probes that the judge failed. `is_share` says that the metric is a share of yes.
    """

    judge: str = ""  # as --judge takes it
    calibration: JudgeCalibration | None = None
    labels: dict[str, float] = {}
    corrected: Corrected | None = None
    not_corrected: str = ""
    degraded: list[str] = []
    is_share: bool = True

    @property
    def uncorrected(self) -> str:
        """Why nobody knows how far the value is from that of people; "" if labels have corrected it."""
        if self.corrected is not None:
            return ""
        if self.calibration is None:
            return f"{UNCALIBRATED}: nobody knows how far its value is from that of people"
        return f"the value is not corrected by labels of people: {self.not_corrected}"

    @property
    def distrust(self) -> str:
        """Why its values should not be used at all; "" if they may."""
        if self.degraded:
            return f"the judge is degraded: it failed the probes {', '.join(self.degraded)}"
        # Labels of the run itself count more than error rates: what they corrected may be used.
        if self.corrected is None and self.calibration is not None:
            return self.calibration.distrust
        return ""

    def __str__(self) -> str:
        parts = [f"{UNCALIBRATED} {self.judge}".rstrip()]
        if self.calibration is not None:
            parts = [", ".join(filter(None, [self.judge and f"judge {self.judge}", str(self.calibration)]))]
        if self.corrected is not None:
            low, high = self.corrected.interval
            value = f"{self.corrected.value:.4f} [{low:.4f}, {high:.4f}]"
            parts.append(f"corrected by labels of people {value} ({self.corrected.method})")
        elif self.not_corrected and (
            self.labels if self.calibration is None else not self.calibration.distrust
        ):
            parts.append(f"not corrected, since {self.not_corrected}")
        if self.distrust:
            parts.append(self.distrust)
        return "; ".join(parts)


def with_judge(
    result: MetricResult,
    calibration: JudgeCalibration | None = None,
    probes: Iterable[ProbeReport] = (),
    *,
    labels: Mapping[str, float] | None = None,
    is_share: bool = True,
    threshold: float | None = None,
    judge: str = "",
) -> MetricResult:
    """Return a result with what is known of its judge, and a note for every table that shows the value.

    `threshold` is the score from which the metric counts a yes; None if it has no such threshold.
    """
    if calibration is not None and threshold is not None and threshold != calibration.threshold:
        is_share = False  # error rates at another threshold say nothing of this one
    corrected, reason = corrected_value(result, labels or {}, calibration, is_share=is_share)
    record = JudgeTrust(
        judge=judge,
        calibration=calibration,
        labels=dict(labels or {}),
        corrected=corrected,
        not_corrected=reason,
        degraded=[name for report in probes for name in report.failed],
        is_share=is_share,
    )
    note = f"{result.name}: {record}"
    # A result that is judged again must not keep the note on its former judge.
    notes = [each for each in result.notes if not each.startswith(f"{result.name}: ")]
    details = {**result.details, "judge": msgspec.to_builtins(record), "notes": [*notes, note]}
    return replace(result, details=details)


def trust_of(result: MetricResult) -> JudgeTrust | None:
    """Return what is stored of a result's judge; None for a metric that no judge scored."""
    record = result.details.get("judge")
    if record is None:
        # A judged result without a record is uncalibrated. It must not pass for a metric without a judge.
        return JudgeTrust() if result.signature.get("judge") else None
    try:
        return msgspec.convert(record, JudgeTrust)
    except msgspec.ValidationError as error:
        what = f"what is stored of its judge cannot be read: {error}."
        raise DataError(result.name[:200], what, fix="Judge the run again: auepora judge RUN.") from None
