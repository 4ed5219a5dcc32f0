"""A report as one HTML file without network: the verdict, every metric, every sample with its documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..comparison.compare import Comparison, MetricComparison
from ..comparison.ranking import Ranking
from ..comparison.slices import FEW, SliceComparison, field_values
from ..comparison.tables import pair_table, ranking_in_words, ranking_legend, ranking_table, slice_notes
from ..comparison.words import (
    compared_names,
    comparison_in_plain_words,
    interval_notes,
    names_of_runs,
    verdict_text,
)
from ..core.display import NOT_MEASURED, listed, p_cell, value_text
from ..core.types import EvaluationRun, MetricResult
from ..errors import ScoringError
from ..judges.metrics.faithfulness import CheckedClaims, ClaimCheck
from ..metrics.parse import meaning
from ..runs.stopping import stopping_in_words
from ..runs.verdicts import claim_metrics, claims_of
from .components.charts import histogram, legend, scatter
from .components.markup import Markup, Node, join, tag
from .components.sample import Claim
from .components.sample_choice import Choice, choose_samples, known_values
from .components.tables import (
    FOREST_NOTE,
    Change,
    Measured,
    Slice,
    cards,
    data_table,
    forest,
    metric_card,
    notes,
    scale_of,
    slices_table,
)
from .page import inside, own_file, page
from .sample_list import (
    Claims,
    Listed,
    Texts,
    filter_form,
    listed_samples,
    metric_href,
    sample_list,
    slice_href,
    slice_values,
)


def report_html(
    runs: Sequence[EvaluationRun],
    comparison: Comparison | None = None,
    *,
    ranking: Ranking | None = None,
    claims: Sequence[Claims] = (),
) -> str:
    """Return a page for one run or several. Two runs have a `comparison`, more a `ranking`.

    `claims` has, for each run, what its judge said of the claims of an answer.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    names = names_of_runs(runs)
    title = " against ".join(reversed(names)) if len(names) < 3 else listed(names)
    choice, texts = choose_samples(runs), Texts()
    samples = listed_samples(runs, names, choice.ids, claims)
    sections: list[tuple[str, str, Node]] = [
        ("changes", "Changes", None if comparison is None else _changes(comparison, runs)),
        ("ranking", "Ranking", None if ranking is None else _ranking(ranking)),
        ("metrics", "Metrics", _metric_cards(runs, names, comparison)),
        ("slices", "Slices", _slices(runs, names, comparison, choice.metric)),
        ("samples", "Samples", _samples(runs, names, choice, samples, texts)),
    ]
    shown = [(place, heading, body) for place, heading, body in sections if body]
    main = [
        *(tag("p", stopping_in_words(run.stopping)) for run in runs if run.stopping is not None),
        _lead(comparison, ranking),
        *(tag("section", tag("h2", heading, id=place), body) for place, heading, body in shown),
        texts.section(),
    ]
    links = (tag("li", tag("a", heading, href=f"#{place}")) for place, heading, _ in shown)
    header = [
        tag("h1", title),
        tag("p", _about(runs), class_="soft"),
        tag("nav", tag("ul", links), aria_label="Sections"),
    ]
    return page(title, assets=inside(own_file("report.js")), header=header, main=main, footer=_footer(runs))


def slice_fields(runs: Sequence[EvaluationRun]) -> list[str]:
    """Return the labels by which the samples of runs can be sliced."""
    return list(slice_values(sample for run in runs for sample in run.samples))


def claims_of_run(folder: Path, run: EvaluationRun) -> Claims:
    """Return what the judge of a stored run said of the claims of its answers, by sample."""
    claims: dict[str, list[Claim]] = {}
    for title, metric in claim_metrics(folder, run.results).items():
        for sample, output in zip(run.samples, run.outputs, strict=True):
            for check in claims_of(metric, sample, output):
                score = NOT_MEASURED if check.score is None else f"{check.score:.2f}"
                quote, source = (
                    ("", "") if check.evidence is None else (check.evidence.quote, check.evidence.passage_id)
                )
                supported = _is_supported(metric, check)
                claim = Claim(check.claim, title, score, quote or "", source, check.at, supported)
                claims.setdefault(sample.sample_id, []).append(claim)
    return claims


def _is_supported(metric: CheckedClaims, check: ClaimCheck) -> bool | None:
    """Return whether a claim is supported; None if its verdict failed, or if it is only not contradicted."""
    try:
        reaches = metric.reaches(check)
    except ScoringError:
        return None
    if metric.higher_is_better:
        return reaches
    return False if reaches else None


def _about(runs: Sequence[EvaluationRun]) -> str:
    run = runs[0]
    failed = sum(output.error is not None for run in runs for output in run.outputs)
    calls = f"{failed} failed calls" if failed else "no failed calls"
    return f"{run.dataset_name}: {len(run.samples):,} samples, top_k {run.top_k}, {calls}"


