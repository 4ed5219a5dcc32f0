"""Every error of a document is listed, with its place; nothing crashes, nothing is changed."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.errors import DataError
from auepora_eval.io.label_set import label_set_errors
from auepora_eval.io.schema import DataFormatValidator, checker, config_form_errors
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.read.fields import ReadingNote
from auepora_eval.read.records import prediction_record, read_prediction
from tests.builders import a_failure, run_to_results, scored_run, small_world
from tests.io.documents import (
    BASELINE,
    CITATIONS,
    CONFIG,
    PREDICTION,
    QUALITY,
    RECORD,
    RESULTS,
    VALID,
    json_values,
    spoilt,
)

METHODS: dict[str, Callable[[DataFormatValidator, Any], list[str]]] = {
    "evaluation_dataset": DataFormatValidator.validate_evaluation_dataset,
    "ground_truth": DataFormatValidator.validate_ground_truth,
    "evaluation_results": DataFormatValidator.validate_evaluation_results,
    "benchmark": DataFormatValidator.validate_benchmark,
    "config": lambda checks, document: config_form_errors(document),
    "prediction": lambda checks, document: [str(error) for error in checker("prediction").errors(document)],
    "label_set": lambda checks, document: label_set_errors(document),
}


def errors_of(name: str, document: Any) -> list[str]:
    return METHODS[name](DataFormatValidator(), document)


def test_there_is_a_schema_of_each_format() -> None:
    assert set(DataFormatValidator().schemas) == set(METHODS)


def _cited(file_name: str, start: Any, end: Any, **fields: Any) -> dict[str, Any]:
    return {"file_name": file_name, "start_char": start, "end_char": end, **fields}


@pytest.mark.parametrize(
    ("name", "document", "places"),
    [
        ("ground_truth", [CITATIONS, QUALITY, CITATIONS], ["$[2].annotation_id"]),
        (
            "ground_truth",
            [{**CITATIONS, "citations": [_cited("a", -4, 2)]}],
            ["$[0].citations[0].start_char"],
        ),
        (
            "evaluation_results",
            {**RESULTS, "query_results": RESULTS["query_results"] * 2},
            ["$.query_results[1].query_id"],
        ),
        ("benchmark", [RECORD, {**RECORD, "duration": -1}], ["$[1].duration"]),
        (
            "benchmark",
            {"search": {**BASELINE["search"], "thresholds": {"x": "y"}}},
            ["$.search.thresholds.x"],
        ),
        (
            "config",
            {"ab_testing": {**CONFIG["ab_testing"], "traffic_allocation": {"a": 0.5, "c": 0.5}}},
            ["$.ab_testing.traffic_allocation"],
        ),
        (
            "config",
            {"ab_testing": {"experiments": [{**CONFIG["ab_testing"], "variants": []}]}},
            ["$.ab_testing.experiments[0].traffic_allocation"],
        ),
    ],
)
def test_what_a_schema_cannot_say_of_the_others(name: str, document: Any, places: list[str]) -> None:
    assert [error.split(": ")[0] for error in errors_of(name, document)] == places


everything = st.sampled_from(VALID).flatmap(lambda case: st.tuples(st.just(case[0]), spoilt(case[1])))
wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["queries", "citations", "annotations", "summary", "total_queries", "start_char"])
            | st.sampled_from(
                ["end_char", "query_id", "ab_testing", "variants", "retrieved", "rank", "documents"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(everything | st.tuples(st.sampled_from(list(METHODS)), wild | json_values))
@example(("evaluation_results", {"summary": {"total_queries": 10**5000, "failed_queries": 1}}))
@example(("evaluation_dataset", {"citations": [_cited("a", 10**5000, 0.5, confidence_score=10**400)]}))
def test_any_json_gets_a_list_of_texts_and_is_left_alone(case: tuple[str, Any]) -> None:
    name, document = case
    before = copy.deepcopy(document)
    errors = errors_of(name, document)
    assert all(isinstance(error, str) and "\n" not in error and len(error) < 2000 for error in errors)
    assert repr(document)[:5000] == repr(before)[:5000] if not _is_huge(document) else True


def _is_huge(document: Any) -> bool:
    """Whether repr() refuses it: Python does not print integers of over 4300 digits."""
    try:
        repr(document)
    except ValueError:
        return True
    return False


@settings(max_examples=200, deadline=None)
@given(spoilt(PREDICTION) | spoilt(VALID[-1][1]))
def test_a_prediction_is_read_or_refused_with_its_place(document: Any) -> None:
    if not isinstance(document, dict):
        return
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("ignore", ReadingNote)
        read_prediction(document, "a line")


@pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")
def test_what_we_write_is_valid() -> None:
    samples, outputs = small_world()
    outputs[3] = a_failure()
    plan = EvaluationPlan(parse_metrics(["recall@5", "mrr", "token_f1", "latency@0.95", "distinct_n@2"]))
    run = scored_run(plan, samples, outputs, system_name="s", dataset_name="d")
    written = json.loads(msgspec.json.encode(run_to_results(run)))
    assert errors_of("evaluation_results", written) == []
    lines = [
        json.loads(msgspec.json.encode(prediction_record(sample.sample_id, output)))
        for sample, output in zip(samples, outputs, strict=True)
    ]
    assert [errors_of("prediction", line) for line in lines] == [[]] * len(lines)
