"""Ask a judge about labelled claims, and store what is known of it beside the runs that it judges."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...errors import StorageError
from ...io.files import write_bytes
from ..ask import Asking
from ..question import Question, claim_material, kind_named
from .calibration import JudgeCalibration
from .labels import Labelled
from .probes import GROUNDING, ProbeReport

AUDITS = "judges"  # the folder of what is known of judges, beside the runs


class JudgeAudit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a judge, whichever run it judges: how it agrees with people, and its probes."""

    identity: str
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []


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
