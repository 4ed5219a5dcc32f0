"""Our formats as JSON Schemas (draft 2020-12), and a checker that lists every error with its place.

The checker knows the keywords that our schemas use, and refuses a schema with any other. Why there is one at
all: docs/decisions/0008-schemas-without-a-validator-package.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from functools import cache, partial
from typing import Any

import msgspec

from ..errors import DataError, UnknownNameError
from . import schema_words as words
from .schema_types import NotTyped, type_for
from .schema_words import Finding, SchemaError, Steps, date_time, is_type

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
Found = list[Finding]
_Check = Callable[[Any, Steps, Found], None]

_NAMED = 100
_SILENT = frozenset({"$schema", "$defs", "title", "description"})
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SIZES: dict[str, tuple[type[Sized], str]] = {
    "minProperties": (dict, "fields"),
    "minItems": (list, "items"),
    "maxItems": (list, "items"),
    "minLength": (str, "characters"),
}


def schema(name: str) -> dict[str, Any]:
    """The schema of that name, as a dict of your own."""
    from importlib.resources import files

    if name not in SCHEMAS:
        raise UnknownNameError(f"there is no schema {name!r:.80}. The schemas are {', '.join(SCHEMAS)}.")
    content = (files(__package__) / "schemas" / f"{name}.schema.json").read_bytes()
    loaded: dict[str, Any] = msgspec.json.decode(content)
    return loaded


@cache
def checker(name: str, *, fast: bool = True) -> Checker:
    """The checker for one of our schemas; it is made once."""
    # The lenient schemas name few fields; what the strict ones know beside them is no misspelling.
    strict = schema(name.removesuffix(".lenient"))
    return Checker(schema(name), f"{name}.schema.json", fast=fast, known=field_names(strict))


def field_names(part: Any) -> frozenset[str]:
    """Every field that a schema knows, anywhere in a document."""
    if isinstance(part, list):
        return frozenset().union(*map(field_names, part))
    if not isinstance(part, dict):
        return frozenset()
    properties = part.get("properties")
    own = frozenset(properties) if isinstance(properties, dict) else frozenset[str]()
    return own.union(*map(field_names, part.values()))


def schema_errors(document: Any, schema: Schema) -> Iterator[SchemaError]:
    """Every error of a document, in the order of the schema; none if the document is valid."""
    return iter(Checker(schema).errors(document))


class Checker:
    """A schema that is ready to check documents.

    Arrays are first offered whole to msgspec, as a type made from the schema; only one that it refuses is
    walked through. `fast=False` walks always: the verdict is the same.
    """

    def __init__(
        self,
        schema: Schema,
        where: str = "schema",
        *,
        fast: bool = True,
        known: frozenset[str] = frozenset(),
    ) -> None:
        self._root, self._where, self._fast, self._known = schema, where, fast, known
        self._definitions: dict[str, _Check | None] = {}
        self._check = self._compiled(schema, "$")

    def errors(self, document: Any) -> list[SchemaError]:
        """Every error of a document."""
        found: Found = []
        self._check(document, (), found)
        return [SchemaError(words.json_path(each.steps), each.message) for each in found]

    def _compiled(self, node: Any, place: str) -> _Check:
        """What a part of the schema demands, as one function."""
        if not isinstance(node, dict):
            raise self._wrong(place, "a schema is an object here")
        if "$ref" in node:
            self._refuse_others(node, {"$ref"}, place)
            return self._referred(node["$ref"], place)
        makers: dict[str, Callable[[Schema, str], _Check]] = {
            "anyOf": self._choice,
            "oneOf": self._choice,
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": self._additional,
            "items": self._items,
            "enum": self._enum,
            "format": self._format,
            **{keyword: partial(self._size, keyword) for keyword in _SIZES},
            **{keyword: partial(self._bound, keyword) for keyword in ("minimum", "maximum")},
        }
        self._refuse_others(node, {"type", *makers}, place)
        types = self._types(node, place)
        checks = tuple(maker(node, place) for keyword, maker in makers.items() if keyword in node)

        def check(value: Any, steps: Steps, found: Found) -> None:
            if types and not any(is_type(value, name) for name in types):
                found.append(Finding(steps, words.wrong_type(value, types), of_other_type=True))
                return
            for each in checks:
                each(value, steps, found)

        return check

    def _refuse_others(self, node: Schema, known: set[str], place: str) -> None:
        for keyword in node:
            if keyword not in known and keyword not in _SILENT:
                raise self._wrong(place, f"the keyword {keyword!r:.40} is not one that is checked")

    def _wrong(self, place: str, what: str) -> DataError:
        return DataError(f"{self._where}: {place}", f"{what}.", fix="Change the schema, or the checker.")

    def _types(self, node: Schema, place: str) -> tuple[str, ...]:
        named = node.get("type", ())
        types = (named,) if isinstance(named, str) else tuple(named)
        if not _TYPES.issuperset(types):
            raise self._wrong(place, f"there is no type {named!r:.60}")
        return types

    def _definition(self, reference: str, place: str) -> Schema:
        name = reference.removeprefix("#/$defs/")
        if name == reference or name not in self._root.get("$defs", {}):
            raise self._wrong(place, f"{reference!r:.80} refers to nothing in $defs")
        found: Schema = self._root["$defs"][name]
        return found

    def _referred(self, reference: str, place: str) -> _Check:
        if reference in self._definitions:
            check = self._definitions[reference]
            if check is None:
                raise self._wrong(place, f"{reference!r:.80} refers to itself")
            return check
        self._definitions[reference] = None
        check = self._compiled(self._definition(reference, place), f"$.$defs.{reference[8:]}")
        self._definitions[reference] = check
        return check

    def _properties(self, node: Schema, place: str) -> _Check:
        checks = {
            name: self._compiled(part, f"{place}.properties.{name}")
            for name, part in node["properties"].items()
        }

        def check(value: Any, steps: Steps, found: Found) -> None:
            if isinstance(value, dict):
                for name, part in checks.items():
                    if name in value:
                        part(value[name], (*steps, name), found)

        return check

    def _required(self, node: Schema, place: str) -> _Check:
        names = tuple(node["required"])
        known = frozenset({*names, *node.get("properties", ()), *self._known})

        def check(value: Any, steps: Steps, found: Found) -> None:
            if isinstance(value, dict):
                found.extend(
                    Finding(steps, words.missing(name, value, known)) for name in names if name not in value
                )

        return check

    def _additional(self, node: Schema, place: str) -> _Check:
        rule, known = node["additionalProperties"], tuple(node.get("properties", ()))
        if rule is False:

            def refuse(value: Any, steps: Steps, found: Found) -> None:
                if isinstance(value, dict):
                    unknown = [key for key in value if key not in known]
                    # To look for what was meant costs time: a hostile object has a million keys.
                    found.extend(Finding(steps, words.unknown_field(key, known)) for key in unknown[:_NAMED])
                    found.extend(Finding(steps, words.unknown_field(key, ())) for key in unknown[_NAMED:])

            return refuse
        part = self._compiled(rule, f"{place}.additionalProperties")

        def check(value: Any, steps: Steps, found: Found) -> None:
            if isinstance(value, dict):
                for key, each in value.items():
                    if key not in known:
                        part(each, (*steps, key), found)

        return check

    def _items(self, node: Schema, place: str) -> _Check:
        part = self._compiled(node["items"], f"{place}.items")
        typed = self._array_type(node["items"])

        def check(value: Any, steps: Steps, found: Found) -> None:
            if not isinstance(value, list) or (typed is not None and _fits(value, typed)):
                return
            for place, each in enumerate(value):
                part(each, (*steps, place), found)

        return check

    def _array_type(self, items: Schema) -> Any:
        if not self._fast:
            return None
        try:
            return list[type_for(items, lambda reference: self._definition(reference, "$"))]  # type: ignore[misc]
        except NotTyped:
            return None

    def _choice(self, node: Schema, place: str) -> _Check:
        keyword = "oneOf" if "oneOf" in node else "anyOf"
        if "oneOf" in node and "anyOf" in node:
            raise self._wrong(place, "anyOf and oneOf in one place are not checked")
        parts = node[keyword]
        branches = [self._compiled(part, f"{place}.{keyword}[{number}]") for number, part in enumerate(parts)]
        titles = [str(self._resolved(part).get("title", "")) for part in parts]
        known = [self._fields(part) for part in parts]

        def check(value: Any, steps: Steps, found: Found) -> None:
            failures: list[Found] = []
            fitting = []
            for title, branch in zip(titles, branches, strict=True):
                failure: Found = []
                branch(value, steps, failure)
                failures.append(failure)
                if not failure:
                    fitting.append(title)
                    if keyword == "anyOf":
                        return
            if len(fitting) > 1:
                found.append(words.ambiguous(steps, fitting))
            elif not fitting:
                found.extend(words.nearest(value, steps, failures, titles, known))

        return check

    def _resolved(self, part: Schema) -> Schema:
        return self._definition(part["$ref"], "$") if "$ref" in part else part

    def _fields(self, part: Schema) -> frozenset[str]:
        """The fields that a form knows, or the forms that it may have."""
        part = self._resolved(part)
        forms = (*part.get("anyOf", ()), *part.get("oneOf", ()))
        return frozenset(part.get("properties", ())).union(*(self._fields(form) for form in forms))

    def _enum(self, node: Schema, place: str) -> _Check:
        options = tuple(node["enum"])
        if not all(isinstance(option, str) for option in options):
            raise self._wrong(place, "only texts are checked in an enum")

        def check(value: Any, steps: Steps, found: Found) -> None:
            if not isinstance(value, str) or value not in options:
                found.append(Finding(steps, words.not_an_option(value, options)))

        return check

    def _format(self, node: Schema, place: str) -> _Check:
        if node["format"] != "date-time":
            raise self._wrong(place, f"the format {node['format']!r:.40} is not checked")

        def check(value: Any, steps: Steps, found: Found) -> None:
            if isinstance(value, str) and not date_time(value):
                found.append(Finding(steps, words.not_a_time(value)))

        return check

    def _size(self, keyword: str, node: Schema, place: str) -> _Check:
        kind, unit = _SIZES[keyword]
        bound, too_many = node[keyword], keyword.startswith("max")

        def check(value: Any, steps: Steps, found: Found) -> None:
            if isinstance(value, kind) and (len(value) > bound if too_many else len(value) < bound):
                found.append(Finding(steps, words.wrong_size(len(value), bound, unit)))

        return check

    def _bound(self, keyword: str, node: Schema, place: str) -> _Check:
        low, high = node.get("minimum"), node.get("maximum")
        bound, is_top = node[keyword], keyword == "maximum"

        def check(value: Any, steps: Steps, found: Found) -> None:
            if is_type(value, "number") and (value > bound if is_top else value < bound):
                found.append(Finding(steps, words.out_of_range(value, low, high)))

        return check


def _fits(value: list[Any], typed: Any) -> bool:
    try:
        msgspec.convert(value, typed)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
