"""Our formats as JSON Schemas (draft 2020-12), and a checker that lists each error with place and remedy.

jsonschema-rs finds the errors; `words` says what to do about each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ...core.settings import PLAN_KEYS
from ...errors import UnknownNameError
from . import words
from .words import Finding, SchemaError, Steps

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

SCHEMAS = (
    "evaluation_dataset",
    "evaluation_dataset.lenient",
    "ground_truth",
    "ground_truth.lenient",
    "evaluation_results",
    "evaluation_results.lenient",
    "benchmark",
    "config",
    "prediction",
    "label_set",
)
Schema = Mapping[str, Any]

# Errors of one document that are looked at: each costs some 20 microseconds.
_MAX_ERRORS = 10_000
# Unknown fields of one object for which the nearest name is looked up: a hostile object has a million.
_MAX_SUGGESTIONS = 100
# What the keywords of a schema count.
_UNITS = {
    "minProperties": "fields",
    "minItems": "items",
    "maxItems": "items",
    "minLength": "characters",
}


def schema(name: str) -> dict[str, Any]:
    """Return the schema of that name, as a new dict."""
    if name not in SCHEMAS:
        raise UnknownNameError(f"there is no schema {name!r:.80}. The schemas are {', '.join(SCHEMAS)}.")
    content = (files(__package__) / "schemas" / f"{name}.schema.json").read_bytes()
    document: dict[str, Any] = msgspec.json.decode(content)
    if name == "config":  # the keys of a plan are defined once, by RunSettings
        document["properties"] |= {key: setting.schema for key, setting in PLAN_KEYS.items()}
    return document


@cache
def checker(name: str) -> Checker:
    """Return the checker for one of our schemas; it is made once."""
    # The lenient schemas name few fields; a field that the strict one has is not a misspelling of another.
    strict = schema(name.removesuffix(".lenient"))
    return Checker(schema(name), known=field_names(strict))


def field_names(part: object) -> frozenset[str]:
    """Return every field that a schema names, anywhere in a document."""
    if isinstance(part, list):
        return frozenset().union(*map(field_names, part))
    if not isinstance(part, dict):
        return frozenset()
    properties = part.get("properties")
    own = frozenset(properties) if isinstance(properties, dict) else frozenset[str]()
    return own.union(*map(field_names, part.values()))


class _Document:
    """The document that is checked: says where in it an error is."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._positions: dict[int, dict[str, int]] = {}  # of the keys of an object, by its id

    def located(self, error: ValidationError) -> tuple[Steps, Any]:
        """Return the steps from the top of the document to the value of an error, and the value."""
        steps: list[str | int] = []
        value: Any = self._root
        for step in error.instance_path:
            # jsonschema-rs gives keys that are digits as numbers, and leaves empty keys out of the path.
            while isinstance(value, dict) and str(step) not in value and "" in value:
                steps.append("")
                value = value[""]
            step = str(step) if isinstance(value, dict) else step
            steps.append(step)
            value = value[step]
        if isinstance(value, dict) and "" in value and value != error.instance:
            steps.append("")
            value = value[""]
        return tuple(steps), value

    def order(self, error: ValidationError) -> tuple[float, ...]:
        """Return a sort key that gives errors the order of the document, parts before the whole."""
        places: list[float] = []
        value: Any = self._root
        for step in self.located(error)[0]:
            if isinstance(value, dict):
                if id(value) not in self._positions:
                    self._positions[id(value)] = {key: place for place, key in enumerate(value)}
                places.append(self._positions[id(value)].get(str(step), -1))
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                places.append(step)
                value = value[step] if step < len(value) else None
        return (*places, math.inf)


