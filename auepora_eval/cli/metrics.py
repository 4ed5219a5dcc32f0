"""List the metrics, or describe one in full.

Parts of a name in brackets may be left out.

  auepora metrics recall
"""

from __future__ import annotations

import inspect
import math
import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ..core.metrics_base import listed_metrics, metric_class, scale_text
from ..core.scores import has_field
from ..core.targets import QUESTIONS
from ..core.types import TargetCategory, as_target
from ..errors import UnknownNameError
from . import echo
from .common import open_samples
from .flags import add_flag, add_json

if TYPE_CHECKING:
    from ..core.metrics_base import SampleMetric

_LONGEST_NAME = 30  # of the columns of a terminal; a longer name has its options cut


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="show one metric in full, such as recall@5")
    add_flag(parser, "--target", "list the metrics of one target only", "TARGET")
    add_flag(parser, "--dataset", "list the metrics that this dataset supports", "FILE")
    add_json(parser)


def run(args: Namespace) -> int:
    metrics = [metric_class(args.name)] if args.name else listed_metrics()
    if args.target:
        metrics = _of_target(metrics, args.target)
    if args.dataset:
        metrics = _supported(metrics, args.dataset)
    if args.json:
        echo.say_json([_described(metric) for metric in metrics])
    elif args.name and metrics:
        _say_one(metrics[0])
    else:
        _say_all(metrics)
    return 0


def _of_target(metrics: list[type[SampleMetric]], name: str) -> list[type[SampleMetric]]:
    """Return the metrics of a target, which may be named by one of its words: faithfulness."""
    wanted = name.strip().upper()
    known = [target.name for target in TargetCategory]
    named = {target for target in known if wanted in (target, *target.split("_"))} or {wanted}
    chosen = [metric for metric in metrics if _target(metric).upper() in named]
    if not chosen and wanted not in known:
        raise UnknownNameError(f"there is no target {name!r}; the targets are {', '.join(known)}")
    return chosen


def _supported(metrics: list[type[SampleMetric]], dataset: str) -> list[type[SampleMetric]]:
    """Return the metrics whose required fields some sample of a dataset has."""
    required = {name for metric in metrics for name in metric.requires}
    missing = set(required)
    # Stops at the first sample that completes the fields: datasets may be large.
    for sample in open_samples(dataset, None):
        missing -= {name for name in missing if has_field(sample, name)}
        if not missing:
            break
    return [metric for metric in metrics if missing.isdisjoint(metric.requires)]


def _target(metric: type[SampleMetric]) -> str:
    return as_target(metric.target).name  # a class that `metric` did not decorate may have a plain text


def _described(metric: type[SampleMetric]) -> dict[str, Any]:
    text = inspect.cleandoc(metric.__doc__ or "")
    return {
        "name": metric.usage(),
        "target": _target(metric),
        "requires": list(metric.requires),
        "bounds": [bound if math.isfinite(bound) else None for bound in metric.bounds],
        "higher_is_better": metric.higher_is_better,
        "oracle": metric.oracle,
        "description": text,
    }


def _say_all(metrics: list[type[SampleMetric]]) -> None:
    """Print one line per metric, under its target."""
    by_target: dict[str, list[type[SampleMetric]]] = {}
    questions = {target.name: question for target, question in QUESTIONS.items()}
    # The ten targets in their order, then those that users named.
    for name in [*questions, *map(_target, metrics)]:
        by_target[name] = [metric for metric in metrics if _target(metric) == name]
    for name, members in by_target.items():
        if members:
            echo.say(f"{name}: {questions[name]}" if name in questions else name)
            for metric in sorted(members, key=_base):
                echo.say(_line(metric))
            echo.say()
    echo.say("Show one in full: auepora metrics NAME. Parts in brackets may be left out.")


def _base(metric: type[SampleMetric]) -> str:
    """Return the name without its number and options."""
    return re.split(r"[\[@]", metric.usage(), maxsplit=1)[0]


def _line(metric: type[SampleMetric]) -> str:
    usage = metric.usage()
    if len(usage) > _LONGEST_NAME:
        usage = f"{_base(metric)}[...]"
    direction = "higher" if metric.higher_is_better else "lower"
    scale = scale_text(metric.bounds, metric.unit)
    summary = inspect.cleandoc(metric.__doc__ or "").partition("\n")[0]
    line = f"  {usage:{_LONGEST_NAME}} {scale:>9} {direction:6}  {summary}"
    width = echo.screen_width()
    return line if len(line) <= width else f"{line[: width - 3].rstrip()}..."


def _say_one(metric: type[SampleMetric]) -> None:
    described = _described(metric)
    direction = "higher" if metric.higher_is_better else "lower"
    echo.say(described["name"])
    echo.say()
    for paragraph in described["description"].split("\n\n"):
        if re.search(r"^[ *-]", paragraph, re.MULTILINE):  # a list keeps its lines
            echo.say(paragraph)
        else:
            echo.say_words(paragraph.replace("\n", " "))
        echo.say()
    echo.say(f"target:  {described['target']}")
    echo.say(f"needs:   {', '.join(metric.requires) or 'only the outputs'}")
    echo.say(f"range:   {scale_text(metric.bounds, metric.unit)}, {direction} is better")
    echo.say(f"equals:  {metric.oracle or 'no outside tool has it'}")
