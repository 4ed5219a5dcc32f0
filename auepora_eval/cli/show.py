"""Show a stored run: its tables, one sample or the worst samples.

Example:

  auepora demo
  auepora show demo-bm25 --worst ndcg@5
  auepora show demo-bm25 --sample q001

Export the spans and scores of a run at any time with --spans and --events.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.display import value_text
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    gold_documents,
)
from ..errors import DataError, UnknownNameError
from . import echo
from .common import add_flag, add_json, add_out, say_run
from .flags import add_span_flags, at_least, check_span_file, deliver_spans, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..runs.store.storage import EvaluationResultsStorage


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_id",
        metavar="RUN",
        help="id or path of a stored run, experiment or benchmark recording",
    )
    add_flag(parser, "--sample", "show one sample: gold, retrieved, answer, scores", "ID")
    add_flag(parser, "--worst", "show the samples that scored worst", "METRIC")
    add_flag(parser, "--n", "number of samples for --worst", "N", type=at_least(1), default=10)
    add_flag(parser, "--force", "overwrite an existing --spans or --events file")
    add_span_flags(parser)
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..runs.store.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    check_span_file(settings_of(args))
    if args.json:
        echo.say_json(storage.load_results(args.run_id))
    else:
        _say(args, storage)
    deliver_spans(settings_of(args), storage, args.run_id)
    return 0


def _say(args: Namespace, storage: EvaluationResultsStorage) -> None:
    from ..io.results.document import is_ours
    from ..runs.store.state import read_results_head

    if args.sample:
        from ..runs.store.storage import run_folder, stored_pairs

        path = storage.find(args.run_id)
        pair = stored_pairs(path, [args.sample]).get(args.sample)  # first: a file of another tool has none
        stored = storage.load_scores(args.run_id)
        if pair is None:
            raise DataError(stored.evaluation_id, f"there is no sample {args.sample!r} in this run.")
        _say_sample(stored, *pair)
        _say_claims(run_folder(path), stored, *pair)
    elif args.worst:
        _say_worst(storage, args)
    elif (kind := _kind(results := read_results_head(path := storage.find(args.run_id)))) == "ab_test":
        _say_experiment(results)
    elif kind == "benchmark":
        _say_recording(results, path.name)
    elif not is_ours(results):
        _say_as_it_is(results, path.name)
    else:
        stored = storage.load_summary(args.run_id)
        version = stored.snapshot.get("version")
        data = f"{stored.dataset_fingerprint[:12]}{f', version {version}' if version else ''}"
        echo.say(f"run {stored.evaluation_id}, {stored.started_at}, data {data}")
        _say_variant(stored)
        say_run(stored, storage.load_tally(args.run_id))


def _kind(results: Mapping[str, Any]) -> object:
    """Return what a document says that it is: "ab_test", "benchmark" or a run."""
    note = results.get("_metadata")
    return note.get("evaluation_type") if isinstance(note, dict) else None


def _say_variant(run: EvaluationRun) -> None:
    """What an experiment made the system with: variants share a name, and differ in this."""
    about = run.configuration.get("experiment")
    if not isinstance(about, dict):
        return
    made = {**(about.get("settings") or {}), **(about.get("arguments") or {})}
    settings_text = ", ".join(f"{name}={value}" for name, value in made.items())
    which = f"variant {about.get('variant_id')} of experiment {about.get('experiment_id')}"
    echo.say(echo.one_line(f"{which}: {settings_text}" if settings_text else which, 1000))


def _say_as_it_is(results: Mapping[str, Any], where: str) -> None:
    """A results file of another tool: its summary and its metrics, as far as it has them."""
    from ..runs.store.storage import metric_values

    rows = [(name, _number(value), _interval(interval)) for name, value, interval in metric_values(results)]
    summary = results.get("summary")
    counts = {k: v for k, v in summary.items() if _number(v)} if isinstance(summary, dict) else {}
    if not rows and not counts:
        what = "not a results file: it has neither a summary nor metrics."
        raise DataError(where, what, fix="Is it the right file?")
    names = ("evaluation_id", "timestamp", "system_version", "dataset_id")
    echo.say(f"run {', '.join(echo.one_line(results[name], 80) for name in names if name in results)}")
    if counts:
        echo.say_table(
            ("Summary", ""), [(name, _number(value)) for name, value in counts.items()], numeric=(1,)
        )
    if rows:
        echo.say_table(("Metric", "Value", "95% interval"), rows, numeric=(1,))
    echo.note("note: the file is of another tool, and is shown as it is: nothing was computed or checked.")


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _interval(interval: Any) -> str:
    if not isinstance(interval, list) or len(interval) != 2:
        return ""
    return f"[{', '.join(_number(end) or '?' for end in interval)}]"


def _say_worst(storage: EvaluationResultsStorage, args: Namespace) -> None:
    """Print the samples that failed, then the worst scores: question, reference, answer, missed gold."""
    from ..runs.store.storage import run_folder, stored_pairs

    run_folder(storage.find(args.run_id))  # StorageError for a file of another tool, which has no samples
    result = _result(storage.load_scores(args.run_id), args.worst)
    worst = _worst(result, args.n)
    pairs = stored_pairs(storage.find(args.run_id), [score.sample_id for score in worst])
    for score in worst:
        if score.sample_id not in pairs:
            raise DataError(args.run_id, f"the samples of the run lack {score.sample_id!r:.80}.")
        sample, output = pairs[score.sample_id]
        value = "failed" if score.value is None else value_text(score.value, result.unit)
        _say_part(f"{sample.sample_id}  {result.name} {value}:", sample.query)
        if sample.reference_answer is not None:
            _say_part("  reference:", sample.reference_answer.text)
        _say_part("  answer:   ", score.reason if score.failed else output.response.text)
        retrieved = {hit.doc.doc_id for hit in output.retrieved}
        missed = [doc.doc_id for doc in gold_documents(sample) if doc.doc_id not in retrieved]
        if missed and not score.failed:
            _say_part("  missed:   ", ", ".join(missed))
    if not worst:
        echo.say(f"{result.name} scored no sample.")


def _worst(result: MetricResult, count: int) -> list[SampleScore]:
    """Return the samples that failed, then the worst scores; equal ones in the order of their ids."""
    from heapq import nsmallest

    from ..core.scores import as_columns

    scores = as_columns(result.scores)
    sign = 1 if result.higher_is_better else -1
    keys = (
        (place not in scores.notes, sign * value, sample_id, place)
        for place, (value, sample_id) in enumerate(
            zip(scores.values.tolist(), scores.sample_ids, strict=True)
        )
        if place not in scores.notes or scores.notes[place].failed
    )
    return [scores[place] for *_, place in nsmallest(count, keys)]


def _say_part(label: str, text: str) -> None:
    """Print a text of a sample behind its label; long texts are cut, and wrapped below the label."""
    import textwrap

    line = f"{label} {echo.one_line(text, 400) or '(empty)'}"
    echo.say(textwrap.fill(line, echo.text_width(), subsequent_indent=" " * 13, break_on_hyphens=False))


def _say_claims(folder: Path, run: EvaluationRun, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Print what each judge of the run says of each claim of an answer, with its evidence."""
    from ..runs.verdicts import claim_metrics, claims_of

    for title, metric in claim_metrics(folder, run.results).items():
        checks = claims_of(metric, sample, output)
        if checks:
            echo.say_words(f"  claims ({echo.one_line(title, 300)}):")
        for check in checks:
            score = " n/a" if check.score is None else f"{check.score:.2f}"
            echo.say_words(f"    {score}  {echo.one_line(check.claim, 500)}")
            if check.evidence is not None and check.evidence.quote:
                words = echo.one_line(check.evidence.quote, 300)
                echo.say_words(f"          {check.evidence.source} in {check.evidence.passage_id}: {words}")


