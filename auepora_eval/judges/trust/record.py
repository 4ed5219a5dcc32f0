"""What is stored of a judge with each value that it produced: its calibration, probes and correction.

It is in the details of a metric's result under "judge", so that comparisons and gates can read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from ...core.table import Table
from ...core.types import MetricResult
from ...errors import DataError
from .calibration import UNCALIBRATED, JudgeCalibration
from .correction import Corrected, corrected_value

GROUNDING, SUPPORT = "grounding", "support"  # a claim and passages: with all others, or alone
# The kinds of questions that have probes, and the score from which a verdict is a yes.
PROBED = {GROUNDING: 0.5, SUPPORT: 0.5, "grading": 0.5, "answer_relevance": 0.75, "correctness": 0.75}


class Probe(msgspec.Struct, frozen=True):
    """The result of one probe: how many checks were passed, and how many had to be."""

    name: str
    passed: int
    of: int
    needed: int
    text: str = ""

    @property
    def is_passed(self) -> bool:
        return self.passed >= self.needed


class ProbeReport(msgspec.Struct, frozen=True):
    """All probes of a judge on one kind of question."""

    identity: str
    calls: int
    probes: list[Probe]
    kind: str = GROUNDING

    @property
    def failed(self) -> list[str]:
        """The names of the probes that the judge failed."""
        kind = "" if self.kind in (GROUNDING, SUPPORT) else f" ({self.kind})"
        return [f"{probe.name}{kind}" for probe in self.probes if not probe.is_passed]

    def table(self) -> Table:
        """Return the probes as a table."""
        rows = [
            (each.name, f"{each.passed} of {each.of}", "pass" if each.is_passed else "FAIL", each.text)
            for each in self.probes
        ]
        words = f"degraded: {', '.join(self.failed)}" if self.failed else "no probe failed"
        title = f"Probes of {self.identity}: {self.calls} questions, {words}"
        return Table(("Probe", "Right", "Result", ""), rows, title, numeric=(1,))


def probed_kinds(kinds: Iterable[str]) -> list[str]:
    """Return the kinds to probe for questions of these kinds: grounding, for those without probes."""
    return list(dict.fromkeys(kind if kind in PROBED else GROUNDING for kind in kinds)) or [GROUNDING]


class JudgeAudit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a judge, whichever run it judges: how it agrees with people, and its probes."""

    identity: str
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []
    kind: str = GROUNDING  # of the questions about the claims that people labelled

    def probes_of(self, kinds: Iterable[str]) -> list[ProbeReport]:
        """Return the probes that are about questions of these kinds."""
        probed = probed_kinds(kinds)
        return [report for report in self.probes if report.kind in probed]


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
    notes = [*result.notes, f"{result.name}: {record}"]
    return replace(result, details={**result.details, "judge": msgspec.to_builtins(record), "notes": notes})


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
