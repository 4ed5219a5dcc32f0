"""The samples of a run: a list with filters, worst first, and one sample with all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.display import value_text
from ..core.matching import match_of
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import UnknownNameError
from ..metrics.parse import meaning
from ..store.pages import Filter, RunSamples
from ..store.pages import Page as Places
from .components.markup import Markup, Node, join, tag
from .components.sample import Answered, Claim, sample_body, score_text
from .components.tables import notes, sample_table, short
from .layout import address, link, metric_box, select_box, with_id
from .requests import Ask, Page, Reply, Route

ROWS = 50  # on a page
_METRICS = 3  # shown in a list that no metric sorts
_VARIANTS = 20  # of one question that are shown


@dataclass(frozen=True)
class Selection:
    """What a list of samples shows, as its address says it."""

    wanted: Filter = field(default_factory=Filter)
    sort: str | None = None  # the metric that sorts; None is the order of the dataset

    def query(self, **changed: str | int | None) -> list[tuple[str, str]]:
        """Return the selection as the query of an address."""
        given: list[tuple[str, str | int | None]] = [("sort", self.sort), ("words", self.wanted.words)]
        given += [("slice", f"{name}:{value}") for name, value in self.wanted.slices]
        for metric, low, high in self.wanted.ranges:
            given += [("range", metric), ("low", _number_text(low)), ("high", _number_text(high))]
        given += [
            ("failed", "1" if self.wanted.failed else None),
            ("gold", "1" if self.wanted.gold_missed else None),
        ]
        given += [("error", self.wanted.error), *changed.items()]
        return [(name, str(value)) for name, value in given if value is not None and value != ""]


def _number_text(value: float) -> str | None:
    return None if math.isinf(value) else f"{value:.10g}"


def selection_of(ask: Ask, index: RunSamples) -> Selection:
    """Return what an address asks for. What the run does not have is left out: an old link still works."""
    values = ask.values
    sort = values.get("sort")
    slices = [found for text in ask.lists.get("slice", ()) if (found := _slice(text, index)) is not None]
    metric = values.get("range") or sort or ""
    low, high = (
        _number(values.get(name), default) for name, default in (("low", -math.inf), ("high", math.inf))
    )
    has_range = metric in index.metrics and (low, high) != (-math.inf, math.inf)
    error = ask.number("error")
    wanted = Filter(
        values.get("words", "").strip()[:500],
        tuple(slices),
        ((metric, low, high),) if has_range else (),
        values.get("failed") == "1",
        values.get("gold") == "1",
        error if error is not None and error < len(index.errors) else None,
    )
    return Selection(wanted, sort if sort in index.metrics else None)


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
    shown = index.page(mask, selection.sort, after=after, count=ask.rows or ROWS)
    main = join(
        tag("p", link(f"Run {run_id}", "run", run_id), class_="up"),
        _form(run_id, index, selection),
        _count(shown, index, selection),
        _rows(run_id, index, selection, shown),
        _turns(run_id, selection, shown),
    )
    sort = selection.sort or next(iter(index.metrics), "")
    return Page(
        f"Samples of {run_id}",
        main,
        ask.workspace.command("show", ask.workspace.name(run_id), "--worst", sort),
    )


def _form(run_id: str, index: RunSamples, selection: Selection) -> Markup:
    wanted = selection.wanted
    _, low, high = wanted.ranges[0] if wanted.ranges else ("", -math.inf, math.inf)
    chosen = dict(wanted.slices)
    return tag(
        "form",
        _labelled("Words", tag("input", type="search", name="words", value=wanted.words)),
        _labelled(
            "Worst first by",
            metric_box("sort", index.metrics.values(), selection.sort, "the order of the dataset"),
        ),
        _labelled("Score from", _number_field("low", low)),
        _labelled("to", _number_field("high", high)),
        (
            _labelled(
                short(name, 40),
                select_box(
                    "slice",
                    [("", "all"), *((f"{name}:{value}", short(value, 40)) for value in sorted(values))],
                    f"{name}:{chosen[name]}" if name in chosen else None,
                ),
            )
            for name, values in index.fields.items()
        ),
        _tick("gold", "gold missed", wanted.gold_missed) if index.gold_missed.any() else None,
        _tick("failed", "failed", wanted.failed) if index.errors else None,
        # The range stays with the metric that it was set for, also when another one sorts.
        tag("input", type="hidden", name="range", value=wanted.ranges[0][0]) if wanted.ranges else None,
        tag("input", type="hidden", name="error", value=wanted.error) if wanted.error is not None else None,
        tag("button", "Filter", type="submit"),
        link("Clear", "run", run_id, "samples"),
        class_="filters",
        method="get",
        action=address("run", run_id, "samples"),
        role="search",
        data_submits=True,
    )


def _labelled(text: str, control: Markup) -> Markup:
    return tag("label", text, control)


def _number_field(name: str, value: float) -> Markup:
    return tag("input", type="number", name=name, step="any", value=_number_text(value))


def _tick(name: str, text: str, is_on: bool) -> Markup:
    return tag(
        "label", tag("input", type="checkbox", name=name, value="1", checked=is_on), text, class_="tick"
    )


def _count(shown: Places, index: RunSamples, selection: Selection) -> Markup:
    words = f"{shown.total:,} of {index.size:,} samples"
    if selection.sort:
        words += f", worst first by {selection.sort}"
    if selection.wanted.ranges:
        metric, low, high = selection.wanted.ranges[0]
        ends = [
            f"{sign} {_number_text(end)}"
            for sign, end in (("from", low), ("to", high))
            if not math.isinf(end)
        ]
        words += f"; {metric} {' '.join(ends)}"
    if selection.wanted.error is not None:
        kind, message = index.errors[selection.wanted.error]
        words += f"; failed with {kind}: {short(message, 80)}"
    return tag("p", words, class_="count", role="status")


def _rows(run_id: str, index: RunSamples, selection: Selection, shown: Places) -> Markup:
    if not shown.places:
        return tag("p", "No sample matches.", class_="lead")
    names = [selection.sort] if selection.sort else list(index.metrics)[:_METRICS]
    missed, errors = index.gold_missed, index.error_codes
    page = address("run", run_id, "sample", query=selection.query())
    rows = []
    for row in index.rows(shown.places):
        marks = [
            tag("span", "failed", class_="badge failed") if errors[row.place] >= 0 else None,
            tag("span", "gold missed", class_="badge missed") if missed[row.place] else None,
        ]
        href = with_id(page, row.sample_id)
        rows.append(
            tag(
                "tr",
                tag("th", tag("a", short(row.sample_id, 40), href=href, data_row=True), scope="row"),
                tag("td", short(row.query, 160), " ", marks, dir="auto"),
                tag("td", _answer(index, row.place, row.answer), class_="soft spare", dir="auto"),
                (_score_cell(index, name, row.place) for name in names),
            )
        )
    return sample_table("Samples", ("Sample", "Question", "Answer"), names, rows)


def _answer(index: RunSamples, place: int, answer: str) -> str:
    code = int(index.error_codes[place])
    return short(answer, 160) if code < 0 else short(": ".join(index.errors[code]), 160)


def _score_cell(index: RunSamples, name: str, place: int) -> Markup:
    score = index.score(name, place)
    if score.value is None:
        return tag("td", "failed" if score.failed else "-", class_="num soft")
    return tag("td", value_text(score.value, index.metrics[name].unit), class_="num")


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
    return (
        tag("p", f"{first:,} to {last:,} ", ((each, " ") for each in links), class_="turns")
        if links
        else None
    )


# One sample.


def sample_page(ask: Ask) -> Reply:
    """Show one sample: question, reference, answer, documents with marked spans, scores."""
    run_id, sample_id = ask.path["run"], ask.values.get("id", "")
    index = ask.workspace.index(run_id)
    place = index.place_of(sample_id)
    selection = selection_of(ask, index)
    sample, output = index.sample(place)
    answers = [answered(index, place, sample, output)]
    names = [selection.sort] if selection.sort else list(index.metrics)[:_METRICS]
    columns = [Column(name, index, name) for name in names]
    page = address("run", run_id, "sample", query=selection.query())
    main = join(
        _walk(run_id, index, selection, place),
        tag("p", sample.query, class_="query", dir="auto"),
        sample_body(sample, answers, about=None if ask.rows else meanings_of(index.metrics)),
        variants_section(index, place, page, columns),
    )
    command = ask.workspace.command("show", ask.workspace.name(run_id), "--sample", sample_id)
    return Page(f"Sample {short(sample_id, 60)} of {run_id}", main, command)


@dataclass(frozen=True)
class Column:
    """The scores of a metric in one run, as a column of a table."""

    heading: str
    index: RunSamples
    metric: str

    def cell(self, sample_id: str) -> Markup:
        """Return the cell of a sample, which the run need not have."""
        try:
            place = self.index.place_of(sample_id)
        except UnknownNameError:
            return tag("td", "-", class_="num soft")
        return _score_cell(self.index, self.metric, place)


def variants_section(index: RunSamples, place: int, page: str, columns: Sequence[Column]) -> Node:
    """Return the variants of the same question with their scores: noisy, misspelled, counterfactual."""
    variants = index.variants(place)
    if not variants:
        return None
    rows = []
    for row in index.rows(variants[:_VARIANTS]):
        kind = ", ".join(index.slices_of("scenario", row.place)) or "-"
        rows.append(
            tag(
                "tr",
                tag("th", tag("a", short(row.sample_id, 40), href=with_id(page, row.sample_id)), scope="row"),
                tag("td", short(kind, 40)),
                tag("td", short(row.query, 160), dir="auto"),
                tag("td", _answer(index, row.place, row.answer), class_="soft spare", dir="auto"),
                (column.cell(row.sample_id) for column in columns),
            )
        )
    title, headings = "Variants of the same question", ("Sample", "Variant", "Question", "Answer")
    more = f"The first {_VARIANTS} of {len(variants):,} are shown."
    return join(
        tag("h2", title, id="variants"),
        sample_table(title, headings, [column.heading for column in columns], rows),
        notes([more] if len(variants) > _VARIANTS else []),
    )


def answered(
    index: RunSamples, place: int, sample: EvaluationSample, output: SystemOutputs, name: str = ""
) -> Answered:
    """Return an output with its scores, and what a judge said of its claims."""
    scores = [(result, index.score(result.name, place)) for result in index.metrics.values()]
    return Answered(output, scores, name, _claims(index, sample, output), match_of(index.run))


def _claims(index: RunSamples, sample: EvaluationSample, output: SystemOutputs) -> Sequence[Claim]:
    if not any("judge" in result.signature for result in index.metrics.values()):
        return ()
    from .claims import claims_of_run  # judges are a large package, and most runs were not judged

    one = replace(index.run, samples=[sample], outputs=[output])
    return claims_of_run(index.database.path, one).get(sample.sample_id, ())


def meanings_of(names: Iterable[str]) -> Mapping[str, str]:
    """Return the meaning of each metric in one line."""
    return {name: meaning(name) for name in names}


def _walk(run_id: str, index: RunSamples, selection: Selection, place: int) -> Markup:
    """Return where the sample is in its list, with links to those before and after it."""
    mask = index.matching(selection.wanted)
    before, previous, following = index.neighbours(mask, selection.sort, place)
    total = int(mask.sum())
    links: list[Node] = [
        tag("a", "List", href=address("run", run_id, "samples", query=selection.query()), rel="up"),
    ]
    for text, rel, other in (("Previous", "prev", previous), ("Next", "next", following)):
        if other is not None:
            (row,) = index.rows([other])
            href = with_id(address("run", run_id, "sample", query=selection.query()), row.sample_id)
            links.append(
                tag("a", f"{text}{' worst' if selection.sort and rel == 'next' else ''}", href=href, rel=rel)
            )
    words = f"{before + 1:,} of {total:,}" if mask[place] else "not in this list"
    if selection.sort:
        score = score_text(index.score(selection.sort, place), index.metrics[selection.sort].unit)
        words += f" by {selection.sort} ({score})"
    return tag("p", words, " ", ((each, " ") for each in links), class_="turns")


ROUTES = [Route("/run/{run}/samples", samples_page), Route("/run/{run}/sample", sample_page)]
