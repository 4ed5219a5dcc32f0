"""One run on one screen: its metrics beside a baseline, its worst samples, slices, failures, provenance."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..comparison.compare import Comparison, MetricComparison
from ..comparison.words import verdict_text
from ..core.types import MetricResult, TargetCategory
from ..core.verdict import Verdict
from ..io.results.document import is_ours
from ..metrics.parse import meaning
from ..store.pages import Filter, RunSamples
from ..store.stopping import stopping_in_words
from ..store.storage import metric_values
from .comparisons import comparison_of
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, compare_address, link, with_id
from .live import Progress, progress_of
from .requests import Ask, Page
from .workspace import SMALL, NotReadyError, Stored

BINS = 10
_WORST = 8  # samples beside the metrics
_SLICES = 10  # values of a field

# The ten targets in four groups, each with its question.
_T = TargetCategory
GROUPS = {
    "Retrieval": (
        "Are the right documents found, high up and varied?",
        (_T.RETRIEVAL_RELEVANCE, _T.RETRIEVAL_ACCURACY, _T.DIVERSITY),
    ),
    "Answers": (
        "Do they address the question, stay with the evidence and agree with the reference?",
        (_T.GENERATION_CORRECTNESS, _T.GENERATION_RELEVANCE, _T.GENERATION_FAITHFULNESS),
    ),
    "Robustness": (
        "Does it decline, withstand noise and false documents?",
        (_T.NEGATIVE_REJECTION, _T.NOISE_ROBUSTNESS, _T.COUNTERFACTUAL_ROBUSTNESS),
    ),
    "Speed": ("", (_T.LATENCY,)),
}


def run_page(ask: Ask) -> Page:
    """Show one run, finished or not."""
    run_id = ask.path["run"]
    if run_id in ask.workspace.unfinished_ids():
        return _live_page(ask, run_id)
    stored = ask.workspace.document(run_id)
    if "evaluation_id" in stored.head and not is_ours(stored.head):
        return _foreign_page(ask, run_id, stored.head)
    index = ask.workspace.index(run_id)
    others = [] if ask.rows else ask.workspace.before(run_id)
    baseline, comparison = _baseline(ask, run_id, index.size, others)
    worst = most_to_explain(index)
    columns = [
        _metric_table(index.run.results, run_id, index, baseline, comparison),
        _definitions(index.run.results),
        _slices(ask, index, worst),
        _failures(run_id, index),
    ]
    main = join(
        _strip(run_id, stored, index, baseline, comparison),
        tag("p", stopping_in_words(index.run.stopping)) if index.run.stopping is not None else None,
        tag(
            "div",
            tag("div", columns, class_="column"),
            tag("div", _worst(run_id, index, worst) if worst else None, class_="column"),
            class_="sides",
        ),
        _provenance(stored.head),
    )
    return Page(
        run_id,
        main,
        ask.workspace.command("show", ask.workspace.name(run_id)),
        facts=_facts(index, stored),
        actions=_actions(run_id, index, baseline, others),
        crumbs=[("Runs", "/")],
        run=run_id,
        refresh=2 if baseline and comparison is None else None,
    )


def _foreign_page(ask: Ask, run_id: str, head: Mapping[str, Any]) -> Page:
    """Show the results of another tool as they are."""
    file = ask.workspace.path(run_id).name
    main = join(
        ui.lead("The results of another tool, as they are: nothing was computed or checked."),
        ui.facts((name, str(value)) for name, value, _ in metric_values(head)),
    )
    command = f"auepora score --dataset FILE --outputs {shlex.quote(file)}"
    return Page(run_id, main, command, crumbs=[("Runs", "/")])


def _facts(index: RunSamples, stored: Stored) -> str:
    run = index.run
    words = [f"{run.system_name} on {run.dataset_name}", f"top_k {run.top_k}"]
    words += [run.started_at.replace("T", " ")[:16]] if run.started_at else []
    words += [f"{run.seconds:.1f} s"] if run.seconds else []
    return ", ".join(words)


def _actions(run_id: str, index: RunSamples, baseline: str, others: Sequence[str]) -> Node:
    buttons: list[Node] = [ui.button_link(f"Samples {index.size:,}", address("run", run_id, "samples"))]
    buttons.append(ui.button_link("Diagnosis", address("run", run_id, "diagnosis")))
    if others:
        named = ((ui.short(other, 60), other) for other in others[:20])
        choices = [link(text, "run", run_id, query={"baseline": other}) for text, other in named]
        choices.append(link("no baseline", "run", run_id, query={"baseline": "none"}))
        text = f"Against {ui.short(baseline, 30)} ⌄" if baseline else "Choose a baseline ⌄"
        buttons.append(ui.menu(text, choices, kind=""))
    return buttons


def _baseline(ask: Ask, run_id: str, size: int, others: Sequence[str]) -> tuple[str, Comparison | None]:
    """Return the run to compare with: the one that was chosen, or of small runs the one before."""
    chosen = ask.values.get("baseline", "")
    baseline = chosen if chosen in others else others[0] if others and not chosen and size <= SMALL else ""
    if not baseline:
        return "", None
    try:
        return baseline, comparison_of(ask.workspace, baseline, run_id, slices=False)
    except NotReadyError:
        return baseline, None  # the values are shown meanwhile


def _strip(
    run_id: str, stored: Stored, index: RunSamples, baseline: str, comparison: Comparison | None
) -> Markup:
    total, failed = (stored.count(name) or 0 for name in ("total_queries", "failed_queries"))
    counts: list[Markup] = verdict_counts(comparison) if comparison else []
    pair = tag("a", "Compare", href=compare_address([baseline, run_id])) if comparison else None
    if not failed:
        answered = "1 sample answered" if total == 1 else f"All {total:,} samples answered"
        against = [tag("span", f"Against {baseline}:" if comparison else f"Comparing with {baseline} …")]
        return ui.strip("up", f"{answered}, none failed", against if baseline else None, counts, href=pair)
    where = link("See them", "run", run_id, "samples", query={"failed": 1})
    level = "down" if stored.state == "failed" else "warn"
    failures = ui.strip(level, f"{failed:,} of {total:,} calls failed", first_error(index), href=where)
    if comparison is None:
        return failures
    return join(failures, ui.strip(strip_kind(comparison), f"Against {baseline}", counts, href=pair))


def strip_kind(comparison: Comparison) -> str:
    """Return the colour of a comparison: green if more is better than worse, else red if any is worse."""
    better, worse = (comparison.counts.get(each, 0) for each in (Verdict.BETTER, Verdict.WORSE))
    if better > worse:
        return "up"
    return "down" if worse else "same"


def verdict_counts(comparison: Comparison, but: str = "") -> list[Markup]:
    """Return how many metrics are better, worse, inconclusive, but for one verdict: "▲ 8 better"."""
    spans = []
    for verdict, count in comparison.counts.items():
        sign, kind = ui.sign_of(verdict)
        if verdict != but:
            spans.append(ui.span(kind, tag("span", sign, aria_hidden="true"), f" {count} {verdict}"))
    return spans


def first_error(index: RunSamples) -> Node:
    """Return the most frequent error of a run."""
    return [tag("code", ui.short(": ".join(index.errors[code]), 120)) for _, code in _errors(index)[:1]]


def _errors(index: RunSamples) -> list[tuple[int, int]]:
    """Return how many samples failed with each error, the most frequent first, and its place."""
    counts = np.bincount(index.error_codes[index.error_codes >= 0], minlength=len(index.errors))
    return sorted(((count, code) for code, count in enumerate(counts.tolist())), key=lambda one: -one[0])


# The table of metrics.


def grouped(results: Sequence[MetricResult]) -> list[tuple[str, str, list[MetricResult]]]:
    """Return the metrics in groups, each with its name and its question."""
    groups = []
    for name, (question, targets) in GROUPS.items():
        members = [result for target in targets for result in results if result.target is target]
        groups.append((name, question, members))
    known = {id(result) for _, _, members in groups for result in members}
    rest = [result for result in results if id(result) not in known]
    groups.append(("Others", "", rest))
    return [group for group in groups if group[2]]


def _metric_table(
    results: Sequence[MetricResult],
    run_id: str = "",
    index: RunSamples | None = None,
    baseline: str = "",
    comparison: Comparison | None = None,
) -> Markup:
    """Return the table of metrics; without `index`, as of a run that is going, no links to samples."""
    changes = {one.name: one for one in comparison.metrics} if comparison else {}
    columns = [
        ui.Column("Metric"),
        ui.Column("Value", "n"),
        ui.Column(charts.axis("Interval", charts.SHARE), "c"),
        *([ui.Column("Scores", "spare")] if index else []),
        *([ui.Column("Change", "n"), ui.Column("Verdict")] if changes else []),
        ui.Column("Scored", "n spare"),
    ]
    rows: list[Markup | list[Node]] = []
    for name, question, members in grouped(results):
        rows.append(ui.group_row(len(columns), name, question))
        rows += [_metric_row(run_id, index, result, changes) for result in members]
    other: Node = [ui.span("other", " ┃"), f" {baseline}"] if changes else None
    about = ". Scores: how many lie in each tenth of the scale" if index else ""
    about += ". ↓ lower is better."
    if changes and index and index.errors:
        about += " Changes count failed answers as the worst."
    words: list[Node] = [ui.span("mine", "●"), " value with 95% interval", other, about]
    legend = tag("p", words, class_="note")
    return join(ui.table("Metrics", columns, rows, kind="bars"), legend)


def _metric_row(
    run_id: str, index: RunSamples | None, result: MetricResult, changes: Mapping[str, MetricComparison]
) -> list[Node]:
    name: Node = ui.breakable(ui.arrow(result.name, up=result.higher_is_better))
    drawn: Node = None
    if index is not None and result.name in index.metrics:
        drawn = charts.histogram(bins_of(index, result)[0])
        href = address("run", run_id, "samples", query={"sort": result.name})
        name = ui.row_link(name, href, title=meaning(result.name))
    change = changes.get(result.name)
    return [
        name,
        tag("b", ui.number(result.value, result.unit)),
        _bar(result, change),
        *([drawn] if index else ()),
        *(_change(change) if changes else ()),
        _scored(result),
    ]


def _bar(result: MetricResult, change: MetricComparison | None) -> Node:
    words = ui.interval(result.interval, result.unit)
    if not result.is_share:
        return tag("small", words or result.not_measured or "no interval")
    if not math.isfinite(result.value):
        return tag("small", ui.short(result.not_measured or "not measured", 60))
    before = change.baseline if change is not None else None
    return charts.interval_bar(charts.SHARE, result.value, result.interval, baseline=before, title=words)


def bins_of(index: RunSamples, result: MetricResult) -> tuple[list[int], float, float]:
    """Return how many scores lie in each bin of the scale, and its ends. Counted once for each run."""

    def count() -> tuple[list[int], float, float]:
        values = index.column(result.name)
        values = values[~np.isnan(values)]
        low, high = charts.scale_of(result, values)
        counts, _ = np.histogram(np.clip(values, low, high), BINS, (low, high))
        return counts.tolist(), low, high

    return index.once(f"bins {result.name}", count)


def _change(change: MetricComparison | None) -> list[Node]:
    if change is None:
        return [None, None]
    return [ui.number(change.effect.change, change.unit, signed=True), ui.verdict(verdict_text(change))]


def _scored(result: MetricResult) -> Node:
    if not result.reports_coverage:
        return None
    scored = result.coverage.scored
    return [f"{scored:,}", ui.span("warn", " few") if scored < ui.FEW else None]


def _definitions(results: Sequence[MetricResult]) -> Markup:
    items = []
    for result in results:
        words = [meaning(result.name), *result.notes]
        if result.if_failed:
            ends = " to ".join(
                "unbounded" if end is None else ui.number(end, result.unit) for end in result.if_failed
            )
            words.append(f"{ends}, had the failed samples been scored.")
        if result.not_measured:
            words.append(f"Not measured: {result.not_measured}.")
        items.append(join(tag("dt", tag("code", result.name)), tag("dd", " ".join(filter(None, words)))))
    return ui.folded("What the metrics mean", tag("dl", items, class_="metrics"))


# Beside the table: the worst samples.


def most_to_explain(index: RunSamples) -> str | None:
    """Return the metric whose samples differ most; of times only if there is nothing else."""

    def spread(name: str) -> tuple[bool, float]:
        values, result = index.column(name), index.metrics[name]
        failed = float(index.has_failed(name).sum())  # a failed answer counts as the worst
        known = values[np.isfinite(values)]
        return result.is_share, float(((known - known.mean()) ** 2).sum()) + failed if len(known) else 0.0

    return index.once("most to explain", lambda: max(index.metrics, key=spread, default=None))


def _worst(run_id: str, index: RunSamples, metric: str) -> Markup:
    """Return the worst samples by the metric that has most to explain."""
    items = worst_items(run_id, index, metric, _WORST)
    all_of = link("All", "run", run_id, "samples", query={"sort": metric})
    return ui.card(f"Worst by {metric}", items, about=all_of)


def worst_items(run_id: str, index: RunSamples, metric: str, count: int) -> Node:
    """Return the worst samples of a metric as a list."""
    places = index.page(index.matching(Filter()), metric, count=count).places
    page = address("run", run_id, "sample", query={"sort": metric})
    return sample_items(index, places, page, lambda place: score_chip(index, metric, place))


def sample_items(index: RunSamples, places: Sequence[int], page: str, score: Callable[[int], Node]) -> Node:
    """Return samples as a list beside a table: each with its score, question and answer; None without any."""
    items = []
    for row in index.rows(places):
        code = int(index.error_codes[row.place])
        about = f"answered “{row.answer}”" if row.answer else "no answer"
        about = f"failed: {index.errors[code][0]}" if code >= 0 else about
        question = ui.span("cut", ui.span("id mute", ui.short(row.sample_id, 20)), f" {row.query}")
        answer = tag("small", ui.short(about, 90), class_="cut")
        texts = ui.span("score", score(row.place)), question, answer
        items.append(tag("li", tag("a", texts, href=with_id(page, row.sample_id))))
    return tag("ul", items, class_="samples") if items else None


def score_chip(index: RunSamples, metric: str, place: int) -> Markup:
    """Return the score of a sample with its tint."""
    score = index.score(metric, place)
    return ui.chip(score.value, index.metrics[metric], failed=score.failed)


# Slices, failures, provenance.


def _slices(ask: Ask, index: RunSamples, worst: str | None) -> Node:
    """Return the mean of one metric in each slice, worst first within a field."""
    chosen = ask.values.get("slices")
    metric = chosen if chosen in index.metrics else worst
    if not metric or not index.fields:
        return None
    run_id, result, values = ask.path["run"], index.metrics[metric], index.column(metric)
    known = values[~np.isnan(values)]
    if not len(known) or not np.isclose(known.mean(), result.value, rtol=1e-6, atol=1e-9):
        return None  # not a mean: a slice of it is not the mean of its scores
    rows: list[Markup | list[Node]] = []
    for name, means in index.once(f"slices {metric}", lambda: _means(index, result)).items():
        about = f"the {_SLICES} worst of {len(means)}" if len(means) > _SLICES else ""
        rows.append(ui.group_row(4, ui.short(name, 60), about))
        rows += [_slice_row(run_id, result, name, *one) for one in means[:_SLICES]]
    head = charts.axis("Mean on its scale", charts.SHARE) if result.is_share else None
    columns = [ui.Column("Slice"), ui.Column("Samples", "n"), ui.Column("Mean", "n"), ui.Column(head, "c")]
    options = [(name, name) for name in index.metrics]
    box = ui.select_box("slices", options, metric, "Metric of the slices")
    form = ui.choice_form(f"{address('run', run_id)}#slices", box)
    # One file has the slices of one metric.
    content = [None if ask.rows else form, ui.table(f"{metric} by slice", columns, rows, kind="bars")]
    summary = tag("summary", f"Slices of {metric}")
    return tag("details", summary, *content, id="slices", open=chosen is not None)


def _means(index: RunSamples, result: MetricResult) -> dict[str, list[tuple[str, int, float]]]:
    """Return by field each value with its number of scored samples and their mean, worst first."""
    means: dict[str, list[tuple[str, int, float]]] = {}
    for name, members in index.fields.items():
        columns = ((value, index.column(result.name)[index.members(name, value)]) for value in members)
        known = ((value, column[~np.isnan(column)]) for value, column in columns)
        rows = [(value, len(column), float(column.mean())) for value, column in known if len(column)]
        means[name] = sorted(rows, key=lambda one: one[2], reverse=not result.higher_is_better)
    return means


def _slice_row(
    run_id: str, result: MetricResult, name: str, value: str, count: int, mean: float
) -> list[Node]:
    href = address("run", run_id, "samples", query={"sort": result.name, "slice": f"{name}:{value}"})
    few = ui.span("warn", " few") if count < ui.FEW else None
    drawn = charts.interval_bar(charts.SHARE, mean) if result.is_share else None
    text = tag("a", ui.short(value, 60) or "(empty)", href=href)
    return [text, [f"{count:,}", few], ui.number(mean, result.unit), drawn]


def _failures(run_id: str, index: RunSamples) -> Node:
    """Return the failures, grouped by what was reported."""
    if not index.errors:
        return None
    rows: list[list[Node]] = [
        [
            link(index.errors[code][0], "run", run_id, "samples", query={"error": code}),
            ui.short(index.errors[code][1], 300),
            f"{count:,}",
        ]
        for count, code in _errors(index)[:50]
    ]
    columns = [ui.Column("Error"), ui.Column("Message", "words"), ui.Column("Samples", "n")]
    return ui.section("Failures", ui.table("Failures", columns, rows))


def _provenance(head: Mapping[str, Any]) -> Markup:
    """Return the settings of the run, its environment and the hashes of its data."""
    metadata = head.get("metadata") or {}
    known = {
        **dict(_flat(head.get("configuration") or {})),
        **dict(_flat(metadata.get("evaluation_environment") or {})),
        **{name: value for name, value in metadata.items() if isinstance(value, str)},
    }
    content = ui.facts((name, ui.short(str(value), 500)) for name, value in known.items())
    return ui.folded("Settings and provenance", content, kind="wide")


def _flat(record: Mapping[str, Any], under: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{under}{name}.")
        else:
            yield f"{under}{name}", ", ".join(map(str, value)) if isinstance(value, list) else value


# A run that is going: its calls are stored one by one, and a script asks for the page again.


def _live_page(ask: Ask, run_id: str) -> Page:
    progress = progress_of(ask.workspace, run_id)
    main = tag("div", _live_content(progress), data_going=True, class_="column")
    return Page(
        run_id,
        main,
        progress.state.line or ask.workspace.command("list"),
        facts="not finished",
        crumbs=[("Runs", "/")],
        run=run_id,
    )


def _live_content(progress: Progress) -> Markup:
    state = progress.state
    how = "" if state.is_running else state.obstacle or "It was stopped, and can be resumed."
    words = f"{state.progress} samples have an output"
    parts: list[Node] = [
        ui.strip("news" if state.is_running else "warn", words, tag("span", how, class_="mute")),
        tag("progress", value=state.answered, max=state.samples, aria_label="Progress")
        if state.samples
        else None,
    ]
    if progress.failed:
        errors = (f"{count:,} × {ui.short(text, 160)}" for text, count in progress.errors)
        parts.append(ui.strip("down", f"{progress.failed:,} failed", tag("span", "; ".join(errors))))
    if any(result.coverage.scored for result in progress.results):
        about = f"of the first {progress.scored:,} answers, without metrics that ask a model"
        parts.append(ui.section("Values so far", _metric_table(progress.results), about=about))
    return join(parts)
