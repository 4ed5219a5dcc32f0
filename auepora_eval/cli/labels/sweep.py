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
from pathlib import Path
from typing import TYPE_CHECKING

from .. import echo
from ..common import add_json
from ..flags import at_least
from .shared import add_dataset, add_detector, decisions, figure, labelled_samples, note_no_detector

if TYPE_CHECKING:
    from ...core.types import EvaluationSample
    from ...labels.sweep import ScoredLabels, Sweep


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
    parser.add_argument("--csv", metavar="FILE", help="write every threshold's figures")
    parser.add_argument("--plot", metavar="FILE", help="draw macro-F1 and recalls by threshold (.png, .svg)")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    add_json(parser)


def run(args: Namespace) -> int:
    from dataclasses import asdict

    from ...io.files.atomic import write_bytes
    from ...labels.sweep import csv_text, sweep

    samples = labelled_samples(args)
    data = _scored(args, samples)
    result = sweep(
        data, per_scenario=args.per_scenario, folds=args.folds, inclusive=args.inclusive, seed=args.seed
    )
    # The files are written before anything is printed: a closed pipe must not lose them.
    if args.csv:
        write_bytes(Path(args.csv), csv_text(result).encode("utf-8"), force=args.force)
    if args.plot:
        _draw(result, args.plot, force=args.force)
    if args.json:
        echo.say_json({"dataset": args.dataset, **asdict(result)})
    else:
        _say(result, whole=not args.per_scenario)
    if args.fhri:
        note_no_detector()
    for path in (args.csv, args.plot):
        if path:
            echo.note(f"stored: {path}")
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

    labels = [str(sample.labels[TRUE_LABEL]) for sample in samples]
    scenarios = [str(sample.labels.get("scenario") or DEFAULT_SCENARIO) for sample in samples]
    clusters = cluster_names(samples)
    if args.fhri:
        found = decisions(args, samples)
        return ScoredLabels.of(
            labels,
            [decision.fhri for decision in found],
            contradictions=[decision.label == CONTRADICTION for decision in found],
            hallucinations=[decision.holds_at_any_threshold for decision in found],
            scenarios=scenarios,
            clusters=clusters,
        )
    scores = read_scores(args.scores, {sample.sample_id for sample in samples})
    given = [scores.get(sample.sample_id, ScoredSample(None, False)) for sample in samples]
    return ScoredLabels.of(
        labels,
        [one.score for one in given],
        contradictions=[one.contradiction for one in given],
        scenarios=scenarios,
        clusters=clusters,
    )


def _draw(result: Sweep, path: str, *, force: bool) -> None:
    from ...errors import DataError
    from ...labels.sweep import plot_sweep
    from ...reporting.plots import save_figure

    try:
        save_figure(plot_sweep(result), path, force=force)
    except ValueError as error:
        raise DataError("--plot", f"{error}.") from error


def _say(result: Sweep, *, whole: bool) -> None:
    if whole:
        headings = ("Threshold", "Accuracy", "Macro-F1", "Hall. recall", "Acc. recall", "Contr. recall")
        columns = ("accuracy", "macro_f1", "hall_recall", "accurate_recall", "contr_recall")
        chosen = result.parts[0].chosen_threshold
        rows = [
            [
                f"{row['threshold']:.2f}{' *' if row['threshold'] == chosen else ''}",
                *(figure(row[column]) for column in columns),
            ]
            for row in result.parts[0].rows
        ]
        echo.say_table(headings, rows, numeric=range(6))
        echo.say()
    rows = [
        [
            part.scenario,
            str(part.samples),
            f"{part.chosen_threshold:.2f}{'' if part.meets_constraint else ' (recall below 0.8)'}",
            part.robustness,
            figure(part.auc_accurate_vs_hallucination),
        ]
        for part in result.parts
    ]
    echo.say_table(("Scenario", "Samples", "Chosen", "Next door", "AUC"), rows, numeric=(1, 4))
    echo.say()
    echo.say(f"Fitted:          macro-F1 {figure(result.fitted['macro_f1'])}, {_rest(result.fitted)}")
    if result.cross_validated is not None:
        value = figure(result.cross_validated["macro_f1"], result.cross_validated_macro_f1_interval)
        echo.say(f"Cross-validated: macro-F1 {value}, {_rest(result.cross_validated)} ({result.folds} folds)")
    missing = result.samples_without_score
    if missing:
        echo.say(f"{missing} samples have no score; they are called hallucinations throughout")


def _rest(figures: dict[str, float | None]) -> str:
    return f"accuracy {figure(figures['accuracy'])}, hallucination recall {figure(figures['hall_recall'])}"
