"""Validate the format of datasets, results and other files.

Every error is listed with its place. The exit code is 1 if there are errors, and 2 if a file does not exist.

Example:

  auepora demo
  auepora dataset validate data/evaluation/results/demo-bm25.results.json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import DataError
from .. import echo
from ..common import add_flag, add_format, add_json

# Errors of a file that are printed without --all.
_SHOWN = 100


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="any file of a known format")
    add_format(parser, "the files")
    add_flag(parser, "--lenient", "require only the essential fields")
    add_flag(parser, "--all", f"show every error (default: {_SHOWN} per file)")
    add_json(parser)


def run(args: Namespace) -> int:
    reports = []
    for name in args.files:
        report = {"file": name, **_report(Path(name), args.format, args.lenient)}
        reports.append(report)
        if report["format"] is None:
            echo.note(f"auepora: {echo.one_line(report['errors'][0], 1000)}")
        elif not args.json:
            _say(report, None if args.all else _SHOWN)
    if args.json:
        echo.say_json(reports)
    # A file that does not exist is worse than one that is not valid.
    if any(report["format"] is None for report in reports):
        return 2
    return 0 if all(report["valid"] for report in reports) else 1


def _say(report: dict[str, Any], limit: int | None) -> None:
    errors = report["errors"]
    echo.say(f"{report['file']}: {'valid' if report['valid'] else 'NOT VALID'} ({report['format']})")
    for error in errors[:limit]:
        echo.say(f"  {echo.one_line(error, 500)}")
    if limit is not None and len(errors) > limit:
        echo.say(f"  ... and {len(errors) - limit} more (--all)")


def _report(path: Path, kind: str | None, lenient: bool) -> dict[str, Any]:
    """What is wrong with a file; its format is None if there is no such file."""
    from ...io.detect import kind_of_file
    from ...io.schema.files import file_errors

    try:
        kind = kind or kind_of_file(path)
    except DataError as error:
        exists = False
        with suppress(OSError):  # a name that is too long
            exists = path.is_file()
        return {"format": "unreadable" if exists else None, "valid": False, "errors": [str(error)]}
    errors = file_errors(path, kind, lenient=lenient)
    return {"format": kind, "valid": not errors, "errors": errors}
