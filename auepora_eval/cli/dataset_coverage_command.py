"""check the splits of a build: form, references, counts, what went missing, a few records to read

Exit code 1 if something is wrong, or if a split, task type, document or label has lost more than a tenth of
its records since the build of --previous. Example:

  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset build --offline-dataset offline_dataset.jsonl
  auepora dataset coverage evaluation/datasets/manifest.json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, at_least, share

if TYPE_CHECKING:
    from ..curation.coverage import Drop, SpotCheck

_LISTED = 50
_LONGEST = 600


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("manifest", nargs="?", metavar="MANIFEST", help="the manifest of the build")
    parser.add_argument("--config", metavar="FILE", help="the project's paths, such as configs/default.yaml")
    parser.add_argument(
        "--previous", metavar="FILE", help="the manifest of an earlier build to hold it against"
    )
    parser.add_argument(
        "--max-drop", type=share, default=0.1, metavar="X", help="the share that may be lost (0.1)"
    )
    parser.add_argument(
        "--spot-checks", type=at_least(0), default=2, metavar="N", help="records of each split to show (2)"
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of that choice (0)")
    add_json(parser)


def run(args: Namespace) -> int:
    from ..curation.coverage import drops, spot_checks
    from ..io.manifest import read_manifest
    from ..io.split_check import manifest_errors

    path = _manifest(args)
    errors = manifest_errors(path)
    snapshot = read_manifest(path)
    lost: list[Drop] = []
    if args.previous:
        lost = drops(read_manifest(args.previous).manifest, snapshot.manifest, args.max_drop)
    shown: dict[str, list[SpotCheck]] = {}
    if not errors:
        shown = {
            name: spot_checks(split, args.spot_checks, seed=args.seed)
            for name, split in snapshot.splits.items()
            if args.spot_checks
        }
    if args.json:
        echo.say_json(_report(path, errors, lost, shown))
    else:
        _say(path, errors, lost, shown)
    return 1 if errors or lost else 0


def _manifest(args: Namespace) -> Path:
    from ..io.project_config import EvaluationConfig, load_evaluation_config

    if args.manifest:
        return Path(args.manifest)
    config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    return config.path("manifest_path")


def _say(path: Path, errors: list[str], lost: list[Drop], shown: dict[str, list[SpotCheck]]) -> None:
    verdict = f"{len(errors)} errors, {len(lost)} drops" if errors or lost else "as it should be"
    echo.say(f"{path}: {verdict}")
    for error in errors[:_LISTED]:
        echo.say(f"  {echo.one_line(error, 500)}")
    for drop in lost[:_LISTED]:
        echo.say(f"  {echo.one_line(drop, 300)}")
    unsaid = max(0, len(errors) - _LISTED) + max(0, len(lost) - _LISTED)
    if unsaid:
        echo.say(f"  ... and {unsaid} more (--json lists them all)")
    for name, checks in shown.items():
        for check in checks:
            _say_spot_check(name, check)


def _say_spot_check(split: str, check: SpotCheck) -> None:
    """A reference with what it should be supported by; who reads decides."""
    echo.say()
    echo.say(f"{split} {echo.one_line(check.task_id, 80)}: {echo.one_line(check.question, _LONGEST)}")
    support = "cannot be told by words" if check.support is None else f"{check.support:.0%} of its words"
    missing = f"; not there: {echo.one_line(', '.join(check.missing), 200)}" if check.missing else ""
    echo.say(f"  support:   {support}{missing}")
    echo.say(f"  reference: {echo.one_line(check.reference, _LONGEST)}")
    for context, source in zip(check.contexts, check.sources, strict=True):
        echo.say(f"  {echo.one_line(source, 120)}")
        echo.say(f"    {echo.one_line(context, _LONGEST)}")


def _report(
    path: Path, errors: list[str], lost: list[Drop], shown: dict[str, list[SpotCheck]]
) -> dict[str, Any]:
    return {
        "manifest": str(path),
        "ok": not errors and not lost,
        "errors": errors,
        "drops": [
            {"kind": drop.kind, "name": drop.name, "before": drop.before, "after": drop.after}
            for drop in lost
        ],
        "spot_checks": shown,
    }
