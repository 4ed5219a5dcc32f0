"""Audit a judge against human labels: a judge that is asked, or scores given before.

A score of at least the threshold means "supported". Accuracy and kappa compare that with people's labels;
AUROC measures whether supported claims score higher, at any threshold. What is known of a judge is stored
beside the runs that it judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np

from ...core.table import Table
from ...errors import StorageError
from ...io.files import write_bytes
from ...stats.calibration import calibration
from ...stats.intervals import TOO_NARROW
from ..ask import Asking
from ..question import Question, claim_material, kind_named
from .calibration import Agreement, Estimate, JudgeCalibration, agreement_of, people_alpha
from .labels import Labelled, clusters_of
from .probes import ProbeReport

GROUNDING = "grounding"  # the kind of the questions of judged_faithfulness


@dataclass
class AuditReport(Agreement):
    """An audit. 95% of calibrated judges have a calibration error below `by_chance`.

    `people` is Krippendorff's alpha of the raters, where claims have several.
    """

    judge: str
    threshold: float
    calibration_error: float | None = None
    by_chance: float | None = None
    people: Estimate | None = None

    def tables(self) -> Iterator[Table]:
        """Yield the tables of the audit: agreement and confusion."""
        estimates = [
            (f"accuracy at {self.threshold:g}", self.accuracy),
            ("AUROC (0.5 is chance)", self.auroc),
            (f"Cohen's kappa at {self.threshold:g}", self.kappa),
        ]
        if self.people is not None:
            estimates.append(("people among themselves (alpha)", self.people))
        rows = [(name, *each.cells()) for name, each in estimates]
        title = f"{self.judge} compared with {self.claims} labelled claims, "
        title += f"{self.supported} of the scored ones supported"
        headings = ("Agreement with people", "Value", "95% interval")
        yield Table(headings, rows, title, list(self._notes()), numeric=(1, 2))
        judged = ("judged supported", "judged not")
        cells = [
            [f"labelled {label}", *(str(row[name]) for name in judged)]
            for label, row in self.confusion.items()
        ]
        yield Table(("", *judged), cells, numeric=(1, 2))

    def _notes(self) -> Iterator[str]:
        if any(TOO_NARROW in each.interval_method for each in (self.accuracy, self.auroc, self.kappa)):
            yield "Fewer than 50 claims: if a label is rare, the interval of kappa is too narrow."
        if self.scored < self.claims:
            yield f"{self.claims - self.scored} claims could not be scored; they are left out."
        if self.scored and self.auroc.value is None:
            kind = "supported" if self.supported else "not supported"
            yield f"No AUROC: it needs claims of both kinds, but all claims are labelled {kind}."
        if self.calibration_error is not None:
            chance = (
                ""
                if self.by_chance is None
                else (f" (a calibrated judge has at most {self.by_chance:.3f} in 95 of 100 audits)")
            )
            yield f"Expected calibration error {self.calibration_error:.3f}{chance}."


def audit(
    labelled: Sequence[Labelled], judge: Asking | None, threshold: float = 0.5, name: str = ""
) -> AuditReport:
    """Return how far a judge agrees with people; it is asked for what is not known yet.

    With None the scores in the claims are used, and `name` says whose they are.
    """
    scores = [one.score for one in labelled] if judge is None else judge_scores(judge, labelled)
    known = [(score, one) for score, one in zip(scores, labelled, strict=True) if score is not None]
    claims, clusters = [one for _, one in known], clusters_of(one for _, one in known)
    x = np.array([score for score, _ in known], dtype=np.float64)
    yes = np.array([one.is_supported for one in claims], dtype=bool)
    report = AuditReport(
        **vars(agreement_of(len(labelled), x, yes, threshold, clusters)),
        judge=name if judge is None else judge.judge.identity(kind_named(GROUNDING)),
        threshold=threshold,
    )
    if known:
        measured = calibration(x, np.array([one.people for one in claims]), clusters=clusters)
        report.calibration_error, report.by_chance = measured.error, measured.by_chance
    if any(len(one.ratings) > 1 for one in claims):
        report.people = people_alpha([one.ratings for one in claims], clusters)
    return report


def judge_scores(judge: Asking, labelled: Sequence[Labelled], kind: str = GROUNDING) -> list[float | None]:
    """Return a score from 0 to 1 for each claim, higher is better; None if the judge cannot score it.

    A judge is asked about each claim with all of its evidence, as judged_faithfulness asks. It cannot score a
    claim without evidence, or by a verdict that failed.
    """
    evidence = [[text for text in one.evidence if text.strip()] for one in labelled]
    asked = kind_named(kind)
    questions = [
        Question(asked, claim_material(asked, one.claim, texts), {"labelled": True})
        for one, texts in zip(labelled, evidence, strict=True)
        if texts
    ]
    verdicts = iter(judge.verdicts(questions))
    return [next(verdicts).score if texts else None for texts in evidence]


AUDITS = "judges"  # the folder of what is known of judges, beside the runs


class JudgeAudit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a judge, whichever run it judges: how it agrees with people, and its probes."""

    identity: str
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []


def read_audit(runs: Path, identity: str) -> JudgeAudit:
    """Return what is known of a judge in a folder of runs; nothing, if it was never audited there."""
    path = _audit_path(runs, identity)
    if not path.exists():
        return JudgeAudit(identity=identity)
    try:
        return msgspec.json.decode(path.read_bytes(), type=JudgeAudit)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error


def write_audit(runs: Path, audit: JudgeAudit) -> None:
    """Store what is known of a judge beside the runs that it judges."""
    path = _audit_path(runs, audit.identity)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(audit, order="sorted")) + b"\n"
    write_bytes(path, content, force=True, private=True)


def _audit_path(runs: Path, identity: str) -> Path:
    # Hashed: an identity has slashes in it and cannot be a file name.
    return runs / AUDITS / f"{blake2b(identity.encode(), digest_size=8).hexdigest()}.json"
