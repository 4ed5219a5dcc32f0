"""Audit a judge against human labels.

Each line of --labels has a claim, its evidence, and the label or labels of people:

  {"evidence": "It carries 22 cars.", "claim": "22 cars fit.", "label": 1}
  {"answer": "...", "label": {"ada": 1, "ben": 0}, "my_judge": 0.8}

The judge is named as in `auepora judge`. Its audit is stored beside the runs, and
its values are reported with it.

  auepora judge-audit --labels demo --judge support:lexical
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing, nullcontext
from pathlib import Path

import msgspec

from ..judges.ask import Asking
from ..judges.question import kind_named
from ..judges.trust.audit import compare_with_people, read_audit, write_audit
from ..judges.trust.calibration import calibrate
from ..judges.trust.labels import labelled_claims
from ..judges.trust.record import GROUNDING
from ..store.cache import CallCache
from . import echo
from .common import coverage_code, progress_bar
from .flags import add_flag, add_json, add_out, add_settings, cache_path, settings_of, share
from .judge import claim_records, judge_calls, named_judge

_JUDGE = "support:lexical"


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--labels", "labelled claims (JSONL), or `demo`", "FILE", required=True)
    judge = parser.add_mutually_exclusive_group()
    add_flag(judge, "--judge", f"the judge to audit (default: {_JUDGE})", "NAME")
    add_flag(judge, "--score", "field with scores of the judge, from 0 to 1", "FIELD", default="")
    about = "lowest score that counts as supported"
    add_flag(parser, "--threshold", about, "T", type=share, default=0.5)
    add_flag(parser, "--cache", "file of replies to reuse (default: $AUEPORA_CACHE)", "FILE")
    add_settings(parser, "config", "min_coverage")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    labelled = labelled_claims(claim_records(args.labels), args.score)
    settings = settings_of(args)
    if args.score:
        found = calibrate(args.score, [one.score for one in labelled], labelled, threshold=args.threshold)
    else:
        settings.judge = settings.judge or _JUDGE
        judge, path = named_judge(settings), cache_path(args.cache)
        known = read_audit(Path(args.out), judge.identity(kind_named(GROUNDING)))
        executor, policy = judge_calls(settings.for_judge())
        with (
            closing(judge),
            progress_bar(len(labelled), "audit") as advance,
            nullcontext() if path is None else CallCache(path) as cache,
        ):
            asking = Asking(judge, cache=cache, executor=executor, policy=policy)
            asking.on_verdict = lambda verdict: advance(bool(verdict.failed))
            found = compare_with_people(known, asking, labelled, args.threshold)
    if args.json:
        echo.say_json({"file": args.labels, **msgspec.to_builtins(found)})
    else:
        echo.show_all(found.tables())
    if not args.score and found.labels:
        # Stored beside the runs, so that every value of this judge is printed with it.
        write_audit(Path(args.out), known)
        echo.note(f"stored: {found.identity}: {found}")
    none, failed = "the judge could score no claim", found.claims - found.labels
    return coverage_code(
        failed, found.claims, settings.min_coverage, found.identity, none=none, noun="claims"
    )
