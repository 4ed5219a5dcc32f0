"""Our formats as JSON Schemas (draft 2020-12). jsonschema-rs finds the errors and words them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import msgspec

from ..core.settings import PLAN_KEYS
from ..errors import DataError, UnknownNameError
from ..read.text import kind_of

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

SCHEMAS = (
    "evaluation_dataset",
    "ground_truth",
    "evaluation_results",
    "benchmark",
    "config",
    "prediction",
    "label_set",
)
Schema = Mapping[str, Any]
Steps = tuple[str | int, ...]
_MAX_ERRORS = 10_000  # of one document: each costs some 20 microseconds
_VALUE = "\0"  # stands for the value in a message: a whole document may be the value
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")  # keys that a JSON path shows without quotes


class SchemaError(NamedTuple):
    """One thing that is wrong with a document."""

    path: str
    message: str

    def __str__(self) -> str:
        return self.message if self.path == "$" else f"{self.path}: {self.message}"


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
    return Checker(schema(name))


class Checker:
    """A schema that is ready to check documents."""

    def __init__(self, schema: Schema) -> None:
        from jsonschema_rs import Draft202012Validator

        self._validator = Draft202012Validator(dict(schema), validate_formats=True, mask=_VALUE)

    def errors(self, document: object) -> list[SchemaError]:
        """Return every error of a document; none if it is valid."""
        try:
            if self._validator.is_valid(document):
                return []
            errors = list(_leaves(islice(self._validator.iter_errors(document), _MAX_ERRORS)))
        except (ValueError, RecursionError) as error:  # a value that JSON does not have, or nested too deeply
            return [SchemaError("$", f"it cannot be written as JSON: {error!s:.80}. Change it.")]
        return [SchemaError(json_path(error.instance_path), _message(error)) for error in errors]


def _leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield the errors; where a value has none of several forms, those of the form that is nearest."""
    for error in errors:
        kind: Any = error.kind
        forms = [list(_leaves(of_form)) for of_form in getattr(kind, "context", None) or ()]
        if not forms or not all(forms):
            yield error
            continue

        def distance(of_form: list[ValidationError], path: Any = error.instance_path) -> tuple[bool, bool]:
            at_top = [each.kind.name for each in of_form if each.instance_path == path]
            return "type" in at_top, bool(at_top)

        yield from min(forms, key=distance)


def _message(error: ValidationError) -> str:
    message = error.message.replace(_VALUE, shown(error.instance))
    return f"{' '.join(message.split()):.300}."


def json_path(steps: Iterable[Any]) -> str:
    """Return the steps from the top of a document as a JSON path.

    >>> json_path(["queries", 3, "hit@1"])
    '$.queries[3]["hit@1"]'
    """
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if _PLAIN.fullmatch(str(step)) else f"[{json.dumps(str(step)[:80])}]"
    return path


def shown(value: Any) -> str:
    """Return a value for a message: short, on one line, whatever it is."""
    if isinstance(value, str):
        return repr(value[:40]) + ("..." if len(value) > 40 else "")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**1023:
        return "a huge number"
    return repr(value) if isinstance(value, int | float) else kind_of(value)


