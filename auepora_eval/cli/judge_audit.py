"""Audit a judge against human labels.

Each line of --labels has a claim, its evidence, and the label or labels of people:

  {"evidence": "It carries 22 cars.", "claim": "22 cars fit.", "label": 1}
  {"answer": "...", "label": {"ada": 4, "ben": 3}, "my_judge": 0.8}

The judge is named as in `auepora judge`, or it is a metric that needs only an
answer and documents. The audit of a judge is stored beside the runs, and printed
with each value of it.

  auepora judge-audit --labels demo --judge support:lexical
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.settings import RunSettings, column_names
from ..errors import DataError, PlanError
from ..judges.ask import Asking, VerdictLog
from ..judges.question import kind_named
from ..judges.trust.audit import GROUNDING, Audit, audit, judge_scores, read_audit, write_audit
from ..judges.trust.calibration import calibrate
from ..judges.trust.labels import Columns, labelled_claims, unlabelled_claims
from ..judges.trust.report import audit_tables
from ..metrics.entailment import SUPPORTS
from ..store.cache import CallCache
from . import echo
from .common import check_has_samples, coverage_code, progress_bar
from .flags import add_flag, add_json, add_out, add_settings, cache_path, covered, settings_of, share
from .judge import claim_records, judge_executor, judge_policy, named_judge, today

if TYPE_CHECKING:
    from ..judges.trust.audit import AuditReport
    from ..judges.trust.labels import Labelled, Scale

_JUDGE = "support:lexical"
_THRESHOLD = 0.7
_ASKED_THRESHOLD = 0.5  # of the judged metrics
_COLUMNS = ("evidence", "claim", "label", "cluster", "by")  # fields of a record that --columns may name


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--labels", "labelled claims (JSONL), or `demo`", "FILE", required=True)
    judge = parser.add_mutually_exclusive_group()
    add_flag(judge, "--judge", f"the judge to audit (default: {_JUDGE})", "NAME")
    add_flag(judge, "--score", "field with scores of the judge", "FIELD", default="")
    about = "claims without labels: estimate their true mean"
    add_flag(parser, "--unlabelled", about, "FILE")
    about = "lowest score that counts as supported (0.7, or 0.5)"
    add_flag(parser, "--threshold", about, "T", type=share)
    add_flag(parser, "--scale", "the labels are numbers on this scale", "LOW,HIGH", type=scale)
    about = "the scale of --score (default: 0,1)"
    add_flag(parser, "--score-scale", about, "LOW,HIGH", type=scale, default=(0.0, 1.0))
    about = "score of claims that the judge cannot score"
    add_flag(parser, "--unscored-as", about, "S", type=covered)
    add_flag(parser, "--columns", f"your fields for {', '.join(_COLUMNS)}", "F=NAME,...")
    add_flag(parser, "--positive", "the label of a supported claim", "LABEL", default="")
    add_flag(parser, "--plot", "plot the reliability diagram (.png, .svg)", "FILE")
    add_flag(parser, "--force", "overwrite the plot if it exists")
    add_flag(parser, "--cache", "file of replies to reuse (default: $AUEPORA_CACHE)", "FILE")
    add_settings(parser, "config", "min_coverage")
    add_out(parser)
    add_json(parser)


def scale(text: str) -> Scale:
    """Return the ends of a scale written as "1,4", for argparse."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not like 1,4") from None
    # NaN fails every comparison, so it is refused here too.
    if not float("-inf") < low < high < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number and a higher one")
    return low, high


def run(args: Namespace) -> int:
    named: dict[str, Any] = _columns(args.columns)
    columns = Columns(
        **named,
        positive=args.positive,
        scale=args.scale,
        score=args.score,
        score_scale=args.score_scale,
    )
    labelled = labelled_claims(claim_records(args.labels), columns)
    check_has_samples(args.labels, len(labelled))
    rest = unlabelled_claims(claim_records(args.unlabelled), columns) if args.unlabelled else []
    if args.unlabelled:
        check_has_samples(args.unlabelled, len(rest))
    settings = settings_of(args)
    judge = settings.judge or _JUDGE
    settings.judge = f"support:{judge}" if judge in SUPPORTS else judge
    is_asked = not args.score and bool({":", "#"} & set(settings.judge))
    threshold = args.threshold or (_ASKED_THRESHOLD if is_asked else _THRESHOLD)
    how = Audit(threshold, unscored_as=args.unscored_as)
    if is_asked:
        with _asking(args.cache, settings, len(labelled) + len(rest)) as asking:
            report = audit(labelled, asking, how, unlabelled=rest)
            _store(Path(args.out), asking, labelled)
    else:
        report = audit(labelled, None if args.score else settings.judge, how, unlabelled=rest)
        report.judge = args.score or report.judge
    if args.plot:
        _draw(report, args.plot, force=args.force)
    if args.json:
        echo.say_json({"labels": args.labels, "unlabelled": args.unlabelled, **vars(report)})
    else:
        echo.show_all(audit_tables(report))
    failed = report.claims - report.scored
    none = "the judge could score no claim"
    return coverage_code(
        failed, report.claims, settings.min_coverage, str(report.judge), none=none, noun="claims"
    )


def _columns(text: str | None) -> dict[str, str]:
    """Return the fields that --columns names."""
    columns = column_names(text) or {}
    for name in columns.keys() - {*_COLUMNS}:
        raise PlanError(f"--columns has no {name!r:.60}. There are {', '.join(_COLUMNS)}.")
    return columns


@contextmanager
def _asking(file: str | None, settings: RunSettings, claims: int) -> Iterator[Asking]:
    """Yield the judge, with a progress bar; verdicts go to the cache, also if it is interrupted."""
    judge, path, settings = named_judge(settings), cache_path(file), settings.for_judge()
    with progress_bar(claims, "audit") as advance, ExitStack() as stack:
        stack.callback(judge.close)
        cache = None if path is None else stack.enter_context(CallCache(path))
        yield Asking(
            judge,
            VerdictLog(cache=cache),
            judge_executor(settings),
            judge_policy(settings),
            on_verdict=lambda verdict: advance(bool(verdict.failed)),
        )


def _store(folder: Path, asking: Asking, labelled: list[Labelled]) -> None:
    """Store what was found beside the runs, so that every value of this judge is printed with it."""
    identity = asking.judge.identity(kind_named(GROUNDING))
    known = read_audit(folder, identity)
    known.calibration = calibrate(identity, judge_scores(asking, labelled), labelled, date=today())
    write_audit(folder, known)
    echo.note(f"stored: {identity}: {known.calibration}")


def _draw(report: AuditReport, path: str, *, force: bool) -> None:
    from ..reporting.plots import plot_calibration, save_figure

    if report.calibration is None:
        what = "The judge gave no score from 0 to 1, so there is nothing to draw."
        raise DataError("--plot", what, fix="Give its scale: --score-scale LOW,HIGH.")
    try:
        save_figure(plot_calibration(str(report.judge), report.calibration), path, force=force)
    except ValueError as error:
        raise DataError("--plot", f"{error}.") from error
    echo.note(f"written: {path}")
