"""check datasets: duplicates, unsupported references, wrong citations, dead labels; and whole builds

Exit code 1 if something was found that is at least as severe as --fail-on. The form of a file (fields,
types) is the business of `auepora dataset validate`.

Of a build, named by its manifest, the splits are checked against it: form, references, counts, hashes. With
--previous the exit code is 1 too if a split, task type, document or label has lost more than a tenth of its
records (--max-drop) since that build. Without FILE it is the project's manifest, by --config or where
`auepora dataset build` writes it.

Example:

  auepora dataset check demo
  auepora dataset check demo --min-severity warning --fail-on warning
  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset build --offline-dataset offline_dataset.jsonl
  auepora dataset check evaluation/datasets/manifest.json
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .build_check import (
    add_build_flags,
    is_manifest,
    manifest_report,
    project_manifest,
    say_manifest,
    say_rest,
    split_report,
)
from .common import add_json, open_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.dataset import EvaluationDataset
    from ..curation.quality_issue import QualityIssue

_SHOWN = 3


def add_arguments(parser: ArgumentParser) -> None:
    severities = ("error", "warning", "note")
    parser.add_argument("files", metavar="FILE", nargs="*", help="datasets of any format, manifests, or demo")
    parser.add_argument("--format", metavar="NAME", help="the files' format (default: found by content)")
    parser.add_argument(
        "--min-severity", choices=severities, default="note", help="the least severe finding to show (note)"
    )
    parser.add_argument(
        "--fail-on",
        choices=(*severities, "never"),
        default="error",
        help="the least severe finding that makes the exit code 1 (error)",
    )
    parser.add_argument("--all", action="store_true", help=f"show every finding, not {_SHOWN} of each check")
    add_build_flags(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    failed, reports = False, []
    for name in args.files or [project_manifest(args.config)]:
        if name != "demo" and args.format is None and is_manifest(Path(name)):
            report = manifest_report(Path(name), args)
            failed |= not report["ok"]
            reports.append(report)
            if not args.json:
                say_manifest(report)
        else:
            failed |= _check_dataset(name, args, reports)
    if args.json:
        echo.say_json({"ok": not failed, "fail_on": args.fail_on, "files": reports})
    return int(failed)


def _check_dataset(name: str, args: Namespace, reports: list[dict[str, Any]]) -> bool:
    """Check one dataset, print what was found or add it to the reports; whether that is a failure."""
    from ..curation.quality import DataQualityChecker
    from ..curation.quality_issue import at_least

    dataset, size = _read(name, args.format)
    with _progress(size) as on_check:
        issues = DataQualityChecker().issues(dataset, on_check)
    shown = [issue for issue in issues if at_least(issue, args.min_severity)]
    of_split = split_report(Path(name), args) if args.previous or args.spot_checks else None
    if args.json:
        reports.append({**_report(name, size, shown), **(of_split or {})})
    else:
        _say(name, size, shown, whole=args.all)
        if of_split is not None:
            say_rest(of_split)
    severe = args.fail_on != "never" and any(at_least(issue, args.fail_on) for issue in issues)
    return severe or bool(of_split and of_split["drops"])


@contextmanager
def _progress(size: int) -> Iterator[Callable[[str], None]]:
    """Which check is under way, on stderr, where a person watches."""
    if not echo.is_interactive(sys.stderr):
        yield lambda name: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{_counted(size, 'sample')}") as status:
        yield lambda name: status.update(f"{_counted(size, 'sample')}: {name.replace('_', ' ')}")


def _read(name: str, format_name: str | None) -> tuple[Mapping[str, Any] | EvaluationDataset, int]:
    """A dataset and its size; a document as it is, since its mistakes are what is looked for."""
    from ..io.document_file import read_document
    from ..io.loader import detected_format

    if name != "demo" and (format_name or detected_format(Path(name))) == "eval_json":
        document = read_document(Path(name))
        if isinstance(document, dict) and isinstance(document.get("queries"), list):
            return document, len(document["queries"])
    dataset = open_samples(name, format_name)
    return dataset, len(dataset)


def _say(name: str, size: int, issues: list[QualityIssue], *, whole: bool) -> None:
    from ..curation.quality_issue import SEVERITIES

    counts = [_counted(count, severity) for severity in SEVERITIES if (count := _count(issues, severity))]
    found_what = ", ".join(counts) or "nothing found"
    echo.say(f"{echo.one_line(name, 200)}: {found_what} in {_counted(size, 'sample')}")
    groups: dict[tuple[str, str], list[QualityIssue]] = {}
    for issue in issues:
        groups.setdefault((issue.severity, issue.check), []).append(issue)
    for (severity, check), found in groups.items():
        echo.say(f"\n{severity}: {check}, {len(found)}")
        for issue in found if whole else found[:_SHOWN]:
            echo.say(f"  {echo.one_line(issue, 500)}")
        if not whole and len(found) > _SHOWN:
            echo.say(f"  ... and {len(found) - _SHOWN} more (--all)")


def _report(name: str, size: int, issues: list[QualityIssue]) -> dict[str, Any]:
    from ..curation.quality_issue import SEVERITIES

    return {
        "file": name,
        "samples": size,
        "counts": {severity: _count(issues, severity) for severity in SEVERITIES},
        "issues": [issue.as_record() for issue in issues],
    }


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _count(issues: list[QualityIssue], severity: str) -> int:
    return sum(issue.severity == severity for issue in issues)
