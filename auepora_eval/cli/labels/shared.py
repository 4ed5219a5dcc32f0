"""What `labels score` and `labels sweep` share: label sets, and who decides about the answers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from ...core.types import EvaluationSample
from ...demo.world import demo_labels
from ...io.label_set import ScoredSample, read_scores
from ...labels.detector import scored_by_metric
from ...labels.scoring import check_labelled
from ...labels.thresholds import SCENARIO_FHRI_THRESHOLDS, read_thresholds, scenario_of
from .. import echo
from ..common import check_has_samples, open_samples
from ..flags import add_flag, add_json, add_settings


def add_shared(parser: ArgumentParser) -> None:
    """Add the flags of both commands."""
    add_flag(parser, "--dataset", "label set, or `demo`", "FILE", required=True)
    add_flag(parser, "--thresholds", "thresholds of scenarios, YAML or JSON", "FILE")
    add_settings(parser, "min_coverage")
    add_json(parser)


def labelled_samples(args: Namespace) -> list[EvaluationSample]:
    """Return the samples of the dataset, each with its true label."""
    dataset = demo_labels() if args.dataset == "demo" else open_samples(args.dataset, None)
    samples = list(dataset)
    check_has_samples(args.dataset, len(samples))
    check_labelled(samples)
    return samples


def scores_of(args: Namespace, samples: Sequence[EvaluationSample]) -> list[ScoredSample]:
    """Return the score of each sample: in a file, or by a metric of the stored answers."""
    if args.metric:
        return scored_by_metric(args.metric, samples)
    scores = read_scores(args.scores, {sample.sample_id for sample in samples})
    return [scores.get(sample.sample_id, ScoredSample(None, False)) for sample in samples]


def thresholds_of(args: Namespace, samples: Sequence[EvaluationSample]) -> Mapping[str, float]:
    """Return the thresholds by scenario, with a note for each new scenario that no sample has."""
    if not args.thresholds:
        return SCENARIO_FHRI_THRESHOLDS
    thresholds = read_thresholds(args.thresholds)
    for scenario in thresholds.keys() - SCENARIO_FHRI_THRESHOLDS.keys() - set(map(scenario_of, samples)):
        echo.note(f"note: no sample has the scenario {scenario!r:.60} of {args.thresholds}. Is it misspelt?")
    return thresholds
