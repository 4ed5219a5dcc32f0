"""A sample as a page shows it: question, reference, answers, documents with marked spans, scores."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from ...core.display import value_text
from ...core.matching import BY_ID, gold_found, source_of
from ...core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    gold_documents,
    known_score,
)
from ...errors import ScoringError
from ...metrics.citations.answer import answer_of
from ...metrics.citations.sources import Citation, Found
from .diff import Span, changed_spans
from .markup import Markup, Node, join, tag
from .tables import notes, short

_LONGEST_ANCHOR = 80
_LONGEST_ID = 120
LONGEST_TEXT = 50_000  # characters of an answer or a reference; what is longer is not an answer


def anchor(sample_id: str) -> str:
    """Return the id of a sample's element, which is also the fragment of its address."""
    name = percent_encoded(sample_id)
    if len(name) > _LONGEST_ANCHOR:
        name = hashlib.sha256(sample_id.encode("utf-8", "replace")).hexdigest()[:32]
    return f"s-{name}"


def percent_encoded(text: str) -> str:
    """Return text as a part of an address: "a b" is "a%20b"."""
    return re.sub(r"[^A-Za-z0-9._~-]", _percent, text)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


@dataclass(frozen=True)
class Answered:
    """What one run did with a sample: its output, its scores, and what a judge said of its claims."""

    output: SystemOutputs
    scores: Sequence[tuple[MetricResult, SampleScore | None]] = ()
    name: str = ""
    claims: Sequence[Claim] = ()
    match: str = BY_ID  # by what the run compares documents


@dataclass(frozen=True)
class Claim:
    """A claim of an answer, the metric that judged it, its verdict ("0.93"), and its evidence.

    `at` is its place in the answer, if it is there word by word. `is_supported` is None if the judge did not
    say: its verdict failed, or it was only asked whether a passage contradicts the claim.
    """

    text: str
    metric: str
    verdict: str
    quote: str = ""
    source: str = ""
    at: Span | None = None
    is_supported: bool | None = None

    @property
    def sign(self) -> str:
        """Return the sign of its support: colour must not be the only one."""
        return _SIGNS[self.is_supported][0]

    @property
    def word(self) -> str:
        """Return its support in a word."""
        return _SIGNS[self.is_supported][1]

    @property
    def kind(self) -> str | None:
        """Return the class of its marks. Without one they are of a supported claim: the most frequent."""
        return None if self.is_supported else self.word


_SIGNS = {True: ("✓", "supported"), False: ("✗", "unsupported"), None: ("?", "open")}


@dataclass
class ShownDocument:
    """A document of a sample: its rank in each run (None if not retrieved), and what is marked in it."""

    doc: Document
    text: str
    ranks: list[int | None]
    score: float | None = None
    is_gold: bool = False
    is_cited: bool = False
    gold: list[Span] = field(default_factory=list)
    cited: list[Span] = field(default_factory=list)
    anchor: str = ""  # the id of its element, if a mark in an answer leads to it

    @property
    def is_missed(self) -> bool:
        """Whether it is gold and the last run, which the page is about, did not retrieve it."""
        return self.is_gold and self.ranks[-1] is None


