"""The samples of a run: one table, worst first by the metric that led there, and the page of each.

With a baseline, the table is sorted by the change of a score, and the page shows the sample in both runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison.pairs import LAST_BITS
from ..core.display import NOT_MEASURED
from ..core.matching import match_of
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import UnknownNameError
from ..store.pages import Filter, Row, RunSamples
from ..store.pages import Page as Places
from .annotate import label_card, labels_by_sample
from .comparisons import OUTCOMES, Pair, pair_of
from .components import charts
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .components.sample import Answered, Claim, labels_of, sample_parts
from .diagnosis import diagnosis_of
from .layout import address, with_id
from .requests import Ask, Download, Page, Pairs, Reply
from .run import BINS, bins_of, most_to_explain, score_chip

ROWS = 50  # on a page
_METRICS = 4  # columns, unless others are chosen
_VARIANTS = 20  # of one question that are shown
_OTHERS = 4  # runs that a sample is looked up in: with its own and the baseline, as many as are kept open
IN_ORDER = "sample"  # sorts by the order of the dataset


@dataclass(frozen=True)
class Selection:
    """Which samples of a run an address asks for, sorted by which metric, and compared with which run."""

    index: RunSamples
    pair: Pair | None
    wanted: Filter
    sort: str | None  # None is the order of the dataset
    best_first: bool
    columns: tuple[str, ...]
    outcome: str  # of the comparison: lost, won, tied or all
    stage: str  # of the diagnosis of the run, in words

    @property
    def change(self) -> Pair | None:
        """Return the pair whose change of the metric sorts the samples."""
        return self.pair if self.pair is not None and self.sort in self.pair.metrics else None

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """Return which samples match."""
        mask = self.index.matching(self.wanted)
        if self.change is None or self.outcome == "all":
            return mask
        return mask & self.change.scores(self.sort or "").mask(self.outcome)

    @property
    def order(self) -> str | None:
        """Return what sorts the samples: a metric, or its change."""
        return self.sort if self.change is None else self.change.order(self.sort or "")

    def page(self, after: int | None, count: int) -> Places:
        """Return some of the samples."""
        return self.index.page(self.mask, self.order, after=after, count=count, best_first=self.best_first)


def selection_of(ask: Ask) -> Selection:
    """Return what an address asks for. What the run does not have is left out: an old link still works."""
    index, values = ask.workspace.index(ask.path["run"]), ask.values
    baseline = values.get("baseline", "")
    pair = pair_of(ask.workspace, baseline, ask.path["run"]) if baseline else None
    sort: str | None = values.get("sort") or ""
    if sort not in index.metrics:
        sort = None if sort == IN_ORDER else most_to_explain(index)
    slices = [found for text in ask.lists.get("slice", ()) if (found := _slice(text, index)) is not None]
    metric = values.get("range") or sort or ""
    low, high = _number(values.get("low"), -math.inf), _number(values.get("high"), math.inf)
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
    outcome = values.get("outcome", "")
    outcome = outcome if outcome in OUTCOMES else "all"
    stage = lost.words if lost is not None else ""
    return Selection(index, pair, wanted, sort, values.get("order") == "up", columns, outcome, stage)


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


def samples_page(ask: Ask) -> Page:
    """Show the samples of a run that match, worst first."""
    run_id, selection = ask.path["run"], selection_of(ask)
    index, pair = selection.index, selection.pair
    after = ask.number("after")
    shown = selection.page(after if after is not None and after < index.size else None, ask.rows or ROWS)
    main = tag(
        "div",
        None if ask.rows or pair else _histogram(ask, selection),
        _controls(ask, selection, shown.total),
        _table(ask, selection, shown),
        None if ask.rows else _turns(ask, shown),
        id="list" if not ask.rows else None,
        class_="column",
    )
    how = "best" if selection.best_first else "worst"
    words = f"{how} first by {selection.sort}" if selection.sort else "in the order of the dataset"
    sort = selection.sort or next(iter(index.metrics), "")
    return Page(
        "Samples" if not ask.rows else f"Samples of {run_id}",
        main,
        ask.workspace.command("show", ask.workspace.name(run_id), "--worst", sort),
        facts=f"{pair.names[1]} against {pair.names[0]}, {words}" if pair else words,
        actions=ui.button_link("Export CSV", address("run", run_id, "samples.csv", query=ask.query())),
        crumbs=_crumbs(ask, selection)[:-1],
        run=run_id,
    )


def _crumbs(ask: Ask, selection: Selection) -> list[tuple[str, str]]:
    run_id, pair = ask.path["run"], selection.pair
    above = (run_id, address("run", run_id))
    if pair is not None:
        runs = [("run", ask.values["baseline"]), ("run", run_id)]
        above = (f"{pair.names[1]} against {pair.names[0]}", address("compare", query=runs))
    name = f"Samples by {selection.sort}" if selection.sort else "Samples"
    return [("Runs", "/"), above, (name, address("run", run_id, "samples", query=ask.query(id=None)))]


def samples_csv(ask: Ask) -> Reply:
    """Return the samples that match, with every score."""
    run_id, selection = ask.path["run"], selection_of(ask)
    places = selection.page(None, selection.index.size).places
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in run_id)
    labels = labels_by_sample(ask.workspace, run_id)
    return Download(f"{safe}-samples", _csv(selection.index, places, labels))


def _csv(index: RunSamples, places: Sequence[int], labels: Mapping[str, str]) -> Iterator[Sequence[Any]]:
    names = list(index.metrics)
    yield ["sample", "question", "answer", "failed", "label", *names]
    for start in range(0, len(places), 500):
        some = places[start : start + 500]
        for place, (sample, output) in zip(some, index.pairs(some), strict=True):
            failed = output.error.type if output.error is not None else ""
            scores = (float(index.column(name)[place]) for name in names)
            values = ("" if score != score else score for score in scores)
            texts = sample.sample_id, sample.query, output.response.text
            yield [*texts, failed, labels.get(sample.sample_id, ""), *values]


def _histogram(ask: Ask, selection: Selection) -> Node:
    """Return how the scores of the metric that sorts are spread; each bar leads to its samples."""
    if not selection.sort:
        return None
    result = selection.index.metrics[selection.sort]
    counts, low, high = bins_of(selection.index, result)
    if not any(counts):
        return None
    edges = np.linspace(low, high, BINS + 1).tolist()
    # A bar includes its lower end only. Filters include both ends: without the step down, a score on an edge
    # would be in two bars.
    ends = [*(float(np.nextafter(edge, -np.inf)) for edge in edges[1:-1]), high]
    # Its own name: the range is one of this metric, also when another one sorts.
    kept: Pairs = [("sort", selection.sort), ("range", selection.sort)]
    kept += [("col", name) for name in selection.columns]
    links = []
    for start, end in zip(edges, ends, strict=False):
        # 17 digits give the same float back: fewer would move the edge of a bar across a score.
        query = [*kept, ("low", f"{start:.17g}"), ("high", f"{end:.17g}")]
        links.append(address("run", ask.path["run"], "samples", query=query))
    drawn = charts.histogram(counts, links=links, label=f"Scores of {selection.sort}")
    texts = [ui.number(end, result.unit) if result.unit else charts.tick_text(end) for end in (low, high)]
    return tag("div", drawn, tag("p", texts[0], ui.span("end", texts[1]), class_="filters mute"))


def _controls(ask: Ask, selection: Selection, total: int) -> Markup:
    index, wanted, run_id = selection.index, selection.wanted, ask.path["run"]
    count = tag("span", f"{total:,} of {index.size:,} samples", class_="count", role="status")
    if ask.rows:  # a script filters what is in the file
        form = ui.search_form("samples", "", _outcomes(ask, selection), kind="local")
        return tag("div", form, count, class_="filters")
    action, chosen = address("run", run_id, "samples"), dict(wanted.slices)
    boxes = []
    for name, values in list(index.fields.items())[:6]:
        options = [(f"{name}:{value}", ui.short(value, 40)) for value in sorted(values)]
        own = f"{name}:{chosen[name]}" if name in chosen else None
        boxes.append(ui.select_box("slice", [("", ui.short(name, 30)), *options], own, name))
    fields = ("words", "slice", "gold", "failed", "outcome", "after")
    form = ui.search_form(
        "samples",
        wanted.words,
        _outcomes(ask, selection),
        boxes,
        _tick("gold", "gold missed", wanted.gold_missed) if index.gold_missed.any() else None,
        _tick("failed", "failed", wanted.failed) if index.errors else None,
        ui.hidden_fields(pair for pair in ask.query() if pair[0] not in fields),
        action=action,
    )
    plain = [pair for pair in ask.query() if pair[0] in ("sort", "order", "col", "baseline")]
    is_filtered = wanted != Filter() or selection.outcome != "all"
    clear = tag("a", "Clear", href=address("run", run_id, "samples", query=plain)) if is_filtered else None
    menu = ui.column_menu(index.metrics, _columns(selection), ask.query(col=None), action)
    words = _filter_words(selection)
    return tag("div", form, count, words, clear, ui.span("end", menu), class_="filters")


def _outcomes(ask: Ask, selection: Selection) -> Node:
    if selection.change is None:
        return None
    scores = selection.change.scores(selection.sort or "")
    # One file can be sorted by any metric, and has no counts of each.
    counts = {name: "" if ask.rows else f" ({scores.mask(name).sum():,})" for name in OUTCOMES}
    options = [(name, f"{name}{counts[name]}") for name in OUTCOMES]
    return ui.select_box("outcome", options, selection.outcome, "Outcome")


def _tick(name: str, text: str, is_on: bool) -> Markup:
    box = tag("input", type="checkbox", name=name, value="1", checked=is_on)
    return tag("label", box, text, class_="tick")


def _filter_words(selection: Selection) -> Node:
    """Return what the boxes do not show: a range of scores, an error, and a stage of the diagnosis."""
    wanted, words = selection.wanted, []
    if wanted.ranges:
        metric, low, high = wanted.ranges[0]
        ends = (("from", low), ("to", high))
        limits = [f"{sign} {ui.number(end)}" for sign, end in ends if not math.isinf(end)]
        words.append(f"{metric} {' '.join(limits)}")
    if wanted.error is not None:
        words.append(ui.short(": ".join(selection.index.errors[wanted.error]), 80))
    if selection.stage:
        words.append(selection.stage)
    return ui.span("tag news", "; ".join(words)) if words else None


def _columns(selection: Selection) -> list[str]:
    """Return the metrics to show, the one that sorts first."""
    names = list(selection.columns) or list(selection.index.metrics)
    first = [selection.sort] if selection.sort else []
    names = [*first, *(name for name in names if name != selection.sort)]
    return names if selection.columns else names[:_METRICS]


def _table(ask: Ask, selection: Selection, shown: Places) -> Markup:
    index, pair, run_id = selection.index, selection.pair, ask.path["run"]
    if not shown.places:
        return ui.lead("No sample matches.")
    names = list(index.metrics) if ask.rows else _columns(selection)
    columns = [
        ui.Column("Sample", None, IN_ORDER),
        ui.Column("Question", "cut"),
        ui.Column("Answer", "cut mute spare"),
        *(
            ui.Column(
                ui.arrow(name, up=index.metrics[name].higher_is_better),
                "n spare" if name != names[0] else "n",
                name,
            )
            for name in names
        ),
    ]
    page = address("run", run_id, "sample", query=ask.query())
    rows = []
    for row in index.rows(shown.places):
        name = ui.row_link(ui.short(row.sample_id, 40), with_id(page, row.sample_id))
        texts = (
            [_marks(index, row.place), ui.short(row.query, 160)],
            answer_text(index, row.place, row.answer),
        )
        scores = (change_cell(pair, name, row.place) or score_chip(index, name, row.place) for name in names)
        rows.append(ui.Row([name, *texts, *scores], words=_words(index, row.place) if ask.rows else None))

    def href(key: str, order: str) -> str:
        best = "up" if order == "up" and key != IN_ORDER else None
        return address("run", run_id, "samples", query=ask.query(sort=key, order=best, after=None))

    sort = (selection.sort or IN_ORDER, "up" if selection.best_first else "down")
    return ui.table("Samples", columns, rows, sort=sort, href=href, kind="list")


def change_cell(pair: Pair | None, metric: str, place: int) -> Node:
    """Return the change of a score with both values; None if there is no baseline that has it."""
    if pair is None or metric not in pair.metrics:
        return None
    scores, unit = pair.scores(metric), pair.index.metrics[metric].unit
    before, after = float(scores.before[place]), float(scores.after[place])
    if math.isnan(before) or math.isnan(after):
        return ui.span("mute", NOT_MEASURED)
    if abs(after - before) <= LAST_BITS:
        return ui.span("mute", f"= {ui.number(after, unit, digits=2)}")
    both = f" {ui.number(before, unit, digits=2)} → {ui.number(after, unit, digits=2)}"
    return [
        ui.span("up" if (after > before) == scores.up else "down", ui.change(after - before, unit)),
        tag("small", both),
    ]


def _words(index: RunSamples, place: int) -> str | None:
    """Return what finds a sample in one file, beside the texts of its row."""
    words = [f"{name}:{value}" for name in index.fields for value in index.slices_of(name, place)]
    return " ".join(words).lower() or None


def _marks(index: RunSamples, place: int) -> Node:
    if index.error_codes[place] >= 0:
        return [ui.span("tag down", "✕ failed"), " "]
    return [ui.span("tag warn", "gold missed"), " "] if index.gold_missed[place] else None


def answer_text(index: RunSamples, place: int, answer: str) -> str:
    """Return an answer in a list, or why there is none."""
    code = int(index.error_codes[place])
    return ui.short(answer, 160) if code < 0 else ui.short(": ".join(index.errors[code]), 160)


def _turns(ask: Ask, shown: Places) -> Node:
    """Return the links to the pages before and after this one."""
    pages: list[tuple[str, str, int | None]] = [("Previous", "prev", shown.before)] if shown.start else []
    pages += [("Next", "next", shown.places[-1])] if shown.has_more else []
    links = []
    for text, rel, place in pages:
        query = ask.query(after=None if place is None else str(place))
        links.append((text, rel, address("run", ask.path["run"], "samples", query=query)))
    return ui.turns(f"{shown.start + 1:,} to {shown.start + len(shown.places):,}", links)


# One sample.


def sample_page(ask: Ask) -> Page:
    """Show one sample: question, answers, documents with marked spans, scores; beside those of a baseline."""
    run_id, sample_id, selection = ask.path["run"], ask.values.get("id", ""), selection_of(ask)
    index, pair, led = selection.index, selection.pair, selection.sort
    place = index.place_of(sample_id)
    sample, output = index.sample(place)
    answers = [answered(index, place, sample, output, pair.names[1] if pair else "")]
    if pair is not None:
        before = pair.baseline.place_of(sample_id)  # UnknownNameError if the baseline does not have it
        answers.insert(0, answered(pair.baseline, before, *pair.baseline.sample(before), pair.names[0]))
    label = None if ask.rows else label_card(ask.workspace, run_id, sample_id, ask.address)
    words, turns = _walk(ask, selection, place)
    crumbs = _crumbs(ask, selection)
    return Page(
        ui.short(sample_id, 60),
        join(
            sample_parts(sample, answers, led, label, in_file=ask.rows is not None),
            None if ask.rows else _other_runs(ask, selection, sample_id),
            None if ask.rows else _variants(ask, selection, place),
        ),
        ask.workspace.command("show", ask.workspace.name(run_id), "--sample", sample_id),
        facts=[f"{crumbs[1][0]} " if pair else None, *((each, " ") for each in labels_of(sample)), words],
        actions=turns,
        crumbs=crumbs,
        run=run_id,
    )


def _led_first(selection: Selection) -> tuple[list[str], list[ui.Column]]:
    """Return two metrics with the columns of answers and scores: that which led here, and the first."""
    first = [selection.sort] if selection.sort else []
    names = list(dict.fromkeys([*first, *selection.index.metrics]))[:2]
    scores = (ui.Column(name, "n spare" if name != names[0] else "n") for name in names)
    return names, [ui.Column("Answer", "cut mute spare"), *scores]


def _answer_cells(index: RunSamples, row: Row, names: Sequence[str]) -> list[Node]:
    known = (score_chip(index, name, row.place) if name in index.metrics else NOT_MEASURED for name in names)
    return [answer_text(index, row.place, row.answer), *known]


def _other_runs(ask: Ask, selection: Selection, sample_id: str) -> Node:
    """Return what other runs on the same samples scored on this one."""
    run_id, rows = ask.path["run"], []
    names, columns = _led_first(selection)
    for other in ask.workspace.before(run_id)[:_OTHERS]:
        index = ask.workspace.index(other)
        try:
            (row,) = index.rows([index.place_of(sample_id)])
        except UnknownNameError:
            continue
        both = address("run", run_id, "sample", query=ask.query(baseline=other))
        rows.append(
            [
                tag("a", ui.short(other, 40), href=with_id(address("run", other, "sample"), sample_id)),
                *_answer_cells(index, row, names),
                tag("a", "Side by side", href=both) if other != ask.values.get("baseline") else None,
            ]
        )
    title = "Same sample in other runs"
    return ui.card(title, ui.table(title, ["Run", *columns, ui.Column()], rows)) if rows else None


def _variants(ask: Ask, selection: Selection, place: int) -> Node:
    """Return the variants of the same question with their scores: noisy, misspelled, counterfactual."""
    index, (names, columns) = selection.index, _led_first(selection)
    variants = index.variants(place)
    page = address("run", ask.path["run"], "sample", query=ask.query(id=None))
    rows: list[list[Node]] = [
        [
            tag("a", ui.short(row.sample_id, 40), href=with_id(page, row.sample_id)),
            ui.short(", ".join(index.slices_of("scenario", row.place)), 40),
            ui.short(row.query, 160),
            *_answer_cells(index, row, names),
        ]
        for row in index.rows(variants[:_VARIANTS])
    ]
    columns = [ui.Column("Sample"), ui.Column("Variant"), ui.Column("Question", "cut"), *columns]
    more = f"{_VARIANTS} of {len(variants):,}" if len(variants) > _VARIANTS else None
    title = "Variants of the same question"
    return ui.card(title, ui.table(title, columns, rows), about=more) if variants else None


def answered(
    index: RunSamples, place: int, sample: EvaluationSample, output: SystemOutputs, name: str
) -> Answered:
    """Return an output with its scores, and what a judge said of its claims."""
    scores = [(result, index.score(result.name, place)) for result in index.metrics.values()]
    return Answered(output, scores, name, _claims(index, sample, output), match_of(index.run))


def _claims(index: RunSamples, sample: EvaluationSample, output: SystemOutputs) -> list[Claim]:
    """Return what the judge of the run said of the claims of an answer."""
    if not any("judge" in result.signature for result in index.metrics.values()):
        return []
    # Judges are a large package, and most runs were not judged.
    from ..judges.runs import checked_claims

    claims = []
    for title, checks in checked_claims(index.database.path, index.run.results, sample, output):
        for check in checks:
            score = check.failed if check.score is None else f"{check.score:.2f}"
            evidence = check.evidence
            quote, source = ("", "") if evidence is None else (evidence.quote, evidence.passage_id)
            claims.append(Claim(check.claim, title, score, quote, source, check.at, check.verdict))
    return claims


def _walk(ask: Ask, selection: Selection, place: int) -> tuple[str, list[Markup]]:
    """Return where the sample is in its list, with links to those before and after it, and their keys."""
    index, mask, best = selection.index, selection.mask, selection.best_first
    before, *others = index.neighbours(mask, selection.order, place, best_first=best)
    page = address("run", ask.path["run"], "sample", query=ask.query(id=None))
    links = []
    for rel, other in zip(("prev", "next"), others, strict=True):
        if other is not None:
            (row,) = index.rows([other])
            name, key = ui.short(row.sample_id, 20), tag("kbd", "[" if rel == "prev" else "]")
            text: Node = [f"← {name} ", key] if rel == "prev" else [f"{name} → ", key]
            links.append(tag("a", text, href=with_id(page, row.sample_id), rel=rel, class_="button"))
    if not mask[place]:
        return "not in this list", links
    outcome = f" {selection.outcome}" if selection.outcome != "all" else ""
    how = f", {'best' if best else 'worst'} {selection.sort} first" if selection.sort else ""
    return f"{before + 1:,} of {int(mask.sum()):,}{outcome}{how}", links
