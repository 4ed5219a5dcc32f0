"""A report as one HTML file: no script, no network, nothing from a model that is not escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

from ..core.display import html_text, interval_text, listed, value_text
from ..core.table import Table
from ..core.types import (
    RESULT_HEADINGS,
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SystemOutputs,
    gold_documents,
    result_cells,
)
from ..core.verdict import Verdict
from ..early_stop.rule import stopping_in_words
from ..reporting.plots import is_share
from .compare import Comparison
from .ranking import Ranking
from .tables import (
    comparison_table,
    pair_table,
    ranking_in_words,
    ranking_legend,
    ranking_table,
)
from .words import compared_names, comparison_in_plain_words, interval_notes, names_of_runs

_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe & Ito: distinct for colour-blind readers
_SHOWN_SAMPLES = 12
_BADGES = {str(verdict).replace(" ", "-") for verdict in Verdict}


def report_html(
    runs: Sequence[EvaluationRun], comparison: Comparison | None = None, *, ranking: Ranking | None = None
) -> str:
    """A page for one run or several: the verdict, the values with their intervals, the hardest samples.

    Two runs have a `comparison`, more a `ranking`.
    """
    if not runs:
        raise ValueError("a report needs at least one run")
    names = names_of_runs(runs)
    title = " against ".join(reversed(names)) if len(names) < 3 else listed(names)
    parts = [
        f"<h1>{html_text(title)}</h1>",
        f"<p class='about'>{html_text(_about(runs))}</p>",
        *(f"<p>{html_text(stopping_in_words(run.stopping))}</p>" for run in runs if run.stopping is not None),
        "" if comparison is None else _verdict(comparison_in_plain_words(comparison)),
        "" if ranking is None else _verdict([ranking_in_words(ranking)]),
        _charts(runs, names),
        "" if comparison is None else _comparison_table(comparison),
        "" if ranking is None else _ranking_tables(ranking),
        *(_results_table(run, name) for run, name in zip(runs, names, strict=True)),
        _hardest(runs, names),
        _provenance(runs),
    ]
    page = files(__package__).joinpath("templates/report.html").read_text(encoding="utf-8")
    filled = {"title": html_text(title), "body": "\n".join(filter(None, parts))}
    # Both at once: a system may be called {{body}}.
    return re.sub(r"\{\{(title|body)\}\}", lambda match: filled[match[1]], page)


def _about(runs: Sequence[EvaluationRun]) -> str:
    run = runs[0]
    failed = sum(output.error is not None for run in runs for output in run.outputs)
    calls = f"{failed} failed calls" if failed else "no failed calls"
    return f"{run.dataset_name}: {len(run.samples)} samples, top_k {run.top_k}, {calls}"


def _verdict(sentences: Iterable[str]) -> str:
    return f"<div class='verdict'>{''.join(f'<p>{html_text(each)}</p>' for each in sentences)}</div>"


def _charts(runs: Sequence[EvaluationRun], systems: Sequence[str]) -> str:
    """A dot with its interval for every metric that lies between 0 and 1."""
    names = [r.name for r in runs[0].results if is_share(r)]
    if not names:
        return ""
    line, left, width = 18 * len(runs) + 14, 190, 520
    height = line * len(names) + 30
    shapes = [
        f"<line class='grid' x1='{x}' x2='{x}' y1='6' y2='{height - 22}'/>"
        f"<text class='tick' x='{x}' y='{height - 6}'>{tick / 4:g}</text>"
        for tick, x in ((tick, left + width * tick // 4) for tick in range(5))
    ]
    for place, name in enumerate(names):
        top = place * line + 14
        middle = top + 9 * (len(runs) - 1)
        shapes.append(f"<text class='name' x='{left - 14}' y='{middle + 4}'>{html_text(name)}</text>")
        for number, run in enumerate(runs):
            result = next((r for r in run.results if r.name == name), None)
            if result is not None:
                shapes.append(_dot(result, left, width, top + 18 * number, _SERIES[number % len(_SERIES)]))
    legend = "".join(
        f"<span><i style='background:{_SERIES[n % len(_SERIES)]}'></i>{html_text(system)}</span>"
        for n, system in enumerate(systems)
    )
    return (
        f"<h2>Values with 95% intervals</h2><p class='legend'>{legend}</p>"
        f"<svg viewBox='0 0 {left + width + 150} {height}' role='img' aria-label='values and intervals'>"
        f"{''.join(shapes)}</svg>"
    )


def _dot(result: MetricResult, left: int, width: int, y: int, colour: str) -> str:
    if not math.isfinite(result.value):
        return f"<text class='value' x='{left + width + 12}' y='{y + 4}'>n/a</text>"
    low, high = result.interval or (result.value, result.value)
    x, start, end = (left + width * min(1.0, max(0.0, v)) for v in (result.value, low, high))
    failed = result.coverage.failed
    label = value_text(result.value, result.unit) + (f", {failed} failed" if failed else "")
    return (
        f"<line x1='{start:.1f}' x2='{end:.1f}' y1='{y}' y2='{y}' stroke='{colour}' stroke-width='3' "
        f"stroke-opacity='.45' stroke-linecap='round'/><circle cx='{x:.1f}' cy='{y}' r='5' fill='{colour}'>"
        f"<title>{html_text(f'{result.name} {interval_text((low, high), result.unit)}')}</title></circle>"
        f"<text class='value' x='{left + width + 12}' y='{y + 4}'>{html_text(label)}</text>"
    )


def _comparison_table(comparison: Comparison) -> str:
    table = comparison_table(comparison, compared_names(comparison))
    note = (
        f"Two-sided paired test, Holm-corrected, α {comparison.alpha:g}; a failed answer counts as the worst."
    )
    notes = _notes((note, *interval_notes(comparison)))
    return f"<h2>Difference, sample by sample</h2>{_plain_table(table)}{notes}"


def _ranking_tables(ranking: Ranking) -> str:
    """Each system's rank on each metric, then every pair that differs."""
    ranks, pairs = ranking_table(ranking), pair_table(ranking)
    about = (
        f"b - a is b less a. Two-sided paired tests, Holm-corrected over all pairs and metrics, "
        f"α {ranking.alpha:g}; a failed answer counts as the worst."
    )
    notes = [f"{text}." for text in (*ranking.mismatches, *ranking.notes)]
    differ = _plain_table(pairs) if pairs.rows else "<p>No pair differs on any metric.</p>"
    return (
        f"<h2>Ranking</h2>{_plain_table(ranks)}{_notes([ranking_legend(ranking)])}"
        f"<h2>Pairs that differ</h2>{differ}{_notes([about, *notes])}"
    )


