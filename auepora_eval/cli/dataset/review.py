"""Accept, reject or edit the questions of a dataset by keyboard.

A page opens in your browser. It shows one question with its reference answer, its gold documents, and what
`auepora dataset check` found. Press a to accept, r to reject, e to edit. To set a gold span, select the words
and press g. Each step is on the disk before the next question is shown.

When you stop (Ctrl-C), the new version is written to --out and the differences are printed. The dataset
itself is never changed. The same command continues the review.

Example:

  auepora dataset generate demo --out offline_dataset.jsonl
  auepora dataset review offline_dataset.jsonl --out reviewed.jsonl
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import PlanError
from .. import echo
from ..common import add_flag, add_format, open_samples
from ..pages import add_page_flags, check_can_serve, serve_pages
from .diff import say_difference

if TYPE_CHECKING:
    from ...quality.review import Review


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a dataset of any format, or demo")
    add_flag(parser, "--out", "file of the new version (.jsonl keeps everything)", "NEW", required=True)
    add_format(parser, "FILE")
    add_flag(parser, "--only-accepted", "leave out the questions that are not decided")
    add_flag(parser, "--new-version", "version of the new dataset", "TEXT", default=None)
    add_flag(parser, "--force", "overwrite a file that this command did not write")
    add_page_flags(parser)


def run(args: Namespace) -> int:
    check_can_serve("dataset review")  # the pages import the packages
    from ...io.loader import format_of_name
    from ...quality.review import Review, check_not_overwritten
    from ...web.pages.annotate import FRAME
    from ...web.pages.review import review_routes
    from ...web.server import application
    from ...web.workspace import Workspace

    target = Path(args.out)
    folder = target.with_name(f"{target.name}.review")
    format_of_name(target)  # DataError for a name that is not a format's, before anything is reviewed
    if args.file != "demo" and target.exists() and target.samefile(args.file):
        raise PlanError("A dataset is never reviewed in place. Name another file: --out NEW.")
    if not args.force:
        check_not_overwritten(target, folder)
    with Review(open_samples(args.file, args.format), folder) as review:
        routes = review_routes(review)
        serve_pages(
            args,
            lambda access: application(Workspace(target.parent), access, routes, frame=FRAME),
            home="/",
            about=f"{len(review)} questions to review",
        )
        if not review.can_undo:
            echo.note("Nothing was decided, so nothing is written.")
            return 0
        return _write(args, review, target)


def _write(args: Namespace, review: Review, target: Path) -> int:
    from ...io.loader import save_dataset
    from ...quality.description import dataset_difference
    from ...quality.review import note_written

    result = review.result(only_accepted=args.only_accepted, version=args.new_version)
    save_dataset(result, target, force=True)
    note_written(target, review.folder)
    counts = Counter(one.decision for one in review.all())
    edited = sum(one.is_edited for one in review.all())
    echo.say(
        f"{counts['accept']} accepted, {counts['reject']} rejected, {counts['']} not decided, {edited} edited"
    )
    say_difference(dataset_difference(review.dataset, result), 10)
    echo.note(f"written: {target}, {len(result)} samples")
    if not dataset_difference(result, open_samples(str(target), None)).same:
        echo.note(f"note: the format of {target.name} does not keep everything. End --out in .jsonl instead.")
    echo.say(f"Next:\n  auepora dataset check {shlex.quote(str(target))}")
    return 0
