"""The per-query part of a results file: a row for each sample, and the scores read back from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ..core.scores import Scores, alone
from ..core.scoring import Tally
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, known_score
from ..errors import DataError

Row = dict[str, Any]
EDITED = "Was it edited? Run the evaluation again."


class QueryRows(Protocol):
    """The rows of a run, wherever they are: in the results file, or in a Parquet file beside it."""

    @property
    def ids(self) -> list[str]:
        """The id of each sample, in order."""
        ...

    def scores(self, name: str) -> Scores:
        """A metric's scores, with the clusters of their samples; empty where no row has one."""
        ...

    def rows(self) -> Iterator[Row]:
        """Each row as the results format has it."""
        ...

    def tally(self) -> Tally:
        """How many calls there were, how long they took, what they failed of."""
        ...

    def __len__(self) -> int: ...


def query_results(
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    scores: Mapping[str, Sequence[SampleScore]],
) -> Iterator[Row]:
    """A row for each sample: its answer, what was retrieved, and its scores."""
    for place, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
        yield query_result(sample, output, {name: column[place] for name, column in scores.items()})


def query_result(sample: EvaluationSample, output: SystemOutputs, scores: Mapping[str, SampleScore]) -> Row:
    """The row of one sample."""
    row: Row = {"query_id": sample.sample_id, "query_text": sample.query}
    if "cluster" in sample.metadata:
        row["cluster"] = str(sample.metadata["cluster"])
    row["latency_ms"] = latency_ms(output)
    row["retrieval_results"] = {
        "retrieved_docs": [hit.doc.doc_id for hit in output.retrieved],
        "relevance_scores": [known_score(hit) for hit in output.retrieved],
        "ground_truth_relevant": [doc.doc_id for doc in sample.relevant_docs or ()],
    }
    row["generated_answer"] = None if output.error else output.response.text
    cited = citations(output)
    if cited is not None:
        row["citations"] = cited
    row["individual_metrics"] = {name: score.value for name, score in scores.items()}
    statistics = {name: list(score.parts) for name, score in scores.items() if score.parts}
    unmeasured = {
        name: {"reason": score.reason, "failed": score.failed}
        for name, score in scores.items()
        if score.value is None
    }
    if statistics:
        row["statistics"] = statistics
    if unmeasured:
        row["not_measured"] = unmeasured
    if output.error is not None:
        row["error"] = {"type": output.error.type, "message": output.error.message}
    return row


def latency_ms(output: SystemOutputs) -> float | None:
    """How long an answer took; None where nobody measured it."""
    seconds = output.timings.get("end_to_end")
    return None if seconds is None else seconds * 1000


def citations(output: SystemOutputs) -> list[Any] | None:
    """What an answer cites, as its system tells it in the response's metadata; None where it says nothing."""
    cited = output.response.metadata.get("citations")
    return cited if isinstance(cited, list) else None


class _Note(msgspec.Struct):
    reason: str = ""
    failed: bool = False


class _Error(msgspec.Struct):
    type: str
    message: str = ""


class _Row(msgspec.Struct):
    query_id: str
    cluster: str | None = None
    latency_ms: float | None = None
    error: _Error | None = None
    individual_metrics: dict[str, float | None] = {}
    not_measured: dict[str, _Note] = {}
    statistics: dict[str, list[float]] = {}


class JsonRows:
    """Rows that are in the results file itself."""

    def __init__(self, rows: Any, where: str) -> None:
        self._raw: list[Row] = rows
        try:
            self._rows = msgspec.convert(rows, list[_Row])
        except msgspec.ValidationError as error:
            what = f"not a results file of ours: {error}."
            raise DataError(f"{where}: $.query_results", what, fix=EDITED) from error

    @property
    def ids(self) -> list[str]:
        return [row.query_id for row in self._rows]

    def scores(self, name: str) -> Scores:
        none = _Note()
        rows = [row for row in self._rows if name in row.individual_metrics]
        scores = Scores.of(
            SampleScore(
                row.individual_metrics[name],
                (note := row.not_measured.get(name, none)).reason,
                tuple(row.statistics.get(name, ())),
                row.query_id,
                note.failed,
            )
            for row in rows
        )
        scores.clusters = clusters([row.query_id for row in rows], [row.cluster for row in rows])
        return scores

    def rows(self) -> Iterator[Row]:
        return iter(self._raw)

    def tally(self) -> Tally:
        return tally_of(
            (row.latency_ms, None if row.error is None else (row.error.type, row.error.message))
            for row in self._rows
        )

    def __len__(self) -> int:
        return len(self._rows)


def tally_of(calls: Iterable[tuple[float | None, tuple[str, str] | None]]) -> Tally:
    """A tally of calls: (milliseconds, None) for an answer, (..., (type, message)) for a failure."""
    tally = Tally()
    for milliseconds, failure in calls:
        tally.total += 1
        if failure is not None:
            tally.failures[failure] += 1
        elif milliseconds is not None:
            tally.seconds.append(milliseconds / 1000)
    return tally


def clusters(ids: Sequence[str], names: Sequence[str | None]) -> list[Hashable] | None:
    """The cluster of each sample: the one it names, or itself; None where no sample names one."""
    if not any(name is not None for name in names):
        return None
    return [alone(ids[place]) if name is None else name for place, name in enumerate(names)]
