"""The pages of `auepora view`, joined into one application."""

from __future__ import annotations

from importlib import import_module

from starlette.types import ASGIApp

from ..pages import run, runs, samples
from .requests import Ask, Handler, Reply, Route
from .security import Access
from .server import application
from .workspace import Workspace


def later(module: str, name: str) -> Handler:
    """Return a page whose module is imported when it is asked for: the first page is not to wait for it."""

    def page(ask: Ask) -> Reply:
        handler: Handler = getattr(import_module(f".{module}", __package__), name)
        return handler(ask)

    return page


ROUTES: list[Route] = [
    *runs.ROUTES,
    *run.ROUTES,
    *samples.ROUTES,
    Route("/compare", later("compare", "compare_page")),
    Route("/compare/sample", later("compare", "compared_sample_page")),
    Route("/gate", later("gate", "gate_page")),
    Route("/metrics", later("reference", "metrics_page")),
    Route("/trend", later("reference", "trend_page")),
    Route("/experiment/{name}", later("reference", "experiment_page")),
]


def view_application(workspace: Workspace, access: Access) -> ASGIApp:
    """Return the application of `auepora view`."""
    return application(workspace, access, ROUTES)
