"""list the metrics: target, what they need, range, direction

Example:

  auepora metrics --target latency
  auepora metrics recall --explain
"""

from __future__ import annotations

import inspect
import math
from argparse import ArgumentParser, Namespace
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json

if TYPE_CHECKING:
    from ..core.metrics_base import SampleMetric


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="tell all about one metric, such as recall@5")
    parser.add_argument(
        "--explain", action="store_true", help="also how other tools' metric of that name differs"
    )
    parser.add_argument("--target", metavar="TARGET", help="only the metrics of one target")
    add_json(parser)


def run(args: Namespace) -> int:
    from ..core.metrics_base import METRICS
    from ..core.targets import parse_target
    from ..errors import UnknownNameError
    from ..metrics import parse

    if args.name:
        base = args.name.partition("@")[0].partition("[")[0]
        described = [_described(base, METRICS.get(parse.SHORT_NAMES.get(base, base).partition("@")[0]))]
    else:
        described = [_described(base, METRICS.get(base)) for base in METRICS]
    if args.target:
        try:
            target = parse_target(args.target).name
        except ValueError as error:
            raise UnknownNameError(str(error)) from None
        described = [metric for metric in described if metric["target"] == target]
    if args.json:
        echo.say_json(described)
    elif args.name:
        _say_one(described[0], explain=args.explain)
    else:
        _say_all(described)
    return 0


def _described(base: str, metric: type[SampleMetric]) -> dict[str, Any]:
    from ..metrics.elsewhere import ELSEWHERE

    text = inspect.cleandoc(metric.__doc__ or "")
    return {
        "name": _usage(base, metric),
        "target": metric.target.name,
        "requires": list(metric.requires),
        "bounds": [bound if math.isfinite(bound) else None for bound in metric.bounds],
        "higher_is_better": metric.higher_is_better,
        "oracle": metric.oracle,
        "description": text,
        "formula": _formula(text),
        "elsewhere": list(ELSEWHERE.get(base, ())),
    }


def _formula(text: str) -> str:
    """What stands behind the summary: the docstring's second paragraph, or its first if that says it all."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return paragraphs[1] if len(paragraphs) > 1 else paragraphs[0]


def _usage(base: str, metric: type[SampleMetric]) -> str:
    """The name as one writes it: recall@k, mrr[@k], mean_latency[timing_key]."""
    from ..metrics.parse import kind_of

    usage, numbered = base, False
    for field in fields(metric):  # type: ignore[arg-type]  # every registered metric is a dataclass
        if not numbered and not field.kw_only and kind_of(field) in ("int", "float"):
            numbered = True
            usage += f"@{field.name}" if field.default is MISSING else f"[@{field.name}]"
        else:
            usage += f"[{field.name}]"
    return usage


def _say_all(described: list[dict[str, Any]]) -> None:
    rows = [
        (
            metric["name"],
            metric["target"],
            ", ".join(metric["requires"]) or "-",
            _range(metric["bounds"]),
            _direction(metric),
            metric["description"].splitlines()[0],
        )
        for metric in sorted(described, key=lambda metric: (metric["target"], metric["name"]))
    ]
    echo.say_table(("Metric", "Target", "Needs", "Range", "Better", "What it says"), rows)


def _say_one(metric: dict[str, Any], *, explain: bool) -> None:
    echo.say(metric["name"])
    echo.say(f"\n{metric['description']}\n")
    echo.say(f"target:  {metric['target']}")
    echo.say(f"needs:   {', '.join(metric['requires']) or 'only the outputs'}")
    echo.say(f"range:   {_range(metric['bounds'])}, {_direction(metric)} is better")
    echo.say(f"equals:  {metric['oracle'] or 'no outside tool has it'}")
    if explain:
        echo.say("elsewhere:")
        for line in metric["elsewhere"] or ["no tool that we know has a metric of this name."]:
            echo.say(f"  {line}")


def _direction(metric: dict[str, Any]) -> str:
    return "higher" if metric["higher_is_better"] else "lower"


def _range(bounds: list[float | None]) -> str:
    ends = zip(bounds, ("-∞", "∞"), strict=True)
    return " to ".join(infinity if bound is None else f"{bound:g}" for bound, infinity in ends)
