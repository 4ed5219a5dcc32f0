"""Build the splits of a dataset from raw tasks.

Read one task per line and write qa_pairs.jsonl, summaries.jsonl and manifest.json: all
of them, or none. Bad records are left out, counted and named. Building an existing
version again must give the same content: give a new --version for new content, and
--force to replace the files.

  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset build --offline-dataset offline_dataset.jsonl --version v1
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...builder.build import BuildPlan, build_dataset
from ...errors import DataError
from ...io.config.project import EvaluationConfig, load_evaluation_config
from ...read.tasks import SPLIT_NAMES
from .. import echo
from ..flags import add_flag, add_json, count

if TYPE_CHECKING:
    from ...builder.build import BuildResult

# More bad records than these are only counted: nobody reads a thousand lines.
_NAMED = 100


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--config", "project file with the paths: configs/default.yaml", "FILE")
    add_flag(parser, "--offline-dataset", "file with the raw tasks, plain or gzip", "FILE")
    add_flag(parser, "--qa-output", "file for questions and answers", "FILE")
    add_flag(parser, "--summary-output", "file for summaries", "FILE")
    add_flag(parser, "--manifest-output", "file for the manifest", "FILE")
    add_flag(parser, "--splits", "of qa, summaries, citations", "NAMES", default="qa,summaries")
    add_flag(parser, "--version", "version, vN or vN.N", "vN", default="v1")
    add_flag(parser, "--limit", "use only the first N records", "N", type=count)
    add_flag(parser, "--rejects", "write the records that are left out, with reasons", "FILE")
    add_flag(parser, "--strict", "stop at the first bad record and write nothing")
    add_flag(parser, "--force", "replace existing files")
    add_json(parser)


def run(args: Namespace) -> int:
    plan = _plan(args)
    skipped: list[str] = []

    def name(where: str, reason: str, what: str) -> None:
        if len(skipped) < _NAMED:
            skipped.append(f"note: {echo.one_line(f'{where}: {what}', 400)} ({reason})")

    result = build_dataset(plan, on_skipped=name)
    _warn(result, plan, skipped)
    if args.json:
        echo.say_json(_report(result, plan))
    else:
        _say(result, plan)
    return 0


def _plan(args: Namespace) -> BuildPlan:
    # A flag wins over the config, the config over the defaults.
    config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    paths = {"qa": args.qa_output, "summaries": args.summary_output}
    # There is no flag for the third split: it goes where the manifest goes.
    beside = Path(args.manifest_output).with_name("citations.jsonl") if args.manifest_output else None
    paths["citations"] = beside
    names = list(dict.fromkeys(name.strip() for name in args.splits.split(",") if name.strip()))
    unknown = [name for name in names if name not in SPLIT_NAMES]
    if unknown or not names:
        raise DataError(
            f"--splits {echo.one_line(args.splits, 60)}",
            f"there is no split {unknown[0]!r:.40}." if unknown else "names no split.",
            fix=f"Choose from {', '.join(SPLIT_NAMES)}.",
        )
    return BuildPlan(
        source=Path(args.offline_dataset) if args.offline_dataset else config.path("offline_dataset_path"),
        outputs={name: Path(paths[name] or config.split_path(name)) for name in names},
        manifest=Path(args.manifest_output) if args.manifest_output else config.path("manifest_path"),
        version=args.version,
        limit=args.limit,
        rejects=Path(args.rejects) if args.rejects else None,
        force=args.force,
        strict=args.strict,
    )


def _warn(result: BuildResult, plan: BuildPlan, skipped: Sequence[str]) -> None:
    for line in skipped:
        echo.note(line)
    more = sum(result.manifest.skipped.values()) - len(skipped)
    if more:
        place = f"all are in {plan.rejects}" if plan.rejects else "--rejects FILE keeps them all"
        echo.note(f"note: ... and {more} more bad records; {place}")
    excluded = result.manifest.excluded_task_types
    if excluded:
        listed = ", ".join(
            f"{echo.one_line(name, 40)} ({count})" for name, count in list(excluded.items())[:10]
        )
        rest = ", ..." if len(excluded) > 10 else ""
        hint = " --splits qa,summaries,citations builds citations too." if "citations" in excluded else ""
        echo.note(f"note: task types without a split stay in the source: {listed}{rest}.{hint}")
    _note_odd(result, plan)
    before = result.replaced
    if before is not None and before.version == plan.version and not before.same_content(result.manifest):
        echo.note(f"note: {plan.version} has other content now than before; a new --version would say so.")


def _note_odd(result: BuildResult, plan: BuildPlan) -> None:
    """What is as it was asked for, and yet may surprise."""
    manifest = result.manifest
    for name, split in manifest.splits.items():
        if not split.count:
            echo.note(f"note: no record is for the split {name}: {plan.outputs[name]} is empty.")
    for name, number in manifest.notes.items():
        echo.note(f"note: {name.replace('_', ' ')}: {number} (dataset check names the records)")


def _say(result: BuildResult, plan: BuildPlan) -> None:
    manifest = result.manifest
    about = "is there already, unchanged" if result.unchanged else "built"
    echo.say(f"{manifest.version} {about}: {manifest.records} records of {plan.source}")
    rows = [[name, str(split.count), str(plan.outputs[name])] for name, split in manifest.splits.items()]
    rows += [[f"excluded: {name}", str(n), ""] for name, n in list(manifest.excluded_task_types.items())[:20]]
    where = "" if plan.rejects is None else str(plan.rejects)
    rows += [[f"skipped: {reason}", str(n), where] for reason, n in manifest.skipped.items()]
    echo.say_table(("Split", "Records", "File"), rows, numeric=[1])
    echo.say(f"manifest: {plan.manifest}")


def _report(result: BuildResult, plan: BuildPlan) -> dict[str, object]:
    manifest = result.manifest
    counts = {f"{name}_count": split.count for name, split in manifest.splits.items()}
    return {
        "version": manifest.version,
        "unchanged": result.unchanged,
        "records": manifest.records,
        **counts,
        "manifest": str(plan.manifest),
        "unsupported_task_types": manifest.excluded_task_types,
        "skipped": manifest.skipped,
        "notes": manifest.notes,
    }
