"""How a system is called on one sample, with retries and checks, and the executors by their names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import msgspec

from ...calls.asking import Result
from ...calls.executors import AsyncExecutor, Executor, SerialExecutor, ThreadExecutor, awaited
from ...errors import DataError
from ...read.messages import HISTORY
from ...read.outputs import to_output
from ..dataset import plain
from ..rag_interface import RAGSystemProtocol, document_parameter, is_async, with_contexts, with_given
from ..registry import Registry
from ..scores import given_documents
from ..types import (
    CONTEXTS_AS_RETRIEVED,
    DOCUMENTS_GIVEN,
    END_TO_END,
    PAIR,
    STORED_OUTPUT,
    TRUE_LABEL,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    split_timings,
    unscored,
)
from .resources import ATTEMPTS, CACHED, usage_of

EXECUTORS: Registry[Callable[..., Executor]] = Registry("executor")
EXECUTORS.add("serial")(SerialExecutor)
EXECUTORS.add("threads")(ThreadExecutor)
EXECUTORS.add("async")(AsyncExecutor)


@EXECUTORS.add("processes")
def _processes(**options: Any) -> Executor:
    from ...calls.processes import ProcessExecutor

    return ProcessExecutor(**options)


@EXECUTORS.add("ray")
def _ray(**options: Any) -> Executor:
    from ...calls.ray import RayExecutor

    return RayExecutor(**options)


class SystemCall:
    """Asks a system: takes a sample and returns its output, checked. Raises what the system raises.

    An object rather than a function, so that it can be sent to another process if the system can.
    """

    def __init__(self, system: RAGSystemProtocol, top_k: int) -> None:
        self.system, self.top_k = system, top_k
        self.is_async = is_async(system)
        self._has_contexts = getattr(system, CONTEXTS_AS_RETRIEVED, False) is True
        # A system that talks to an endpoint keeps the time of each attempt itself.
        self.keeps_time = getattr(system, "keeps_time", False) is True

    def __call__(self, sample: EvaluationSample) -> Any:
        return self._answer_async(sample) if self.is_async else self._answer(sample)

    def usage(self, output: SystemOutputs) -> Mapping[str, float]:
        """Return the tokens and requests that an output reports."""
        return usage_of(output)

    # The output is read within the time of the call: a system may yield its documents one by one.

    def _answer(self, sample: EvaluationSample) -> SystemOutputs:
        shown, documents = self._shown(sample)
        start = perf_counter()
        raw: Any = self.system.run(shown, top_k=self.top_k, **documents)
        output = to_output(awaited(raw) if inspect.isawaitable(raw) else raw)
        return self._checked(sample, output, perf_counter() - start, is_given=bool(documents))

    async def _answer_async(self, sample: EvaluationSample) -> SystemOutputs:
        shown, documents = self._shown(sample)
        start = perf_counter()
        raw: Any = await self.system.run(shown, top_k=self.top_k, **documents)  # type: ignore[misc]
        output = to_output(raw)
        return self._checked(sample, output, perf_counter() - start, is_given=bool(documents))

    def _shown(self, sample: EvaluationSample) -> tuple[EvaluationSample, dict[str, list[Document]]]:
        """Return a sample as the system gets it, and the documents that it is given as an argument."""
        shown = as_shown(sample)
        is_closed = shown.metadata.get("closed_context") is True and shown.candidate_docs is not None
        parameter = document_parameter(self.system, shown) if is_closed else ""
        return shown, {parameter: given_documents(shown)} if parameter else {}

    def _checked(
        self, sample: EvaluationSample, output: SystemOutputs, seconds: float, *, is_given: bool
    ) -> SystemOutputs:
        output = checked_output(with_contexts(sample, output) if self._has_contexts else output, seconds)
        # The sample's own documents: the system may have changed those that it got.
        return with_given(output, given_documents(sample)) if is_given else output


def as_output(sample: EvaluationSample, result: Result[SystemOutputs]) -> SystemOutputs:
    """Return what asking a system came to as an output: with the records of attempts that failed.

    One that failed for good has no timings: crashing is not answering fast.
    """
    output = result.value
    if result.failure is not None:
        output = SystemOutputs([], Response(""), error=result.failure)
    elif not isinstance(output, SystemOutputs):
        output = SystemOutputs(
            [], Response(""), error=Failure("BadOutput", f"the executor returned a {type(output).__name__}")
        )
    return replace(output, extra={**output.extra, ATTEMPTS: result.attempts}) if result.attempts else output


def checked_output(output: SystemOutputs, seconds: float) -> SystemOutputs:
    """Return the output of a system with ranks and times checked; raise DataError if it cannot be stored."""
    if not isinstance(output.response, Response) or not isinstance(output.response.text, str):
        raise DataError("the answer", f"is not text but {output.response!r:.60}.")
    hits = [_checked_hit(hit) for hit in output.retrieved]
    if len({hit.rank for hit in hits}) < len(hits):
        ranks = [hit.rank for hit in hits[:10]]
        raise DataError(
            "retrieved", f"two documents have the same rank: {ranks}.", fix="Number them 1, 2, 3, ..."
        )
    for name, value in output.timings.items():
        is_number = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
        if not is_number:
            raise DataError(f"timings[{name!r}]", f"is not a number of seconds: {value!r:.60}.")
    # Copies, here and in each hit: the system may return the same objects again, changed.
    times, odd = split_timings({END_TO_END: seconds, **output.timings})
    times.setdefault(END_TO_END, seconds)
    own = _without_reserved_names(output.extra)
    checked = replace(
        output,
        response=_copied(output.response),
        retrieved=sorted(hits, key=lambda hit: hit.rank),
        timings=times,
        extra={**own, **odd} if odd else own,
    )
    try:
        _encoder.encode(checked)
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError) as error:
        # What JSON cannot hold (a lone surrogate, a list that contains itself) fails its sample, not the run.
        raise DataError("the output", f"cannot be written as JSON: {error!s:.100}.") from error
    return checked


def _checked_hit(hit: RetrievedDocument) -> RetrievedDocument:
    doc, rank = _copied(hit.doc), hit.rank
    if not isinstance(doc.doc_id, str) or not isinstance(doc.text, str):
        raise DataError("retrieved", f"the document {doc.doc_id!r:.60} needs strings as id and as text.")
    if type(rank) is not int:
        if isinstance(rank, bool) or not isinstance(rank, Integral):
            raise DataError(
                "retrieved", f"the rank {rank!r:.60} is not a whole number.", fix="Use 1, 2, 3, ..."
            )
        rank = int(rank)
    score = float(hit.score)
    if not math.isfinite(score):  # JSON has no such number: it would be read back as a missing score
        return unscored(doc, rank)
    return RetrievedDocument(doc, score, rank)


# The encoding of stored outputs: whatever passes here can be stored.
_encoder = msgspec.json.Encoder(enc_hook=plain, order="deterministic")

# What a system gets of a labelled sample: its question, never its label or anything that reveals it. The true
# label, the notes, the rubric and the hint are for the score and for people. A detector that got them would
# only show that it can read.

_HARMLESS_LABELS = ("scenario", "risk_tier", PAIR)


def without_answers(sample: EvaluationSample, *, sample_id: str | None = None) -> EvaluationSample:
    """Return a copy without the true label, notes, rubric, hint, or reference; with `sample_id` if not None.

    The stored answer stays: it is what a detector judges.
    """
    kept = (STORED_OUTPUT, HISTORY)
    return replace(
        sample,
        sample_id=sample.sample_id if sample_id is None else sample_id,
        labels={name: sample.labels[name] for name in _HARMLESS_LABELS if name in sample.labels},
        metadata={name: sample.metadata[name] for name in kept if name in sample.metadata},
        reference_answer=None,
    )


def as_shown(sample: EvaluationSample) -> EvaluationSample:
    """Return a copy of the sample as a system gets it: without answers if it has a true label.

    The system may change whatever is in its copy: the sample itself has the truth that outputs are scored by.
    """
    shown = without_answers(sample) if TRUE_LABEL in sample.labels else copy(sample)
    for name in ("relevant_docs", "candidate_docs", "reference_answer", "labels", "metadata"):
        if (value := getattr(shown, name)) is not None:
            setattr(shown, name, _copied(value))
    return shown


_PLAIN = frozenset({str, int, float, bool, type(None)})


def _copied(value: Any) -> Any:
    """Return a copy of documents, an answer, or the containers in a record; other objects are kept."""
    # Not `deepcopy`: it is slow, and fails on what a user may put into the metadata, such as a client.
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Document):
        return Document(value.doc_id, value.text, _copied(value.metadata))
    if isinstance(value, Response):
        return Response(value.text, _copied(value.structured), _copied(value.metadata))
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return type(value)(map(_copied, value)) if type(value) in (list, tuple, set) else value


# What a system cannot set: a run records it in an output about its call.

_RESERVED = frozenset({ATTEMPTS, CACHED, DOCUMENTS_GIVEN})


def _without_reserved_names(extra: dict[str, Any]) -> dict[str, Any]:
    """Return the `extra` of a system; `system_` is put before names that are reserved for the run.

    >>> _without_reserved_names({"cached": 0, "model": "m"})
    {'model': 'm', 'system_cached': 0}
    """
    if not isinstance(extra, dict) or _RESERVED.isdisjoint(extra):
        return extra
    own = {name: value for name, value in extra.items() if name not in _RESERVED}
    return {**own, **{f"system_{name}": extra[name] for name in sorted(_RESERVED & extra.keys())}}