def _lead(comparison: Comparison | None, ranking: Ranking | None) -> Markup | None:
    """Return the verdict in words, which is the first thing on the page."""
    if comparison is not None:
        sentences = comparison_in_plain_words(comparison)
    elif ranking is not None:
        sentences = [ranking_in_words(ranking)]
    else:
        return None
    return tag("div", (tag("p", sentence) for sentence in sentences), class_="lead")


# Changes and ranks.


def change_of(metric: MetricComparison, *, samples: str, href: str) -> Change:
    """Return the row of a metric in the table of changes."""
    return Change(
        metric.name,
        metric.baseline,
        metric.candidate,
        metric.effect.change,
        metric.effect.interval,
        verdict_text(metric),
        metric.unit,
        p_cell(metric.test.p_adjusted),
        metric.higher_is_better,
        metric.is_share,
        samples,
        href,
    )


def _changes(comparison: Comparison, runs: Sequence[EvaluationRun]) -> Markup:
    total = len({sample.sample_id for run in runs for sample in run.samples})
    changes = [
        change_of(one, samples=_samples_text(one, total), href=metric_href(one.name) if runs else "")
        for one in comparison.metrics
    ]
    about = (
        f"Two-sided paired test, Holm-corrected, α {comparison.alpha:g}; a failed answer counts as the worst."
        f" {FOREST_NOTE}"
    )
    more = [f"{name}: not compared, {reason}." for name, reason in comparison.not_compared.items()]
    texts = [about, *interval_notes(comparison), *more, *(f"{note}." for note in comparison.notes)]
    a, b = compared_names(comparison)
    return join(forest(changes, (a, b)), notes(texts))


def _samples_text(one: MetricComparison, total: int) -> str:
    return f"{one.pairs:,} of {total:,}" if total else f"{one.pairs:,}"


def _ranking(ranking: Ranking) -> Markup:
    """Return each system's rank on each metric, then every pair that differs."""
    pairs = pair_table(ranking)
    about = (
        f"b - a is b less a. Two-sided paired tests, Holm-corrected over all pairs and metrics, "
        f"α {ranking.alpha:g}; a failed answer counts as the worst."
    )
    more = [f"{text}." for text in (*ranking.mismatches, *ranking.notes)]
    title = "Pairs that differ significantly"
    none = tag("p", "No pair differs significantly on any metric.")
    return join(
        data_table(ranking_table(ranking), "Ranking"),
        notes([ranking_legend(ranking)]),
        tag("h3", title),
        data_table(pairs, title) if pairs.rows else none,
        notes([about, *more]),
    )


# Cards.


def _metric_cards(
    runs: Sequence[EvaluationRun], names: Sequence[str], comparison: Comparison | None
) -> Markup | None:
    """Return a card for each metric."""
    results = {result.name: result for run in runs for result in run.results}
    if not results:
        return None
    compared = {one.name: one for one in comparison.metrics} if comparison is not None else {}
    every = (_card(name, runs, names, compared.get(name)) for name in results)
    return join(legend(names) if len(runs) > 1 else None, cards(every))


def _card(
    metric: str, runs: Sequence[EvaluationRun], names: Sequence[str], compared: MetricComparison | None
) -> Markup:
    measured = [
        Measured(result, name if len(runs) > 1 else "", number)
        for number, (run, name) in enumerate(zip(runs, names, strict=True))
        for result in run.results
        if result.name == metric
    ]
    last = measured[-1].result
    # What is to be noted about several runs is below their table.
    note = "; ".join(last.notes) if len(runs) == 1 else ""
    if compared is not None:
        note = _note(compared, [one.result for one in measured], runs)
    more = None
    if len(runs) == 1 and (values := list(known_values(last).values())):
        low, high = scale_of([last])
        high = max(high, *values)
        more = histogram(values, low, high, label=f"Samples by {metric}", unit=last.unit)
    return metric_card(
        measured,
        verdict="" if compared is None else verdict_text(compared),
        note=note,
        href=metric_href(metric) if last.scores else "",
        about=_meaning(last),
        more=more,
    )


def _note(compared: MetricComparison, results: Sequence[MetricResult], runs: Sequence[EvaluationRun]) -> str:
    """Return why the comparison has other values: it is of the samples that both runs have."""
    values = (compared.baseline, compared.candidate)
    pairs = zip(values, results, strict=False)
    if all(math.isclose(value, result.value, rel_tol=1e-9, abs_tol=1e-12) for value, result in pairs):
        return ""
    total = len({sample.sample_id for run in runs for sample in run.samples})
    a, b = (value_text(value, compared.unit) for value in values)
    scored = set.intersection(*(set(known_values(result)) for result in results))
    worst = ", a failed answer as the worst" if compared.pairs > len(scored) else ""
    return (
        f"Compared: {a} and {b}, on the {compared.pairs:,} of {total:,} samples that both runs have{worst}."
    )


