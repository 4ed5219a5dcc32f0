"""Recompute the hashes, counts and values of a stored run.

The command calls no system and changes no file. The exit code is 1 if a check fails: a value or a row was
edited, an output was replaced, or a file was cut off. It is 3 if all checks pass, but the rows, samples or
outputs of the run are missing. For an experiment, verify the runs of its variants. Example:

  auepora demo
  auepora verify demo-bm25
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from . import echo
from .common import add_json, add_out


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..runs.store.storage import EvaluationResultsStorage
    from ..runs.store.verify import DOES_NOT_FIT, FITS, UNCHECKED, verify_run

    verification = verify_run(EvaluationResultsStorage(args.out), args.run_id)
    code = 0
    if not verification.ok:
        code = 1
    elif not verification.whole:
        code = 3  # not 0: a run that could not be checked must not pass in a CI job
    if args.json:
        checks = [asdict(check) for check in verification.checks]
        head = {
            "evaluation_id": verification.evaluation_id,
            "ok": verification.ok,
            "whole": verification.whole,
        }
        echo.say_json({**head, "checks": checks})
        return code
    wrong, unchecked = verification.having(DOES_NOT_FIT), verification.having(UNCHECKED)
    for check in (*wrong, *unchecked):
        echo.say(f"{check.status}: {echo.one_line(f'{check.what}: {check.found}', 500)}")
    passed = len(verification.having(FITS))
    counts = f"{passed} checks pass, {len(wrong)} fail, {len(unchecked)} cannot be made"
    verdict = {0: "ok", 1: "NOT OK", 3: "COULD NOT BE CHECKED"}[code]
    echo.say(f"{echo.one_line(verification.evaluation_id)}: {verdict} ({counts})")
    return code
