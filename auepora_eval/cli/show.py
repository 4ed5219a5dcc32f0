"""Show a stored run: tables, samples, failed calls, a report.

--verify changes no file. The exit code is 1 if a check fails: a value or a row was
edited, an output was replaced, or a file was cut off. It is 3 if all checks pass,
but the rows, samples or outputs of the run are missing.

  auepora demo
  auepora show demo-bm25 --worst ndcg@5
"""

from __future__ import annotations

import shlex
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.display import interval_text, value_text
from ..core.matching import gold_found, match_of
from ..core.settings import out_flag
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    SystemOutputs,
)
from ..decide.experiment import experiment_in_words, variant_runs
from ..errors import DataError, UnknownNameError
from ..io.benchmark import benchmark_of_run, save_benchmark
from ..metrics.parse import parse_metric
from ..store.pages import RunSamples
from ..store.state import read_results_head
from ..store.storage import EvaluationResultsStorage, StoredRun, metric_values
from . import echo
from .common import (
    add_report_flags,
    say_next,
    say_run,
    say_stored,
    say_traceback,
    write_comment,
    write_page,
)
from .flags import (
    add_flag,
    add_json,
    add_out,
    at_least,
)

_CALL_TIMES = "SELECT c.at FROM sample s JOIN call c ON c.n = s.answer ORDER BY s.n"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_id",
        metavar="RUN",
        help="id or path of a stored run or experiment",
    )
    add_flag(parser, "--sample", "show one sample: gold, retrieved, answer, scores", "ID")
    add_flag(parser, "--worst", "show the samples that scored worst", "METRIC")
    add_flag(parser, "--failed", "show the failed calls: why, where, on which samples")
    add_flag(parser, "--quality", "correlate metrics with people's quality scores", "FILE", nargs="+")
    add_flag(parser, "--n", "number of samples for --worst", "N", type=at_least(1), default=10)
    add_flag(parser, "--verify", "recompute the hashes, counts and values of the run")
    add_report_flags(parser, parser)
    add_flag(parser, "--benchmark", "write times and resources, as .benchmark.json", "FILE")
    add_flag(parser, "--force", "overwrite a file that exists")
    add_flag(parser, "--spans", "write the calls as spans (OTLP JSON)", "FILE")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    storage = EvaluationResultsStorage(args.out)
    if args.verify:
        return _verify(args, storage)
    if args.html:
        from ..pages.workspace import Workspace

        write_page(args, Workspace.named(args.out, [args.run_id]))
    if args.markdown:
        _write_comment(args, storage)
    if args.json:
        echo.say_json(storage.load_results(args.run_id))
    elif args.quality:
        _say_quality(args, storage)
    elif not (args.html or args.markdown) or args.sample or args.worst or args.failed:
        _say(args, storage)
    if args.benchmark:
        _write_benchmark(args, storage)
    if args.spans:
        _write_spans(args, storage)
    return 0


def _write_spans(args: Namespace, storage: EvaluationResultsStorage) -> None:
    from ..io.spans import write_spans

    with StoredRun(storage.find(args.run_id)) as stored:
        run = stored.run(texts=False)
        times = stored.whole().stream(_CALL_TIMES)
        calls = ((*pair, at) for pair, (at,) in zip(stored.pairs(), times, strict=True))
        count = write_spans(Path(args.spans), run, calls, force=args.force)
    echo.note(f"spans: {count:,} in {args.spans}")


def _write_benchmark(args: Namespace, storage: EvaluationResultsStorage) -> None:
    stored = storage.load_summary(args.run_id)  # this also checks that the document is what it should be
    head = read_results_head(storage.find(args.run_id))
    save_benchmark(benchmark_of_run(head, stored.evaluation_id), args.benchmark, force=args.force)
    say_stored(args.benchmark)


def _write_comment(args: Namespace, storage: EvaluationResultsStorage) -> None:
    from ..pages.markdown import report_markdown

    stored, tally = storage.load_summary(args.run_id), storage.load_tally(args.run_id)
    write_comment(args, report_markdown([stored], tally=tally))


