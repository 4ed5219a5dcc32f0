"""A stored run as spans, by OpenTelemetry's conventions for generative AI (`gen_ai.*`).

Each sample is a trace: `invoke_workflow SYSTEM` is the call, `retrieval` and `chat` are its stages, if the
output has their times. Each score is an event `gen_ai.evaluation.result` of the call. One more trace is the
evaluation itself, with its scoring and the value of each metric.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..calls.http import Endpoint
from ..calls.keys import without_secrets
from ..calls.policy import COUNTS, CallPolicy
from ..core.systems.call import is_from_cache
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    known_score,
)
from ..io.files import check_absent, written
from ..io.jsonl import encode
from ..io.outputs import MISSING_PREDICTION
from ..io.spans import CLIENT, Span, SpanEvent, otlp_document
from .storage import EvaluationResultsStorage, StoredRun

if TYPE_CHECKING:
    pass

EVALUATION = "gen_ai.evaluation.result"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_LONGEST = 2_000  # characters of a message
_BATCH = 256  # spans of a document

Attributes = dict[str, Any]  # of a span or an event


def content_is_wanted() -> bool:
    """Return whether texts may be in spans: only if the variable of the convention is set."""
    value = os.environ.get(_CONTENT, "").strip().lower()
    return value in ("true", "1", "span_only", "span_and_event")


def write_spans(
    storage: EvaluationResultsStorage,
    evaluation_id: str,
    target: str | Path,
    *,
    force: bool = False,
    content: bool | None = None,
) -> int:
    """Write the spans of a stored run to a file of OTLP documents, one per line, or post them to a URL.

    Return the number of spans. `content` includes questions, answers and documents (default: the environment
    decides).
    """
    total = 0
    with_content = content_is_wanted() if content is None else content
    with _opened(target, force=force) as send:
        for spans in _batches(run_spans(storage, evaluation_id, with_content)):
            send(otlp_document(spans, *_sender()))
            total += len(spans)
    return total


def _batches(traces: Iterator[list[Span]]) -> Iterator[list[Span]]:
    """Yield the spans of several traces together: a request for each would be slow."""
    waiting: list[Span] = []
    for spans in traces:
        waiting += spans
        if len(waiting) >= _BATCH:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def is_collector(target: str | Path) -> bool:
    """Return whether spans go to a collector over HTTP, not to a file."""
    return str(target).startswith(("http://", "https://"))


@contextmanager
def _opened(target: str | Path, *, force: bool) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Yield a function that delivers an OTLP document."""
    if not is_collector(target):
        with written(Path(target), force=force, private=True) as file:
            yield lambda document: file.write(encode(document) + b"\n")
        return
    endpoint, policy = Endpoint(str(target), timeout=10.0, private=True), CallPolicy(retries=2)
    try:
        yield lambda document: policy.retried(lambda: endpoint.post(document, lambda body: None))
    finally:
        endpoint.close()


def _sender() -> tuple[dict[str, str], str, str]:
    """Return what documents say of their sender: the resource, the scope and its version."""
    resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "auepora"}
    return resource, "auepora_eval", version("auepora-eval")


def check_writable(target: str | Path, *, force: bool = False) -> None:
    """Raise StorageError if the file must not be written, DataError if the URL cannot be used."""
    if is_collector(target):
        Endpoint(str(target), private=True)
    else:
        check_absent([Path(target)], force=force)


def run_spans(storage: EvaluationResultsStorage, evaluation_id: str, content: bool) -> Iterator[list[Span]]:
    """Yield the spans of a stored run, trace by trace."""
    with StoredRun(storage.find(evaluation_id)) as stored:
        run, database = stored.run(texts=False), stored.whole()
        began = _unix(run.started_at)
        last = database.select("SELECT max(at) FROM call WHERE kind = 'answer'")[0][0] or began
        # The start of a run is stored in whole seconds: its end is not before its last output.
        made = _Maker(run, began, last, max(began + run.seconds, last), content)
        times = database.stream("SELECT c.at FROM sample s JOIN call c ON c.n = s.answer ORDER BY s.n")
        for place, ((sample, output), (at,)) in enumerate(zip(stored.pairs(), times, strict=True)):
            if output.error is None or output.error.type != MISSING_PREDICTION:  # else it was never called
                yield made.sample(place, sample, output, None if is_from_cache(output) else at)
    yield made.whole()


