"""Compare the labels of a detector with the true labels.

The labels come from --predictions ({"id": "q1", "predicted_label": "accurate"} per
line, or a report with detailed_results), from --scores ({"id": "q1", "score": 0.7}),
from a detector in Python (--system) or from a metric of the stored answers (--metric).
A sample without a prediction counts as failed.

  auepora labels score --dataset demo --metric grounding_overlap --slices
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from contextlib import redirect_stdout

from ...core.dataset import InMemoryDataset
from ...core.plan import EvaluationPlan
from ...core.runner import AueporaEvaluator, evaluate
from ...core.scoring import RunRecord, Tally
from ...core.systems.call import without_answers
from ...core.systems.named import load_system
from ...core.types import EvaluationSample, SystemOutputs
from ...io.label_set import read_predicted_labels
from ...io.outputs import ForeignPredictions
from ...labels.report import score_tables
from ...labels.scoring import detailed_results, score_labels
from ...labels.thresholds import labels_by_score
from .. import echo
from ..common import coverage_code, progress, say_failures
from ..flags import add_flag
from .shared import add_shared, labelled_samples, scores_of, thresholds_of


def add_arguments(parser: ArgumentParser) -> None:
    add_shared(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    add_flag(source, "--predictions", "predicted labels", "FILE")
    add_flag(source, "--scores", "scores from 0 to 1, turned into labels by thresholds", "FILE")
    add_flag(source, "--system", "detector that is asked for the labels", "MODULE:ATTR")
    add_flag(source, "--metric", "score the stored answers by a metric, labelled by thresholds", "NAME")
    add_flag(parser, "--slices", "also report by scenario, risk tier, category and more")


def run(args: Namespace) -> int:
    samples = labelled_samples(args)
    outputs = _outputs(args, samples)
    report = score_labels(samples, outputs, slices=args.slices)
    if args.json:
        detailed = detailed_results(samples, outputs)
        echo.say_json({"dataset": args.dataset, **report, "detailed_results": detailed})
    else:
        echo.show_all(score_tables(report))
        failures = {(each["type"], each["message"]): each["count"] for each in report["failures"]}
        say_failures(Tally(failures=Counter(failures)))
    failed, none = report["metrics"]["overall"]["failed_samples"], "there is not a single prediction"
    return coverage_code(failed, len(samples), args.min_coverage, "the predictions", none=none)


def _outputs(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return a predicted label for each sample, from where the user says."""
    if args.predictions:
        sample_ids = [sample.sample_id for sample in samples]
        predicted = read_predicted_labels(args.predictions, set(sample_ids))
        return list(ForeignPredictions(args.predictions, predicted).outputs(sample_ids))
    if args.system:
        return _answers(args, samples)
    return labels_by_score(samples, scores_of(args, samples), thresholds_of(args, samples))


def _answers(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return the system's outputs; it gets the samples without labels or hints."""

    # An id such as "halluc_07" says it all: the system gets a number in its place.
    blinded = [
        without_answers(sample, sample_id=f"sample-{number}")
        for number, sample in enumerate(samples, start=1)
    ]
    blind = InMemoryDataset("blind", blinded)
    with progress(len(samples), args.system) as advance, redirect_stdout(sys.stderr):
        evaluator = AueporaEvaluator(
            load_system(args.system),
            # No metric: the answers are scored later, with the labels that the system was not given.
            EvaluationPlan([]),
            on_output=advance,
        )
        return evaluate(evaluator, RunRecord(blind, evaluator.plan, args.system)).outputs
