"""`dataset check` of a build: its splits, what it lost since an earlier one, records to read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .numbers import at_least, share

if TYPE_CHECKING:
    from ..curation.coverage import SpotCheck

_LISTED = 50
_LONGEST = 600


def add_build_flags(parser: ArgumentParser) -> None:
    """The flags for a manifest, or for a split that has one."""
    group = parser.add_argument_group("a build: its manifest, or one of its splits")
    group.add_argument("--config", metavar="FILE", help="the project's paths, such as configs/default.yaml")
    group.add_argument(
        "--previous", metavar="FILE", help="the manifest of an earlier build to hold it against"
    )
    group.add_argument(
        "--max-drop", type=share, default=0.1, metavar="X", help="the share that may be lost (0.1)"
    )
    group.add_argument(
        "--spot-checks",
        type=at_least(0),
        metavar="N",
        help="of each split the N records with the least support to read, and N by chance (2 for a manifest)",
    )
    group.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of that choice (0)")


def project_manifest(config: str | None) -> str:
    """Where a project's manifest lies."""
    from ..io.project_config import EvaluationConfig, load_evaluation_config

    return str((load_evaluation_config(config) if config else EvaluationConfig()).path("manifest_path"))


def is_manifest(path: Path) -> bool:
    """Whether a file is the manifest of a build."""
    from ..io.detect import kind_of_file

    return kind_of_file(path) == "manifest"


def manifest_report(path: Path, args: Namespace) -> dict[str, Any]:
    """What is wrong with a manifest and its splits, what is gone, and what to read."""
    from ..io.manifest import read_manifest
    from ..io.split_check import manifest_errors

    errors = manifest_errors(path)
    snapshot = read_manifest(path)
    report = {"manifest": str(path), "errors": errors, **_losses(path, args)}
    count = 2 if args.spot_checks is None else args.spot_checks
    splits = {} if errors or not count else snapshot.splits
    report["spot_checks"] = {name: _spot_checks(split, count, args.seed) for name, split in splits.items()}
    return {**report, "ok": not errors and not report["drops"]}


def split_report(path: Path, args: Namespace) -> dict[str, Any]:
    """The same of a split alone, as far as it was asked for."""
    from ..errors import DataError
    from ..io.manifest_search import manifest_of

    report: dict[str, Any] = {"drops": [], "not_compared": [], "spot_checks": {}}
    if args.previous:
        found = manifest_of(path)
        if found is None:
            what = "there is no manifest beside it, or above, to hold against --previous."
            raise DataError(str(path), what, fix="Name the manifest of the build.")
        report |= _losses(found[0].path, args)
    if args.spot_checks:
        report["spot_checks"] = {path.name: _spot_checks(path, args.spot_checks, args.seed)}
    return report


def _losses(path: Path, args: Namespace) -> dict[str, Any]:
    from ..curation.coverage import drops, not_compared
    from ..io.manifest import read_manifest

    if not args.previous:
        return {"drops": [], "not_compared": []}
    before, after = read_manifest(args.previous).manifest, read_manifest(path).manifest
    return {
        "drops": [
            {
                "kind": drop.kind,
                "name": drop.name,
                "before": drop.before,
                "after": drop.after,
                "said": str(drop),
            }
            for drop in drops(before, after, args.max_drop)
        ],
        "not_compared": not_compared(before, after),
    }


def _spot_checks(split: Path, count: int, seed: int) -> list[SpotCheck]:
    from ..curation.coverage import spot_checks

    return spot_checks(split, count, seed=seed)


def say_manifest(report: dict[str, Any]) -> None:
    """Print what was found of a manifest."""
    errors, lost = report["errors"], report["drops"]
    verdict = f"{len(errors)} errors, {len(lost)} drops" if errors or lost else "as it should be"
    echo.say(f"{echo.one_line(report['manifest'], 200)}: {verdict}")
    for error in errors[:_LISTED]:
        echo.say(f"  {echo.one_line(error, 500)}")
    if len(errors) > _LISTED:
        echo.say(f"  ... and {len(errors) - _LISTED} more (--json lists them all)")
    say_rest(report)


def say_rest(report: dict[str, Any]) -> None:
    """Print what is gone, and the records to read."""
    for drop in report["drops"][:_LISTED]:
        echo.say(f"  {echo.one_line(drop['said'], 300)}")
    if len(report["drops"]) > _LISTED:
        echo.say(f"  ... and {len(report['drops']) - _LISTED} more (--json lists them all)")
    if report["not_compared"]:
        listed = echo.one_line(", ".join(report["not_compared"]), 200)
        echo.note(f"note: what these lost cannot be told, having too many values to be counted: {listed}")
    for name, checks in report["spot_checks"].items():
        for check in checks:
            _say_spot_check(name, check)


def _say_spot_check(split: str, check: SpotCheck) -> None:
    """A reference with what it should be supported by; who reads decides."""
    echo.say()
    chosen = "least supported" if check.suspicious else "by chance"
    echo.say(
        f"{split} {echo.one_line(check.task_id, 80)} ({chosen}): {echo.one_line(check.question, _LONGEST)}"
    )
    support = "cannot be told by words" if check.support is None else f"{check.support:.0%} of its words"
    missing = f"; not there: {echo.one_line(', '.join(check.missing), 200)}" if check.missing else ""
    echo.say(f"  support:   {support}{missing}")
    echo.say(f"  reference: {echo.one_line(check.reference, _LONGEST)}")
    for context, source in zip(check.contexts, check.sources, strict=True):
        echo.say(f"  {echo.one_line(source, 120)}")
        echo.say(f"    {echo.one_line(context, _LONGEST)}")