def _say(args: Namespace, storage: EvaluationResultsStorage) -> None:
    from ..io.results.document import is_ours

    if args.sample:
        with RunSamples(storage.find(args.run_id)) as samples:
            pair = samples.named([args.sample]).get(args.sample)
            if pair is None:
                raise DataError(args.run_id, f"there is no sample {args.sample!r} in this run.")
            _say_sample(samples, *pair)
            _say_claims(samples.database.path, samples.run, *pair)
        say_next({f"auepora view {shlex.quote(args.run_id)}": "in a browser"}, out_flag(args.out))
    elif args.worst:
        _say_worst(storage, args)
    elif args.failed:
        _say_failed(storage.load_run(args.run_id))
    elif _is_experiment(results := read_results_head(path := storage.find(args.run_id))):
        _say_experiment(results)
    elif not is_ours(results):
        _say_foreign(storage.load_results(args.run_id), path.name)
    else:
        stored = storage.load_summary(args.run_id)
        version = stored.snapshot.get("version")
        data = f"{stored.dataset_fingerprint[:12]}{f', version {version}' if version else ''}"
        echo.say(f"run {stored.evaluation_id}, {stored.started_at}, data {data}")
        _say_variant(stored)
        say_run(stored, tally := storage.load_tally(args.run_id))
        _say_next(args, stored, has_failed=bool(tally.failed))


def _say_next(args: Namespace, run: EvaluationRun, *, has_failed: bool) -> None:
    """Print the commands that lead from the table to the answers."""
    name = shlex.quote(args.run_id)
    commands = {f"auepora show {name} --failed": "why calls failed"} if has_failed else {}
    if scored := [result.name for result in run.results if result.coverage.scored]:
        commands[f"auepora show {name} --worst {shlex.quote(scored[0])}"] = "its worst answers"
    commands[f"auepora view {name}"] = "in a browser"
    say_next(commands, out_flag(args.out))


def _verify(args: Namespace, storage: EvaluationResultsStorage) -> int:
    """Recompute the hashes, counts and values of a run, and print what does not fit."""
    from ..store.verify import DOES_NOT_FIT, FITS, UNCHECKED, verify_run

    verification = verify_run(storage, args.run_id)
    code = 0
    if not verification.ok:
        code = 1
    elif not verification.whole:
        code = 3  # not 0: a run that could not be checked must not pass in a CI job
    if args.json:
        checks = [asdict(check) for check in verification.checks]
        head = {
            "evaluation_id": verification.evaluation_id,
            "ok": verification.ok,
            "whole": verification.whole,
        }
        echo.say_json({**head, "checks": checks})
        return code
    wrong, unchecked = verification.having(DOES_NOT_FIT), verification.having(UNCHECKED)
    for check in (*wrong, *unchecked):
        echo.say(f"{check.status}: {echo.one_line(f'{check.what}: {check.found}', 500)}")
    passed = len(verification.having(FITS))
    counts = f"{passed} checks pass, {len(wrong)} fail, {len(unchecked)} cannot be made"
    verdict = {0: "ok", 1: "NOT OK", 3: "COULD NOT BE CHECKED"}[code]
    echo.say(f"{echo.one_line(verification.evaluation_id)}: {verdict} ({counts})")
    return code


def _say_quality(args: Namespace, storage: EvaluationResultsStorage) -> None:
    """Print how the metrics of a run agree with the quality scores that people gave to its answers."""
    from ..people.annotators import read_annotators
    from ..people.quality import quality_correlations

    found = quality_correlations(storage.load_run(args.run_id), read_annotators(args.quality, least=1))
    rows = [
        (
            one.quality,
            one.metric,
            value_text(one.correlation),
            interval_text(one.interval),
            str(one.answers),
        )
        for one in found
    ]
    headings = ("Quality score", "Metric", "Spearman", "95% interval", "Answers")
    echo.say_table(headings, rows, numeric=(2, 3, 4))


def _is_experiment(results: Mapping[str, Any]) -> bool:
    """Return whether a document is that of an experiment, and not of a run."""
    note = results.get("_metadata")
    return isinstance(note, dict) and note.get("evaluation_type") == "ab_test"


