"""The verdicts of judges on the disk: `verdicts.jsonl` and `judge.json` in the folder of a run.

Each verdict is on the disk before it counts, so that nothing is paid for twice. The file has everything that
scores are computed from: a run can be scored again from it without a call (`Replay`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from ..calls.policy import Usage
from ..core.types import EvaluationSample, MetricResult, SystemOutputs
from ..errors import ScoringError, StorageError
from ..io.files import write_bytes
from ..judges.asking import usage_of
from ..judges.judge import Asked, Judge, Judging, VerdictBook
from ..judges.metrics.faithfulness import CheckedClaims, ClaimCheck
from ..judges.question import Judgement, Kind, Question
from ..judges.trust.calibration import JudgeCalibration
from ..judges.trust.probes import ProbeReport
from ..metrics.parse import parse_metric
from .journal.journal import (
    Damage,
    DamagedJournalWarning,
    Lines,
    good_records,
    journal_line,
    opened_journal,
)
from .journal.lock import RunLock

T = TypeVar("T")
VERDICTS, JUDGE = "verdicts.jsonl", "judge.json"
AUDITS = "judges"  # the folder of what is known of judges, beside the runs
# The same for all files, unlike the key of a journal: verdicts may be copied from run to run.
_KEY = b"auepora.verdicts/1"


class VerdictFile:
    """The verdicts in a file, and how far the file is intact."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.book = VerdictBook()
        self.paid: list[Judgement] = []  # all of them, also those that a later one replaced
        self.damage = Damage()
        self.last_number = 0
        with opened_journal(path) as file:
            for _, record in good_records(file, _KEY, self.damage):
                self.last_number = max(self.last_number, record.get("seq", 0))
                if record.get("type") == "verdict":
                    verdict = msgspec.convert(record["verdict"], Judgement)
                    self.book.add(verdict)
                    self.paid.append(verdict)
        if path.stat().st_size and not self.last_number:
            raise StorageError(f"{path} has no verdicts that can be read.")
        for sentence in self.damage.in_words(path.name):
            words = sentence.replace("samples are run again", "questions are asked again")
            warnings.warn(words, DamagedJournalWarning, stacklevel=2)


class VerdictWriter(Lines):
    """Adds verdicts to the file of a run, which is locked meanwhile."""

    def __init__(self, folder: Path) -> None:
        lock = RunLock(folder)
        try:
            path = folder / VERDICTS
            self.stored = VerdictFile(path) if path.exists() else None
            super().__init__(path, lock, _KEY, self.stored)
        except BaseException:
            # The caller gets no object to close: this process could never judge the run again.
            lock.release()
            raise

    def __enter__(self) -> VerdictWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The log of calls (`calls.log.CallLog`).

    def known(self, asked: Asked) -> Judgement | None:
        """Return None: only what is not in the book is asked."""
        return None

    def store(self, asked: Asked, verdict: Judgement) -> None:
        """Write a verdict, which a kill cannot lose any more."""
        self.put("verdict", {"verdict": msgspec.to_builtins(verdict)}, at_once=True)

    def usages(self) -> Iterator[Usage]:
        """Yield what each stored verdict took."""
        return (usage_of(verdict) for verdict in (self.stored.paid if self.stored else ()))