def shown_documents(
    sample: EvaluationSample, outputs: Sequence[SystemOutputs], match: str = BY_ID
) -> list[ShownDocument]:
    """Return every document of a sample once: gold that the last run missed, then its own, then others."""
    gold = gold_documents(sample)
    found = [gold_found(sample, output, match) for output in outputs]
    texts = {doc.doc_id: doc.text for doc in gold if doc.text}
    by_key: dict[tuple[str, str], ShownDocument] = {}
    for number, output in reversed(list(enumerate(outputs))):
        hits = zip(output.retrieved, found[number][0], strict=True)
        for hit, is_gold in sorted(hits, key=lambda each: each[0].rank):
            text = hit.doc.text or texts.get(hit.doc.doc_id, "")
            shown = by_key.get((hit.doc.doc_id, text))
            if shown is None:
                shown = ShownDocument(hit.doc, text, [None] * len(outputs), known_score(hit))
                by_key[hit.doc.doc_id, text] = shown
            if shown.ranks[number] is None:  # a document that is retrieved twice keeps its better rank
                shown.ranks[number] = hit.rank
            shown.is_gold |= is_gold
    documents = list(by_key.values())
    missed = [doc for doc in gold if outputs and all(doc in each for _, each in found)]
    documents[:0] = [ShownDocument(doc, doc.text, [None] * len(outputs), is_gold=True) for doc in missed]
    documents.sort(key=lambda shown: not shown.is_missed)
    for shown in documents:
        shown.gold = _gold_spans(shown, gold)
    for output in outputs:
        for citation, place, number in _citations(documents, sample, output):
            _mark_citation(documents[number], citation, place)
            if citation.at is not None:
                documents[number].anchor = f"c{number}-{anchor(sample.sample_id)}"
    return documents


def documents_of(sample: EvaluationSample, answers: Sequence[Answered]) -> list[ShownDocument]:
    """Return the documents of a sample; those are gold that the metrics of the last run count."""
    match = answers[-1].match if answers else BY_ID
    return shown_documents(sample, [each.output for each in answers], match)


def _gold_spans(shown: ShownDocument, gold: Iterable[Document]) -> list[Span]:
    """Return where the gold spans are in the text that is shown, which may be a chunk."""
    found: list[Span] = []
    for doc in gold:
        if doc.doc_id not in (shown.doc.doc_id, source_of(shown.doc)):
            continue
        spans = doc.metadata.get("spans")
        for span in spans if isinstance(spans, list) else ():
            place = _place(span, doc, shown.text) if isinstance(span, Mapping) else None
            found += [place] if place else []
    return found


def _place(span: Mapping[str, object], doc: Document, text: str) -> Span | None:
    start, end, words = span.get("start"), span.get("end"), span.get("text")
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(doc.text):
        if doc.text == text and words in (None, doc.text[start:end]):
            return start, end
        words = words or doc.text[start:end]
    # A chunk, or another edition: the words decide, if they are there.
    at = text.find(words) if isinstance(words, str) and words else -1
    return (at, at + len(str(words))) if at >= 0 else None


def _citations(
    documents: Sequence[ShownDocument], sample: EvaluationSample, output: SystemOutputs
) -> Iterator[tuple[Citation, Found, int]]:
    """Yield what an answer cites, where that leads, and the number of the document among those shown."""
    try:
        answer = answer_of(sample, output)
        found = [(citation, answer.found(citation)) for citation in answer.attached]
    except ScoringError:
        return  # citations that cannot be read are a failed score, which is shown with the scores
    for citation, place in found:
        for number, shown in enumerate(documents):
            if place.document is not None and place.document.doc_id == shown.doc.doc_id:
                yield citation, place, number


def _mark_citation(shown: ShownDocument, citation: Citation, place: Found) -> None:
    """Mark what an answer cites: a span of a document, or the document as a whole."""
    shown.is_cited = True
    words = place.text if citation.span is not None else citation.excerpt
    at = shown.text.find(words) if words else -1
    if at >= 0:
        shown.cited.append((at, at + len(words)))


# Markup.


def marked_text(text: str, gold: Iterable[Span] = (), cited: Iterable[Span] = ()) -> Markup:
    """Return text with gold spans underlined, cited spans dotted, and what is both by a double line."""
    pieces = _pieces(len(text), list(gold), list(cited))
    # Without a class, <mark> is gold: the most frequent kind.
    classes = {"g": None, "c": "cited", "b": "both"}
    return join(
        tag("mark", text[start:end], class_=classes[kind]) if kind else text[start:end]
        for start, end, kind in pieces
    )


_MARKS = {(False, False): "", (True, False): "g", (False, True): "c", (True, True): "b"}  # is it gold, cited?


