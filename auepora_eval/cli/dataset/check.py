"""Find duplicates and wrong references, citations and labels.

The exit code is 1 if a finding is at least as severe as --fail-on. To check the form of a file (fields,
types), use `auepora dataset validate`.

Name a manifest to check a build: the splits are compared with it (form, references, counts, hashes). With
--previous, the exit code is also 1 if a split, task type, document or label has lost more than a tenth of its
records (--max-drop) since that build. Without FILE, the manifest in --config is checked, or else the one in
evaluation/datasets.

Example:

  auepora dataset check demo
  auepora dataset check demo --min-severity warning --fail-on warning
  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset build --offline-dataset offline_dataset.jsonl
  auepora dataset check evaluation/datasets/manifest.json
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import echo
from ..common import add_flag, add_format, add_json, open_samples
from ..flags import share

if TYPE_CHECKING:
    from ...core.dataset import EvaluationDataset
    from ...io.builds.manifest import Drop
    from ...quality.view import QualityIssue

_PER_CHECK = 3  # findings of one check that are printed without --all
_PER_BUILD = 50  # errors, and drops, of a build that are printed


def add_arguments(parser: ArgumentParser) -> None:
    severities = ("error", "warning", "note")
    parser.add_argument("files", metavar="FILE", nargs="*", help="datasets of any format, manifests, or demo")
    add_format(parser, "the files")
    add_flag(parser, "--min-severity", "lowest severity to show", choices=severities, default="note")
    add_flag(
        parser,
        "--fail-on",
        "lowest severity that makes the exit code 1",
        choices=(*severities, "never"),
        default="error",
    )
    add_flag(parser, "--all", f"show every finding (default: {_PER_CHECK} per check)")
    group = parser.add_argument_group("a build, named by its manifest")
    add_flag(group, "--config", "project file with the paths, such as configs/default.yaml", "FILE")
    add_flag(group, "--previous", "manifest of an earlier build to compare with", "FILE")
    add_flag(group, "--max-drop", "largest share of records that may be lost", "X", type=share, default=0.1)
    add_json(parser)


def run(args: Namespace) -> int:
    from ...io.detect import kind_of_file

    has_failed, reports = False, []
    for name in args.files or [_project_manifest(args.config)]:
        if name != "demo" and args.format is None and kind_of_file(Path(name)) == "manifest":
            is_bad, report = _check_manifest(Path(name), args)
        else:
            is_bad, report = _check_dataset(name, args)
        has_failed |= is_bad
        reports.append(report)
    if args.json:
        echo.say_json({"ok": not has_failed, "fail_on": args.fail_on, "files": reports})
    return int(has_failed)


def _check_dataset(name: str, args: Namespace) -> tuple[bool, dict[str, object]]:
    """Check one dataset and print the findings; return whether it fails, and the report for JSON."""
    from ...quality.checks import DataQualityChecker
    from ...quality.view import SEVERITIES, at_least

    dataset, size = _read(name, args.format)
    issues = DataQualityChecker().issues(dataset)
    # By all issues: --min-severity hides some, which must not change the exit code.
    severe = args.fail_on != "never" and any(at_least(issue, args.fail_on) for issue in issues)
    listed = [issue for issue in issues if at_least(issue, args.min_severity)]
    by_severity = Counter(issue.severity for issue in listed)
    if not args.json:
        _say(name, size, listed, whole=args.all)
    report = {
        "file": name,
        "samples": size,
        "counts": {severity: by_severity[severity] for severity in SEVERITIES},
        "issues": [issue.as_record() for issue in listed],
    }
    return severe, report


def _read(name: str, format_name: str | None) -> tuple[Mapping[str, Any] | EvaluationDataset, int]:
    """Return a dataset and its size; a document as it is, since its mistakes are to be found."""
    from ...io.json.documents import read_document
    from ...io.loader import detected_format

    if name != "demo" and (format_name or detected_format(Path(name))) == "eval_json":
        document = read_document(Path(name))
        if isinstance(document, dict) and isinstance(document.get("queries"), list):
            return document, len(document["queries"])
    dataset = open_samples(name, format_name)
    return dataset, len(dataset)


def _say(name: str, size: int, issues: Sequence[QualityIssue], *, whole: bool) -> None:
    # The issues are sorted by severity, so that the worst are counted and listed first.
    by_severity = Counter(issue.severity for issue in issues)
    counts = ", ".join(_counted(count, severity) for severity, count in by_severity.items())
    echo.say(f"{echo.one_line(name, 200)}: {counts or 'nothing found'} in {_counted(size, 'sample')}")
    groups: dict[tuple[str, str], list[QualityIssue]] = {}
    for issue in issues:
        groups.setdefault((issue.severity, issue.check), []).append(issue)
    for (severity, check), group in groups.items():
        echo.say(f"\n{severity}: {check}, {len(group)}")
        for issue in group if whole else group[:_PER_CHECK]:
            echo.say(f"  {echo.one_line(issue, 500)}")
        if not whole and len(group) > _PER_CHECK:
            echo.say(f"  ... and {len(group) - _PER_CHECK} more (--all)")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# `dataset check` of a build: its splits, and what it lost since an earlier one.


def _project_manifest(config: str | None) -> str:
    from ...io.config.project import EvaluationConfig, load_evaluation_config

    return str((load_evaluation_config(config) if config else EvaluationConfig()).path("manifest_path"))


def _check_manifest(path: Path, args: Namespace) -> tuple[bool, dict[str, object]]:
    """Check a manifest and its splits, and print the findings; return whether it fails, and the report."""
    from ...io.builds.manifest import drops_in_words
    from ...io.builds.splits import manifest_errors

    errors = manifest_errors(path)
    drops, not_compared = _losses(path, args)
    is_bad = bool(errors or drops)
    if not args.json:
        verdict = f"{len(errors)} errors, {len(drops)} drops" if is_bad else "as it should be"
        echo.say(f"{echo.one_line(path, 200)}: {verdict}")
        _say_listed(errors)
        _say_listed(drops_in_words(drops))
        if not_compared:
            listed = echo.one_line(", ".join(not_compared), 200)
            echo.note(f"note: not compared, since these have too many values to count: {listed}")
        if not errors:
            _say_what_to_read(path)
    report = {
        "manifest": str(path),
        "errors": errors,
        "drops": [{**asdict(drop), "said": str(drop)} for drop in drops],
        "not_compared": not_compared,
        "ok": not is_bad,
    }
    return is_bad, report


def _losses(path: Path, args: Namespace) -> tuple[list[Drop], list[str]]:
    """Return what the build lost since the previous one, and what was not compared."""
    from ...io.builds.manifest import drops, not_compared, read_manifest

    if not args.previous:
        return [], []
    before, after = read_manifest(args.previous).manifest, read_manifest(path).manifest
    return drops(before, after, args.max_drop), not_compared(before, after)


def _say_what_to_read(path: Path) -> None:
    """Print the commands that show a few records of each split: no check replaces reading some."""
    from ...io.builds.manifest import read_manifest

    echo.say("\nCheck the content of each split, and read a few of its records:")
    for split in read_manifest(path).splits.values():
        name = shlex.quote(str(split))
        echo.say(f"  auepora dataset check {name}\n  auepora dataset sample {name} --suspicious")


def _say_listed(texts: Sequence[str]) -> None:
    for text in texts[:_PER_BUILD]:
        echo.say(f"  {echo.one_line(text, 500)}")
    if len(texts) > _PER_BUILD:
        echo.say(f"  ... and {len(texts) - _PER_BUILD} more (--json lists them all)")