class DataFormatValidator:
    """Checks documents against their schema, and what a schema cannot say.

    Each method returns the errors as texts, `"$.queries[3].citations[0]: what is wrong. What to do."`; an
    empty list means valid.

    >>> DataFormatValidator().validate_evaluation_dataset({"dataset_id": "d", "name": "D", "querys": []})
    ["the field 'version' is missing. Add it.", \
"the field 'queries' is missing. Is it the one called 'querys'? Rename that."]
    """

    @cached_property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The schemas, by name."""
        return {name: schema(name) for name in SCHEMAS}

    def validate_evaluation_dataset(self, data: Any) -> list[str]:
        """The errors of an evaluation dataset (`.eval.json`)."""
        return self._validated(data, "evaluation_dataset", dataset_errors)

    def validate_ground_truth(self, data: Any) -> list[str]:
        """The errors of ground truth (`.gt.json`): one annotation, a list of them, or a set."""
        return self._validated(data, "ground_truth", ground_truth_errors)

    def validate_evaluation_results(self, data: Any) -> list[str]:
        """The errors of evaluation results (`.results.json`)."""
        return self._validated(data, "evaluation_results", results_errors)

    def validate_benchmark(self, data: Any) -> list[str]:
        """The errors of benchmark data (`.benchmark.json`)."""
        return self._validated(data, "benchmark", lambda _: ())

    def _validated(self, data: Any, name: str, further: Callable[[Any], Iterable[SchemaError]]) -> list[str]:
        return [*schema_errors(data, name, further(data)), *self._custom_validations(data)]

    def _custom_validations(self, data: Any) -> list[str]:
        """Return further errors: a subclass may add rules of its own."""
        return []


def config_form_errors(data: Any) -> list[str]:
    """The errors of a configuration in its form, whoever reads it."""
    return schema_errors(data, "config", config_errors(data))


def schema_errors(data: Any, name: str, further: Iterable[SchemaError]) -> list[str]:
    """The errors of a schema, and further ones in places that the schema did not complain about."""
    errors = checker(name).errors(data)
    places = {error.path for error in errors}
    return [*map(str, errors), *(str(error) for error in further if error.path not in places)]


# What a schema cannot say of our formats: ids are unique, spans end after their start, totals add up.
#
# Values of a wrong type are left to the schema; every check survives any JSON value.

Rows = Iterable[tuple[Steps, dict[Any, Any]]]  # made while they are walked through: files can be large
_COUNTS = ("total", "successful", "failed")


def dataset_errors(data: Any) -> Iterator[SchemaError]:
    """Of an evaluation dataset: ids that come twice, spans that cannot be."""
    yield from _repeated(_rows(data, "queries"), "query_id", "Give each query its own id.")
    yield from _repeated(_rows(data, "documents"), "document_id", "Give each document its own id.")
    for steps, query in _rows(data, "queries"):
        yield from _span_errors(_rows(query, "citations", steps))
    yield from _span_errors(_rows(data, "citations"))


def ground_truth_errors(data: Any) -> Iterator[SchemaError]:
    """Of annotations: ids that come twice, spans that cannot be."""
    annotations: list[tuple[Steps, dict[Any, Any]]] = [((), data)]  # one that is the whole document
    if isinstance(data, list):
        annotations = list(_objects((), data))
    elif not isinstance(data, dict) or "annotations" in data:
        annotations = list(_rows(data, "annotations"))
    yield from _repeated(annotations, "annotation_id", "Give each annotation its own id.")
    for steps, annotation in annotations:
        yield from _span_errors(_rows(annotation, "citations", steps))


def label_errors(data: Any) -> Iterator[SchemaError]:
    """Of a label set: ids that come twice."""
    yield from _repeated(_rows(data, "samples"), "id", "Give each sample its own id.")


def results_errors(data: Any) -> Iterator[SchemaError]:
    """Of results: ids that come twice, counts that do not add up.

    What the system cited is recorded as it was; a wrong span is the system's, not the file's.
    """
    yield from _repeated(_rows(data, "query_results"), "query_id", "Keep one row per query.")
    summary = data.get("summary") if isinstance(data, dict) else None
    if isinstance(summary, dict):
        total, successful, failed = (summary.get(f"{name}_queries") for name in _COUNTS)
        if not (_is_whole(total) and _is_whole(successful) and _is_whole(failed)):
            return
        if total != successful + failed:
            sum_of = f"{shown(successful)} successful and {shown(failed)} failed"
            what = f"total_queries is {shown(total)}, but {sum_of} make {shown(successful + failed)}."
            yield SchemaError("$.summary", f"{what} Correct the counts.")


def config_errors(data: Any) -> Iterator[SchemaError]:
    """Of a configuration: the traffic of an experiment goes to its variants, all of it."""
    block = data.get("ab_testing") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        return
    for steps, experiment in [(("ab_testing",), block), *_rows(block, "experiments", ("ab_testing",))]:
        variants = list(_rows(experiment, "variants", steps))
        yield from _repeated(variants, "variant_id", "Give each variant its own id.")
        shares = experiment.get("traffic_allocation")
        if not isinstance(shares, dict) or "variants" not in experiment:
            continue
        path = json_path((*steps, "traffic_allocation"))
        if {str(row.get("variant_id")) for _, row in variants} != {str(name) for name in shares}:
            yield SchemaError(path, "it does not name the variants. Give each variant_id its share.")
        values = [share for share in shares.values() if _is_number(share) and 0 <= share <= 1]
        if len(values) == len(shares) and abs(math.fsum(values) - 1) > 0.01:
            yield SchemaError(path, f"the shares sum to {math.fsum(values):g}, not 1. Change them.")


def _rows(data: Any, key: str, steps: Steps = ()) -> Rows:
    """The objects in a list of a document, each with its place."""
    rows = data.get(key) if isinstance(data, dict) else None
    return _objects((*steps, key), rows) if isinstance(rows, list) else ()


def _objects(steps: Steps, values: Iterable[Any]) -> Rows:
    return (((*steps, place), value) for place, value in enumerate(values) if isinstance(value, dict))


def _repeated(rows: Rows, field: str, fix: str) -> Iterator[SchemaError]:
    first: dict[Any, int | str] = {}
    for steps, row in rows:
        identifier = row.get(field)
        if not (isinstance(identifier, str) or _is_whole(identifier)):
            continue
        if identifier in first:
            place = json_path((*steps[:-1], first[identifier]))
            yield _at(steps, field, f"{shown(identifier)} was used already, at {place}. {fix}")
        elif steps:
            first[identifier] = steps[-1]


def _span_errors(citations: Rows) -> Iterator[SchemaError]:
    for steps, citation in citations:
        span = {name: citation.get(name) for name in ("start_char", "end_char")}
        for name, place in span.items():
            if _is_number(place) and place < 0:
                yield _at(steps, name, f"{shown(place)} is negative. Count characters from 0.")
        start, end = span.values()
        if _is_number(start) and _is_number(end) and start >= end:
            yield SchemaError(
                json_path(steps),
                f"the span ends at {shown(end)}, not after its start at {shown(start)}. "
                "Swap start_char and end_char, or drop the citation.",
            )


def _at(steps: Steps, field: str, message: str) -> SchemaError:
    return SchemaError(json_path((*steps, field)), message)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> TypeGuard[float]:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


# A document with errors is refused in one line: the first of them, and how many more there are.


class ErrorsError(DataError):
    """A document with errors: it says the first, and knows them all."""

    def __init__(self, where: str, errors: Sequence[str]) -> None:
        self.errors = tuple(errors)
        more = f" And {len(errors) - 1} more: auepora dataset check lists them." if len(errors) > 1 else ""
        super().__init__(where, errors[0] + more)


def check_no_errors(errors: Sequence[str], where: str) -> None:
    """DataError with the first error, if there is one."""
    if errors:
        raise ErrorsError(where, errors)