def _pieces(length: int, gold: Sequence[Span], cited: Sequence[Span]) -> list[tuple[int, int, str]]:
    cuts = sorted({0, length, *(min(max(end, 0), length) for span in (*gold, *cited) for end in span)})
    pieces = []
    for start, end in pairwise(cuts):
        is_gold, is_cited = (any(a <= start and end <= b for a, b in spans) for spans in (gold, cited))
        pieces.append((start, end, _MARKS[is_gold, is_cited]))
    return pieces


def document_item(shown: ShownDocument) -> Markup:
    """Return a document: rank, badges, id, title, score, and its text with the spans marked."""
    is_retrieved = any(rank is not None for rank in shown.ranks)
    title = shown.doc.metadata.get("title")
    parts = [
        _ranks(shown.ranks),
        tag("span", short(shown.doc.doc_id, _LONGEST_ID)),
        tag("span", "gold", class_="badge gold") if shown.is_gold else None,
        tag("span", "cited", class_="badge cited") if shown.is_cited else None,
        None if is_retrieved else tag("span", "not retrieved", class_="badge missed"),
        tag("span", "lost", class_="badge missed") if is_retrieved and shown.is_missed else None,
        tag("span", short(title, _LONGEST_ID), class_="soft") if isinstance(title, str) else None,
        None if shown.score is None else tag("span", f"score {shown.score:.4g}", class_="soft"),
    ]
    text = tag("p", "The run has no text of this document.", class_="soft")
    if shown.text:
        text = tag("p", marked_text(shown.text, shown.gold, shown.cited), class_="text")
    kind = "gold missed" if shown.is_missed else "gold" if shown.is_gold else None
    return tag("li", parts, text, id=shown.anchor or None, class_=kind)


def _ranks(ranks: Sequence[int | None]) -> Node:
    """Return the rank, or the rank in each run; between two runs also how the document moved."""
    if all(rank is None for rank in ranks):
        return None
    if len(ranks) == 1:
        return tag("b", f"{ranks[0]}.")
    places = tag("b", " → ".join("–" if rank is None else str(rank) for rank in ranks))
    return [places, _moved(*ranks)] if len(ranks) == 2 else places


def _moved(before: int | None, after: int | None) -> Markup | None:
    """Return how a document moved from one ranking to another: up, down, new or gone."""
    if before is None or after is None:
        return tag("i", "new" if before is None else "gone")
    places = before - after
    return tag("i", f"{'▲' if places > 0 else '▼'}{abs(places)}") if places else None


def sample_body(
    sample: EvaluationSample, answers: Sequence[Answered], about: Mapping[str, str] | None = None
) -> Markup:
    """Return everything about a sample below its question; `about` has the meaning of metrics by name."""
    shown = documents_of(sample, answers)
    skipped = skipped_text(answers)
    return join(
        chips(sample),
        _texts(sample, answers, shown),
        (_claims(each) for each in answers if each.claims),
        tag("p", _documents_heading(answers), class_="label"),
        documents_list(shown),
        scores_table(answers, about or {}),
        notes([skipped] if skipped else []),
    )


def _documents_heading(answers: Sequence[Answered]) -> str:
    names = [each.name for each in answers if each.name]
    return f"Documents, by rank in {' → '.join(names)}" if len(names) > 1 else "Documents"


def documents_list(shown: Sequence[ShownDocument]) -> Markup:
    """Return the documents that the runs retrieved, and the gold ones that they missed."""
    if not shown:
        return tag("p", "No documents.", class_="soft")
    return tag("ul", (document_item(one) for one in shown), class_="docs")


def chips(sample: EvaluationSample) -> Markup | None:
    """Return the labels of a sample: "type: factoid"."""
    labels = [
        f"{name}: {value}" for name, value in sample.labels.items() if isinstance(value, str | int | float)
    ]
    return tag("ul", (tag("li", short(label, 80)) for label in labels), class_="chips") if labels else None


