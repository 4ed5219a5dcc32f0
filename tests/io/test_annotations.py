"""Label sets: read whole, written back, and errors that name the record."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.documents import write_document
from auepora_eval.io.label_set import (
    dataset_from_label_set,
    label_set_errors,
    load_label_set,
    read_predicted_labels,
    read_scores,
)
from auepora_eval.io.loader import detected_format, load_dataset
from auepora_eval.io.validate import file_errors
from auepora_eval.text.label_terms import LABELS
from tests.io.documents import CONVERSATION, LABEL_SAMPLE

REAL = Path(__file__).parents[3] / "shared" / "data" / "fhri"
real_data = pytest.mark.skipif(not REAL.exists(), reason="the public label set is not here")
DOCUMENT: dict[str, Any] = {
    "metadata": {"dataset_name": "Small", "version": "2.0", "annotator": "somebody"},
    "annotation_guidelines": {"accurate": {"label": "accurate"}},
    "samples": [[LABEL_SAMPLE], CONVERSATION],
}


def test_a_record_becomes_a_sample() -> None:
    dataset = dataset_from_label_set(DOCUMENT, "small")
    first, second = dataset
    assert dataset.info["version"] == "2.0"
    assert (first.sample_id, first.query, first.reference_answer) == ("l1", "Which is less risky?", None)
    assert first.labels == {
        "ground_truth_label": "accurate",
        "fhri_scenario": "multi_ticker",
        "risk_tier": "high",
        "category": "investment_advice",
        "compliance_tag": "allowed",
        "contradiction_pair_id": "pair-1",
    }
    assert first.metadata["stored_output"]["answer"] == "The index."
    assert len(first.metadata["stored_output"]["passages"]) == 2
    assert first.metadata["cluster"] == "pair-1"
    assert (second.query, second.metadata["stored_output"]["answer"]) == (
        "Are you sure?",
        "No, it fell by 2%.",
    )


def _with(**changes: Any) -> dict[str, Any]:
    record = copy.deepcopy(LABEL_SAMPLE)
    spec = changes.pop("spec", {})
    return {**record, **changes, "fhri_spec": {**record["fhri_spec"], **spec}}


@pytest.mark.parametrize(
    ("record", "error"),
    [
        pytest.param(
            _with(ground_truth_label="truthful"),
            "samples[1] (l1): ground_truth_label: 'truthful' is not one of",
            id="label",
        ),
        pytest.param(
            _with(spec={"risk_tier": "hihg"}),
            "samples[1] (l1): fhri_spec.risk_tier: 'hihg' is not one of",
            id="tier",
        ),
        pytest.param(_with(id=""), "samples[1] (): id: ", id="empty id"),
        pytest.param({"id": "l1"}, 'samples[1] (l1): "ground_truth_label"', id="nothing"),
        pytest.param(
            {"id": "l1", "ground_truth_label": "accurate"},
            'samples[1] (l1): "question" is a required property.',
            id="no question",
        ),
        pytest.param("l1", "samples[1]: ", id="not an object"),
    ],
)
def test_an_error_names_the_record(record: Any, error: str) -> None:
    errors = label_set_errors({"samples": [[_with(id="l0")], record]})
    assert errors[0].startswith(error), errors


@pytest.mark.parametrize("name", ["set.labels.json", "set.labels.yaml", "set.labels.json.gz", "plain.json"])
def test_label_sets_are_detected_and_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_document(DOCUMENT, path)
    assert detected_format(path) == "labels"
    assert list(load_dataset(path)) == list(dataset_from_label_set(DOCUMENT, "small"))
    assert file_errors(path) == []


def test_a_wrong_file_is_refused_with_the_first_error_and_all_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "bad.labels.json"
    path.write_text(json.dumps({"samples": [_with(ground_truth_label="x"), _with(id="b", notes=3)]}))
    with pytest.raises(
        DataError, match=r"bad.labels.json: samples\[0\] \(l1\): ground_truth_label: .* And 1 more"
    ):
        load_label_set(path)
    assert len(file_errors(path)) == 2


@real_data
def test_the_public_label_set_is_flattened() -> None:
    dataset = load_dataset(REAL / "data__evaluation_dataset.json")
    samples = list(dataset)
    counts = [sum(s.labels["ground_truth_label"] == label for s in samples) for label in LABELS]
    assert (len(samples), counts) == (100, [57, 26, 17])
    assert sum("contradiction_pair_id" in sample.labels for sample in samples) == 34


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "p.jsonl",
            '{"id": "a", "predicted_label": "accurate"}\n{"sample_id": "b", "predicted_label": null}\n',
        ),
        (
            "report.json",
            '{\n"detailed_results": [{"sample_id": "a", "predicted_label": "accurate", "fhri": 0.5},'
            ' {"sample_id": "b", "predicted_label": null, "fhri": null}]}',
        ),
        ("list.json", '[{"id": "a", "predicted_label": "accurate"}, {"id": "b", "predicted_label": null}]'),
        (
            "line.json",
            '{"detailed_results": [{"id": "a", "predicted_label": "accurate"}, '
            '{"id": "b", "predicted_label": null}]}',
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_predictions_in_their_forms(tmp_path: Path, name: str, text: str, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = read_predicted_labels(path, {"a", "b"})
    assert found["a"].extra["predicted_label"] == "accurate"
    assert found["b"].error is not None


def test_predictions_and_scores_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id;predicted_label;score\na;accurate;0.5\n")
    assert read_predicted_labels(path)["a"].extra["predicted_label"] == "accurate"
    assert read_scores(path)["a"].score == 0.5


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"predicted_label": "accurate"}', "p.jsonl:2: the field 'id' is missing"),
        ('{"id": "a", "predicted_label": "accurate"}', "p.jsonl:2: 'a' was used already"),
        ('{"id": "z", "predicted_label": "accurate"}', "p.jsonl:2: the data have no sample 'z'"),
        ('{"id": "b"}', "p.jsonl:2: the field 'predicted_label' is missing"),
        ('{"id": "b", "predicted_label": "wrong"}', "p.jsonl:2: the predicted label 'wrong' is not one of"),
    ],
)
def test_wrong_predictions_are_refused_with_their_place(tmp_path: Path, line: str, error: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"id": "a", "predicted_label": "accurate"}}\n{line}\n')
    with pytest.raises(DataError) as caught:
        read_predicted_labels(path, {"a", "b"})
    assert str(caught.value).startswith(error)


def test_null_scenarios_and_pairs_are_no_labels() -> None:
    record = _with(spec={"scenario_override": None, "contradiction_pair_id": None, "expected_scenario": None})
    (sample,) = dataset_from_label_set([record], "x")
    assert {"fhri_scenario", "contradiction_pair_id"}.isdisjoint(sample.labels)
    assert "cluster" not in sample.metadata
