"""Measure how robust a generator is to bad documents.

Each question of the dataset is asked with documents of our choice: its gold alone, with
near misses, in the last place, without gold, with a false fact, with a prompt injection.
They are one stored run that gate, compare and view open: the targets noise robustness,
negative rejection and counterfactual robustness are in its results. The same command
again resumes it. The generator must take documents: auepora help diagnose.

  auepora stress auepora_eval.demo.systems:bm25 --dataset demo --sample 30
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from random import Random

from ..core.plan import PartialCoverageWarning
from ..core.rag_interface import answerer_of, name_of
from ..core.types import EvaluationRun
from ..errors import AueporaError, PlanError
from ..interventions.documents import Corpus
from ..interventions.probe import documents_of, right_metric
from ..interventions.stress import STRESS, robustness, stress_dataset, stress_plan, stress_results
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import evaluated_dataset, progress, say_stored
from .diagnose import add_intervention_flags, keeping_answers, say_estimate
from .flags import add_json, add_out, add_settings, evaluator_of, named_system, settings_of


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("system", metavar="SYSTEM", help="MODULE:ATTR, openai:URL#MODEL, or an HTTP endpoint")
    add_settings(parser, "dataset")
    add_intervention_flags(parser)
    add_settings(
        parser, "config", "concurrency", "executor", "timeout", "budget_calls", "seed", "id", "force"
    )
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    settings = settings_of(args)
    if settings.dataset is None:
        raise PlanError("No dataset was named: give --dataset FILE.")
    answerer = answerer_of(named_system(settings))
    if answerer is None:
        raise PlanError(
            f"The generator of {args.system} cannot be handed documents, so it cannot be stressed. Give a "
            "pair (retrieve, generate), or a function with a parameter `documents`."
        )
    dataset = evaluated_dataset(settings)
    samples = list(dataset)
    if args.sample is not None and args.sample < len(samples):
        samples = Random(settings.seed).sample(samples, args.sample)  # noqa: S311 - no secret
    metric = right_metric(samples, args.metric)
    corpus = Corpus(documents_of(args.corpus, settings.dataset), samples)
    stressed, about = stress_dataset(samples, corpus, Path(dataset.name).name, seed=settings.seed)
    if args.estimate:
        calls = {"generate": len(stressed), "retrieve": 0}
        last = _last_run_of(settings.system, EvaluationResultsStorage(settings.out))
        per = len(stressed) / about["of"]
        note = f"{len(stressed):,} calls of the generator ({per:.1f} per question)."
        return say_estimate(calls, about["of"], note, last, settings)
    configuration = {**settings.as_stored(), STRESS: {**about, "metric": metric.name}}
    evaluator = evaluator_of(settings, answerer.system, stress_plan(metric), configuration)
    storage = EvaluationResultsStorage(settings.out)
    run_id = settings.id or f"stress-{name_of(answerer.system)}-{dataset.name}"
    with keeping_answers(evaluator.stop), progress(len(stressed), run_id) as bar:
        evaluator.on_output = bar
        warnings.simplefilter("ignore", PartialCoverageWarning)  # each stress has its own metrics
        options = {"force": True} if settings.force else {"resume": True, "retry_failed": True}
        storage.evaluate(evaluator, stressed, evaluation_id=run_id, **options)
    done = storage.load_run(run_id)
    results = stress_results(done)
    if results is not done.results:
        storage.replace_results(run_id, results)
    found = robustness(done)
    if args.json:
        echo.say_json(found.to_dict())
    else:
        echo.say(str(found))
    say_stored(storage.state(run_id).path)
    return 0


def _last_run_of(system: str | None, storage: EvaluationResultsStorage) -> EvaluationRun | None:
    """Return the newest stored run of a system that says what its calls took."""
    heads = (head for head in storage.list_results() if "error" not in head)
    for name in (str(head["evaluation_id"]) for head in heads):
        with suppress(AueporaError):
            run = storage.load_summary(name)
            if run.configuration.get("system") == system:
                return storage.load_run(name)
    return None