def _texts(
    sample: EvaluationSample, answers: Sequence[Answered], documents: Sequence[ShownDocument]
) -> Markup:
    """Return the reference beside each answer; of two answers the words that differ are marked."""
    columns = []
    if sample.reference_answer is not None:
        reference = sample.reference_answer
        alternatives = reference.metadata.get("alternatives")
        also = "; ".join(map(str, alternatives[:10])) if isinstance(alternatives, list) else ""
        text = short(reference.text, LONGEST_TEXT)
        columns.append(_said("Reference", [text, _soft(f" (or: {also})") if also else None]))
    texts = [short(each.output.response.text, LONGEST_TEXT) for each in answers]
    changed: Sequence[list[Span]] = [[] for _ in answers]
    if len(answers) == 2 and all(each.output.error is None for each in answers):
        changed = changed_spans(*texts)
    for number, each in enumerate(answers):
        layers: list[Layer] = [(span, partial(tag, ("del", "ins")[number])) for span in changed[number]]
        layers += _answer_layers(sample, each, documents)
        columns.append(_answer(each, layered(texts[number], layers, _signs(each.claims))))
    return tag("dl", columns, class_="columns")


Layer = tuple[Span, Callable[[Node], Markup]]  # a part of a text, and the element around it


def layered(text: str, layers: Sequence[Layer], after: Mapping[int, Node] | None = None) -> Markup:
    """Return text with elements around parts of it, which may overlap: the first layer is the innermost.

    `after` has what follows a character, by the place behind it.
    """
    inside = [(span, around) for span, around in layers if 0 <= span[0] < span[1] <= len(text)]
    after = after or {}
    cuts = sorted({0, len(text), *(end for span, _ in inside for end in span)})
    pieces: list[Node] = []
    for start, end in pairwise(cuts):
        piece: Node = text[start:end]
        for span, around in inside:
            if span[0] <= start and end <= span[1]:
                piece = around(piece)
        pieces += [piece, after.get(end)]
    return join(pieces)


def _answer_layers(
    sample: EvaluationSample, each: Answered, documents: Sequence[ShownDocument]
) -> list[Layer]:
    """Return what is marked in an answer: citations, which lead to their document, and judged claims."""
    layers: list[Layer] = []
    if "[" in each.output.response.text:  # as every mark of a citation
        for citation, _, number in _citations(documents, sample, each.output):
            if citation.at is not None and citation.at not in [span for span, _ in layers]:
                layers.append((citation.at, partial(tag, "a", href=f"#{documents[number].anchor}")))
    layers += [
        (claim.at, partial(tag, "u", class_=claim.kind))
        for claim in _marked_claims(each.claims)
        if claim.at is not None
    ]
    return layers