class VerdictCache:
    """A folder of verdicts that several runs share. Failed ones are not kept."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.folder} cannot be a cache: {error.strerror or error}.") from error
        self.book = VerdictBook()
        # Sorted: where two files have a verdict on a question, every reader keeps the same one.
        for path in sorted(self.folder.glob(f"*.{VERDICTS}")):
            self.book |= VerdictFile(path).book

    def add(self, verdicts: Iterable[Judgement]) -> None:
        """Add verdicts that the cache does not have yet."""
        new = [verdict for verdict in verdicts if not verdict.failed and verdict.key not in self.book]
        if not new:
            return
        # A file for each writer: several may use the folder at once.
        path = self.folder / f"{os.getpid()}-{os.urandom(6).hex()}.{VERDICTS}"
        with path.open("xb") as file:
            for number, verdict in enumerate(new, 1):
                record = {"seq": number, "type": "verdict", "verdict": msgspec.to_builtins(verdict)}
                file.write(journal_line(record, _KEY))


class Replay:
    """Answers from stored verdicts only: a question that was never asked is a failure, not a call."""

    def __init__(self, book: VerdictBook) -> None:
        self.book = book

    def __call__(self, questions: Sequence[Asked]) -> None:
        for judge, question in questions:
            identity = judge.identity(question.kind)
            key = question.key(identity)
            failed = "not_stored: there is no verdict on this question in the file"
            self.book.add(Judgement(key=key, identity=identity, kind=question.kind.name, failed=failed))


class JudgeRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What `judge.json` has: the judge of a run, and how far it is to be trusted."""

    judge: str  # its name, as --judge takes it
    mode: str = ""
    identities: dict[str, str] = {}  # by the kind of question
    models: list[str] = []  # as the servers report them
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []


class StoredJudge(Judge):
    """The judge of a stored run, by its identities: it has verdicts, and cannot be asked."""

    def __init__(self, identities: Mapping[str, str]) -> None:
        self._identities = identities

    def identity(self, kind: Kind) -> str:
        return self._identities.get(kind.name, "")

    def judge(self, question: Question) -> Judgement:
        raise StorageError("a stored judge cannot be asked")


def copy_verdicts(folder: Path, to: Path) -> None:
    """Copy the verdicts and the judge of a run to a run that was computed from them."""
    for name in (VERDICTS, JUDGE):
        write_bytes(to / name, (folder / name).read_bytes(), force=True, private=True)


def claim_metrics(folder: Path, results: Iterable[MetricResult]) -> dict[str, CheckedClaims]:
    """Return the metrics of a run that check claims, with the verdicts of each judge that was asked.

    They have titles: the name of the metric, and the judge if there are several. Of a jury, its members.
    """
    judged = [parse_metric(result.name) for result in results if "judge" in result.signature]
    checking = [metric for metric in judged if isinstance(metric, CheckedClaims)]
    if not checking or not (folder / VERDICTS).exists():
        return {}
    record, book = read_judge_record(folder), VerdictFile(folder / VERDICTS).book
    known = {} if record is None else record.identities  # of the kinds that are asked before the claims
    metrics = {}
    for metric in checking:
        kind = metric.kinds[0]
        judges = dict.fromkeys(verdict.identity for verdict in book.values() if verdict.kind == kind)
        for identity in judges:
            title = f"{metric.name}, by {identity}" if len(judges) > 1 else metric.name
            metrics[title] = metric.judged_by(Judging(StoredJudge({**known, kind: identity}), book))
    return metrics


def claims_of(metric: CheckedClaims, sample: EvaluationSample, output: SystemOutputs) -> list[ClaimCheck]:
    """Return the claims of an answer with their evidence; none if their verdicts are of another judge."""
    try:
        return metric.explain(sample, output)
    except ScoringError:
        return []


def read_judge_record(folder: Path) -> JudgeRecord | None:
    """Return the record of the judge of a run; None if the run was not judged."""
    path = folder / JUDGE
    if not path.exists():
        return None
    return _read(path, JudgeRecord)


def write_judge_record(folder: Path, record: JudgeRecord) -> None:
    """Write the record of the judge of a run."""
    _write(folder / JUDGE, record)


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
    return _read(path, JudgeAudit)


def write_audit(runs: Path, audit: JudgeAudit) -> None:
    """Store what is known of a judge beside the runs that it judges."""
    path = _audit_path(runs, audit.identity)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, audit)


def _audit_path(runs: Path, identity: str) -> Path:
    # Hashed: an identity has slashes in it and cannot be a file name.
    return runs / AUDITS / f"{blake2b(identity.encode(), digest_size=8).hexdigest()}.json"


def _write(path: Path, record: msgspec.Struct) -> None:
    content = msgspec.json.format(msgspec.json.encode(record, order="sorted")) + b"\n"
    write_bytes(path, content, force=True, private=True)


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error
