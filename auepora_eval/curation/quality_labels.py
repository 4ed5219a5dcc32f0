"""Checks of labels: those that cannot do their work, and values that no metric reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .quality_issue import QualityIssue
from .quality_spelling import spelt_alike
from .quality_view import DatasetView

ENOUGH = 10  # samples from which on a label of one value says something
FEW = 0.02
_MOST_VALUES = 50  # a label of more values is a text or an id, not a category
# The values of labels.scenario that metrics ask for by name; any other is a kind of noise, which needs a base
# question (labels.variant_of) or a level (labels.noise_ratio) to be contrasted with.
SCENARIOS = ("base", "closed_book", "counterfactual", "unanswerable")


def check_labels(view: DatasetView) -> Iterator[QualityIssue]:
    """Labels with one value everywhere, labels on a few samples only, misspelt names and values."""
    total = len(view.samples)
    values: dict[str, Counter[str]] = {}
    for sample in view.samples:
        for name, value in sample.labels.items():
            values.setdefault(name, Counter())[_shown(value)] += 1
    carriers = {name: counter.total() for name, counter in values.items()}
    for name, counter in values.items():
        meant = _misspelt(name, carriers[name], Counter(carriers))
        if meant:
            yield _issue(
                "warning", f"the label {name!r:.60} looks like a misspelt {meant!r:.60}.", name, "Rename it."
            )
        elif len(counter) == 1 and carriers[name] == total >= ENOUGH:
            message = f"the label {name!r:.60} is {next(iter(counter)):.60} for all {total} samples."
            yield _issue("note", message, name, "It cannot tell samples apart: drop it, or fill it in.")
        elif carriers[name] < FEW * total:
            message = f"the label {name!r:.60} is on {carriers[name]} of {total} samples only."
            yield _issue("note", message, name, "Results split by it say little: fill it in, or drop it.")
        yield from _misspelt_values(view, name, counter)


def check_label_values(view: DatasetView) -> Iterator[QualityIssue]:
    """Values that the metrics cannot use: a variant of nothing, an unknown scenario, a ratio that is none."""
    contrasted = {
        str(sample.labels.get("scenario"))
        for sample in view.samples
        if sample.labels.get("variant_of") is not None or sample.labels.get("noise_ratio") is not None
    }
    for place, sample in enumerate(view.samples):
        for name, message, fix in _unusable(sample.labels, view, contrasted):
            if name == "variant_of" and str(sample.labels[name]) == sample.sample_id:
                message = "the sample is a variant of itself."
            if message:
                yield QualityIssue(
                    "warning",
                    "label_values",
                    message,
                    where=view.where(place, f"labels.{name}"),
                    sample_id=sample.sample_id,
                    fix=fix,
                )


def _unusable(
    labels: dict[str, Any], view: DatasetView, contrasted: set[str]
) -> Iterator[tuple[str, str, str]]:
    base, scenario = labels.get("variant_of"), labels.get("scenario")
    answerable, ratio = labels.get("answerable"), labels.get("noise_ratio")
    if base is not None:
        message = (
            "" if str(base) in view.places_of_ids else f"its base question {base!r:.60} is no sample's id."
        )
        yield "variant_of", message, "Correct the id: variants are scored beside their base question."
    if scenario is not None and scenario not in SCENARIOS and str(scenario) not in contrasted:
        yield (
            "scenario",
            f"no metric reads the scenario {scenario!r:.60}.",
            f"Write {', '.join(SCENARIOS)}, or add variant_of or noise_ratio to a kind of noise.",
        )
    if answerable is not None and not isinstance(answerable, bool):
        yield "answerable", f"answerable is {answerable!r:.60}, not true or false.", "Change it."
    elif answerable is True and scenario == "unanswerable":
        yield "answerable", "answerable is true, but the scenario is 'unanswerable'.", "Change one of them."
    if ratio is not None and not (
        isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 <= ratio <= 1
    ):
        yield "noise_ratio", f"noise_ratio is {ratio!r:.60}, not a number from 0 to 1.", "Change it."


def _misspelt_values(view: DatasetView, name: str, counter: Counter[str]) -> Iterator[QualityIssue]:
    if len(counter) > _MOST_VALUES:
        return
    likely = {value: near for value, count in counter.items() if (near := _misspelt(value, count, counter))}
    if not likely:
        return
    for place, sample in enumerate(view.samples):
        meant = likely.get(_shown(sample.labels.get(name)))
        if meant is not None:
            yield QualityIssue(
                "warning",
                "labels",
                f"{name} is {_shown(sample.labels[name])!r:.60}, which looks like a misspelt {meant!r:.60}.",
                where=view.where(place, f"labels.{name}"),
                sample_id=sample.sample_id,
                fix="Correct it: results are split by the exact value.",
            )


def _misspelt(text: str, count: int, counter: Counter[str]) -> str:
    """A far more frequent text that this one may have been meant to be; "" if there is none."""
    for other, times in counter.most_common():
        if times <= count or other == text:
            break
        if _folded(text) == _folded(other):
            return other
        if count == 1 and times >= 5 and spelt_alike(text, other):
            return other
    return ""


def _folded(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)[:200]


def _issue(severity: str, message: str, name: str, fix: str) -> QualityIssue:
    return QualityIssue(severity, "labels", message, where=f"labels.{name}", fix=fix)
