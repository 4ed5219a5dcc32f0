"""What is written is what is read back, for any content."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    Response,
    RetrievedDocument,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.io.outputs import load_predictions
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import save_predictions

pytestmark = pytest.mark.full

# Every character but the halves of surrogate pairs, which UTF-8 cannot write.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
IDS = TEXTS.filter(lambda text: bool(text.strip()))
FLOATS = st.floats(-1e150, 1e150)  # a larger score is a failure
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS.filter(lambda key: key != "alternatives"), JSON, max_size=3)
DOCUMENTS = st.builds(Document, TEXTS, TEXTS, OBJECTS)
RESPONSES = st.builds(Response, TEXTS, st.none() | OBJECTS, OBJECTS)
SAMPLES = st.lists(
    st.builds(
        EvaluationSample,
        IDS,
        TEXTS,
        relevant_docs=st.none() | st.lists(DOCUMENTS, min_size=1, max_size=3),
        candidate_docs=st.none() | st.lists(DOCUMENTS, min_size=1, max_size=3),
        reference_answer=st.none() | RESPONSES,
        labels=OBJECTS,
        metadata=OBJECTS,
    ),
    max_size=4,
    unique_by=lambda sample: sample.sample_id,
)
RETRIEVED = st.lists(st.tuples(DOCUMENTS, FLOATS), max_size=3).map(
    lambda hits: [RetrievedDocument(doc, score, rank) for rank, (doc, score) in enumerate(hits, start=1)]
)
OUTPUTS = st.builds(
    SystemOutputs,
    RETRIEVED,
    RESPONSES,
    timings=st.dictionaries(TEXTS, st.floats(0, 1e6), max_size=2),
    extra=OBJECTS,
    error=st.none() | st.builds(Failure, TEXTS, TEXTS),
)
FEW = settings(max_examples=30, deadline=None)


@FEW
@given(pairs=st.lists(st.tuples(IDS, OUTPUTS), max_size=3, unique_by=lambda pair: pair[0]))
def test_outputs(pairs: list[tuple[str, SystemOutputs]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.jsonl"
        samples = [EvaluationSample(sample_id, "q") for sample_id, _ in pairs]
        save_predictions(samples, [output for _, output in pairs], path)
        assert load_predictions(path) == dict(pairs)


@st.composite
def runs(draw: Any) -> EvaluationRun:
    samples = draw(SAMPLES)
    outputs = [draw(OUTPUTS) for _ in samples]
    results = []
    for name in draw(st.lists(st.sampled_from(["recall@5", "token_f1", "latency"]), unique=True)):
        parts = st.tuples(*[FLOATS] * draw(st.sampled_from([0, 2])))  # as many for each sample
        scores = [
            draw(
                st.builds(SampleScore, FLOATS, parts=parts)
                | st.builds(SampleScore, st.none(), TEXTS, failed=st.booleans())
            )
            for _ in samples
        ]
        scores = [
            SampleScore(score.value, score.reason, score.parts, sample.sample_id, score.failed)
            for sample, score in zip(samples, scores, strict=True)
        ]
        details = {"num_samples": len(samples), "confidence_interval": draw(st.none() | st.just([0.1, 0.9]))}
        target = draw(st.sampled_from(TargetCategory))
        results.append(MetricResult(name, target, draw(FLOATS | st.just(math.nan)), details, scores))
    return EvaluationRun(
        "run",
        draw(TEXTS),
        draw(TEXTS),
        "f" * 64,
        results,
        samples,
        outputs,
        top_k=draw(st.integers(1, 100)),
        seed=draw(st.integers(0, 2**63)),
        started_at="2024-01-01T00:00:00Z",
        seconds=draw(st.floats(0, 1e6)),
        environment={"python": "3"},
        configuration=draw(OBJECTS),
    )


@FEW
@given(run=runs())
def test_runs(run: EvaluationRun) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = EvaluationResultsStorage(folder)
        storage.save_run(run)
        stored = storage.load_run("run")
    values = [result.value for result in run.results]
    assert [result.value for result in stored.results] == pytest.approx(values, rel=0, abs=0, nan_ok=True)
    for result in (*run.results, *stored.results):
        result.value = 0.0  # compared above: NaN is not equal to itself
        result.scores = list(result.scores)
    assert stored == run
