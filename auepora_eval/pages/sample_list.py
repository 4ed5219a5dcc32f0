"""The samples of a report: which are shown, in which order, the filters above them, and each one's details.

Scores are in the page once, as the cells of each sample's table, and each document text once. report.js reads
both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.display import visible_text
from ..core.matching import match_of
from ..core.scores import as_columns
from ..core.types import EvaluationRun, EvaluationSample, SampleScore
from .components.markup import Markup, Node, tag
from .components.sample import (
    Answered,
    Claim,
    ShownDocument,
    anchor,
    document_item,
    documents_of,
    mark_pieces,
    percent_encoded,
    sample_body,
    score_text,
    skipped_text,
)
from .components.sample_choice import Choice
from .components.tables import short

INLINE_SAMPLES = 50  # show their documents without the script
INLINE_AGAIN = 25_000  # characters of gold documents that are shown a second time for that
LONGEST_QUERY = 300  # characters in the row of a sample; opened, it shows all of it
_MOST_VALUES = 30  # of a label; one with more is an id or a text, and no slice
_SEVERAL = 5  # samples of a value on average; with fewer, the label names pairs or single samples

Claims = Mapping[str, Sequence[Claim]]  # by sample id


@dataclass(frozen=True)
class Listed:
    """A sample with what each run did with it; None where a run does not have the sample."""

    sample: EvaluationSample
    answers: Sequence[Answered | None]

    def score(self, run: int, metric: str) -> SampleScore | None:
        answered = self.answers[run]
        pairs = answered.scores if answered is not None else ()
        return next((score for result, score in pairs if result.name == metric), None)


def listed_samples(
    runs: Sequence[EvaluationRun], names: Sequence[str], ids: Sequence[str], claims: Sequence[Claims] = ()
) -> list[Listed]:
    """Return samples of the runs in the order of their ids, with the output and the scores of each run."""
    # Reversed, so that the first run's edition of a sample is used.
    samples = {sample.sample_id: sample for run in reversed(runs) for sample in run.samples}
    by_run = []
    for number, (run, name) in enumerate(zip(runs, names, strict=True)):
        said = claims[number] if claims else {}
        by_run.append(_answers(run, name if len(runs) > 1 else "", set(ids), said))
    return [Listed(samples[name], [each.get(name) for each in by_run]) for name in ids]


def _answers(run: EvaluationRun, name: str, ids: set[str], said: Claims) -> dict[str, Answered]:
    scores = []
    for result in run.results:
        places = {
            each: place for place, each in enumerate(as_columns(result.scores).sample_ids) if each in ids
        }
        scores.append((result, places))
    answers, match = {}, match_of(run)
    for sample, output in zip(run.samples, run.outputs, strict=True):
        each = sample.sample_id
        if each in ids:
            own = [
                (result, result.scores[places[each]] if each in places else None) for result, places in scores
            ]
            answers[each] = Answered(output, own, name, said.get(each, ()), match)
    return answers


# Filters.


def metric_href(name: str) -> str:
    """Return the address, within the report, of the samples by a metric."""
    return f"#metric={percent_encoded(name)}"


def slice_href(field: str, value: str) -> str:
    """Return the address, within the report, of the samples of a slice."""
    return f"#slice={percent_encoded(f'{field}: {value}')}"


def slice_values(samples: Iterable[EvaluationSample]) -> dict[str, list[str]]:
    """Return the values of each label that makes slices: 2 to 30 of them, each of several samples."""
    counts: dict[str, Counter[str]] = {}
    for sample in samples:
        for name, value in sample.labels.items():
            if isinstance(value, str | int | float):
                counts.setdefault(name, Counter())[str(value)] += 1
    return {
        name: sorted(each)
        for name, each in counts.items()
        if 1 < len(each) <= _MOST_VALUES and each.total() >= _SEVERAL * len(each)
    }


def filter_form(
    runs: Sequence[EvaluationRun], names: Sequence[str], choice: Choice, samples: Sequence[Listed]
) -> Markup:
    """Return the filters, hidden until the script that makes them work shows them."""
    metrics = [result for result in runs[-1].results if result.scores]
    slices = slice_values(one.sample for one in samples)
    options = (
        tag(
            "option",
            f"{one.name} ↓" if not one.higher_is_better else one.name,
            value=one.name,
            selected=choice.metric is not None and one.name == choice.metric.name,
            data_lower=not one.higher_is_better,
        )
        for one in metrics
    )
    groups = (
        tag(
            "optgroup",
            (tag("option", short(each, 60), value=f"{name}: {each}") for each in values),
            label=name,
        )
        for name, values in slices.items()
    )
    two = len(runs) == 2
    orders = (
        [("", "worst first")]
        if not two
        else [("", "lost most first"), ("won", "won most first"), ("worst", f"worst of {names[-1]} first")]
    )
    controls: list[Node] = [
        _labelled("Words", tag("input", type="search", name="words", autocomplete="off")),
        _labelled("Metric", tag("select", options, name="metric")),
        _labelled(
            "Order", tag("select", (tag("option", text, value=value) for value, text in orders), name="order")
        ),
        _labelled(_score_label(names), tag("input", type="number", name="from", step="any")),
        _labelled("to", tag("input", type="number", name="to", step="any")),
    ]
    if slices:
        controls.append(
            _labelled("Slice", tag("select", tag("option", "all", value=""), groups, name="slice"))
        )
    if two:
        outcomes = (("", "all"), ("lost", "lost"), ("won", "won"), ("same", "same"))
        every = (tag("option", text, value=value) for value, text in outcomes)
        controls.append(_labelled("Outcome", tag("select", every, name="outcome")))
    controls.append(_tick("failed", "failed"))
    controls.append(_tick("missed", "gold missed"))
    controls.append(tag("button", "Reset", type="reset"))
    keys = ("j", " and ", "k", " next and previous sample, ", "Enter", " opens it, ", "/", " searches")
    help_text = (tag("kbd", key) if place % 2 == 0 else key for place, key in enumerate(keys))
    count = tag("p", f"{len(samples):,} samples", class_="count", role="status")
    form = tag("form", controls, class_="filters", id="filters", aria_label="Filter samples")
    return tag("div", form, tag("p", help_text, class_="small keys"), count, id="controls", hidden=True)


def _score_label(names: Sequence[str]) -> str:
    return f"Score of {short(names[-1], 20)} from" if len(names) > 1 else "Score from"


def _labelled(label: str, control: Node) -> Markup:
    return tag("label", label, control)


def _tick(name: str, label: str) -> Markup:
    return tag("label", tag("input", type="checkbox", name=name), label, class_="tick")


# The list.


class Texts:
    """Texts that many samples have in common: each is in the page once, and a sample links to it.

    The script replaces such a link by the text. Without it, the worst samples show the texts that they are
    the first to have, and gold documents again as long as there is space.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._elsewhere: dict[int, ShownDocument] = {}  # documents that no sample shows
        self._left = INLINE_AGAIN
        self._skipped: dict[str, int] = {}

    def document(self, one: ShownDocument, *, inline: bool) -> Markup:
        """Return a document of a sample, with its text or a link to it."""
        # A text that the page cannot hold letter by letter cannot be marked by places.
        if not one.text or visible_text(one.text) != one.text:
            return document_item(one)
        key = (one.doc.doc_id, one.text)
        if inline and key in self._numbers and self._may_repeat(one):
            return document_item(one)
        is_new = key not in self._numbers
        number = self._numbers.setdefault(key, len(self._numbers))
        if inline and is_new:
            return document_item(one, number=number)
        if is_new:
            self._elsewhere[number] = one
        marks = " ".join(f"{kind}{start}-{end}" for start, end, kind in mark_pieces(one) if kind)
        return document_item(one, number=number, text=False, marks=marks)

    def skipped(self, text: str) -> Markup:
        """Return a link to the note on the metrics that were skipped."""
        number = self._skipped.setdefault(text, len(self._skipped))
        return tag("p", tag("a", "Skipped metrics", href=f"#k{number}"), class_="small")

    def _may_repeat(self, one: ShownDocument) -> bool:
        """Return whether a text is shown once more: that of a gold document, as long as there is space."""
        if not one.is_gold or self._left < len(one.text):
            return False
        self._left -= len(one.text)
        return True

    def section(self) -> Markup | None:
        """Return the section with what samples link to and none shows."""
        documents = [
            tag(
                "li", tag("b", short(one.doc.doc_id, 120)), tag("p", one.text, class_="text", id=f"d{number}")
            )
            for number, one in self._elsewhere.items()
        ]
        reasons = [tag("li", tag("p", text, id=f"k{number}")) for text, number in self._skipped.items()]
        if not documents and not reasons:
            return None
        title = tag("summary", f"{len(documents):,} documents and {len(reasons):,} notes on skipped metrics")
        texts = tag("details", title, tag("ul", documents, reasons, class_="docs"))
        return tag("section", tag("h2", "Texts that samples refer to", id="texts"), texts)


