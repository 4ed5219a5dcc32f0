"""Check and describe datasets and other files.

Every error of the form is listed with its place. Content: duplicates and wrong
references, citations and labels. The exit code is 1 if something is wrong, 2 if a file
cannot be read. Name a manifest to check a build: the splits are compared with it. With
--previous, a split, task type, document or label that lost more than a tenth of its
records is wrong, too. Without FILE, the manifest of the project is checked.

  auepora dataset check demo --sample 3 --suspicious
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, PlanError
from ...io.builds import MANIFEST_NAME, drops, not_compared, read_manifest
from ...io.config.project import EvaluationConfig, load_evaluation_config
from ...io.detect import kind_of_file
from ...io.documents import read_document
from ...io.loader import FORMATS
from ...io.validate import file_errors
from ...quality.checks import DataQualityChecker
from ...quality.view import SEVERITIES
from .. import echo
from ..common import open_samples
from ..flags import add_flag, add_json, add_settings, at_least
from .describe import (
    chosen_samples,
    description,
    sample_with_support,
    say_description,
    say_sample,
)

if TYPE_CHECKING:
    from ...core.dataset import EvaluationDataset
    from ...core.types import EvaluationSample
    from ...io.builds import Drop
    from ...quality.view import QualityIssue

# What is printed without --all: errors and drops of a file, findings of one check.
_SHOWN, _PER_CHECK = 100, 3
_MAX_DROP = 0.1  # share of its records that a split, task type, document or label may lose
_UNREADABLE = "unreadable"  # the kind of a file that is not there, or whose format cannot be detected


def add_arguments(parser: ArgumentParser) -> None:
    about = "files of any known format, manifests, or demo"
    parser.add_argument("files", metavar="FILE", nargs="*", help=about)
    add_settings(parser, "format", "convert")
    about = "severity that fails: error, warning, note or never"
    choices = ("error", "warning", "note", "never")
    add_flag(parser, "--fail-on", about, "WHAT", choices=choices, default="error")
    add_flag(parser, "--all", "show every error and finding")
    add_flag(parser, "--sample", "show N samples, chosen at random", "N", type=at_least(1))
    add_flag(parser, "--suspicious", "show those that their documents support least")
    add_flag(parser, "--id", "show this sample", "ID")
    add_flag(parser, "--runs", "runs of several systems: which questions are at fault?", "RUN", nargs="+")
    add_flag(parser, "--corpus", "documents as they are now: which gold is stale?", "FILE")
    add_flag(parser, "--previous", "manifest of an earlier build to compare with", "FILE")
    add_flag(parser, "--config", "project file with the paths: configs/default.yaml", "FILE")
    add_json(parser)


@dataclass
class _Checked:
    """What was found in a file. `size` is None if it cannot be read as a dataset."""

    name: str
    kind: str | None
    errors: list[str] = field(default_factory=list)
    size: int | None = None
    issues: list[QualityIssue] = field(default_factory=list)
    description: dict[str, Any] | None = None
    samples: list[EvaluationSample] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)


def run(args: Namespace) -> int:
    names = [_manifest_in(name) for name in args.files or [_project_manifest(args.config)]]
    found = [_checked(name, args) for name in names]
    readable = [one for one in found if one.kind != _UNREADABLE]
    unreadable = [one for one in found if one.kind == _UNREADABLE]
    has_failed = any(_is_bad(one, args.fail_on) for one in found)
    if args.json:
        files = [_section(one) for one in found]
        echo.say_json({"ok": not has_failed, "fail_on": args.fail_on, "files": files})
    for one in unreadable:
        echo.note(f"auepora: {echo.one_line(one.errors[0], 1000)}")
    for number, one in enumerate(() if args.json else readable):
        if number:
            echo.say()
        _say(one, args)
    if unreadable:
        return 2
    return int(has_failed)


def _manifest_in(name: str) -> str:
    """Return the manifest of a folder, or else the name as it is."""
    path = Path(name) / MANIFEST_NAME
    return str(path) if path.is_file() else name


def _is_bad(one: _Checked, fail_on: str) -> bool:
    bad = () if fail_on == "never" else SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    return bool(one.errors or one.drops or any(issue.severity in bad for issue in one.issues))


def _checked(name: str, args: Namespace) -> _Checked:
    # What a function makes of the records has the form of samples, whatever the file has.
    is_ours = name == "demo" or args.convert is not None
    one = (
        _Checked(name, "records" if args.convert else "jsonl") if is_ours else _form(Path(name), args.format)
    )
    if one.kind is not None and one.kind in FORMATS:
        _read(one, args)
    elif one.kind == "manifest" and args.previous:
        before, after = read_manifest(args.previous).manifest, read_manifest(name).manifest
        one.drops, one.not_compared = drops(before, after, _MAX_DROP), not_compared(before, after)
    return one


def _form(path: Path, kind: str | None) -> _Checked:
    """Return what is wrong with the form of a file."""
    try:
        kind = kind_of_file(path) if kind is None or not path.exists() else kind
    except DataError as error:
        return _Checked(str(path), _UNREADABLE, [str(error)])
    return _Checked(str(path), kind, file_errors(path, kind))


def _read(one: _Checked, args: Namespace) -> None:
    """Check the content of a dataset, describe it and choose samples, as far as its form allows it."""
    try:
        document = _document(one)
        if document is not None:  # as it is: its mistakes are to be found
            one.issues, one.size = DataQualityChecker().issues(document), len(document["queries"])
        dataset = open_samples(one.name, args.format, convert=args.convert)
        if document is None:
            one.issues, one.size = DataQualityChecker().issues(dataset), len(dataset)
        one.description = description(dataset, one.name, one.kind or "")
        if args.runs or args.corpus:
            one.issues += _at_fault(dataset, args)
    except DataError as error:
        one.errors = one.errors or [str(error)]
        return
    if args.sample or args.suspicious or args.id is not None:
        one.samples = chosen_samples(dataset, args, one.name)


def _at_fault(dataset: EvaluationDataset, args: Namespace) -> list[QualityIssue]:
    """Return the questions that may themselves be at fault, by the answers of several systems."""
    from ...interventions.checks import suspects
    from ...interventions.probe import documents_of, right_metric
    from ...quality.view import QualityIssue
    from ...store.storage import EvaluationResultsStorage

    samples, storage = list(dataset), EvaluationResultsStorage()
    try:
        runs = [storage.load_run(name) for name in args.runs or ()]
    except DataError as error:  # not a fault of the dataset
        raise PlanError(str(error)) from error
    known = {sample.sample_id for run in runs for sample in run.samples}
    if runs and known.isdisjoint(sample.sample_id for sample in samples):
        raise PlanError("the runs have none of these questions. Name runs of this dataset.")
    found = suspects(samples, runs, right_metric(samples, None), documents_of(args.corpus))
    kinds = {False: ("warning", "at fault"), True: ("note", "not answered")}
    return [
        QualityIssue(*kinds[one.is_hard], "; ".join(one.reasons), where="question", sample_id=one.sample_id)
        for one in found
    ]


def _document(one: _Checked) -> Mapping[str, Any] | None:
    if one.kind != "eval_json":
        return None
    document = read_document(Path(one.name))
    return document if isinstance(document, dict) and isinstance(document.get("queries"), list) else None


def _section(one: _Checked) -> dict[str, Any]:
    """Return the sections of a file for JSON; those that it does not have are left out."""
    sections: dict[str, Any] = {
        "file": one.name,
        "form": {"format": one.kind, "valid": not one.errors, "errors": one.errors},
    }
    if one.size is not None:
        counts = Counter(issue.severity for issue in one.issues)
        sections["content"] = {
            "samples": one.size,
            "counts": {severity: counts[severity] for severity in SEVERITIES},
            "issues": [issue.as_record() for issue in one.issues],
        }
    if one.description is not None:
        sections["description"] = one.description
    if one.samples:
        sections["sample"] = [sample_with_support(sample) for sample in one.samples]
    if one.kind == "manifest":
        lost = [{**asdict(drop), "said": str(drop)} for drop in one.drops]
        sections["build"] = {"drops": lost, "not_compared": one.not_compared}
    return sections


# What is printed.


def _say(one: _Checked, args: Namespace) -> None:
    """Print what the dataset is, then what is wrong with it: the end is what a reader sees first."""
    for sample in one.samples:
        say_sample(sample)
        echo.say()
    if one.description is not None and not one.samples:
        say_description(one.description)
        echo.say()
    limit = None if args.all else _SHOWN
    if one.name != "demo":
        echo.say(f"{echo.one_line(one.name, 200)}: {'NOT VALID' if one.errors else 'valid'} ({one.kind})")
    _say_some(one.errors, limit)
    if one.size is not None:
        _say_issues(one, one.issues, whole=args.all)
    if one.kind == "manifest":
        _say_build(one, limit)


def _say_some(texts: Sequence[object], limit: int | None) -> None:
    for text in texts[:limit]:
        echo.say(f"  {echo.one_line(text, 500)}")
    if limit is not None and len(texts) > limit:
        echo.say(f"  ... and {len(texts) - limit} more (--all)")


def _say_issues(one: _Checked, issues: Sequence[QualityIssue], *, whole: bool) -> None:
    # The issues are sorted by severity, so that the worst are counted and listed first.
    by_severity = Counter(issue.severity for issue in issues)
    counts = ", ".join(_counted(count, severity) for severity, count in by_severity.items())
    size = _counted(one.size or 0, "sample")
    echo.say(f"{echo.one_line(one.name, 200)}: {counts or 'nothing found'} in {size}")
    groups: dict[tuple[str, str], list[QualityIssue]] = {}
    for issue in issues:
        groups.setdefault((issue.severity, issue.check), []).append(issue)
    for (severity, check), group in groups.items():
        echo.say(f"\n{severity}: {check}, {len(group)}")
        _say_some(group, None if whole else _PER_CHECK)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# A build: its splits, and what it lost since an earlier one.


def _project_manifest(config: str | None) -> str:
    return str((load_evaluation_config(config) if config else EvaluationConfig()).path("manifest_path"))


def _say_build(one: _Checked, limit: int | None) -> None:
    """Print what the build lost, and the commands that show a few records of each split."""
    if one.drops:
        echo.say(f"{echo.one_line(one.name, 200)}: {_counted(len(one.drops), 'drop')}")
    _say_some(one.drops, limit)
    if one.not_compared:
        listed = echo.one_line(", ".join(one.not_compared), 200)
        echo.note(f"note: not compared, since these have too many values to count: {listed}")
    if not one.errors:
        echo.say("\nCheck the content of each split, and read a few of its records:")
        for split in read_manifest(one.name).splits.values():
            echo.say(f"  auepora dataset check {shlex.quote(str(split))} --suspicious")
