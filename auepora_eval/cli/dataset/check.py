"""Find duplicates and wrong references, citations and labels.

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

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import echo
from ..common import add_json, open_samples
from ..flags import at_least, share

if TYPE_CHECKING:
    from ...core.dataset import EvaluationDataset
    from ...quality.coverage import Drop, SpotCheck
    from ...quality.view import QualityIssue

_PER_CHECK = 3  # findings of one check that are printed without --all
_PER_BUILD = 50  # errors, and drops, of a build that are printed
_MAX_LENGTH = 600  # characters of a text to read


def add_arguments(parser: ArgumentParser) -> None:
    severities = ("error", "warning", "note")
    parser.add_argument("files", metavar="FILE", nargs="*", help="datasets of any format, manifests, or demo")
    parser.add_argument("--format", metavar="NAME", help="the files' format (default: found by content)")
    parser.add_argument(
        "--min-severity", choices=severities, default="note", help="lowest severity to show (default: note)"
    )
    parser.add_argument(
        "--fail-on",
        choices=(*severities, "never"),
        default="error",
        help="lowest severity that makes the exit code 1 (default: error)",
    )
    parser.add_argument(
        "--all", action="store_true", help=f"show every finding, not {_PER_CHECK} of each check"
    )
    group = parser.add_argument_group("a build: its manifest, or one of its splits")
    group.add_argument("--config", metavar="FILE", help="the project's paths, such as configs/default.yaml")
    group.add_argument("--previous", metavar="FILE", help="the manifest of an earlier build to compare with")
    group.add_argument(
        "--max-drop",
        type=share,
        default=0.1,
        metavar="X",
        help="largest share of records that may be lost (default: 0.1)",
    )
    group.add_argument(
        "--spot-checks",
        type=at_least(0),
        metavar="N",
        help="records per split to read: N with the least support, N at random (default: 2 for a manifest)",
    )
    group.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="random seed (default: 0)")
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
    build = _split_findings(Path(name), args) if args.previous or args.spot_checks else None
    by_severity = Counter(issue.severity for issue in listed)
    if not args.json:
        _say(name, size, listed, whole=args.all)
        if build is not None:
            build.say()
    report = {
        "file": name,
        "samples": size,
        "counts": {severity: by_severity[severity] for severity in SEVERITIES},
        "issues": [issue.as_record() for issue in listed],
        **({} if build is None else build.as_record()),
    }
    return severe or bool(build and build.drops), report


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


# `dataset check` of a build: its splits, what it lost since an earlier one, records to read.


@dataclass
class _BuildFindings:
    """What was lost since an earlier build, and the records to read, by split."""

    drops: list[Drop] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    spot_checks: dict[str, list[SpotCheck]] = field(default_factory=dict)

    def as_record(self) -> dict[str, object]:
        """Return the findings for JSON."""
        drops = [{**asdict(drop), "said": str(drop)} for drop in self.drops]
        return {"drops": drops, "not_compared": self.not_compared, "spot_checks": self.spot_checks}

    def say(self) -> None:
        """Print the findings."""
        _say_listed([str(drop) for drop in self.drops])
        if self.not_compared:
            listed = echo.one_line(", ".join(self.not_compared), 200)
            echo.note(f"note: not compared, since these have too many values to count: {listed}")
        for name, checks in self.spot_checks.items():
            for check in checks:
                _say_spot_check(name, check)


def _project_manifest(config: str | None) -> str:
    from ...io.config.project import EvaluationConfig, load_evaluation_config

    return str((load_evaluation_config(config) if config else EvaluationConfig()).path("manifest_path"))


def _check_manifest(path: Path, args: Namespace) -> tuple[bool, dict[str, object]]:
    """Check a manifest and its splits, and print the findings; return whether it fails, and the report."""
    from ...io.builds.manifest import read_manifest
    from ...io.builds.splits import manifest_errors
    from ...quality.coverage import spot_checks

    errors = manifest_errors(path)
    findings = _losses(path, args)
    count = 2 if args.spot_checks is None else args.spot_checks
    splits = {} if errors or not count else read_manifest(path).splits
    for name, split in splits.items():
        findings.spot_checks[name] = spot_checks(split, count, seed=args.seed)
    is_bad = bool(errors or findings.drops)
    if not args.json:
        verdict = f"{len(errors)} errors, {len(findings.drops)} drops" if is_bad else "as it should be"
        echo.say(f"{echo.one_line(path, 200)}: {verdict}")
        _say_listed(errors)
        findings.say()
    return is_bad, {"manifest": str(path), "errors": errors, **findings.as_record(), "ok": not is_bad}


def _split_findings(path: Path, args: Namespace) -> _BuildFindings:
    """Return the findings about one split."""
    from ...errors import DataError
    from ...io.builds.manifest import manifest_of
    from ...quality.coverage import spot_checks

    findings = _BuildFindings()
    if args.previous:
        described = manifest_of(path)
        if described is None:
            what = "there is no manifest beside it, or above, to compare with --previous."
            raise DataError(str(path), what, fix="Name the manifest of the build.")
        findings = _losses(described[0].path, args)
    if args.spot_checks:
        findings.spot_checks[path.name] = spot_checks(path, args.spot_checks, seed=args.seed)
    return findings


def _losses(path: Path, args: Namespace) -> _BuildFindings:
    from ...io.builds.manifest import read_manifest
    from ...quality.coverage import drops, not_compared

    if not args.previous:
        return _BuildFindings()
    before, after = read_manifest(args.previous).manifest, read_manifest(path).manifest
    return _BuildFindings(drops(before, after, args.max_drop), not_compared(before, after))


def _say_listed(texts: Sequence[str]) -> None:
    for text in texts[:_PER_BUILD]:
        echo.say(f"  {echo.one_line(text, 500)}")
    if len(texts) > _PER_BUILD:
        echo.say(f"  ... and {len(texts) - _PER_BUILD} more (--json lists them all)")


def _say_spot_check(split: str, check: SpotCheck) -> None:
    """Print a reference with the contexts that should support it."""
    chosen = "least supported" if check.suspicious else "by chance"
    question = echo.one_line(check.question, _MAX_LENGTH)
    echo.say(f"\n{split} {echo.one_line(check.task_id, 80)} ({chosen}): {question}")
    support = "cannot be measured by words" if check.support is None else f"{check.support:.0%} of its words"
    missing = f"; not there: {echo.one_line(', '.join(check.missing), 200)}" if check.missing else ""
    echo.say(f"  support:   {support}{missing}")
    echo.say(f"  reference: {echo.one_line(check.reference, _MAX_LENGTH)}")
    for context, source in zip(check.contexts, check.sources, strict=True):
        echo.say(f"  {echo.one_line(source, 120)}\n    {echo.one_line(context, _MAX_LENGTH)}")
