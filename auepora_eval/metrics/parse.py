"""Names to metrics: `recall@5`, `mean_latency[retrieval]`, `rougeL_answer[stem=false]`.

A name is `base`, `base@number`, `base[option]` or `base@number[option]`. The number goes to the
metric's first numeric parameter and a bare option to its first textual one; `[key=value]` names its
parameter. `parse_metric(metric.name) == metric` holds for every metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from ..core.batch import has_field
from ..core.metrics_base import METRICS, Metric, SampleMetric
from ..core.types import EvaluationSample
from ..errors import UnknownNameError
from . import (
    additional,
    answer_diversity,
    candidates,
    citations,
    counterfactual,
    diversity,
    generation_text,
    grounding,
    labels,
    load,
    noise,
    rejection,
    relevance,
    retrieval_basic,
    retrieval_more,
    retrieval_text,
    spans,
)

# The families are imported for their registration; naming them keeps the imports from looking unused.
FAMILIES = (
    additional,
    answer_diversity,
    candidates,
    citations,
    counterfactual,
    diversity,
    generation_text,
    grounding,
    labels,
    load,
    noise,
    rejection,
    relevance,
    retrieval_basic,
    retrieval_more,
    retrieval_text,
    spans,
)

SHORT_NAMES = {f"p{percent}_latency": f"latency@{percent / 100:g}" for percent in (50, 90, 95, 99)}
SHORT_NAMES["rougeL"] = "rougeL_answer"

_SHAPE = re.compile(r"(?P<base>\w+)(?:@(?P<number>[^\[\]@]+))?(?:\[(?P<options>.*)\])?")


def parse_metric(name: str) -> SampleMetric:
    """The metric of that name.

    >>> parse_metric("recall@5")
    RecallAtK(k=5)
    """
    match = _SHAPE.fullmatch(name.strip())
    if match is None:
        raise UnknownNameError(f"{name!r} is not a metric name: write base@number[option], such as recall@5")
    base, number, options = match["base"], match["number"], match["options"]
    short = SHORT_NAMES.get(base)
    if short is not None and number is None:
        base, _, number = short.partition("@")
    metric = METRICS.get(base)
    arguments = dict(_arguments(name, metric, number or None, options))
    missing = [f.name for f in _parameters(metric) if f.default is MISSING and f.name not in arguments]
    if missing:
        raise UnknownNameError(f"the metric {name!r} needs its {missing[0]}: write, for example, {base}@5")
    try:
        return metric(**arguments)
    except ValueError as error:
        raise UnknownNameError(f"the metric {name!r}: {error}") from error


def parse_metrics(names: str | Iterable[str]) -> list[Metric]:
    """Several metrics, from a list or from one string with commas between the names."""
    if isinstance(names, str):
        names = _split_outside_brackets(names)
    return [parse_metric(name) for name in names if name.strip()]


def default_metrics(samples: Sequence[EvaluationSample], *, top_k: int = 5) -> list[Metric]:
    """The usual metrics for what the samples have: retrieval for gold documents, text for references."""
    names = [f"recall@{top_k}", f"precision@{top_k}", f"hit@{top_k}", "mrr", "map", f"ndcg@{top_k}"]
    names += ["exact_match", "token_f1", "rougeL_answer", "bleu", "mean_latency", "p95_latency"]
    metrics = [parse_metric(name) for name in names]
    return [m for m in metrics if all(any(has_field(s, name) for s in samples) for name in m.requires)]


def _arguments(
    name: str, metric: type[SampleMetric], number: str | None, options: str | None
) -> Iterable[tuple[str, Any]]:
    parameters = _parameters(metric)
    if number is not None:
        parameter = next((p for p in parameters if kind_of(p) in ("int", "float") and not p.kw_only), None)
        if parameter is None:
            raise UnknownNameError(f"the metric {name!r} takes no number after @")
        yield parameter.name, _value(name, parameter, number)
    for option in _split_outside_brackets(options or ""):
        key, _, value = option.partition("=")
        if not option:
            continue
        # An = inside brackets belongs to a name within this name: noise_drop[rouge1[stem=false]].
        if "=" in option and "[" not in key:
            parameter = next((p for p in parameters if p.name == key.strip()), None)
        else:
            parameter, value = next((p for p in parameters if kind_of(p) == "str"), None), option
        if parameter is None:
            known = ", ".join(p.name for p in parameters) or "none"
            raise UnknownNameError(f"the metric {name!r} has no option {key!r}; its options are: {known}")
        yield parameter.name, _value(name, parameter, value.strip())


def _split_outside_brackets(text: str) -> list[str]:
    """Cut at the commas that are not inside brackets: names may hold names."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _parameters(metric: type[SampleMetric]) -> tuple[Field[Any], ...]:
    return fields(metric)  # type: ignore[arg-type]  # every registered metric is a dataclass


def kind_of(parameter: Field[Any]) -> str:
    """What a parameter of a metric is: "int", "float", "bool" or "str"."""
    return str(parameter.type).split(" |")[0]  # annotations are text: "int | None" is an int here


def _value(name: str, parameter: Field[Any], text: str) -> Any:
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _flag, "str": str}
    try:
        return readers[kind_of(parameter)](text)
    except ValueError:
        raise UnknownNameError(
            f"the metric {name!r}: {parameter.name} must be of type {kind_of(parameter)}, not {text!r}"
        ) from None


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise ValueError(text)
