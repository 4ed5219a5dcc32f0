"""Audit a judge against human labels.

Each line of the --labels file has a claim, the evidence to check it against, and its human label or labels:

  {"evidence": "The Annet carries 22 cars.", "claim": "22 cars fit on the Annet.", "label": 1}
  {"answer": "...", "label": {"ada": 4, "ben": 3}, "my_judge": 0.8}

The evidence is a text or a list of texts. The label is 0 or 1, true or false, or a word such as
"attributable". With --scale, it is a number. For several annotators, give an object (name: label) or a list.
Use `--labels demo` for 24 bundled answers.

The judge is a model (URL#model), a support function (support:trained), your own function (my_judge.py:judge),
or a jury of judges (jury:[A,B]). The audit of such a judge is stored in the folder of the runs.
`auepora judge` then prints it with each value of this judge.

You can also audit a metric that needs only an answer and documents (--judge grounding_overlap). If the file
already has scores, as in the second line above, name their field (--score my_judge).

--unlabelled adds claims without labels. The judge scores them, and their true mean is estimated from both
files.

Example:

  auepora judge-audit --labels demo --judge lexical --threshold 0.7
  auepora judge-audit --labels demo --judge grounding_overlap --plot calibration.png --force
  auepora judge-audit --labels demo --judge "jury:[support:lexical,support:consistent]"
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli import echo
from ..core.settings import SETTINGS, Number
from ..errors import DataError
from .common import add_flag, add_json, add_out, check_has_samples, coverage_code, progress_bar
from .flags import add_judge_flags, add_seed, add_settings, covered, number_type, settings_of, share
from .judge import CALL_SETTINGS, judge_executor, judge_policy, named_judge, today

if TYPE_CHECKING:
    from ..judges.judge import Asker, Judging
    from ..judges.trust.audit import AuditReport
    from ..judges.trust.calibration import JudgeCalibration
    from ..judges.trust.labels import Scale

_JUDGE = "lexical"
_BINS = number_type(Number("from 1 to 1,000", is_whole=True, least=1, most=1_000))
_THRESHOLD = 0.7
_ASKED_THRESHOLD = 0.5  # of the judged metrics
# Which field of a record has what; without the flag the usual names are tried.
_COLUMNS = {
    "evidence": "field with the evidence (default: evidence, premise, references, context or contexts)",
    "claim": "field with the claim (default: claim or hypothesis)",
    "label": "field with the label or labels (default: label or attribution_label)",
    "cluster": "field with the cluster; claims of the same cluster are not independent",
    "by": "also report the results for each value of this field",
}


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--labels", "labelled claims, one per line (JSONL)", "FILE", required=True)
    judge = parser.add_mutually_exclusive_group()
    add_flag(judge, "--judge", f"the judge to audit (default: {_JUDGE})", "NAME")
    add_flag(judge, "--score", "field with the judge's score", "FIELD", default="")
    add_flag(
        parser,
        "--unlabelled",
        "file of claims without labels; estimate their true mean from the judge's scores",
        "FILE",
    )
    add_flag(
        parser,
        "--threshold",
        "lowest judge score that counts as supported (default: 0.7, or 0.5 if the judge's name has a : or #)",
        "T",
        type=share,
    )
    add_flag(parser, "--scale", "the labels are numbers on this scale", "LOW,HIGH", type=scale)
    about = "the scale of --score (default: 0,1)"
    add_flag(parser, "--score-scale", about, "LOW,HIGH", type=scale, default=(0.0, 1.0))
    add_flag(
        parser,
        "--people-threshold",
        "lowest mean of the human labels, scaled to 0-1, that counts as supported",
        "T",
        type=share,
        default=0.5,
    )
    add_flag(
        parser,
        "--unscored-as",
        "score (0 to 1) to use for claims that the judge cannot score (default: leave them out)",
        "S",
        type=covered,
    )
    for name, words in _COLUMNS.items():
        add_flag(parser, f"--{name}", words, "FIELD", default="")
    add_flag(parser, "--positive", "the label of a supported claim", "LABEL", default="")
    add_flag(parser, "--bins", "number of bins for the calibration error, ECE", "N", type=_BINS, default=10)
    add_flag(parser, "--plot", "plot the reliability diagram (.png, .svg)", "FILE")
    add_flag(parser, "--force", "overwrite the plot if it exists")
    add_seed(parser)
    add_flag(parser, "--cache", "folder of verdicts to reuse", "DIR")
    add_judge_flags(parser)
    add_settings(parser, [SETTINGS[name] for name in CALL_SETTINGS])
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
    from ..judges.trust.audit import Audit, audit, judge_calibration
    from ..judges.trust.labels import Columns, labelled_claims, unlabelled_claims
    from ..judges.trust.report import audit_tables

    columns = Columns(**{column.name: getattr(args, column.name) for column in fields(Columns)})
    labelled = labelled_claims(_records(args.labels), columns)
    check_has_samples(args.labels, len(labelled))
    rest = unlabelled_claims(_records(args.unlabelled), columns) if args.unlabelled else []
    if args.unlabelled:
        check_has_samples(args.unlabelled, len(rest))
    judge = _asked(args)
    threshold = args.threshold or (_THRESHOLD if judge is None else _ASKED_THRESHOLD)
    how = Audit(threshold, args.people_threshold, args.bins, args.seed, args.unscored_as)
    if judge is None:
        name = args.judge or _JUDGE
        report = audit(labelled, None if args.score else name, how, unlabelled=rest)
        report.judge = args.score or report.judge
    else:
        with _asking(args, judge, len(labelled) + len(rest)) as ask:
            report = audit(labelled, judge, how, unlabelled=rest, ask=ask)
            calibration = judge_calibration(labelled, judge, date=today(), ask=ask)
            _store(args, calibration)
    if args.plot:
        _draw(report, args.plot, force=args.force)
    if args.json:
        echo.say_json({"labels": args.labels, "unlabelled": args.unlabelled, **vars(report)})
    else:
        echo.show_all(audit_tables(report))
    failed = report.claims - report.scored
    none = "the judge could score no claim"
    return coverage_code(
        failed, report.claims, args.min_coverage, str(report.judge), none=none, noun="claims"
    )


def _asked(args: Namespace) -> Judging | None:
    """Return the judge that is asked; None for the plain name of a support function or a metric."""
    from ..judges.judge import Judging, VerdictBook

    if args.judge is None or not {":", "#"} & set(args.judge):
        return None
    return Judging(named_judge(args.judge, args.mode, settings_of(args)), VerdictBook())


@contextmanager
def _asking(args: Namespace, judging: Judging, claims: int) -> Iterator[Asker]:
    """Yield what asks the judge, with a progress bar; verdicts go to the cache, also if it is interrupted."""
    from ..judges.asking import Asking
    from ..runs.verdicts import VerdictCache

    settings = settings_of(args)
    cache = None if args.cache is None else VerdictCache(args.cache)
    with progress_bar(claims, "audit") as advance:
        asking = Asking(
            judging.book,
            judge_executor(settings),
            judge_policy(settings),
            on_verdict=lambda verdict: advance(bool(verdict.failed)),
            cached=None if cache is None else cache.book,
        )
        try:
            yield asking
        finally:
            if cache is not None:
                cache.add(judging.book.values())
            judging.judge.close()


def _store(args: Namespace, calibration: JudgeCalibration) -> None:
    """Store what was found beside the runs, so that every value of this judge is printed with it."""
    from ..runs.verdicts import read_audit, write_audit

    folder = Path(args.out)
    known = read_audit(folder, calibration.identity)
    known.calibration = calibration
    write_audit(folder, known)
    echo.note(f"stored: {calibration.identity}: {calibration}")


def _records(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from ..demo.world import demo_claims
    from ..io.jsonl import read_records

    return demo_claims() if name == "demo" else read_records(name)


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