def _say_variant(run: EvaluationRun) -> None:
    """What an experiment made the system with: variants share a name, and differ in this."""
    about = run.configuration.get("experiment")
    if not isinstance(about, dict):
        return
    made = {**(about.get("settings") or {}), **(about.get("arguments") or {})}
    settings_text = ", ".join(f"{name}={value}" for name, value in made.items())
    which = f"variant {about.get('variant_id')} of experiment {about.get('experiment_id')}"
    echo.say(echo.one_line(f"{which}: {settings_text}" if settings_text else which, 1000))


def _say_foreign(results: Mapping[str, Any], where: str) -> None:
    """Print the summary and the metrics of a results file of another tool, as they are."""
    summary = results.get("summary")
    counts = summary.items() if isinstance(summary, dict) else ()
    rows = [(name, str(value), "") for name, value in counts if isinstance(value, int | float)]
    for name, value, interval in metric_values(results):
        rows.append((name, str(value), "" if interval is None else str(interval)))
    answers = results.get("query_results")
    if isinstance(answers, list) and answers:
        rows.insert(0, ("query_results", f"{len(answers):,}", ""))
    if not rows:
        what = "not a results file: it has neither a summary nor metrics nor query_results."
        raise DataError(where, what, fix="Is it the right file?")
    echo.say_table(("Metric", "Value", "95% interval"), rows, numeric=(1,))
    echo.note("note: the file is of another tool, and is shown as it is: nothing was computed or checked.")
    if isinstance(answers, list) and answers:
        echo.say(f"Next: auepora score --dataset FILE --outputs {shlex.quote(where)}  # a run of its answers")


def _say_worst(storage: EvaluationResultsStorage, args: Namespace) -> None:
    """Print the samples that failed, then the worst scores: question, reference, answer, missed gold."""

    # First: a file of another tool has no samples, and its error says so.
    with RunSamples(storage.find(args.run_id)) as samples:
        stored = storage.load_run(args.run_id, texts=False)
        result, match = _result(stored, args.worst), match_of(stored)
        worst = result.worst(args.n)
        pairs = samples.named(score.sample_id for score in worst)
    for score in worst:
        if score.sample_id not in pairs:
            raise DataError(args.run_id, f"the samples of the run lack {score.sample_id!r:.80}.")
        sample, output = pairs[score.sample_id]
        value = "failed" if score.value is None else value_text(score.value, result.unit)
        _say_part(f"{sample.sample_id}  {result.name} {value}:", sample.query, 400)
        if sample.reference_answer is not None:
            _say_part("  reference:", sample.reference_answer.text, 400)
        _say_part("  answer:   ", score.reason if score.failed else output.response.text, 400)
        _, missed = gold_found(sample, output, match)
        if missed and not score.failed:
            _say_part("  missed:   ", ", ".join(doc.doc_id for doc in missed), 400)
    if not worst:
        best = f"{result.name} has its best value for every scored sample."
        echo.say(best if result.coverage.scored else f"{result.name} scored no sample.")
    name = shlex.quote(args.run_id)
    commands = {
        f"auepora show {name} --sample {shlex.quote(one.sample_id)}": "the first in full" for one in worst[:1]
    }
    commands[f"auepora view {name}"] = "in a browser"
    say_next(commands, out_flag(args.out))


_MOST_IDS = 20


def _say_failed(run: EvaluationRun) -> None:
    """Print each reason once: how many calls failed with it, where, and on which samples."""
    groups: dict[str, list[str]] = {}
    first: dict[str, Failure] = {}
    for sample_id, failure in run.failed_calls().items():
        groups.setdefault(str(failure), []).append(sample_id)
        first.setdefault(str(failure), failure)
    count = sum(map(len, groups.values()))
    echo.say(f"run {run.evaluation_id}: {count:,} of {len(run.samples):,} calls failed")
    for reason, sample_ids in sorted(groups.items(), key=lambda group: -len(group[1])):
        echo.say()
        echo.say_words(f"{len(sample_ids):,} × {echo.one_line(reason, 1000)}")
        say_traceback(first[reason])
        more = f" and {len(sample_ids) - _MOST_IDS:,} more" if len(sample_ids) > _MOST_IDS else ""
        echo.say_words(f"  samples: {echo.one_line(', '.join(sample_ids[:_MOST_IDS]), 1000)}{more}")


