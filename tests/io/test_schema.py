"""The schemas are the seed's, the checker agrees with two others, and its words help."""

from __future__ import annotations

import copy
from importlib.resources import files
from itertools import groupby
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import UnknownNameError
from auepora_eval.io.schema import SCHEMAS, Checker, checker, json_path, schema
from tests.io.documents import CITATIONS, DATASET, QUALITY, VALID, json_values, seed_example, spoilt

every_schema = pytest.mark.parametrize("name", SCHEMAS)


def _with_formats() -> Any:
    formats = jsonschema.FormatChecker(formats=())
    times = jsonschema_rs.Draft202012Validator({"format": "date-time"}, validate_formats=True)
    formats.checks("date-time")(times.is_valid)
    return formats


JUDGES = {
    name: jsonschema.Draft202012Validator(schema(name), format_checker=_with_formats()) for name in SCHEMAS
}
FAST_JUDGES = {
    name: jsonschema_rs.Draft202012Validator(schema(name), validate_formats=True) for name in SCHEMAS
}


@every_schema
def test_a_schema_is_a_schema_and_ships_with_the_package(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (files("auepora_eval.io") / "schemas" / f"{name}.schema.json").is_file()


def test_every_schema_file_has_a_name() -> None:
    found = [path.name for path in (files("auepora_eval.io") / "schemas").iterdir()]
    assert sorted(found) == sorted(f"{name}.schema.json" for name in SCHEMAS)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="ground_truth"):
        schema("../secrets")


def test_the_strict_dataset_schema_is_the_printed_one() -> None:
    assert _undescribed(schema("evaluation_dataset")) == _undescribed(
        seed_example("evaluation_dataset.schema.json")
    )


def _undescribed(node: Any) -> Any:
    """A schema without its descriptions; a field called "description" is no description."""
    if isinstance(node, dict):
        return {
            key: _undescribed(value)
            for key, value in node.items()
            if not (key == "description" and isinstance(value, str))
        }
    return node


@pytest.mark.parametrize(("name", "document"), VALID)
def test_valid_documents_are_valid_strictly_and_leniently(name: str, document: Any) -> None:
    before = copy.deepcopy(document)
    assert Checker(schema(name)).errors(document) == []
    if f"{name}.lenient" in SCHEMAS:
        assert checker(f"{name}.lenient").errors(document) == []
    assert document == before


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"dataset_id": 7}, "$.dataset_id: a string was expected, not a number. Put it in quotes."),
        (
            {"version": None},
            "$.version: a string was expected, not null. Write a value, or leave the field out.",
        ),
        ({"queries": {}}, "$.queries: an array was expected, not an object. Change it."),
        ({"documents": "a.pdf"}, "$.documents: an array was expected, not a string. Put it in [ ]."),
        (
            {"metadata": {"size": "12"}},
            "$.metadata.size: a whole number was expected, not a string. Remove the quotes.",
        ),
        ({"metadata": {"size": 1.5}}, "$.metadata.size: a whole number was expected, not 1.5. Change it."),
        (
            {"metadata": {"avg_query_length": float("nan")}},
            "$.metadata.avg_query_length: nan is not JSON. Write null, or leave the field out.",
        ),
        (
            {"created_at": "yesterday"},
            "$.created_at: 'yesterday' is not a date and time with its offset. Write it like "
            "2025-08-30T12:00:00Z.",
        ),
        (
            {"queries": [{**DATASET["queries"][0], "difficulty": "Haard"}]},
            "$.queries[0].difficulty: 'Haard' is not one of 'easy', 'medium', 'hard'. Did you mean hard?",
        ),
        (
            {"queries": [{"query_id": "1", "relevant_documents": []}]},
            "$.queries[0]: the field 'query_text' is missing. Add it.",
        ),
        (
            {"queries": [{"query_id": "1", "query_txt": "?", "relevant_documents": []}]},
            "$.queries[0]: the field 'query_text' is missing. Is it the one called 'query_txt'? Rename that.",
        ),
        (
            {
                "queries": [
                    {
                        **DATASET["queries"][0],
                        "citations": [{**CITATIONS["citations"][0], "confidence_score": 2}],
                    }
                ]
            },
            "$.queries[0].citations[0].confidence_score: 2 is not from 0 to 1. Change it.",
        ),
    ],
)
def test_an_error_says_where_what_and_what_to_do(document: dict[str, Any], error: str) -> None:
    assert [str(each) for each in checker("evaluation_dataset").errors({**DATASET, **document})] == [error]


