"""Score the labels of a detector against the true ones.

The predictions come from one of three: a file (a line {"id": "q1", "predicted_label": "accurate"} a
sample, or a report with detailed_results), a system, or the FHRI with thresholds by scenario. In static mode
the labels describe the stored answers, which is what is judged; a system finds them in
metadata["stored_output"] and answers with a label. In live mode it answers the question. Neither sees a true
label. A sample without a prediction is counted as failed. Example, on bundled data:

  auepora labels score --dataset demo --fhri --slices
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from .. import echo
from ..common import add_json, progress, say_failures
from ..flags import at_least
from .shared import add_dataset, add_detector, decisions, figure, labelled_samples, note_no_detector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.types import EvaluationSample, MetricResult, SystemOutputs
    from ...labels.scoring import DetectorComparison, LabelReport, LabelTable


_MOST_PAIRS = 20  # in the table; there may be as many pairs as samples


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--predictions", metavar="FILE", help="predicted labels")
    parser.add_argument(
        "--against", metavar="FILE", help="predicted labels of another detector, to compare with"
    )
    parser.add_argument(
        "--system", metavar="MODULE:ATTR", help="a detector; with --fhri, what answers (live)"
    )
    parser.add_argument("--fhri", action="store_true", help="label by the FHRI")
    parser.add_argument(
        "--mode",
        choices=("static", "live"),
        default="static",
        help="whether the labels describe the stored answers or new ones (default: static)",
    )
    parser.add_argument(
        "--concurrency", type=at_least(1), default=1, metavar="N", help="concurrent calls (default: 1)"
    )
    add_detector(parser)
    parser.add_argument("--slices", action="store_true", help="also by scenario, risk tier, category, ...")
    add_json(parser)


def run(args: Namespace) -> int:
    from dataclasses import asdict

    from ...labels.scoring import compare_detectors, detailed_results, score_labels

    _check_clear(args)
    samples = labelled_samples(args)
    outputs = _outputs(args, samples)
    report = score_labels(samples, outputs, mode=args.mode, slices=args.slices)
    compared = None
    if args.against:
        compared = compare_detectors(samples, outputs, _predictions(args.against, samples))
    if args.json:
        record = {"dataset": args.dataset, **report.as_record()}
        record["compared"] = None if compared is None else asdict(compared)
        echo.say_json({**record, "detailed_results": detailed_results(samples, outputs)})
    else:
        _say(report, len(samples))
        if compared is not None:
            _say_compared(compared)
    if args.fhri:
        note_no_detector()
    # A report without any prediction is an error for the shell, not a result.
    if all(output.error is not None for output in outputs):
        echo.note("auepora: there is not a single prediction; nothing was measured.")
        return 1
    return 0


def _check_clear(args: Namespace) -> None:
    from ...errors import DataError

    given = [flag for flag in ("predictions", "system", "fhri") if getattr(args, flag)]
    # With --system the FHRI labels what the system answers, which needs live mode.
    live_answers = given == ["system", "fhri"] and args.mode == "live"
    if len(given) != 1 and not live_answers:
        what = f"--{' and --'.join(given)} cannot be combined." if given else "there are no predictions."
        fix = "Give one of --predictions FILE, --system MODULE:ATTR and --fhri."
        raise DataError("labels score", what, fix=f"{fix} --system with --fhri needs --mode live.")
    if args.mode == "live" and given == ["fhri"]:
        raise DataError("--mode live", "no system answers.", fix="Name one: --system MODULE:ATTR.")


def _outputs(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return a predicted label for each sample, from where the user says."""
    if args.predictions:
        return _predictions(args.predictions, samples)
    answers = _answers(args, samples) if args.system else None
    if not args.fhri and answers is not None:
        return answers
    return [decision.as_output() for decision in decisions(args, samples, answers)]