def _say_part(label: str, text: str, most: int | None = None) -> None:
    """Print a text of a sample behind its label, wrapped; with `most`, at most that number of its letters."""
    lines = text.strip().splitlines() if most is None else [echo.one_line(text, most)]
    for number, line in enumerate(lines or [""]):
        start = " " * 13 if number else f"{label} "
        wrapped = textwrap.fill(
            line or "(empty)",
            echo.text_width(),
            initial_indent=start,
            subsequent_indent=" " * 13,
            break_on_hyphens=False,
        )
        echo.say(wrapped)


def _say_claims(path: Path, run: EvaluationRun, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Print what each judge of the run says of each claim of an answer, with its evidence."""
    from ..judges.runs import checked_claims

    for title, checks in checked_claims(path, run.results, sample, output):
        echo.say_words(f"  claims ({echo.one_line(title, 300)}):")
        for check in checks:
            score = "" if check.score is None else f" {check.score:.2f}"
            echo.say_words(f"    {check.verdict}{score}: {echo.one_line(check.claim, 500)}")
            if check.evidence is not None and check.evidence.quote:
                words = echo.one_line(check.evidence.quote, 300)
                echo.say_words(f"          {check.evidence.source} in {check.evidence.passage_id}: {words}")


def _say_sample(samples: RunSamples, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Print a sample with its output and scores."""

    is_gold, missed = gold_found(sample, output, match_of(samples.run))
    _say_part(f"{sample.sample_id}:", sample.query)
    _say_part("  labels:   ", ", ".join(f"{k}={v}" for k, v in sample.labels.items()) or "-")
    _say_part("  reference:", sample.reference_answer.text if sample.reference_answer else "-")
    if output.error is not None:
        _say_part("  FAILED:   ", str(output.error))
        say_traceback(output.error)
    else:
        _say_part("  answer:   ", output.response.text)
    echo.say("  retrieved (* is gold):")
    for hit, gold in zip(output.retrieved, is_gold, strict=True):
        mark = "*" if gold else " "
        start = f"  {mark} {hit.rank:>3}  {hit.doc.doc_id}  "
        room = max(20, echo.screen_width() - len(start))
        echo.say(start + echo.one_line(hit.doc.text, min(room, 80)))
    for doc in missed:
        echo.say(f"    not retrieved: {doc.doc_id}")
    echo.say("  scores:")
    if output.error is not None:
        echo.say("    none, since the call failed")
        return
    place = samples.place_of(sample.sample_id)
    for name, result in samples.metrics.items():
        score = samples.score(name, place)
        value = score.reason if score.value is None else value_text(score.value, result.unit)
        echo.say(f"    {name:<28} {value}")


def _result(run: EvaluationRun, name: str) -> MetricResult:
    try:
        wanted = parse_metric(name).name
    except UnknownNameError:
        wanted = name  # a metric of the user's own is known to its run only
    try:
        return run.result(wanted)
    except KeyError:
        names = ", ".join(result.name for result in run.results)
        raise UnknownNameError(f"the run has no metric {name!r}; it has {names}") from None


def _say_experiment(results: Mapping[str, Any]) -> None:
    """Print who won a stored experiment, why, and the command that compares its variants."""
    names = ("evaluation_id", "timestamp", "dataset_id")
    about = ", ".join(echo.one_line(results[name], 80) for name in names if results.get(name) is not None)
    echo.say(f"experiment {about}")
    if title := results.get("name"):
        echo.say(echo.one_line(title, 300))
    echo.say_words(echo.one_line(experiment_in_words(results), 1000))
    runs = " ".join(shlex.quote(echo.one_line(run, 80)) for run in variant_runs(results).values())
    echo.say(f"Next: auepora compare {runs}")