def _notes(texts: Iterable[str]) -> str:
    return "".join(f"<p class='small'>{html_text(each)}</p>" for each in texts)


def _results_table(run: EvaluationRun, name: str) -> str:
    table = Table(RESULT_HEADINGS, [result_cells(result) for result in run.results], numeric=range(2, 8))
    return f"<h2>{html_text(name)}</h2>{_plain_table(table)}"


def _hardest(runs: Sequence[EvaluationRun], names: Sequence[str]) -> str:
    """The samples that the last run did worst on, side by side with what the others did."""
    last = runs[-1]
    result = next((r for r in last.results if r.scores and r.higher_is_better), None)
    if result is None:
        return ""
    order = {
        score.sample_id: (not score.failed, score.value)
        for score in result.scores
        if score.failed or score.value is not None
    }
    worst = sorted(order, key=lambda sample_id: (order[sample_id][0], order[sample_id][1] or 0.0, sample_id))
    samples = {sample.sample_id: place for place, sample in enumerate(last.samples)}
    rows = []
    for sample_id in worst[:_SHOWN_SAMPLES]:
        place = samples[sample_id]
        sample = last.samples[place]
        reference = sample.reference_answer.text if sample.reference_answer else "-"
        cells = [_cell(sample_id), _cell(sample.query), _cell(reference)]
        cells += [_answer(sample, _output_of(run, sample_id)) for run in runs]
        rows.append(cells)
    headings = ["Sample", "Query", "Reference", *(f"Answer of {name}" for name in names)]
    about = f"lowest {result.name} first ({result.coverage.scored}/{result.coverage.total} scored)"
    return (
        f"<h2>Hardest samples for {html_text(names[-1])}</h2><p class='small'>{html_text(about)}</p>"
        + _table(headings, rows)
    )


def _output_of(run: EvaluationRun, sample_id: str) -> SystemOutputs | None:
    pairs = zip(run.samples, run.outputs, strict=True)
    return next((output for sample, output in pairs if sample.sample_id == sample_id), None)


def _answer(sample: EvaluationSample, output: SystemOutputs | None) -> str:
    if output is None:
        return _cell("-")
    if output.error is not None:
        return f"<td class='failed'>{html_text(_short(f'{output.error.type}: {output.error.message}'))}</td>"
    gold = {doc.doc_id for doc in gold_documents(sample)}
    documents = "".join(
        f"<li{' class=gold' if hit.doc.doc_id in gold else ''}>{html_text(_short(hit.doc.doc_id, 60))}</li>"
        for hit in output.retrieved[:10]
    )
    return f"<td>{html_text(_short(output.response.text))}<ol>{documents}</ol></td>"


def _provenance(runs: Sequence[EvaluationRun]) -> str:
    lines = []
    for run in runs:
        packages = run.environment.get("packages")
        version = packages.get("auepora-eval", "?") if isinstance(packages, dict) else "?"
        about = f"{run.evaluation_id}: {run.started_at}, {run.seconds:.1f} s"
        data = f"data {run.dataset_fingerprint[:12]}, seed {run.seed}"
        python = run.environment.get("python", "?")
        lines.append(f"{about}, {data}, auepora-eval {version}, Python {python}")
    return "<p class='small'>" + "<br>".join(map(html_text, lines)) + "</p>"


def _table(headings: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html_text(heading)}</th>" for heading in headings)
    rows = "".join(f"<tr>{''.join(cells)}</tr>" for cells in body)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _cell(text: str) -> str:
    return f"<td>{html_text(_short(text))}</td>"


def _plain_table(table: Table) -> str:
    """Return a table of texts; a verdict is a badge."""
    body = []
    for row in table.rows:
        cells = []
        for place, text in enumerate(row):
            kind = text.partition(",")[0].replace(" ", "-")
            if kind in _BADGES:
                cells.append(f"<td><b class='{kind}'>{html_text(text)}</b></td>")
            else:
                style = " class=n" if place in table.numeric else ""
                cells.append(f"<td{style}>{html_text(_short(text))}</td>")
        body.append(cells)
    return _table(table.headings, body)


def _short(text: str, limit: int = 600) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
