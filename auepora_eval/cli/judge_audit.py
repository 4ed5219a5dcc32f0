"""Audit a judge against human labels.

Each line of --labels has a claim, its evidence, and the label or labels of people:

  {"evidence": "It carries 22 cars.", "claim": "22 cars fit.", "label": 1}
  {"answer": "...", "label": {"ada": 1, "ben": 0}, "my_judge": 0.8}

The judge is named as in `auepora judge`. Its audit is stored beside the runs, and
printed with each value of it.

  auepora judge-audit --labels demo --judge support:lexical
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.settings import RunSettings
from ..judges.ask import Asking, VerdictLog
from ..judges.question import kind_named
from ..judges.trust.audit import GROUNDING, audit, judge_scores, read_audit, write_audit
from ..judges.trust.calibration import calibrate
from ..judges.trust.labels import labelled_claims
from ..metrics.entailment import SUPPORTS
from ..store.cache import CallCache
from . import echo
from .common import check_has_samples, coverage_code, progress_bar
from .flags import add_flag, add_json, add_out, add_settings, cache_path, settings_of, share
from .judge import claim_records, judge_executor, judge_policy, named_judge, today

if TYPE_CHECKING:
    from ..judges.trust.labels import Labelled

_JUDGE = "support:lexical"


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--labels", "labelled claims (JSONL), or `demo`", "FILE", required=True)
    judge = parser.add_mutually_exclusive_group()
    add_flag(judge, "--judge", f"the judge to audit (default: {_JUDGE})", "NAME")
    add_flag(judge, "--score", "field with scores of the judge, from 0 to 1", "FIELD", default="")
    about = "lowest score that counts as supported (default: 0.5)"
    add_flag(parser, "--threshold", about, "T", type=share, default=0.5)
    add_flag(parser, "--cache", "file of replies to reuse (default: $AUEPORA_CACHE)", "FILE")
    add_settings(parser, "config", "min_coverage")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    labelled = labelled_claims(claim_records(args.labels), args.score)
    check_has_samples(args.labels, len(labelled))
    settings = settings_of(args)
    if args.score:
        report = audit(labelled, None, args.threshold, args.score)
    else:
        judge = settings.judge or _JUDGE
        settings.judge = f"support:{judge}" if judge in SUPPORTS else judge
        with _asking(args.cache, settings, len(labelled)) as asking:
            report = audit(labelled, asking, args.threshold)
            _store(Path(args.out), asking, labelled)
    if args.json:
        echo.say_json({"labels": args.labels, **vars(report)})
    else:
        echo.show_all(report.tables())
    failed = report.claims - report.scored
    none = "the judge could score no claim"
    return coverage_code(failed, report.claims, settings.min_coverage, report.judge, none=none, noun="claims")


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
