"""Open stored runs in a browser: metrics, samples, comparisons.

Without RUN, every run of the folder is shown. The pages are served on this machine only. The printed address
works once, in one browser. Stop with Ctrl-C.

Examples:

  auepora demo
  auepora view
  auepora view demo-bm25 demo-hybrid
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from .common import add_out
from .pages import add_page_flags, check_can_serve, serve_pages

if TYPE_CHECKING:
    from ..web.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="id or path of a stored run (default: all)")
    add_page_flags(parser)
    add_out(parser)


def run(args: Namespace) -> int:
    check_can_serve("view")
    from ..web.app import view_application

    workspace = _workspace(args)
    try:
        serve_pages(
            args,
            lambda access: view_application(workspace, access),
            home=_home(list(workspace.only)),
            about=f"Runs of {args.out}",
        )
    finally:
        workspace.close()
    return 0


def _workspace(args: Namespace) -> Workspace:
    from ..runs.store.state import SUFFIX
    from ..runs.store.storage import EvaluationResultsStorage
    from ..web.workspace import Workspace

    storage = EvaluationResultsStorage(args.out)
    paths = [storage.find(name) for name in args.runs]
    return Workspace(args.out, {path.name.removesuffix(SUFFIX): path for path in paths})


def _home(run_ids: list[str]) -> str:
    """Return the page to start with: the run, or the comparison of the runs, that were named."""
    from ..web.layout import address

    if not run_ids:
        return "/"
    if len(run_ids) == 1:
        return address("run", run_ids[0])
    return address("compare", query=[("run", run_id) for run_id in run_ids])
