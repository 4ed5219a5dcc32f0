"""Is a document what it should be? Every error with its JSON path, before a run is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any

from .format_checks import (
    config_errors,
    dataset_errors,
    ground_truth_errors,
    prediction_errors,
    results_errors,
)
from .schema import SCHEMAS, Checker, checker, schema
from .schema_words import SchemaError


class DataFormatValidator:
    """Checks documents against their schema, and what a schema cannot say.

    Each method returns the errors as texts, `"$.queries[3].citations[0]: what is wrong. What to do."`; an
    empty list means valid. `lenient` asks for the few fields without which nothing works, and leaves the
    types of all others alone.

    >>> DataFormatValidator().validate_evaluation_dataset({"dataset_id": "d", "name": "D", "querys": []})
    ["$: the field 'version' is missing. Add it.", \
"$: the field 'queries' is missing. Is it the one called 'querys'? Rename that."]
    """

    def __init__(self, lenient: bool = False) -> None:
        self.lenient = lenient

    @cached_property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The schemas that are used, by name."""
        names = [name for name in SCHEMAS if not name.endswith(".lenient")]
        return {name: schema(self._chosen(name)) for name in names}

    def validate_evaluation_dataset(self, data: Any) -> list[str]:
        """The errors of an evaluation dataset (`.eval.json`)."""
        return self._validated(data, "evaluation_dataset", dataset_errors)

    def validate_ground_truth(self, data: Any) -> list[str]:
        """The errors of ground truth (`.gt.json`): one annotation, a list of them, or a set."""
        return self._validated(data, "ground_truth", ground_truth_errors)

    def validate_evaluation_results(self, data: Any) -> list[str]:
        """The errors of evaluation results (`.results.json`); the rows alone are enough for the lenient."""
        from .results_tables import are_rows, rows_checker

        if self.lenient and are_rows(data):
            return _joined(rows_checker().errors(data), results_errors(data))
        return self._validated(data, "evaluation_results", results_errors)

    def validate_benchmark(self, data: Any) -> list[str]:
        """The errors of benchmark data (`.benchmark.json`)."""
        return self._validated(data, "benchmark", _none)

    def validate_config(self, data: Any) -> list[str]:
        """The errors of a configuration (`.config.yaml`); of an experiment all but those of its metrics."""
        from .experiment_checks import configuration_errors

        return configuration_errors(data)

    def validate_predictions(self, data: Any) -> list[str]:
        """The errors of a prediction, or of a list of them."""
        rules = _predictions() if isinstance(data, list) else checker("prediction")
        return _joined(rules.errors(data), prediction_errors(data))

    def validate_label_set(self, data: Any) -> list[str]:
        """The errors of a label set; each names its record, as in "samples[12] (fhri_013): ..."."""
        from .annotations import label_set_errors

        return label_set_errors(data)

    def _validated(self, data: Any, name: str, further: Callable[[Any], Iterable[SchemaError]]) -> list[str]:
        return _joined(checker(self._chosen(name)).errors(data), further(data))

    def _chosen(self, name: str) -> str:
        lenient = f"{name}.lenient"
        return lenient if self.lenient and lenient in SCHEMAS else name


def config_form_errors(data: Any) -> list[str]:
    """The errors of a configuration in its form, whoever reads it."""
    return _joined(checker("config").errors(data), config_errors(data))


@cache
def _predictions() -> Checker:
    return Checker({"type": "array", "items": schema("prediction")}, "predictions")


def _none(data: Any) -> Iterable[SchemaError]:
    return ()


def _joined(errors: list[SchemaError], further: Iterable[SchemaError]) -> list[str]:
    """Both, but a place that the schema complained about is not complained about again."""
    places = {error.path for error in errors}
    return [*map(str, errors), *(str(error) for error in further if error.path not in places)]
