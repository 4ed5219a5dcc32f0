"""Open stored runs in a browser.

Without RUN, every run of the folder is shown. The pages are served on this machine
only. The printed address works once, in one browser. Stop with Ctrl-C.

  auepora demo
  auepora view demo-bm25 demo-hybrid
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .flags import add_flag, add_out, port
from .pages import check_can_serve, serve_pages

if TYPE_CHECKING:
    from ..pages.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="id or path of a stored run (default: all)")
    add_flag(parser, "--rules", "file of rules for the page of the gate", "FILE")
    add_flag(parser, "--port", "port to listen on (default: a free one)", "N", type=port, default=None)
    add_flag(parser, "--no-open", "print the address only, and open no browser")
    add_out(parser)


def run(args: Namespace) -> int:
    check_can_serve("view")
    from ..pages.app import view_application

    workspace = _workspace(args)
    serve_pages(
        args,
        lambda access: view_application(workspace, access),
        home=_home(list(workspace.only)),
        about=f"Runs of {args.out}",
    )
    return 0


def _workspace(args: Namespace) -> Workspace:
    from ..decide.rules import read_rules
    from ..pages.workspace import Workspace

    if args.rules is not None:
        read_rules(args.rules)  # a mistake in the file is reported now, not on a page
    return Workspace.named(args.out, args.runs, None if args.rules is None else Path(args.rules))


def _home(run_ids: list[str]) -> str:
    """Return the page to start with: the run, or the comparison of the runs, that were named."""
    from ..pages.layout import address

    if not run_ids:
        return "/"
    if len(run_ids) == 1:
        return address("run", run_ids[0])
    return address("compare", query=[("run", run_id) for run_id in run_ids])