@dataclass
class _Maker:
    run: EvaluationRun
    began: float
    last: float  # when the last output was stored
    ended: float
    content: bool

    def sample(
        self, place: int, sample: EvaluationSample, output: SystemOutputs, at: float | None
    ) -> list[Span]:
        """Return the spans of a call, which was stored `at` a time; None if it is not known."""
        run = self.run
        trace = _digest(16, run.evaluation_id, run.started_at, sample.sample_id)
        seconds = _seconds(output)
        end = self.began + seconds if at is None else at
        root = Span(
            trace,
            _digest(8, trace, "call"),
            f"invoke_workflow {run.system_name}",
            _ns(end - seconds),
            _ns(end),
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": run.system_name,
                "auepora.evaluation.id": run.evaluation_id,
                "auepora.dataset.name": run.dataset_name,
                "auepora.sample.id": sample.sample_id,
                "auepora.time.known": at is not None,  # otherwise only the duration is known
                "auepora.cached": True if is_from_cache(output) else None,
                **self._content(sample, output),
            },
            events=[
                _score_event(result, result.scores[place], _ns(self.ended))
                for result in run.results
                if len(result.scores)
            ],
        )
        if output.error is not None:
            root.error = without_secrets(output.error.message)[:_LONGEST]
            root.attributes["error.type"] = output.error.type
        return [root, *self._stages(root, sample, output)]

    def _stages(self, root: Span, sample: EvaluationSample, output: SystemOutputs) -> Iterator[Span]:
        start, end = root.start_ns or 0, root.end_ns or 0
        retrieval = output.timings.get("retrieval")
        if retrieval is not None:
            stop = min(end, start + _ns(retrieval))
            yield self._stage(
                root, "retrieval", "retrieval", start, stop, _retrieved(output, self.content, sample)
            )
            start = stop
        generation = output.timings.get("generation")
        if generation is not None:
            stop = min(end, start + _ns(generation))
            model = self._model()
            name = f"chat {model}" if model else "chat"
            yield self._stage(root, "chat", name, start, stop, self._generated(model, output))

    def _stage(self, root: Span, operation: str, name: str, start: int, end: int, facts: Attributes) -> Span:
        span_id = _digest(8, root.trace_id, operation)
        attributes = {"gen_ai.operation.name": operation, **facts}
        return Span(root.trace_id, span_id, name, start, end, root.span_id, CLIENT, attributes)

    def _generated(self, model: str | None, output: SystemOutputs) -> Attributes:
        answered = output.response.metadata.get("model")
        counts = {name: output.extra.get(name, output.response.metadata.get(name)) for name in COUNTS[:2]}
        finish = output.response.metadata.get("finish_reason")
        return {
            "gen_ai.provider.name": "openai" if self._system().startswith("openai:") else "custom",
            "gen_ai.request.model": model,
            "gen_ai.response.model": answered if isinstance(answered, str) else None,
            "gen_ai.response.finish_reasons": [finish] if isinstance(finish, str) else None,
            **{f"gen_ai.usage.{name}": n for name, n in counts.items() if type(n) is int and n >= 0},
            "gen_ai.output.messages": _message("assistant", output.response.text) if self.content else None,
        }

    def _content(self, sample: EvaluationSample, output: SystemOutputs) -> Attributes:
        """Return the texts, which are opt-in by the conventions: they may be confidential."""
        if not self.content:
            return {}
        texts: Attributes = {"gen_ai.input.messages": _message("user", sample.query)}
        if output.error is None:
            texts["gen_ai.output.messages"] = _message("assistant", output.response.text)
        if "retrieval" not in output.timings and output.retrieved:
            texts |= _retrieved(output, True, sample)
        return texts

    def whole(self) -> list[Span]:
        """Return the spans of the evaluation itself: its scoring has one event per metric."""
        run = self.run
        trace = _digest(16, run.evaluation_id, run.started_at)
        about = {
            "auepora.evaluation.id": run.evaluation_id,
            "auepora.dataset.name": run.dataset_name,
            "auepora.dataset.sha256": run.dataset_fingerprint,
            "gen_ai.workflow.name": run.system_name,
        }
        root = Span(
            trace,
            _digest(8, trace, "evaluation"),
            f"evaluation {run.evaluation_id}",
            _ns(self.began),
            _ns(self.ended),
            attributes=about,
        )
        # Scoring starts with the last output, or with the run if there were no calls.
        scoring_start = max(self.last, self.began)
        scoring = Span(
            trace,
            _digest(8, trace, "scoring"),
            "scoring",
            _ns(scoring_start),
            root.end_ns,
            root.span_id,
            attributes=about,
            events=[_value_event(result, _ns(self.ended)) for result in run.results],
        )
        return [root, scoring]

    def _system(self) -> str:
        return str(self.run.configuration.get("system", ""))

    def _model(self) -> str | None:
        """Return the model of `openai:URL#MODEL`."""
        return self._system().partition("#")[2] or None if self._system().startswith("openai:") else None


