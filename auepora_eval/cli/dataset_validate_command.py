"""are these files what they should be? datasets, ground truth, results, predictions, configurations

Every error is listed with its place; the exit code is 1 if there is one.

Example:

  auepora demo
  auepora dataset validate data/evaluation/results/demo-bm25.results.json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from . import echo
from .common import add_json


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="any file of a known format")
    parser.add_argument("--format", metavar="NAME", help="the format (default: found by content and name)")
    parser.add_argument(
        "--lenient", action="store_true", help="ask only for the fields without which nothing works"
    )
    add_json(parser)


def run(args: Namespace) -> int:
    reports = []
    for name in args.files:
        report = _report(Path(name), args.format, args.lenient)
        reports.append({"file": name, **report})
        if not args.json:
            echo.say(f"{name}: {'valid' if report['valid'] else 'NOT VALID'} ({report['format']})")
            for error in report["errors"]:
                echo.say(f"  {echo.one_line(error, 500)}")
    if args.json:
        echo.say_json(reports)
    return 0 if all(report["valid"] for report in reports) else 1


def _report(path: Path, kind: str | None, lenient: bool) -> dict[str, Any]:
    from ..errors import DataError
    from ..io.detect import kind_of_file
    from ..io.file_check import file_errors

    try:
        kind = kind or kind_of_file(path)
    except DataError as error:
        if not path.is_file():
            raise
        return {"format": "unreadable", "valid": False, "errors": [str(error)]}
    errors = file_errors(path, kind, lenient=lenient)
    return {"format": kind, "valid": not errors, "errors": errors}