def _meaning(result: MetricResult) -> str:
    """Return what a metric measures, and the first sentence of its description if it is installed."""
    return f"{result.target.name.replace('_', ' ').capitalize()}. {meaning(result.name)}".strip()


# Slices.


def _slices(
    runs: Sequence[EvaluationRun],
    names: Sequence[str],
    comparison: Comparison | None,
    metric: MetricResult | None,
) -> Markup | None:
    """Return the slices of the metric that has the most to explain."""
    if metric is None:
        return None
    if comparison is not None and comparison.slices:
        chosen = [one for one in comparison.slices if one.metric == metric.name]
        rows = slice_rows(sorted(chosen, key=lambda one: one.field), slice_href)
        about = ["Verdicts of slices are corrected by Benjamini and Hochberg over all metrics and slices."]
        about += slice_notes(chosen, len(comparison.slices))
    else:
        rows = list(_slice_means(runs, metric.name))
        about = []
    if not rows:
        return None
    made = slices_table(rows, names, metric=metric.name, unit=metric.unit)
    return join(made, notes(about))


def slice_rows(slices: Iterable[SliceComparison], href: Callable[[str, str], str]) -> list[Slice]:
    """Return the rows of a table of slices; `href` is the address of a slice by its field and value."""
    return [
        Slice(
            one.field,
            one.value,
            one.questions,
            [one.baseline, one.candidate],
            one.difference,
            one.interval,
            str(one.verdict),
            one.few,
            href(one.field, one.value),
        )
        for one in slices
    ]


def _slice_means(runs: Sequence[EvaluationRun], metric: str) -> Iterable[Slice]:
    samples = {sample.sample_id: sample for run in runs for sample in run.samples}
    scores: list[dict[str, float]] = [{} for _ in runs]
    for number, run in enumerate(runs):
        for result in run.results:
            if result.name == metric:
                scores[number] = known_values(result)
    for field, values in slice_values(samples.values()).items():
        for value in values:
            ids = [
                name for name, sample in samples.items() if value in field_values(sample, f"labels.{field}")
            ]
            means = [_mean([by_id[name] for name in ids if name in by_id]) for by_id in scores]
            count = sum(any(name in by_id for by_id in scores) for name in ids)
            if count:
                yield Slice(field, value, count, means, few=count < FEW, href=slice_href(field, value))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# Samples.


def _samples(
    runs: Sequence[EvaluationRun],
    names: Sequence[str],
    choice: Choice,
    samples: Sequence[Listed],
    texts: Texts,
) -> Markup | None:
    if not samples:
        return None
    metric = choice.metric
    about = []
    if metric is not None:
        order = "largest losses first" if choice.changes else f"worst of {names[-1]} first"
        about.append(f"By {metric.name}, the metric with the most to explain here: {order}.")
    about += [choice.left_out] if choice.left_out else []
    return join(
        notes(about),
        _scatter(runs, names, metric) if metric is not None and len(runs) == 2 else None,
        filter_form(runs, names, choice, samples),
        sample_list(samples, choice, texts),
    )


def _scatter(runs: Sequence[EvaluationRun], names: Sequence[str], metric: MetricResult) -> Markup | None:
    """Return both runs' scores of each sample as points; nothing if they are not comparable."""
    before, after = ([one for one in run.results if one.name == metric.name] for run in runs)
    if not before or not after:
        return None
    ours, theirs = known_values(before[0]), known_values(after[0])
    points = [(ours[name], value) for name, value in theirs.items() if name in ours]
    if not points:
        return None
    low, high = scale_of([before[0], after[0]])
    sign = 1 if metric.higher_is_better else -1
    won, lost = (sum((y - x) * sign * way > 0 for x, y in points) for way in (1, -1))
    text = (
        f"{metric.name} of {len(points):,} samples: {won} won, {lost} lost, {len(points) - won - lost} same"
    )
    drawn = scatter(points, low, high, x_name=names[0], y_name=names[1], label=text)
    return tag("figure", drawn, tag("figcaption", f"{text}. Points above the line are higher in {names[1]}."))


def _footer(runs: Sequence[EvaluationRun]) -> Node:
    lines = []
    for run in runs:
        packages = run.environment.get("packages")
        version = packages.get("auepora-eval", "?") if isinstance(packages, dict) else "?"
        about = f"{run.evaluation_id}: {run.started_at}, {run.seconds:.1f} s"
        data = f"data {run.dataset_fingerprint[:12]}, seed {run.seed}"
        python = run.environment.get("python", "?")
        lines.append(tag("p", f"{about}, {data}, auepora-eval {version}, Python {python}", class_="small"))
    return lines
