"""Ask a judge about labelled claims, and store what is known of it beside the runs that it judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...errors import StorageError
from ...io.files import write_bytes
from ..ask import Asking
from ..question import Question, claim_material, kind_named
from .calibration import JudgeCalibration, calibrate
from .labels import Labelled
from .probes import probe
from .record import GROUNDING, JudgeAudit, ProbeReport, probed_kinds

AUDITS = "judges"  # the folder of what is known of judges, beside the runs


def claim_questions(labelled: Sequence[Labelled], kind: str = GROUNDING) -> list[Question | None]:
    """Return the question about each claim with all of its evidence, as judged_faithfulness asks.

    None for a claim without evidence.
    """
    asked = kind_named(kind)
    evidence = [[text for text in one.evidence if text.strip()] for one in labelled]
    return [
        Question(asked, claim_material(asked, one.claim, texts), {"labelled": True}) if texts else None
        for one, texts in zip(labelled, evidence, strict=True)
    ]


def judge_scores(judge: Asking, labelled: Sequence[Labelled], kind: str = GROUNDING) -> list[float | None]:
    """Return a score from 0 to 1 for each claim, higher is better; None if the judge cannot score it.

    It cannot score a claim without evidence, or by a verdict that failed.
    """
    questions = claim_questions(labelled, kind)
    verdicts = iter(judge.verdicts(filter(None, questions)))
    return [None if question is None else next(verdicts).score for question in questions]


def read_audit(runs: Path, identity: str, kind: str = GROUNDING) -> JudgeAudit:
    """Return what is known of a judge in a folder of runs; nothing, if it was never audited there."""
    path = _audit_path(runs, identity)
    if not path.exists():
        return JudgeAudit(identity=identity, kind=kind)
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


def compare_with_people(
    audit: JudgeAudit, judge: Asking, claims: Sequence[Labelled], threshold: float = 0.5
) -> JudgeCalibration:
    """Ask a judge about labelled claims, and note in its audit how far it agrees with people."""
    scores, today = judge_scores(judge, claims, audit.kind), datetime.now(UTC).date().isoformat()
    found = calibrate(audit.identity, scores, claims, date=today, threshold=threshold)
    if found.labels:
        audit.calibration = found
    return found


def probe_for(audit: JudgeAudit, judge: Asking, kinds: Iterable[str]) -> list[ProbeReport]:
    """Ask a judge the questions of the probes for these kinds, and note in its audit what it got right."""
    reports = [probe(judge, kind) for kind in probed_kinds(kinds)]
    own = {report.kind for report in reports}
    audit.probes = [each for each in audit.probes if each.kind not in own] + reports
    return reports