class Checker:
    """A schema that is ready to check documents. `known` are fields that a misspelt one cannot be."""

    def __init__(self, schema: Schema, *, known: frozenset[str] = frozenset()) -> None:
        from jsonschema_rs import Draft202012Validator

        self._root, self._known = dict(schema), known
        # The mask keeps whole documents out of messages that nobody reads.
        self._validator = Draft202012Validator(self._root, validate_formats=True, mask="it")

    def errors(self, document: object) -> list[SchemaError]:
        """Return every error of a document; none if it is valid."""
        try:
            if self._validator.is_valid(document):
                return []
            errors = islice(self._validator.iter_errors(document), _MAX_ERRORS)
            findings = list(self._findings(errors, _Document(document)))
        except (ValueError, RecursionError) as error:  # a value that JSON does not have, or nested too deeply
            return [SchemaError("$", f"it cannot be written as JSON: {error!s:.80}. Change it.")]
        return [SchemaError(words.json_path(each.steps), each.message) for each in findings]

    def _findings(self, errors: Iterable[ValidationError], document: _Document) -> Iterator[Finding]:
        """Yield what to report, in the order of the document; of a value of the wrong type only that."""
        ordered = sorted(errors, key=document.order)
        of_wrong_type = {tuple(error.instance_path) for error in ordered if error.kind.name == "type"}
        for error in ordered:
            if error.kind.name == "type" or tuple(error.instance_path) not in of_wrong_type:
                yield from self._explained(error, document)

    def _explained(self, error: ValidationError, document: _Document) -> Iterator[Finding]:
        kind: Any = error.kind
        keyword = kind.name
        node = self._node(error.schema_path[:-1])
        steps, value = document.located(error)
        if keyword in ("anyOf", "oneOf"):
            yield from self._of_a_choice(error, node, document)
        elif keyword == "additionalProperties":
            names = tuple(node.get("properties", ()))
            for number, name in enumerate(kind.unexpected):
                options = names if number < _MAX_SUGGESTIONS else ()
                yield Finding(steps, words.unknown_field(name, options))
        elif keyword == "type":
            types = [node["type"]] if isinstance(node["type"], str) else node["type"]
            yield Finding(steps, words.wrong_type(value, types), of_other_type=True)
        else:
            yield Finding(steps, self._message(keyword, kind, value, node))

    def _message(self, keyword: str, kind: Any, value: Any, node: Schema) -> str:
        if keyword == "required":
            known = frozenset({*node["required"], *node.get("properties", ()), *self._known})
            return words.missing(kind.property, value, known)
        if keyword == "enum":
            return words.not_an_option(value, kind.options)
        if keyword == "format":
            what = f"{words.shown(value)} is not a date and time with its offset."
            return f"{what} Write it like 2025-08-30T12:00:00Z."
        if keyword in _UNITS:
            return words.wrong_size(len(value), kind.limit, _UNITS[keyword])
        return words.out_of_range(value, node.get("minimum"), node.get("maximum"))

    def _of_a_choice(self, error: ValidationError, node: Schema, document: _Document) -> list[Finding]:
        """Return the errors of the form that was most likely meant, where a value has none of several."""
        steps, value = document.located(error)
        forms = [self._resolved(form) for form in node[error.kind.name]]
        titles = [str(form.get("title", "")) for form in forms]
        kind: Any = error.kind
        failures = [list(self._findings(errors, document)) for errors in kind.context]
        fitting = [title for title, failure in zip(titles, failures, strict=True) if not failure]
        if fitting:
            return [words.ambiguous(steps, fitting)]
        return words.nearest(value, steps, failures, titles, [self._fields(form) for form in forms])

    def _node(self, path: Iterable[str | int]) -> Schema:
        node: Any = self._root
        for step in path:
            # jsonschema-rs gives names that are digits as numbers.
            node = node[int(step)] if isinstance(node, list) else node[str(step)]
        part: Schema = node
        return part

    def _resolved(self, form: Schema) -> Schema:
        reference = form.get("$ref")
        return form if reference is None else self._node(reference.removeprefix("#/").split("/"))

    def _fields(self, form: Schema) -> frozenset[str]:
        """Return the fields of a form, or of the forms that it may have."""
        form = self._resolved(form)
        choices = (*form.get("anyOf", ()), *form.get("oneOf", ()))
        return frozenset(form.get("properties", ())).union(*(self._fields(choice) for choice in choices))
