"""Compare two datasets: samples added, removed and changed.

Samples are matched by id. The files may have different formats. The exit code is 1 if the datasets differ,
and 0 if they are the same.

  auepora dataset diff demo demo
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...core.dataset import canonical_json
from ...quality.description import dataset_difference
from .. import echo
from ..common import open_samples
from ..flags import add_flag, add_json

if TYPE_CHECKING:
    from ...quality.description import DatasetDifference, FieldChange, Group

# Changes of each kind that are printed without --all.
_SHOWN = 10


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("old", metavar="A", help="a dataset of any format, or demo")
    parser.add_argument("new", metavar="B", help="the dataset to compare it with")
    add_flag(parser, "--all", f"show every change (default: {_SHOWN} per kind)")
    add_json(parser)


def run(args: Namespace) -> int:
    difference = dataset_difference(open_samples(args.old, None), open_samples(args.new, None))
    if args.json:
        echo.say_json({"same": difference.same, **asdict(difference)})
    else:
        say_difference(difference, None if args.all else _SHOWN)
    return int(not difference.same)


def say_difference(difference: DatasetDifference, limit: int | None) -> None:
    """Print what changed, at most `limit` changes of each kind."""
    if difference.same:
        count = difference.samples.unchanged
        echo.say(f"the same: {count} sample{'s' if count != 1 else ''}")
    _say_group("sample", difference.samples, limit)
    _say_group("document", difference.documents, limit)
    for what in difference.not_compared:
        echo.note(f"note: not compared: {what}.")


def _say_group(kind: str, group: Group, limit: int | None) -> None:
    if not group:
        return
    echo.say(
        f"{kind}s: {len(group.added)} added, {len(group.removed)} removed, {len(group.changed)} changed, "
        f"{group.unchanged} unchanged"
    )
    for sign, ids in (("+", group.added), ("-", group.removed)):
        for one in ids[:limit]:
            echo.say(f"  {sign} {echo.one_line(one, 120)}")
        _say_rest(len(ids), limit)
    for change in group.changed[:limit]:
        echo.say(f"  ~ {echo.one_line(change.id, 120)}")
        for each in change.fields[:limit]:
            echo.say(f"      {_shown(each)}")
        _say_rest(len(change.fields), limit, "    ")
    _say_rest(len(group.changed), limit)


def _say_rest(count: int, limit: int | None, indent: str = "") -> None:
    if limit is not None and count > limit:
        echo.say(f"{indent}  ... and {count - limit} more (--all)")


def _shown(change: FieldChange) -> str:
    old, new = _from_where_they_differ(_text(change.old), _text(change.new))
    return f"{echo.one_line(change.field, 120)}: {old} -> {new}"


def _text(value: Any) -> str:
    return "(none)" if value is None else echo.one_line(canonical_json(value).decode(), 100_000)


def _from_where_they_differ(old: str, new: str, width: int = 70) -> tuple[str, str]:
    """Two texts cut to a width, but so that the place where they part can be seen."""
    same = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    start = max(0, same - width // 3) if max(len(old), len(new)) > width else 0
    return tuple(("…" if start else "") + echo.one_line(text[start:], width) for text in (old, new))  # type: ignore[return-value]
