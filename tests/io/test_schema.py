"""The schemas are the seed's, the checker agrees with two others, and its words help."""

from __future__ import annotations

import copy
from importlib.resources import files
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.io.schema import SCHEMAS, Checker, checker, schema
from tests.io.documents import VALID, seed_example, spoilt

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
def test_valid_documents_are_valid(name: str, document: Any) -> None:
    before = copy.deepcopy(document)
    assert Checker(schema(name)).errors(document) == []
    assert document == before


@settings(max_examples=200, deadline=None)
@given(data=st.data(), case=st.sampled_from(VALID))
def test_the_verdict_is_that_of_two_other_checkers(data: st.DataObject, case: tuple[str, Any]) -> None:
    name, document = case
    document = data.draw(spoilt(document))
    ours = checker(name).errors(document)
    assert (not ours) == JUDGES[name].is_valid(document) == FAST_JUDGES[name].is_valid(document)
    assert all(error.path.startswith("$") and error.message for error in ours)
