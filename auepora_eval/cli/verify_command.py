"""does a stored run fit together? hashes, rows, counts and values, found anew

Nothing is called and nothing changed. The exit code is 1 if something does not fit: a value or a row was
edited, an output exchanged, a file cut off. Example:

  auepora demo
  auepora verify demo-bm25
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from . import echo
from .common import add_json, add_out


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN", help="id or path of a stored run")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from dataclasses import asdict

    from ..runs.storage import EvaluationResultsStorage
    from ..runs.verify import DOES_NOT_FIT, FITS, UNCHECKED, verify_run

    found = verify_run(EvaluationResultsStorage(args.out), args.run_id)
    if args.json:
        checks = [asdict(check) for check in found.checks]
        echo.say_json({"evaluation_id": found.evaluation_id, "ok": found.ok, "checks": checks})
        return 0 if found.ok else 1
    wrong, unchecked = found.having(DOES_NOT_FIT), found.having(UNCHECKED)
    for check in (*wrong, *unchecked):
        echo.say(f"{check.status}: {echo.one_line(f'{check.what}: {check.found}', 500)}")
    counts = f"{len(found.having(FITS))} fit, {len(wrong)} do not, {len(unchecked)} cannot be checked"
    echo.say(
        f"{echo.one_line(found.evaluation_id)}: {'ok' if found.ok else 'NOT OK'}; of the checks {counts}"
    )
    return 0 if found.ok else 1
