"""Verify a stored run: its document is made again from its samples, outputs and scores, and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import Fingerprint
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns
from ..core.scoring import Tally
from ..core.types import COUNTS, EvaluationSample, MetricResult
from ..errors import AueporaError, DataError, StorageError, UnknownNameError
from ..io.jsonl import encode
from ..io.results.document import (
    SECTIONS,
    Row,
    is_ours,
    query_result,
    results_head,
    results_to_run,
    score_fields,
)
from ..metrics.parse import parse_metric
from .columns import Facts, ScoreColumns, failed_ids
from .database import ANSWERED, JUDGE, Database, decoded_output, decoded_sample, rows_sha256
from .identity import identity_hashes
from .state import SUFFIX, is_made_of, read_results
from .stopping import sequence_result
from .storage import EvaluationResultsStorage, database_of

FITS, DOES_NOT_FIT, UNCHECKED = "fits", "does not fit", "cannot be checked"
CONTENTS, ROWS = "samples and outputs", "rows against samples and outputs"
_RECOMPUTED = {
    *(*COUNTS, "higher_is_better", "unit", "bounds", "bounds_if_failed", "interval_method"),
    "confidence_interval",
}
# When it was stored; rows are compared one by one, and the id with the name of the file.
_NOT_COMPARED = {"_metadata", "query_results", "evaluation_id"}


@dataclass(frozen=True)
class Check:
    """One check: its subject, its status, and what differs."""

    what: str
    status: str
    found: str = ""


@dataclass
class Verification:
    """The checks of a stored run."""

    evaluation_id: str
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether every check fits or cannot be made."""
        return not self.having(DOES_NOT_FIT)

    @property
    def whole(self) -> bool:
        """Return whether all parts could be read: rows, samples and outputs."""
        return not any(check.what == CONTENTS for check in self.having(UNCHECKED))

    def having(self, status: str) -> list[Check]:
        """Return the checks with this status."""
        return [check for check in self.checks if check.status == status]


def verify_run(storage: EvaluationResultsStorage, name: str | Path) -> Verification:
    """Check whether the files of a run are consistent; no system is called and no output scored."""
    path = storage.find(name)
    results = read_results(path)
    if not is_ours(results):
        what = "not a results file of ours: it names no schema_version."
        raise DataError(path.name, what, fix="Only runs that auepora stored can be verified.")
    try:
        return Verification(str(results.get("evaluation_id")), list(_checks(results, path)))
    except AueporaError:
        raise
    # An edited file may lack any field: one message here instead of a check at every access.
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            path.name, f"not a results file of ours: {error!r} is missing or wrong.", fix="Was it edited?"
        ) from error


def _checks(results: dict[str, Any], path: Path) -> Iterator[Check]:
    yield check_same("evaluation_id", results.get("evaluation_id"), path.name.removesuffix(SUFFIX))
    try:
        database = Database.read(database_of(path))
    except StorageError as error:
        yield Check(CONTENTS, UNCHECKED, str(error))
        return
    with database:
        contents = _Contents(results, database)
        try:
            different = list(contents.differences())
        except AueporaError as error:
            yield Check(CONTENTS, DOES_NOT_FIT, str(error))
            return
        words = f"{len(different)} differ, first: {different[0]}" if different else ""
        yield Check(ROWS, DOES_NOT_FIT if different else FITS, words)
        # The values again, from the stored scores.
        run = results_to_run(results, contents.columns, [], [], path.name)
        run.dataset_fingerprint = contents.dataset.hexdigest()
        run.results, unchecked = _recomputed(run.results, run.stopping, contents.failed)
        yield from unchecked
        expected = results_head(run, contents.tally, contents.outputs.hexdigest())
        if "run_file" in results:
            expected["run_file"] = {"name": database_of(path).name, "rows": contents.tally.total}
        if run.stopping is not None:
            yield check_same("stopping.samples_used", run.stopping.samples_used, contents.tally.total)
        yield from _compared(results, expected, {check.what for check in unchecked})