def sample_list(samples: Sequence[Listed], choice: Choice, texts: Texts) -> Markup:
    """Return the samples as rows that open."""
    rows = (_row(one, choice, texts, inline=place < INLINE_SAMPLES) for place, one in enumerate(samples))
    return tag("div", rows, class_="samples", id="list")


def _row(one: Listed, choice: Choice, texts: Texts, *, inline: bool) -> Markup:
    answers = [each for each in one.answers if each is not None]
    last = one.answers[-1]
    failed = any(each.output.error is not None for each in answers)
    missed = last is not None and last.output.error is None and last.misses_gold(one.sample)
    summary = tag(
        "summary",
        tag("b", short(one.sample.sample_id, 80)),
        tag("span", short(one.sample.query, LONGEST_QUERY)),
        tag(
            "em",
            tag("span", "failed", class_="badge failed") if failed else None,
            tag("span", "gold missed", class_="badge missed") if missed else None,
            _outcome(one, choice),
        ),
    )
    shown = documents_of(one.sample, answers)
    documents = tag("ul", (texts.document(doc, inline=inline) for doc in shown), class_="docs")
    skipped = skipped_text(answers)
    whole = tag("p", one.sample.query, class_="query") if len(one.sample.query) > LONGEST_QUERY else None
    body = sample_body(
        one.sample,
        answers,
        shown=shown,
        documents=documents if shown else tag("p", "None.", class_="soft"),
        skipped=texts.skipped(skipped) if skipped else None,
    )
    return tag("details", summary, whole, body, class_="sample", id=anchor(one.sample.sample_id))


def _outcome(one: Listed, choice: Choice) -> Node:
    """Return the scores of the metric that the list is ordered by, and what became of them."""
    metric = choice.metric
    if metric is None:
        return None
    scores = [one.score(run, metric.name) for run in range(len(one.answers))]
    values = [_brief(score, metric.unit) for score in scores]
    change = choice.changes.get(one.sample.sample_id)
    if change is None:
        return ", ".join(values)
    kind, word = "same", "same"
    if change > 0:
        kind, word = "better", "won"
    elif change < 0:
        kind, word = "worse", "lost"
    return [" → ".join(values), tag("span", word, class_=f"verdict {kind}")]


def _brief(score: SampleScore | None, unit: str) -> str:
    if score is None:
        return "–"
    if score.value is None:
        return "failed" if score.failed else "skipped"
    return score_text(score, unit)
