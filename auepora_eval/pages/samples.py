"""The samples of a run: one table, worst first by the metric that led there, and the page of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.display import NOT_MEASURED
from ..core.matching import match_of
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import ScoringError, UnknownNameError
from ..store.pages import Filter, RunSamples
from ..store.pages import Page as Places
from .annotate import label_card, labels_by_sample
from .components.charts import histogram, tick_text
from .components.markup import Markup, Node, join, tag
from .components.parts import (
    Column,
    Row,
    button_link,
    card,
    hidden_fields,
    number,
    row_link,
    search_form,
    short,
    span,
    table,
)
from .components.sample import Answered, Claim, labels_of, sample_parts
from .diagnosis import diagnosis_of
from .layout import address, link, select_box, with_id
from .requests import Ask, Download, Page, Reply
from .run import BINS, bins_of, most_to_explain, score_chip
from .runs import column_menu
from .workspace import Workspace

if TYPE_CHECKING:
    from ..judges.metrics.faithfulness import CheckedClaims, ClaimCheck

ROWS = 50  # on a page
_METRICS = 4  # columns, unless others are chosen
_VARIANTS = 20  # of one question that are shown
_OTHERS = 5  # runs that a sample is looked up in
IN_ORDER = "sample"  # sorts by the order of the dataset


@dataclass(frozen=True)
class Selection:
    """What a list of samples shows, as its address says it."""

    wanted: Filter = field(default_factory=Filter)
    sort: str | None = None  # the metric that sorts; None is the order of the dataset
    best_first: bool = False
    columns: tuple[str, ...] = ()
    stage: str = ""  # of the diagnosis of the run

    def query(self, **changed: str | int | None) -> list[tuple[str, str]]:
        """Return the selection as the query of an address."""
        given: list[tuple[str, str | int | None]] = [
            ("sort", self.sort or IN_ORDER),
            ("order", "up" if self.best_first else None),
            ("words", self.wanted.words),
            *(("col", name) for name in self.columns),
            *(("slice", f"{name}:{value}") for name, value in self.wanted.slices),
        ]
        for metric, low, high in self.wanted.ranges:
            given += [("range", metric), ("low", _number_text(low)), ("high", _number_text(high))]
        given += [
            ("failed", "1" if self.wanted.failed else None),
            ("gold", "1" if self.wanted.gold_missed else None),
            ("error", self.wanted.error),
            ("stage", self.stage),
        ]
        given = [(name, value) for name, value in given if name not in changed]
        pairs = [*given, *changed.items()]
        return [(name, str(value)) for name, value in pairs if value is not None and value != ""]


def _number_text(value: float) -> str | None:
    # 17 digits give the same float back: fewer would move the edge of a bar across a score.
    return None if math.isinf(value) else f"{value:.17g}" if value != round(value, 6) else f"{value:.6g}"


def selection_of(ask: Ask, index: RunSamples) -> Selection:
    """Return what an address asks for. What the run does not have is left out: an old link still works."""
    values = ask.values
    sort: str | None = values.get("sort") or ""
    if sort not in index.metrics:
        sort = None if sort == IN_ORDER else most_to_explain(index)
    slices = [found for text in ask.lists.get("slice", ()) if (found := _slice(text, index)) is not None]
    metric = values.get("range") or sort or ""
    low, high = (
        _number(values.get(name), default) for name, default in (("low", -math.inf), ("high", math.inf))
    )
    has_range = metric in index.metrics and (low, high) != (-math.inf, math.inf)
    error = ask.number("error")
    diagnosis = diagnosis_of(index) if values.get("stage") else None
    lost = diagnosis.stage(values["stage"]) if diagnosis is not None else None
    wanted = Filter(
        values.get("words", "").strip()[:500],
        tuple(slices),
        ((metric, low, high),) if has_range else (),
        values.get("failed") == "1",
        values.get("gold") == "1",
        error if error is not None and error < len(index.errors) else None,
        lost.sample_ids if lost is not None else None,
    )
    columns = tuple(name for name in ask.lists.get("col", ()) if name in index.metrics)
    return Selection(
        wanted, sort, values.get("order") == "up", columns, lost.name if lost is not None else ""
    )


def _slice(text: str, index: RunSamples) -> tuple[str, str] | None:
    for name, values in index.fields.items():
        # Not split at the first colon: the name of a field may contain one.
        if text.startswith(f"{name}:") and text.removeprefix(f"{name}:") in values:
            return name, text.removeprefix(f"{name}:")
    return None


def _number(text: str | None, default: float) -> float:
    try:
        value = float(text or "")
    except ValueError:
        return default
    # float() accepts "nan", which no score is above or below.
    return value if math.isfinite(value) else default


def samples_page(ask: Ask) -> Reply:
    """Show the samples of a run that match, worst first."""
    run_id = ask.path["run"]
    index = ask.workspace.index(run_id)
    selection = selection_of(ask, index)
    mask = index.matching(selection.wanted)
    after = ask.number("after")
    after = after if after is not None and after < index.size else None
    shown = index.page(
        mask, selection.sort, after=after, count=ask.rows or ROWS, best_first=selection.best_first
    )
    main = tag(
        "div",
        None if ask.rows else _histogram(run_id, index, selection),
        _controls(ask, run_id, index, selection, shown),
        _table(run_id, index, selection, shown, every=ask.rows is not None),
        _turns(run_id, selection, shown),
        id="list" if not ask.rows else None,
        class_="column",
    )
    sort = selection.sort or next(iter(index.metrics), "")
    how = "best" if selection.best_first else "worst"
    return Page(
        "Samples" if not ask.rows else f"Samples of {run_id}",
        main,
        ask.workspace.command("show", ask.workspace.name(run_id), "--worst", sort),
        facts=f"{how} first by {selection.sort}" if selection.sort else "in the order of the dataset",
        actions=button_link("Export CSV", address("run", run_id, "samples.csv", query=selection.query())),
        crumbs=[("Runs", "/"), (run_id, address("run", run_id))],
        run=run_id,
    )


def samples_csv(ask: Ask) -> Reply:
    """Return the samples that match, with every score."""
    run_id = ask.path["run"]
    index = ask.workspace.index(run_id)
    selection = selection_of(ask, index)
    shown = index.page(
        index.matching(selection.wanted), selection.sort, count=index.size, best_first=selection.best_first
    )
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in run_id)
    return Download(f"{safe}-samples", _csv(index, shown.places, labels_by_sample(ask.workspace, run_id)))


def _csv(index: RunSamples, places: Sequence[int], labels: Mapping[str, str]) -> Iterator[Sequence[Any]]:
    names = list(index.metrics)
    yield ["sample", "question", "answer", "failed", "label", *names]
    for start in range(0, len(places), 500):
        for place, (sample, output) in zip(
            places[start : start + 500], index.pairs(places[start : start + 500]), strict=True
        ):
            failed = output.error.type if output.error is not None else ""
            scores = (float(index.column(name)[place]) for name in names)
            values = ("" if score != score else score for score in scores)
            texts = sample.sample_id, sample.query, output.response.text
            yield [*texts, failed, labels.get(sample.sample_id, ""), *values]


def _histogram(run_id: str, index: RunSamples, selection: Selection) -> Node:
    """Return how the scores of the metric that sorts are spread; each bar leads to its samples."""
    if not selection.sort:
        return None
    result = index.metrics[selection.sort]
    counts, low, high = bins_of(index, result)
    if not any(counts):
        return None
    plain = Selection(sort=selection.sort, columns=selection.columns)
    links = [
        address(
            "run",
            run_id,
            "samples",
            query=plain.query(low=_edge(low, high, place, "low"), high=_edge(low, high, place + 1, "high")),
        )
        for place in range(BINS)
    ]
    drawn = histogram(counts, links=links, label=f"Scores of {selection.sort}")
    ends = [number(end, result.unit) if result.unit else tick_text(end) for end in (low, high)]
    scale = tag("p", tag("span", ends[0]), tag("span", ends[1], class_="end"), class_="filters mute")
    return tag("div", drawn, scale)


def _edge(low: float, high: float, place: int, side: str) -> str:
    """Return an end of a bar, as the address of its samples has it. A bar includes its lower end only."""
    end = low + (high - low) * place / BINS
    # Filters include both ends: without the step down, a score on an edge would be in two bars.
    if side == "high" and place < BINS:
        end = float(np.nextafter(end, -np.inf))
    return f"{end:.17g}"


def _controls(ask: Ask, run_id: str, index: RunSamples, selection: Selection, shown: Places) -> Markup:
    wanted, action = selection.wanted, address("run", run_id, "samples")
    count = tag("span", f"{shown.total:,} of {index.size:,} samples", class_="count", role="status")
    if ask.rows:  # a script filters what is in the file
        return tag("div", search_form("samples", "", kind="local"), count, class_="filters")
    chosen = dict(wanted.slices)
    boxes = [
        select_box(
            "slice",
            [("", short(name, 30)), *((f"{name}:{value}", short(value, 40)) for value in sorted(values))],
            f"{name}:{chosen[name]}" if name in chosen else None,
            name,
        )
        for name, values in list(index.fields.items())[:6]
    ]
    fields = ("words", "slice", "gold", "failed")
    form = search_form(
        "samples",
        wanted.words,
        boxes,
        _tick("gold", "gold missed", wanted.gold_missed) if index.gold_missed.any() else None,
        _tick("failed", "failed", wanted.failed) if index.errors else None,
        hidden_fields(pair for pair in selection.query() if pair[0] not in fields),
        action=action,
    )
    query = {"sort": selection.sort or IN_ORDER}
    clear = link("Clear", "run", run_id, "samples", query=query) if wanted != Filter() else None
    kept = [pair for pair in selection.query() if pair[0] != "col"]
    menu = column_menu(index.metrics, _columns(index, selection), kept, action)
    return tag(
        "div", form, count, _filter_words(index, selection), clear, span("end", menu), class_="filters"
    )


def _tick(name: str, text: str, is_on: bool) -> Markup:
    box = tag("input", type="checkbox", name=name, value="1", checked=is_on)
    return tag("label", box, text, class_="tick")


def _filter_words(index: RunSamples, selection: Selection) -> Node:
    """Return what the boxes do not show: a range of scores, and an error."""
    words = []
    if selection.wanted.ranges:
        metric, low, high = selection.wanted.ranges[0]
        ends = [f"{sign} {number(end)}" for sign, end in (("from", low), ("to", high)) if not math.isinf(end)]
        words.append(f"{metric} {' '.join(ends)}")
    if selection.wanted.error is not None:
        words.append(short(": ".join(index.errors[selection.wanted.error]), 80))
    if selection.stage:
        words.append(f"lost at: {selection.stage}")
    return span("tag news", "; ".join(words)) if words else None


def _columns(index: RunSamples, selection: Selection) -> list[str]:
    """Return the metrics to show, the one that sorts first."""
    names = list(selection.columns) or list(index.metrics)
    first = [selection.sort] if selection.sort else []
    names = [*first, *(name for name in names if name != selection.sort)]
    return names if selection.columns else names[:_METRICS]


def _table(run_id: str, index: RunSamples, selection: Selection, shown: Places, *, every: bool) -> Markup:
    if not shown.places:
        return tag("p", "No sample matches.", class_="lead")
    names = list(index.metrics) if every else _columns(index, selection)
    page = address("run", run_id, "sample", query=selection.query())
    columns = [
        Column("Sample", None, IN_ORDER),
        Column("Question", "cut"),
        Column("Answer", "cut mute spare"),
        *(
            Column(_heading(index, name), "n spare" if place else "n", name)
            for place, name in enumerate(names)
        ),
    ]
    rows = []
    for row in index.rows(shown.places):
        name = row_link(short(row.sample_id, 40), with_id(page, row.sample_id))
        texts = [_marks(index, row.place), short(row.query, 160)], _answer(index, row.place, row.answer)
        scores = (score_chip(index, name, row.place) for name in names)
        rows.append(Row([name, *texts, *scores], words=_words(index, row.place) if every else None))

    def href(key: str, order: str) -> str:
        best = "up" if order == "up" and key != IN_ORDER else None
        return address("run", run_id, "samples", query=selection.query(sort=key, order=best))

    sort = (selection.sort or IN_ORDER, "up" if selection.best_first else "down")
    return table("Samples", columns, rows, sort=sort, href=href, kind="list")


def _heading(index: RunSamples, name: str) -> str:
    return name if index.metrics[name].higher_is_better else f"{name} ↓"


def _words(index: RunSamples, place: int) -> str | None:
    """Return what finds a sample in one file, beside the texts of its row."""
    words = [f"{name}:{value}" for name in index.fields for value in index.slices_of(name, place)]
    return " ".join(words).lower() or None


def _marks(index: RunSamples, place: int) -> Node:
    if index.error_codes[place] >= 0:
        return [span("tag down", "✕ failed"), " "]
    return [span("tag warn", "gold missed"), " "] if index.gold_missed[place] else None


def _answer(index: RunSamples, place: int, answer: str) -> str:
    code = int(index.error_codes[place])
    return short(answer, 160) if code < 0 else short(": ".join(index.errors[code]), 160)


def _turns(run_id: str, selection: Selection, shown: Places) -> Node:
    """Return the links to the pages before and after this one."""
    links = []
    if shown.start:
        query = selection.query(after=shown.before)
        links.append(tag("a", "Previous", href=address("run", run_id, "samples", query=query), rel="prev"))
    if shown.has_more:
        query = selection.query(after=shown.places[-1])
        links.append(tag("a", "Next", href=address("run", run_id, "samples", query=query), rel="next"))
    first, last = shown.start + 1, shown.start + len(shown.places)
    return tag("p", f"{first:,} to {last:,} ", ((each, " ") for each in links)) if links else None


# One sample.


def sample_page(ask: Ask) -> Reply:
    """Show one sample: question, reference, answer, documents with marked spans, scores."""
    run_id, sample_id = ask.path["run"], ask.values.get("id", "")
    index = ask.workspace.index(run_id)
    place = index.place_of(sample_id)
    selection = selection_of(ask, index)
    sample, output = index.sample(place)
    answers = [answered(index, place, sample, output)]
    led = selection.sort
    names = list(dict.fromkeys([*([led] if led else []), *index.metrics]))[:2]
    page = address("run", run_id, "sample", query=selection.query())
    label = None if ask.rows else label_card(ask.workspace, run_id, sample_id, ask.address)
    main = join(
        sample_parts(sample, answers, led, label, in_file=ask.rows is not None),
        None if ask.rows else _other_runs(ask.workspace, run_id, sample_id, names),
        None if ask.rows else variants_section(index, place, page, [(name, index, name) for name in names]),
    )
    words, turns = _walk(run_id, index, selection, place)
    return Page(
        short(sample_id, 60),
        main,
        ask.workspace.command("show", ask.workspace.name(run_id), "--sample", sample_id),
        facts=[*((each, " ") for each in labels_of(sample)), words],
        actions=turns,
        crumbs=[
            ("Runs", "/"),
            (run_id, address("run", run_id)),
            (
                f"Samples by {led}" if led else "Samples",
                address("run", run_id, "samples", query=selection.query()),
            ),
        ],
        run=run_id,
    )


def _other_runs(workspace: Workspace, run_id: str, sample_id: str, names: Sequence[str]) -> Node:
    """Return what other runs on the same samples scored on this one."""
    rows = []
    for other in workspace.before(run_id)[:_OTHERS]:
        index = workspace.index(other)
        try:
            (row,) = index.rows([index.place_of(sample_id)])
        except UnknownNameError:
            continue
        query = [("run", other), ("run", run_id), ("id", sample_id)]
        rows.append(
            [
                tag("a", short(other, 40), href=with_id(address("run", other, "sample"), sample_id)),
                _answer(index, row.place, row.answer),
                *(_score_of(index, name, sample_id) for name in names),
                link("Side by side", "compare", "sample", query=query),
            ]
        )
    scores = (Column(name, "n") for name in names)
    columns = [Column("Run"), Column("Answer", "cut mute spare"), *scores, Column()]
    title = "Same sample in other runs"
    return card(title, table(title, columns, rows)) if rows else None


def variants_section(
    index: RunSamples, place: int, page: str, columns: Sequence[tuple[str, RunSamples, str]]
) -> Node:
    """Return the variants of the same question with their scores: noisy, misspelled, counterfactual.

    Each column has a heading, a run and a metric.
    """
    variants = index.variants(place)
    rows: list[list[Node]] = [
        [
            tag("a", short(row.sample_id, 40), href=with_id(page, row.sample_id)),
            short(", ".join(index.slices_of("scenario", row.place)), 40),
            short(row.query, 160),
            _answer(index, row.place, row.answer),
            *(_score_of(each, metric, row.sample_id) for _, each, metric in columns),
        ]
        for row in index.rows(variants[:_VARIANTS])
    ]
    texts = [Column("Question", "cut"), Column("Answer", "cut mute spare")]
    heads = [Column("Sample"), Column("Variant"), *texts, *(Column(name, "n") for name, _, _ in columns)]
    more = f"{_VARIANTS} of {len(variants):,}" if len(variants) > _VARIANTS else None
    title = "Variants of the same question"
    return card(title, table(title, heads, rows), about=more) if variants else None


def _score_of(index: RunSamples, metric: str, sample_id: str) -> Node:
    """Return the score of a sample in a run, which need not have it."""
    if metric not in index.metrics:
        return "n/a"
    try:
        return score_chip(index, metric, index.place_of(sample_id))
    except UnknownNameError:
        return "n/a"


def answered(
    index: RunSamples, place: int, sample: EvaluationSample, output: SystemOutputs, name: str = ""
) -> Answered:
    """Return an output with its scores, and what a judge said of its claims."""
    scores = [(result, index.score(result.name, place)) for result in index.metrics.values()]
    return Answered(output, scores, name, _claims(index, sample, output), match_of(index.run))


def _claims(index: RunSamples, sample: EvaluationSample, output: SystemOutputs) -> list[Claim]:
    """Return what the judge of the run said of the claims of an answer."""
    if not any("judge" in result.signature for result in index.metrics.values()):
        return []
    # Judges are a large package, and most runs were not judged.
    from ..judges.runs import claim_metrics, claims_of

    claims = []
    for title, metric in claim_metrics(index.database.path, index.run.results).items():
        for check in claims_of(metric, sample, output):
            score = NOT_MEASURED if check.score is None else f"{check.score:.2f}"
            evidence = check.evidence
            quote, source = ("", "") if evidence is None else (evidence.quote or "", evidence.passage_id)
            claims.append(
                Claim(check.claim, title, score, quote, source, check.at, _is_supported(metric, check))
            )
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


def _walk(run_id: str, index: RunSamples, selection: Selection, place: int) -> tuple[str, list[Markup]]:
    """Return where the sample is in its list, with links to those before and after it."""
    mask = index.matching(selection.wanted)
    before, previous, following = index.neighbours(
        mask, selection.sort, place, best_first=selection.best_first
    )
    page = address("run", run_id, "sample", query=selection.query())
    others = {rel: other for rel, other in (("prev", previous), ("next", following)) if other is not None}
    links = [
        walk_link(rel, with_id(page, row.sample_id), row.sample_id)
        for rel, row in zip(others, index.rows(list(others.values())), strict=True)
    ]
    words = f"{before + 1:,} of {int(mask.sum()):,}" if mask[place] else "not in this list"
    how = "best" if selection.best_first else "worst"
    return f"{words}, {how} {selection.sort} first" if selection.sort else words, links


def walk_link(rel: str, href: str, sample_id: str) -> Markup:
    """Return the button that leads to the sample before or after this one, with its key."""
    name = short(sample_id, 20)
    if rel == "prev":
        return tag("a", f"← {name} ", tag("kbd", "["), href=href, rel=rel, class_="button")
    return tag("a", f"{name} → ", tag("kbd", "]"), href=href, rel=rel, class_="button")
