"""Find the threshold that best detects hallucinations.

Try the thresholds 0.05 to 0.95 on reliability scores ({"id": "q1", "score": 0.7} per
line, a report with detailed_results, or a metric). The chosen one has the largest
macro-F1 among those that find 80% of the hallucinations. On new data, expect the
cross-validated macro-F1. A sample without a score counts as failed.

  auepora labels sweep --dataset demo --metric grounding_overlap
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ...core.scores import cluster_names
from ...core.types import TRUE_LABEL, EvaluationSample
from ...labels.report import sweep_tables
from ...labels.sweep import ScoredLabels, sweep
from ...labels.thresholds import scenario_of
from .. import echo
from ..common import coverage_code
from ..flags import add_flag, at_least
from .shared import add_shared, labelled_samples, scores_of


def add_arguments(parser: ArgumentParser) -> None:
    add_shared(parser)
    chosen = parser.add_mutually_exclusive_group(required=True)
    add_flag(chosen, "--scores", "a score from 0 to 1 for each sample, higher is better", "FILE")
    add_flag(chosen, "--metric", "score the stored answers by this metric", "NAME")
    add_flag(parser, "--per-scenario", "choose a threshold for each scenario")
    about = "folds of the cross-validation, 0 for none"
    add_flag(parser, "--folds", about, "N", type=at_least(0), default=5)


def run(args: Namespace) -> int:
    samples = labelled_samples(args)
    data = _scored(args, samples)
    result = sweep(data, per_scenario=args.per_scenario, folds=args.folds)
    if args.json:
        echo.say_json({"dataset": args.dataset, **asdict(result)})
    else:
        echo.show_all(sweep_tables(result))
    failed, none = result.samples_without_score, "there is not a single score"
    return coverage_code(failed, len(samples), args.min_coverage, "the scores", none=none)


def _scored(args: Namespace, samples: list[EvaluationSample]) -> ScoredLabels:
    scored = scores_of(args, samples)
    return ScoredLabels(
        [str(sample.labels[TRUE_LABEL]) for sample in samples],
        [one.score for one in scored],
        contradictions=[one.contradiction for one in scored],
        scenarios=list(map(scenario_of, samples)),
        clusters=cluster_names(samples),
    )