@pytest.mark.parametrize(
    ("name", "document", "errors"),
    [
        pytest.param(
            "ground_truth",
            [{**CITATIONS, "citations": [{"file_name": "a.pdf", "start_char": "x", "end_char": 2}]}],
            ["$[0].citations[0].start_char: a whole number was expected, not a string. Write a number."],
            id="the form that was meant is the one that is checked",
        ),
        pytest.param(
            "ground_truth",
            {"annotation_id": 3, "query_id": "q", "citation": []},
            [
                "$.annotation_id: a string was expected, not a number. Put it in quotes.",
                "the field 'citations' is missing. Is it the one called 'citation'? Rename that. "
                "(Read as a citation annotation.)",
            ],
            id="its fields tell which",
        ),
        pytest.param(
            "ground_truth",
            {**CITATIONS, **QUALITY},
            ["it is a citation annotation and an answer-quality annotation at once. Write one for each."],
            id="two kinds at once",
        ),
        pytest.param(
            "ground_truth",
            7,
            [
                "an annotation, a list of annotations or a set of annotations was expected, not a number. "
                "Change it."
            ],
            id="none of them",
        ),
        pytest.param(
            "benchmark",
            {"search": {"mean_duration": "2", "sample_count": 3}},
            ["$.search.mean_duration: a number was expected, not a string. Remove the quotes."],
            id="a baseline",
        ),
        pytest.param("benchmark", {}, None, id="nothing"),
        pytest.param(
            "config",
            {"datset": "a.jsonl", "top_k": 0},
            [
                "$.top_k: 0 is too small. Use 1 or more.",
                "there is no field 'datset'. Did you mean dataset?",
            ],
            id="a key that is not there",
        ),
        pytest.param(
            "prediction",
            {"sample_id": "", "timings": {"end to end": -1}},
            [
                "$.sample_id: it is empty. Fill it in.",
                '$.timings["end to end"]: -1 is too small. Use 0 or more.',
            ],
            id="a name that is no word",
        ),
    ],
)
def test_a_choice_is_explained_by_the_nearest_form(
    name: str, document: Any, errors: list[str] | None
) -> None:
    found = [str(each) for each in checker(name).errors(document)]
    assert found == errors if errors is not None else found


@settings(max_examples=200, deadline=None)
@given(data=st.data(), case=st.sampled_from(VALID), lenient=st.booleans())
def test_verdict_and_places_are_those_of_two_other_checkers(
    data: st.DataObject, case: tuple[str, Any], lenient: bool
) -> None:
    name, document = case
    name = f"{name}.lenient" if lenient and f"{name}.lenient" in SCHEMAS else name
    document = data.draw(spoilt(document))
    ours = {error.path for error in checker(name).errors(document)}
    errors = list(JUDGES[name].iter_errors(document))
    assert (not ours) == (not errors) == FAST_JUDGES[name].is_valid(document)
    assert _explains(ours, errors), [(error.json_path, error.message) for error in errors]
    # jsonschema-rs forgets a key that is empty, and takes one of digits for a place in a list.
    plain = all(str(step)[:1].isalpha() or isinstance(step, int) for e in errors for step in e.absolute_path)
    if plain and not any(error.context for error in errors):
        assert ours == {json_path(error.instance_path) for error in FAST_JUDGES[name].iter_errors(document)}


def _explains(ours: set[str], errors: list[Any]) -> bool:
    """Whether our places are those of the errors, where a choice counts as the errors of one of its forms."""
    explained: set[str] = set()
    for error in errors:
        path = json_path(error.absolute_path)
        if not error.context:
            explained.add(path)
            continue
        under = {each for each in ours if each == path or each.startswith((f"{path}.", f"{path}["))}
        forms = groupby(error.context, key=lambda inner: inner.schema_path[0])
        if not any(_explains(under, list(form)) for _, form in forms):
            return False
        explained |= under
    return explained == ours


@pytest.mark.parametrize(
    "document", [{1: 2}, {"a": {3}}, "\ud800", [{"a": object()}]], ids=["key", "set", "surrogate", "object"]
)
def test_a_value_that_json_does_not_have_is_an_error(document: Any) -> None:
    (error,) = checker("config").errors(document)
    assert "cannot be written as JSON" in str(error)


@pytest.mark.parametrize(("size", "is_valid"), [(12, True), (12.0, True), (12.5, False), (True, False)])
def test_a_whole_number_may_be_written_with_a_point(size: Any, is_valid: bool) -> None:
    document = {**DATASET, "metadata": {"size": size}}
    assert (checker("evaluation_dataset").errors(document) == []) is is_valid
    assert JUDGES["evaluation_dataset"].is_valid(document) is is_valid


@settings(deadline=None)
@given(name=st.sampled_from(SCHEMAS), document=json_values)
def test_any_json_gets_a_verdict(name: str, document: Any) -> None:
    assert (not checker(name).errors(document)) == FAST_JUDGES[name].is_valid(document)


def test_a_misspelt_field_in_a_giant_object_is_found_missing_quickly() -> None:
    giant = {f"dataset_i{number}": number for number in range(200_000)}
    assert len(checker("evaluation_dataset").errors(giant)) == 4
