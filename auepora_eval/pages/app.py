"""The pages of `auepora view`, joined into one application."""

from __future__ import annotations

from starlette.types import ASGIApp

from . import annotate, compare, diagnosis, find, gate, reference, review, run, runs, samples
from .requests import Route
from .security import Access
from .server import application
from .workspace import Workspace

ROUTES: list[Route] = [
    Route("/", runs.runs_page),
    Route("/runs.csv", runs.runs_csv),
    Route("/ticked", runs.compare_ticked),
    Route("/find", find.find_page),
    Route("/run/{run}", run.run_page),
    Route("/run/{run}/samples", samples.samples_page),
    Route("/run/{run}/samples.csv", samples.samples_csv),
    Route("/run/{run}/sample", samples.sample_page),
    Route("/run/{run}/diagnosis", diagnosis.diagnosis_page),
    Route("/run/{run}/label", annotate.label_sample, changes=True),
    Route("/label", annotate.label_page),
    Route("/label/new", annotate.new_task, changes=True),
    *annotate.task_routes(),
    Route("/review/new", review.new_review, changes=True),
    *review.review_routes(),
    Route("/compare", compare.compare_page),
    Route("/compare.csv", compare.compare_csv),
    Route("/gate", gate.gate_page),
    Route("/metrics", reference.metrics_page),
    Route("/trend", reference.trend_page),
    Route("/experiment/{name}", reference.experiment_page),
]


def view_application(workspace: Workspace, access: Access) -> ASGIApp:
    """Return the application of `auepora view`."""
    return application(workspace, access, ROUTES)