def _retrieved(output: SystemOutputs, content: bool, sample: EvaluationSample) -> Attributes:
    if not content:
        return {"auepora.retrieved.count": len(output.retrieved)}
    documents = [
        {
            "id": hit.doc.doc_id,
            **({} if (score := known_score(hit)) is None else {"score": float(score)}),
            "content": hit.doc.text,
        }
        for hit in output.retrieved
    ]
    return {
        "auepora.retrieved.count": len(documents),
        "gen_ai.retrieval.query.text": sample.query,
        "gen_ai.retrieval.documents": encode(documents).decode(),
    }


def _message(role: str, text: str) -> str:
    return encode([{"role": role, "parts": [{"type": "text", "content": text}]}]).decode()


def _score_event(result: MetricResult, score: SampleScore, at: int) -> SpanEvent:
    facts: Attributes = {"gen_ai.evaluation.name": result.name}
    if score.value is not None:
        facts["gen_ai.evaluation.score.value"] = float(score.value)
    else:
        facts["gen_ai.evaluation.score.label"] = "failed" if score.failed else "skipped"
    if score.reason:
        facts["gen_ai.evaluation.explanation"] = without_secrets(score.reason)[:_LONGEST]
    if score.failed:
        facts["error.type"] = "not_scored"
    return SpanEvent(EVALUATION, at, facts)


def _value_event(result: MetricResult, at: int) -> SpanEvent:
    facts: Attributes = {"gen_ai.evaluation.name": result.name}
    if math.isfinite(result.value):
        facts["gen_ai.evaluation.score.value"] = float(result.value)
    else:
        facts["gen_ai.evaluation.score.label"] = "not measured"
    counts = ("num_total", "num_samples", "num_skipped", "num_failed")
    facts |= {f"auepora.{name}": result.details.get(name) for name in counts}
    facts["auepora.interval.method"] = result.interval_method  # or the reason why there is none
    if result.interval is not None:
        low, high = result.interval
        limits = {"level": 0.95, "low": float(low), "high": float(high)}
        facts |= {f"auepora.interval.{name}": limit for name, limit in limits.items()}
    return SpanEvent(EVALUATION, at, facts)


def _seconds(output: SystemOutputs) -> float:
    failed = output.error.seconds if output.error is not None else None
    stages: Sequence[float] = [output.timings.get(name, 0.0) for name in ("retrieval", "generation")]
    return output.timings.get("end_to_end", failed or sum(stages))


def _digest(size: int, *parts: str) -> str:
    """Return an id that is the same whenever the same run is exported: sending twice adds no spans."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=size).hexdigest()


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _unix(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