def _marked_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Return one claim per place of the answer: several metrics may judge it, and the worst counts."""
    worst: dict[Span | None, Claim] = {}
    for claim in claims:
        known = worst.get(claim.at)
        if known is None or known.is_supported is None or claim.is_supported is False:
            worst[claim.at] = claim
    return list(worst.values())


def _signs(claims: Sequence[Claim]) -> dict[int, Node]:
    """Return the sign of each claim by its end in the answer."""
    return {
        claim.at[1]: tag("sup", claim.sign, class_=claim.kind)
        for claim in _marked_claims(claims)
        if claim.at is not None
    }


def _answer(each: Answered, text: Node) -> Markup:
    heading = f"Answer of {each.name}" if each.name else "Answer"
    error = each.output.error
    if error is not None:
        where = f"\n{error.traceback[:2000]}" if error.traceback else ""
        return _said(heading, f"Failed: {error.type}: {short(error.message, 2000)}{where}", failed=True)
    if not each.output.response.text.strip():
        return _said(heading, _soft("(empty)"))
    return _said(heading, text)


def _said(heading: str, text: Node, *, failed: bool = False) -> Markup:
    return tag("div", tag("dt", heading), tag("dd", text), class_="failed" if failed else None)


def _soft(text: str) -> Markup:
    return tag("span", text, class_="soft")


def _claims(each: Answered) -> Markup:
    """Return the claims of an answer, in one list for each metric that judged them."""
    lists: dict[str, list[Markup]] = {}
    for claim in each.claims:
        lists.setdefault(claim.metric, []).append(_claim(claim))
    title = f"Claims of {each.name}" if each.name else "Claims"
    return join(
        (tag("p", f"{title}, {metric}", class_="label"), tag("ol", items, class_="claims"))
        for metric, items in lists.items()
    )


def _claim(claim: Claim) -> Markup:
    sign = tag("b", f"{claim.sign} {claim.word}", class_=claim.kind)
    verdict, words = claim.verdict, None
    if claim.quote == claim.text != "":  # the same words twice would only make the page longer
        verdict += f", word for word in {claim.source}"
    elif claim.quote:
        words = tag("blockquote", claim.quote, tag("span", f" ({claim.source})"))
    return tag("li", sign, " ", claim.text, _soft(f" — {verdict}"), words)


def scores_table(answers: Sequence[Answered], about: Mapping[str, str]) -> Markup | None:
    """Return each metric's score in each run; metrics that all runs skipped are left to `skipped_text`."""
    by_run = [{result.name: score for result, score in each.scores} for each in answers]
    rows = []
    for name, result in _metrics(answers).items():
        scores = [by_name.get(name) for by_name in by_run]
        if _reason_of_all(scores):
            continue
        # The answer says why a call failed: not once more for each metric.
        cells = (
            tag("td", "failed" if each.output.error is not None else score_text(score, result.unit))
            for each, score in zip(answers, scores, strict=True)
        )
        meaning = about.get(name)
        rows.append(
            tag("tr", tag("th", name), cells, tag("td", meaning, class_="soft spare") if meaning else None)
        )
    if not rows:
        return None
    named = [each.name for each in answers] if len(answers) > 1 else ["Score"]
    named_columns = (tag("th", text) for text in ("Metric", *named))
    head = tag("thead", tag("tr", named_columns, tag("th", "Meaning", class_="spare") if about else None))
    return tag("table", head, tag("tbody", rows), class_="scores")


def skipped_text(answers: Sequence[Answered]) -> str:
    """Return which metrics all runs skipped, and why: "Skipped: mrr, recall@5 (no gold)"."""
    by_run = [{result.name: score for result, score in each.scores} for each in answers]
    names: dict[str, list[str]] = {}
    for name in _metrics(answers):
        reason = _reason_of_all([by_name.get(name) for by_name in by_run])
        if reason:
            names.setdefault(reason, []).append(name)
    reasons = (f"{', '.join(each)} ({reason})" for reason, each in names.items())
    return f"Skipped: {'; '.join(reasons)}" if names else ""


def _metrics(answers: Sequence[Answered]) -> dict[str, MetricResult]:
    metrics: dict[str, MetricResult] = {}
    for each in answers:
        for result, _ in each.scores:
            metrics.setdefault(result.name, result)
    return metrics


def _reason_of_all(scores: Sequence[SampleScore | None]) -> str:
    """Return why all runs skipped a sample; "" if one scored it, failed on it, or had another reason."""
    reasons = {
        score.reason if score is not None and score.value is None and not score.failed else ""
        for score in scores
    }
    return short(reasons.pop(), 160) if len(reasons) == 1 else ""


def score_text(score: SampleScore | None, unit: str) -> str:
    """Return a score, or why there is none: failed is not skipped."""
    if score is None:
        return "-"
    if score.value is None:
        return f"{'failed' if score.failed else 'skipped'}: {short(score.reason, 160)}"
    # Most scores of a sample are 0 or 1.
    return f"{score.value:.0f}" if not unit and score.value in (0.0, 1.0) else value_text(score.value, unit)