def _predictions(path: str, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
    from ...io.datasets.label_sets import read_predicted_labels
    from ...io.datasets.predictions import matched_outputs

    known = {sample.sample_id for sample in samples}
    return matched_outputs(samples, read_predicted_labels(path, known), path)


def _answers(args: Namespace, samples: list[EvaluationSample]) -> list[SystemOutputs]:
    """Return the system's outputs; it gets the samples without labels or hints."""
    from ...core.calls.executor import without_answers
    from ...core.dataset import InMemoryDataset
    from ...core.plan import EvaluationPlan
    from ...core.runner import AueporaEvaluator
    from ...execution.local import EXECUTORS
    from ...execution.systems import load_system

    # An id such as "halluc_07" says it all: the system gets a number in its place.
    shown = [
        without_answers(sample, stored=args.mode == "static", sample_id=f"sample-{number}")
        for number, sample in enumerate(samples, start=1)
    ]
    blind = InMemoryDataset("blind", shown)
    with progress(len(samples), args.system) as advance, redirect_stdout(sys.stderr):
        evaluator = AueporaEvaluator(
            load_system(args.system),
            # No metric: the answers are scored later, with the labels that the system was not given.
            EvaluationPlan([]),
            executor=EXECUTORS.get("threads" if args.concurrency > 1 else "serial")(
                concurrency=args.concurrency
            ),
            on_output=advance,
        )
        return evaluator.run(blind).outputs


def _say(report: LabelReport, total: int) -> None:
    from ...core.types import results_table
    from ...text.label_terms import LABELS

    table = report.table
    failed = table.overall["accuracy"].coverage.failed
    about = f"{total} samples, {report.mode} mode"
    echo.say(f"{about}, {failed} without a prediction" if failed else about)
    bounds = ["If failed"] if failed else []
    rows = [[name, *_row(result, bool(failed))] for name, result in table.overall.items()]
    echo.say_table(("Overall", "Value", "95% interval", *bounds), rows, numeric=range(1, 4))
    for note in results_table(list(table.overall.values())).notes:
        echo.say_words(f"{note}.")
    rows = [
        [
            label,
            *(figure(r.value, r.interval) for r in table.classes[label].values()),
            str(table.support[label]),
        ]
        for label in LABELS
    ]
    echo.say()
    echo.say_table(("Label", "Precision", "Recall", "F1", "Samples"), rows, numeric=range(1, 5))
    echo.say()
    rows = [[true, *(str(table.confusion[true][label]) for label in LABELS)] for true in LABELS]
    echo.say_table(("True \\ predicted", *LABELS), rows, numeric=range(1, 4))
    echo.say()
    base = report.baseline
    echo.say(f"Always accurate: accuracy {base['accuracy']:.3f}, macro-F1 {base['macro_f1']:.3f}")
    _say_pairs(report)
    for name, tables in report.slices.items():
        _say_slice(name, tables)
    say_failures(report.failures)


def _say_pairs(report: LabelReport) -> None:
    pairs, scenarios = report.pairs, report.scenarios
    if pairs is not None:
        counts = pairs.counts
        detected = f"{counts['contradictions_found']} of {counts['contradictions']} contradictions found"
        accuracy = figure(pairs.accuracy, pairs.interval)
        echo.say(f"Pairs: accuracy {accuracy} ({pairs.right} of {pairs.total}), {detected}")
    if scenarios is not None:
        rest = f"{scenarios.counts['expected_without_id']} expect a scenario that has no id"
        overridden = scenarios.counts["left_out_as_overridden"]
        if overridden:
            rest += f"; {overridden} left out: their scenario is set, not detected"
        accuracy = figure(scenarios.accuracy, scenarios.interval)
        echo.say(f"Scenarios: accuracy {accuracy} ({scenarios.right} of {scenarios.total}); {rest}")


def _say_slice(name: str, tables: dict[str, LabelTable]) -> None:
    rows = []
    shown_tables = list(tables.items())
    if len(tables) > _MOST_PAIRS and name == "pair":
        shown_tables.sort(key=lambda item: max(-1.0, item[1].overall["accuracy"].value))  # NaN comes first
    for value, table in shown_tables[:_MOST_PAIRS] if name == "pair" else shown_tables:
        chosen = [
            table.overall[figure_name] for figure_name in ("accuracy", "macro_f1", "macro_f1_supported")
        ]
        shown = [figure(result.value, result.interval) for result in chosen]
        rows.append([value, str(chosen[0].coverage.total), *shown])
    echo.say()
    headings = (name.replace("_", " ").capitalize(), "Samples", "Accuracy", "Macro-F1", "of occurring labels")
    echo.say_table(headings, rows, numeric=range(1, 5))
    if len(rows) < len(tables):
        echo.say(f"The {len(rows)} worst of {len(tables)}; all of them are in --json")


def _say_compared(compared: DetectorComparison) -> None:
    echo.say(
        f"Against the other detector: both right {compared.both_right}, only this one "
        f"{compared.only_first_right}, only the other {compared.only_second_right}, neither "
        f"{compared.neither_right}; p = {compared.p_value:.4g} ({compared.method})"
    )


def _row(result: MetricResult, failed: bool) -> list[str]:
    interval, bounds = result.interval, result.if_failed
    cells = [figure(result.value), f"[{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "n/a"]
    return [*cells, f"{bounds[0]:.3f} to {bounds[1]:.3f}" if bounds else ""] if failed else cells
