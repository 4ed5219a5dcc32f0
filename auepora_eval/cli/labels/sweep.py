"""Find the threshold that best detects hallucinations.

Tries the thresholds 0.05 to 0.95 on reliability scores: a line {"id": "q1", "score": 0.7} a sample, a report
with detailed_results, or the FHRI of the stored answers. A predicted_label "contradiction" beside a score
holds at every threshold. The chosen threshold has the largest macro-F1 among
those that find 80% of the hallucinations. Its figure is fitted; the cross-validated one beside it, from
thresholds chosen without the samples they are applied to, is what to expect. Example, on bundled data:

  auepora labels sweep --dataset demo --fhri
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from .. import echo
from ..common import add_json
from ..flags import at_least
from .shared import add_dataset, add_detector, decisions, labelled_samples, note_no_detector

if TYPE_CHECKING:
    from ...core.types import EvaluationSample
    from ...labels.sweep import ScoredLabels


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument(
        "--scores", metavar="FILE", help="a score from 0 to 1 for each sample, higher is better"
    )
    chosen.add_argument("--fhri", action="store_true", help="score the stored answers by the FHRI")
    add_detector(parser)
    parser.add_argument("--per-scenario", action="store_true", help="a threshold for each scenario")
    parser.add_argument(
        "--folds",
        type=at_least(0),
        default=5,
        metavar="N",
        help="folds of the cross-validation, 0 for none (default: 5)",
    )
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="random seed (default: 0)")
    add_json(parser)


def run(args: Namespace) -> int:
    from dataclasses import asdict

    from ...labels.detector import load_profile
    from ...labels.report import sweep_tables
    from ...labels.sweep import sweep

    samples = labelled_samples(args)
    data = _scored(args, samples)
    inclusive = load_profile(args.profile).inclusive
    result = sweep(
        data, per_scenario=args.per_scenario, folds=args.folds, inclusive=inclusive, seed=args.seed
    )
    if args.json:
        echo.say_json({"dataset": args.dataset, **asdict(result)})
    else:
        echo.show_all(sweep_tables(result))
    if args.fhri:
        note_no_detector()
    if result.samples_without_score == len(samples):
        echo.note("auepora: there is not a single score; nothing was measured.")
        return 1
    return 0


def _scored(args: Namespace, samples: list[EvaluationSample]) -> ScoredLabels:
    from ...core.scores import cluster_names
    from ...core.types import TRUE_LABEL
    from ...io.datasets.label_sets import ScoredSample, read_scores
    from ...labels.sweep import ScoredLabels
    from ...text.label_terms import CONTRADICTION, DEFAULT_SCENARIO

    if args.fhri:
        scored = [
            ScoredSample(decision.fhri, decision.label == CONTRADICTION)
            for decision in decisions(args, samples)
        ]
    else:
        scores = read_scores(args.scores, {sample.sample_id for sample in samples})
        scored = [scores.get(sample.sample_id, ScoredSample(None, False)) for sample in samples]
    return ScoredLabels.of(
        [str(sample.labels[TRUE_LABEL]) for sample in samples],
        [one.score for one in scored],
        contradictions=[one.contradiction for one in scored],
        scenarios=[str(sample.labels.get("scenario") or DEFAULT_SCENARIO) for sample in samples],
        clusters=cluster_names(samples),
    )
