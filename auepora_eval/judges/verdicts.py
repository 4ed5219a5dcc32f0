"""The verdicts of judges in the database of a run: one row of its calls for each.

Each verdict is stored before it counts, so that nothing is paid for twice. The rows have everything that
scores are computed from: a run can be scored again from them without a call (`Replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec

from ..calls.policy import Usage
from ..core.types import EvaluationSample, MetricResult, SystemOutputs
from ..errors import ScoringError, StorageError
from ..io.files import write_bytes
from ..metrics.parse import parse_metric
from ..store.cache import CallCache, call_key
from ..store.database import ANSWERED, FAILED, MAY_PASS, CallRow, Database
from ..store.lock import RunLock
from .asking import usage_of
from .judge import Asked, Judge, Judging, VerdictBook
from .metrics.faithfulness import CheckedClaims, ClaimCheck
from .question import Judgement, Kind, Question
from .trust.calibration import JudgeCalibration
from .trust.probes import ProbeReport

T = TypeVar("T")
JUDGE = "judge"  # the kind of a call to a judge, and the name of the record of the last judge
AUDITS = "judges"  # the folder of what is known of judges, beside the runs


class StoredVerdicts:
    """The verdicts of a run that is being judged (a `calls.log.CallLog`), and of the cache."""

    def __init__(self, database: Database | None = None, cache: CallCache | None = None) -> None:
        self.database, self._cache = database, cache

    def known(self, asked: Asked) -> Judgement | None:
        """Return None: only what is not in the book is asked."""
        return None

    def usages(self) -> Iterator[Usage]:
        """Yield what each stored verdict took."""
        return iter(()) if self.database is None else map(usage_of, verdicts_in(self.database))

    def store(self, asked: Asked, verdict: Judgement) -> None:
        """Store a verdict."""
        row = _row(verdict)
        if self.database is not None:
            self.database.add_call(row)
        if self._cache is not None and not verdict.failed:
            self._cache.add(row._replace(sample=None))

    def cached(self, judge: Judge, question: Question) -> Judgement | None:
        """Return a verdict of another run, which cost this run nothing."""
        key = question.key(judge.identity(question.kind))
        reply = None if self._cache is None else self._cache.reply(_call_key(key, judge.server))
        if reply is None:
            return None
        known = msgspec.json.decode(reply, type=Judgement)
        verdict = msgspec.structs.replace(known, about=dict(question.about), usage={}, attempts=0)
        if self.database is not None:
            self.database.add_call(_row(verdict))
        return verdict


def _call_key(key: str, server: str) -> bytes:
    return call_key(JUDGE, server.encode(), key.encode())


def _row(verdict: Judgement) -> CallRow:
    outcome = (MAY_PASS if verdict.may_pass else FAILED) if verdict.failed else ANSWERED
    usage = usage_of(verdict) if verdict.attempts else None
    sample = verdict.about.get("sample_id")
    return CallRow(
        _call_key(verdict.key, verdict.server),
        JUDGE,
        None if sample is None else str(sample),
        outcome,
        msgspec.json.encode(verdict, order="deterministic").decode(),
        usage,
        verdict.identity,
    )


def verdicts_in(database: Database) -> Iterator[Judgement]:
    """Yield all verdicts, also those that a later one replaced."""
    decode = msgspec.json.Decoder(Judgement).decode
    for (reply,) in database.stream("SELECT reply FROM call WHERE kind = ? ORDER BY n", [JUDGE]):
        yield decode(reply)


def verdict_book(path: Path) -> VerdictBook:
    """Return the verdicts in the database of a run; none if it was not judged."""
    book = VerdictBook()
    with Database.read(path) as database:
        for verdict in verdicts_in(database):
            book.add(verdict)
    return book


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
    """The judge of a run, and how far it is to be trusted."""

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


def copy_verdicts(path: Path, to: Path) -> None:
    """Copy the verdicts and the judge of a run to a run that was computed from them."""
    with RunLock(to), Database.read(path) as source, Database.write(to) as target:
        target.add_calls(map(_row, verdicts_in(source)))
        target.set_meta(**{JUDGE: source.meta(JUDGE)})


def claim_metrics(path: Path, results: Iterable[MetricResult]) -> dict[str, CheckedClaims]:
    """Return the metrics of a run that check claims, with the verdicts of each judge that was asked.

    They have titles: the name of the metric, and the judge if there are several. Of a jury, its members.
    """
    judged = [parse_metric(result.name) for result in results if "judge" in result.signature]
    checking = [metric for metric in judged if isinstance(metric, CheckedClaims)]
    book = verdict_book(path) if checking else VerdictBook()
    record = read_judge_record(path) if book else None
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


def read_judge_record(path: Path) -> JudgeRecord | None:
    """Return the record of the judge of a run, by its database; None if the run was not judged."""
    if not path.exists():
        return None
    with Database.read(path) as database:
        record = database.meta(JUDGE)
    return None if record is None else msgspec.convert(record, JudgeRecord)


class JudgeAudit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a judge, whichever run it judges: how it agrees with people, and its probes."""

    identity: str
    server: str = ""
    calibration: JudgeCalibration | None = None
    probes: list[ProbeReport] = []


def read_audit(runs: Path, identity: str, server: str = "") -> JudgeAudit:
    """Return what is known of a judge in a folder of runs; nothing, if it was never audited there."""
    path = _audit_path(runs, identity, server)
    if not path.exists():
        return JudgeAudit(identity=identity, server=server)
    return _read(path, JudgeAudit)


def write_audit(runs: Path, audit: JudgeAudit) -> None:
    """Store what is known of a judge beside the runs that it judges."""
    path = _audit_path(runs, audit.identity, audit.server)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(audit, order="sorted")) + b"\n"
    write_bytes(path, content, force=True, private=True)


def _audit_path(runs: Path, identity: str, server: str) -> Path:
    # Hashed: an identity has slashes in it and cannot be a file name.
    name = f"{identity}\n{server}" if server else identity
    return runs / AUDITS / f"{blake2b(name.encode(), digest_size=8).hexdigest()}.json"


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}.") from error
