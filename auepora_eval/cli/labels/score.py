"""Compare the labels of a detector with the true labels.

The labels come from --predictions ({"id": "q1", "predicted_label": "accurate"} per
line, or a report with detailed_results), from --scores ({"id": "q1", "score": 0.7}),
from a detector in Python (--system) or from a metric of the stored answers (--metric).
In static mode they describe the stored answers; in live mode the system answers again.
A sample without a prediction counts as failed.

  auepora labels score --dataset demo --metric grounding_overlap --slices
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout

from ...core.dataset import InMemoryDataset
from ...core.plan import EvaluationPlan
from ...core.runner import AueporaEvaluator, MemoryRecord, evaluate
from ...core.scoring import Tally
from ...core.systems.call import without_answers
from ...core.systems.named import load_system
from ...core.types import EvaluationSample, SystemOutputs
from ...errors import DataError
from ...io.label_set import read_predicted_labels
from ...io.outputs import matched_outputs
from ...labels.report import score_tables
from ...labels.scoring import compare_detectors, detailed_results, score_labels
from ...labels.thresholds import labels_by_score
from .. import echo
from ..common import coverage_code, progress, say_failures
from ..flags import add_flag
from .shared import add_shared, labelled_samples, scores_of, thresholds_of


def add_arguments(parser: ArgumentParser) -> None:
    add_shared(parser)
    add_flag(parser, "--predictions", "predicted labels", "FILE")
    add_flag(parser, "--scores", "scores from 0 to 1, turned into labels by thresholds", "FILE")
    add_flag(parser, "--against", "predicted labels of another detector", "FILE")
    add_flag(parser, "--system", "detector, or with --metric the system to label", "MODULE:ATTR")
    add_flag(parser, "--metric", "score the answers by a metric, labelled by thresholds", "NAME")
    about = "static (stored answers) or live (new ones)"
    add_flag(parser, "--mode", about, "MODE", choices=("static", "live"), default="static")
    add_flag(parser, "--slices", "also report by scenario, risk tier, category and more")


def run(args: Namespace) -> int:
    _check_clear(args)
    samples = labelled_samples(args)
    outputs = _outputs(args, samples)
    report = score_labels(samples, outputs, mode=args.mode, slices=args.slices)
    compared = None
    if args.against:
        compared = compare_detectors(samples, outputs, _predictions(args.against, samples))
    if args.json:
        detailed = detailed_results(samples, outputs)
        document = {"dataset": args.dataset, **report, "compared": compared, "detailed_results": detailed}
        echo.say_json(document)
    else:
        echo.show_all(score_tables(report, compared))
        failures = {(each["type"], each["message"]): each["count"] for each in report["failures"]}
        say_failures(Tally(failures=Counter(failures)))
    failed, none = report["metrics"]["overall"]["failed_samples"], "there is not a single prediction"
    return coverage_code(failed, len(samples), args.min_coverage, "the predictions", none=none)


def _check_clear(args: Namespace) -> None:
    sources = [flag for flag in ("predictions", "scores", "system", "metric") if getattr(args, flag)]
    # With --system the metric scores what the system answers, which needs live mode.
    live_answers = sources == ["system", "metric"] and args.mode == "live"
    if len(sources) != 1 and not live_answers:
        what = f"--{' and --'.join(sources)} cannot be combined." if sources else "there are no predictions."
        fix = "Give one of --predictions FILE, --scores FILE, --system MODULE:ATTR and --metric NAME."
        raise DataError("labels score", what, fix=f"{fix} --system with --metric needs --mode live.")
    if args.mode == "live" and sources == ["metric"]:
        raise DataError("--mode live", "no system answers.", fix="Name one: --system MODULE:ATTR.")


def _outputs(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return a predicted label for each sample, from where the user says."""
    if args.predictions:
        return _predictions(args.predictions, samples)
    answers = _answers(args, samples) if args.system else None
    if answers is not None and not args.metric:
        return answers
    return labels_by_score(samples, scores_of(args, samples, answers), thresholds_of(args, samples))


def _predictions(path: str, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
    sample_ids = {sample.sample_id for sample in samples}
    return matched_outputs(samples, read_predicted_labels(path, sample_ids), path)


def _answers(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return the system's outputs; it gets the samples without labels or hints."""

    # An id such as "halluc_07" says it all: the system gets a number in its place.
    blinded = [
        without_answers(sample, stored=args.mode == "static", sample_id=f"sample-{number}")
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
        return evaluate(evaluator, MemoryRecord(blind, evaluator.plan, args.system)).outputs