class _Contents:
    """The samples and outputs of a run, read once, beside the rows of its document."""

    def __init__(self, results: Mapping[str, Any], database: Database) -> None:
        self._results, self._database = results, database
        self.columns = ScoreColumns(database)
        self.failed: dict[str, EvaluationSample] = {}  # those that some metric failed on
        self.tally = Tally()
        self.dataset, self.outputs = Fingerprint(), Fingerprint()
        self._facts = Facts(str(database.meta("match")))

    def differences(self) -> Iterator[str]:
        """Read everything, and yield what differs from the rows of the document."""
        if self._database.meta("evaluation_id") != self._results.get("evaluation_id"):
            yield "the database is of another run"
        if not is_made_of(self._results, self._database):
            yield "'finished' in the table meta"
        yield from self._wrong_scores()
        judge = self._database.meta(JUDGE)
        if judge and self._database.verdicts_sha256(judge["calls"]) != judge["verdicts_sha256"]:
            yield "the verdicts of the judge"
        yield from self._wrong_rows()
        if self.tally.total < len(self.columns.ids):
            return  # the columns are of samples that have no output any more
        header = self._database.meta("run")  # none, if no system was called
        identity = identity_hashes(header) if isinstance(header, dict) else {}
        if not identity and self._database.meta("plan_sha256") is not None:
            yield "'run' in the table meta"
        for name in self._database.other_meta(**self._facts.as_meta(self._database), **identity):
            yield f"{name!r} in the table meta"

    def _wrong_scores(self) -> Iterator[str]:
        stored = (self._database.meta("finished") or {}).get("scores_sha256", {})
        for name in sorted({*stored, *self.columns.names}):
            row = self._database.select("SELECT * FROM score WHERE metric = ?", [name])
            if rows_sha256(row) != stored.get(name):
                yield f"the scores of {name}"

    def _wrong_rows(self) -> Iterator[str]:
        scores = {name: self.columns.scores(name) for name in self.columns.names}
        failed = {name for column in scores.values() for name in failed_ids(column)}
        # The rows of a large run are in its database only.
        rows: list[Row] | None = None if "run_file" in self._results else self._results["query_results"]
        fields = [] if rows is None else score_fields(len(self.columns.ids), scores)
        query = (
            "SELECT s.id, s.record, c.sample, c.outcome, c.reply, t.words FROM sample s "
            "LEFT JOIN call c ON c.n = s.answer LEFT JOIN text t ON t.n = s.n ORDER BY s.n"
        )
        for place, (sample_id, record, answered, outcome, reply, words) in enumerate(
            self._database.stream(query)
        ):
            sample = decoded_sample(record, f"sample {sample_id!r:.60}")
            self.dataset.add_stored([sample], record.encode() + b"\n")
            self.outputs.add_lines((reply or "").encode() + b"\n")
            if answered != sample_id:
                yield f"the output of {sample_id!r:.60} is for {answered!r:.60}"
                continue
            output = decoded_output(reply, f"output of {sample_id!r:.60}")
            self.tally.add([output])
            if sample_id in failed:
                self.failed[sample_id] = sample
            if words != self._facts.add(sample, output) or (outcome == ANSWERED) != (output.error is None):
                yield f"the outcome or the searched text of {sample_id!r:.60}"
            if rows is not None:
                expected = msgspec.json.decode(encode(query_result(sample, output, fields[place])))
                row = rows[place] if place < len(rows) else {}
                if names := [name for name in {**expected, **row} if row.get(name) != expected.get(name)]:
                    yield f"{', '.join(names)} of {sample_id!r:.60}"
        size = len(self.columns.ids)
        if rows is not None and size != len(rows):
            yield f"there are {len(rows)} rows, and {size} samples"


def _recomputed(
    stored: Sequence[MetricResult], stopping: Any, samples: Mapping[str, EvaluationSample]
) -> tuple[list[MetricResult], list[Check]]:
    """Return the results by the stored scores, and a check for each that cannot be computed here."""
    results, unchecked = [], []
    for result in stored:
        try:
            metric = parse_metric(result.name).matched_by(str(result.signature.get("match", "id")))
        except UnknownNameError:
            unchecked.append(Check(result.name, UNCHECKED, "it is not one of the registered metrics"))
            results.append(result)
            continue
        signature = {"metric": metric.name, **metric.signature()}
        # Another version of a metric or its model gives other values. This is not damage.
        if result.signature != signature:
            what = f"it was computed as {result.signature}, here it would be {signature}"
            unchecked.append(Check(result.name, UNCHECKED, what))
            results.append(result)
            continue
        scores = as_columns(result.scores)
        _add_failed(scores, metric, samples)
        computed = metric.summarise(scores)
        if stopping is not None:
            computed = sequence_result(metric, computed, stopping)
        fresh = {name: computed.details[name] for name in _RECOMPUTED if name in computed.details}
        kept = {name: value for name, value in result.details.items() if name not in _RECOMPUTED}
        results.append(replace(computed, details={**kept, **fresh}))
    return results, unchecked


def _add_failed(scores: Scores, metric: SampleMetric, samples: Mapping[str, EvaluationSample]) -> None:
    """Add to scores what the rows do not have: the scores that failed samples could have had."""
    failed = [samples[name] for name in failed_ids(scores) if name in samples]
    if failed:
        low, high = (
            Scores.of(metric.score_if_failed(sample, high=best) for sample in failed).rows()
            for best in (False, True)
        )
        scores.if_failed = (low, high)


def _compared(results: Mapping[str, Any], expected: Mapping[str, Any], skipped: set[str]) -> Iterator[Check]:
    """Compare two documents: metrics, hashes and counts one by one, anything else by its section."""
    stored = _parts(results)
    computed = _parts(msgspec.json.decode(encode(expected)))  # as a file has it: an infinite bound is null
    for section, name in {**stored, **computed}:
        if name not in skipped:
            what = f"summary.{name}" if section == "summary" else name
            yield check_same(what, stored.get((section, name)), computed.get((section, name)))


def _parts(document: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    parts: dict[tuple[str, str], Any] = {}
    for section, content in document.items():
        if section in (*SECTIONS, "metadata", "summary") and isinstance(content, dict):
            parts |= {(section, name): part for name, part in content.items()}
        elif section not in _NOT_COMPARED:
            parts["", section] = content
    return parts


def check_same(what: str, stored: Any, computed: Any) -> Check:
    """Return the check of a stored value against the computed one."""
    different = "; ".join(_differences(stored, computed))
    return Check(what, DOES_NOT_FIT if different else FITS, different)


def _differences(stored: Any, computed: Any, place: str = "") -> Iterator[str]:
    """Yield what differs, numbers by more than the rounding of another machine."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        for name in {**stored, **computed}:
            yield from _differences(stored.get(name), computed.get(name), f"{place}{name}: ")
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for pair in zip(stored, computed, strict=True):
            yield from _differences(*pair, place)
    elif stored != computed and not _is_close(stored, computed):
        yield f"{place}the file says {stored!r:.120}, found {computed!r:.120}"


def _is_close(a: Any, b: Any) -> bool:
    are_numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return are_numbers and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
