"""The pages of `auepora view`, joined into one application."""

from __future__ import annotations

from importlib import import_module

from starlette.types import ASGIApp

from . import annotate, find, run, runs, samples
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
    Route("/", runs.runs_page),
    Route("/runs.csv", runs.runs_csv),
    Route("/ticked", runs.compare_ticked),
    Route("/find", find.find_page),
    Route("/run/{run}", run.run_page),
    Route("/run/{run}/events", run.run_events),
    Route("/run/{run}/samples", samples.samples_page),
    Route("/run/{run}/samples.csv", samples.samples_csv),
    Route("/run/{run}/sample", samples.sample_page),
    Route("/run/{run}/diagnosis", later("diagnosis", "diagnosis_page")),
    Route("/run/{run}/label", annotate.label_sample, changes=True),
    Route("/label", annotate.label_page),
    Route("/label/new", annotate.new_task, changes=True),
    *annotate.task_routes(annotate.stored_desk),
    Route("/compare", later("compare", "compare_page")),
    Route("/compare.csv", later("compare", "compare_csv")),
    Route("/compare/sample", later("compare", "compared_sample_page")),
    Route("/gate", later("gate", "gate_page")),
    Route("/metrics", later("reference", "metrics_page")),
    Route("/trend", later("reference", "trend_page")),
    Route("/experiment/{name}", later("reference", "experiment_page")),
]


def view_application(workspace: Workspace, access: Access) -> ASGIApp:
    """Return the application of `auepora view`."""
    return application(workspace, access, ROUTES)
