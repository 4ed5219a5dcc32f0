"""Ground truth: files of annotations, and annotations on the samples that they are about."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.io.documents import read_document, write_document
from auepora_eval.io.ground_truth import load_ground_truth, save_ground_truth

SEED = Path(__file__).parents[1] / "golden" / "seed_003"
CITATION = read_document(SEED / "citation_annotation.gt.json")
QUALITY = read_document(SEED / "answer_quality_annotation.gt.json")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCORES = st.floats(0, 1) | st.sampled_from([0, 1])
OBJECTS = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, max_size=2)
SPANS = st.builds(
    lambda start, length, more: {"start_char": start, "end_char": start + length, **more},
    st.integers(0, 10**9),
    st.integers(1, 10**6),
    st.fixed_dictionaries(
        {"file_name": TEXTS},
        optional={
            "citation_id": TEXTS,
            "page_number": st.integers(0, 999),
            "text": TEXTS,
            "relevance_score": SCORES,
            "annotation_confidence": SCORES,
            "justification": TEXTS,
            "a note of ours": OBJECTS,
        },
    ),
)
_ABOUT = {"annotation_id": TEXTS, "query_id": st.sampled_from(["q1", "q2", "q3"])}
_MORE = {"annotator_id": TEXTS, "metadata": OBJECTS, "timestamp": st.just("2025-08-30T12:00:00Z")}
ANNOTATIONS = st.lists(
    st.fixed_dictionaries(
        {**_ABOUT, "citations": st.lists(SPANS, max_size=3)},
        optional={**_MORE, "quality_checks": st.dictionaries(TEXTS, TEXTS, max_size=2)},
    )
    | st.fixed_dictionaries(
        {**_ABOUT, "answer_text": TEXTS, "quality_scores": st.dictionaries(TEXTS, SCORES, max_size=3)},
        optional={
            **_MORE,
            "overall_score": SCORES,
            "aspect_ratings": st.dictionaries(TEXTS, TEXTS, max_size=2),
            "feedback": st.fixed_dictionaries({}, optional={"strengths": st.lists(TEXTS, max_size=2)}),
        },
    ),
    max_size=5,
    unique_by=lambda annotation: str(annotation["annotation_id"]),
)


@pytest.mark.parametrize("name", ["a.gt.json", "a.gt.yaml", "a.gt.json.gz"])
@settings(max_examples=40, deadline=None)
@given(annotations=ANNOTATIONS, dataset_id=st.none() | TEXTS, version=st.none() | TEXTS)
def test_round_trip(name: str, annotations: list[Any], dataset_id: str | None, version: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save_ground_truth(annotations, path, dataset_id=dataset_id, version=version)
        assert load_ground_truth(path) == annotations
        document = read_document(path)
        assert (document.get("dataset_id"), document.get("version")) == (dataset_id, version)


@pytest.mark.parametrize(
    ("document", "count"),
    [
        pytest.param(CITATION, 1, id="one citation annotation"),
        pytest.param(QUALITY, 1, id="one answer-quality annotation"),
        pytest.param([CITATION, QUALITY], 2, id="a list"),
        pytest.param([], 0, id="an empty list"),
        pytest.param({"dataset_id": "d", "version": "1.0.0", "annotations": [QUALITY]}, 1, id="a set"),
    ],
)
@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_what_a_file_may_hold(tmp_path: Path, document: Any, count: int, ending: str) -> None:
    path = tmp_path / f"a.gt.{ending}"
    write_document(document, path)
    annotations = load_ground_truth(path)
    assert len(annotations) == count
    assert all(annotation in (CITATION, QUALITY) for annotation in annotations)