def _say_sample(run: EvaluationRun, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Print a sample with its output and scores."""
    from ..core.scores import as_columns

    gold = {doc.doc_id for doc in gold_documents(sample)}
    echo.say(f"{sample.sample_id}: {echo.one_line(sample.query, 2000)}")
    echo.say(f"  labels:    {', '.join(f'{k}={v}' for k, v in sample.labels.items()) or '-'}")
    echo.say(f"  reference: {sample.reference_answer.text if sample.reference_answer else '-'}")
    if output.error is not None:
        echo.say(f"  FAILED:    {output.error.type}: {output.error.message}")
    else:
        echo.say(f"  answer:    {output.response.text}")
    echo.say("  retrieved (* is gold):")
    for hit in output.retrieved:
        mark = "*" if hit.doc.doc_id in gold else " "
        start = f"  {mark} {hit.rank:>3}  {hit.doc.doc_id}  "
        room = max(20, echo.screen_width() - len(start))
        echo.say(start + echo.one_line(hit.doc.text, min(room, 80)))
    for missed in sorted(gold - {hit.doc.doc_id for hit in output.retrieved}):
        echo.say(f"    not retrieved: {missed}")
    echo.say("  scores:")
    for result in run.results:
        ids = as_columns(result.scores).sample_ids
        if sample.sample_id in ids:
            score = result.scores[ids.index(sample.sample_id)]
            value = score.reason if score.value is None else value_text(score.value, result.unit)
            echo.say(f"    {result.name:<28} {value}")


def _result(run: EvaluationRun, name: str) -> MetricResult:
    from ..metrics.parse import parse_metric

    try:
        wanted = parse_metric(name).name
    except UnknownNameError:
        wanted = name  # a metric of the user's own is known to its run only
    try:
        return run.result(wanted)
    except KeyError:
        names = ", ".join(result.name for result in run.results)
        raise UnknownNameError(f"the run has no metric {name!r}; it has {names}") from None


# What `auepora show` prints of an experiment and of a recording of a benchmark.


def _say_experiment(results: Mapping[str, Any]) -> None:
    """Print the tables of a stored experiment, who won, and why."""
    from ..experiment.report import experiment_in_words, experiment_tables

    _say_head("experiment", results)
    for table in experiment_tables(results):
        echo.show(table)
        echo.say()
    echo.say_words(echo.one_line(experiment_in_words(results), 1000))


def _say_recording(results: Mapping[str, Any], name: str) -> None:
    """What a recording of a benchmark found, and what had become worse."""
    from ..history.bench import measurements_of_results
    from ..history.bench_report import measurement_table

    _say_head("benchmark", results)
    echo.show(measurement_table(measurements_of_results(results, name)))
    worse = results.get("regressions")
    regressions = [one for one in worse if isinstance(one, dict)] if isinstance(worse, list) else []
    for one in regressions:
        words = f"{echo.one_line(one.get('severity'), 20)}: {echo.one_line(one.get('message'), 500)}"
        echo.say_words(words)
    if not regressions:
        echo.say("Nothing had become worse.")


def _say_head(kind: str, results: Mapping[str, Any]) -> None:
    names = ("evaluation_id", "timestamp", "dataset_id")
    about = ", ".join(echo.one_line(results[name], 80) for name in names if results.get(name) is not None)
    title = results.get("name")
    echo.say(f"{kind} {about}")
    if kind == "experiment" and title:
        echo.say(echo.one_line(title, 300))
