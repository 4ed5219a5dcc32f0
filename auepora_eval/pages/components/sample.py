"""A sample as a page shows it: question, reference, answers, documents with marked spans, scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ...comparison.pairs import LAST_BITS
from ...core.matching import BY_ID, by_any_name, chunk_span, gold_found, source_of
from ...core.rag_interface import rag_prompt_of
from ...core.systems.resources import usage_of
from ...core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    TargetCategory,
    gold_documents,
    known_score,
)
from ...errors import ScoringError
from ...metrics.citations.answer import answer_of
from ...metrics.citations.sources import Citation, Found
from ...metrics.parse import meaning
from .diff import changed_spans
from .markup import Layer, Markup, Node, Span, join, layered, tag
from .parts import breakable, card, chip, facts, folded, number, section, short
from .parts import change as change_text

_LONGEST_ID = 120
LONGEST_TEXT = 50_000  # characters of an answer or a reference; what is longer is not an answer
_FOLDED = 300  # characters of a document in one file that is neither gold nor cited


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
    """A claim of an answer, the metrics that judged it, its score or why it has none, and its evidence.

    `at` is its place in the answer, if it is there word by word.
    """

    text: str
    metrics: str
    score: str
    quote: str = ""
    source: str = ""
    at: Span | None = None
    verdict: str = "failed"

    @property
    def sign(self) -> str:
        """Return the mark of its verdict."""
        return {"failed": "?", "supported": "✓"}.get(self.verdict, "✗")

    @property
    def kind(self) -> str | None:
        """Return the class of its marks. Without one they are of a supported claim: the most frequent."""
        return _CLASSES[self.sign]


# What is to be seen of a claim at one place that several metrics judged is the last of these.
_CLASSES = {"?": "open", "✓": None, "✗": "unsupported"}


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


def shown_documents(sample: EvaluationSample, answers: Sequence[Answered]) -> list[ShownDocument]:
    """Return every document of a sample once: gold first, found or missed, then what else was retrieved.

    Those are gold that the metrics of the last run count.
    """
    gold, outputs = gold_documents(sample), [each.output for each in answers]
    found = [gold_found(sample, output, answers[-1].match) for output in outputs]
    texts = {doc.doc_id: doc.text for doc in gold if doc.text}
    by_key: dict[tuple[str, str], ShownDocument] = {}
    for run, output in reversed(list(enumerate(outputs))):
        hits = zip(output.retrieved, found[run][0], strict=True)
        for hit, is_gold in sorted(hits, key=lambda each: each[0].rank):
            text = hit.doc.text or texts.get(hit.doc.doc_id, "")
            shown = by_key.get((hit.doc.doc_id, text))
            if shown is None:
                shown = ShownDocument(hit.doc, text, [None] * len(outputs), known_score(hit))
                by_key[hit.doc.doc_id, text] = shown
            if shown.ranks[run] is None:  # a document that is retrieved twice keeps its better rank
                shown.ranks[run] = hit.rank
            shown.is_gold |= is_gold
    documents = list(by_key.values())
    missed = [doc for doc in gold if all(doc in each for _, each in found)]
    documents += [ShownDocument(doc, doc.text, [None] * len(outputs), is_gold=True) for doc in missed]
    documents.sort(key=lambda one: (not one.is_gold, one.is_missed, one.ranks[-1] or 1_000_000))
    for shown in documents:
        shown.gold = _gold_spans(shown, gold)
    for output in outputs:
        for citation, place, at in _citations(documents, sample, output):
            documents[at].is_cited = True
            documents[at].cited += _place_in(documents[at], citation, place)
            if citation.at is not None:
                documents[at].anchor = f"c{at}"
    for citation, place, at in _citations(documents, sample, outputs[-1], of_gold=True):
        new = _place_in(documents[at], citation, place)
        documents[at].gold += [span for span in new if span not in documents[at].gold]
    return documents


def _gold_spans(shown: ShownDocument, gold: Iterable[Document]) -> list[Span]:
    """Return where the gold spans are in the text that is shown, which may be a chunk."""
    found: list[Span] = []
    ours = {shown.doc.doc_id, source_of(shown.doc)}
    for doc in gold:
        if ours.isdisjoint(by_any_name([doc.doc_id, source_of(doc)])):
            continue
        spans = doc.metadata.get("spans")
        for span in spans if isinstance(spans, list) else ():
            place = place_in(span, doc, shown.text) if isinstance(span, Mapping) else None
            found += [place] if place else []
    return found


def place_in(span: Mapping[str, object], doc: Document, text: str) -> Span | None:
    """Return where the gold span of a document is in a text: its own, or one that may be a chunk of it."""
    start, end, words = span.get("start"), span.get("end"), span.get("text")
    first, _ = chunk_span(doc) or (0, 0)  # spans count the characters of the source
    if isinstance(start, int) and isinstance(end, int) and first <= start < end <= first + len(doc.text):
        start, end = start - first, end - first
        if doc.text == text and words in (None, doc.text[start:end]):
            return start, end
        words = words or doc.text[start:end]
    # A chunk, or another edition: the words decide, if they are there.
    at = text.find(words) if isinstance(words, str) and words else -1
    return (at, at + len(str(words))) if at >= 0 else None


def _citations(
    documents: Sequence[ShownDocument],
    sample: EvaluationSample,
    output: SystemOutputs,
    *,
    of_gold: bool = False,
) -> Iterator[tuple[Citation, Found, int]]:
    """Yield what an answer (or the gold) cites, where that leads, and which of the shown documents it is."""
    try:
        answer = answer_of(sample, output)
        cited = answer.gold if of_gold else answer.attached
        found = [(citation, answer.find(citation)) for citation in cited]
    except ScoringError:
        return  # citations that cannot be read are a failed score, which is shown with the scores
    for citation, place in found:
        for at, shown in enumerate(documents):
            if place.document is not None and place.document.doc_id == shown.doc.doc_id:
                yield citation, place, at


def _place_in(shown: ShownDocument, citation: Citation, place: Found) -> list[Span]:
    """Return where the words of a citation are; nothing if it is of the document as a whole."""
    words = place.text if citation.span is not None else citation.excerpt
    at = shown.text.find(words) if words else -1
    return [(at, at + len(words))] if at >= 0 else []


# Markup.


def marked_text(text: str, gold: Iterable[Span] = (), cited: Iterable[Span] = ()) -> Markup:
    """Return text with gold spans underlined and cited spans dotted."""
    # Without a class, <mark> is gold: the most frequent kind.
    layers: list[Layer] = [(span, partial(tag, "mark")) for span in gold]
    layers += [(span, partial(tag, "mark", class_="cited")) for span in cited]
    return layered(text, layers)


def _document(shown: ShownDocument, names: Sequence[str], *, in_file: bool) -> Markup:
    """Return a document: gold is open, with the spans marked; the others are folded."""
    rank = shown.ranks[-1]
    title = shown.doc.metadata.get("title")
    name = short(title, _LONGEST_ID) if isinstance(title, str) and title else ""
    head = [
        tag("span", "–" if rank is None else rank, class_="rank"),
        tag("b", name, class_="cut") if name else None,
        tag("span", short(shown.doc.doc_id, _LONGEST_ID), class_="id mute cut"),
        tag("span", _tags(shown, names), class_="tags"),
    ]
    # Many samples have the same documents: in one file, the start of those that explain nothing is enough.
    whole = shown.text if shown.is_gold or shown.is_cited or not in_file else short(shown.text, _FOLDED)
    marked: Node = marked_text(whole, shown.gold, shown.cited)
    text = tag("p", marked or _soft("No text."), class_="text", dir="auto", id=shown.anchor or None)
    if shown.is_gold:
        kind = "missed" if shown.is_missed else "gold"
        return tag("li", tag("section", tag("header", head), text, class_=f"card doc {kind}"))
    return tag("li", tag("details", tag("summary", head), text, class_="card doc"))


def _tags(shown: ShownDocument, names: Sequence[str]) -> Iterator[Markup]:
    if shown.is_gold:
        words, kind = ("✕ gold, not retrieved", "down") if shown.is_missed else ("✓ gold", "up")
        yield tag("span", words, class_=f"tag {kind}")
    elif shown.ranks[-1] is None:
        yield tag("span", "not retrieved", class_="tag")
    if shown.is_cited:
        yield tag("span", "cited", class_="tag news")
    if len(shown.ranks) == 2 and any(shown.ranks):
        before, after = shown.ranks
        is_up = before is not None and after is not None and after < before
        words, kind = (
            f"{'▲' if is_up else '▼'} was {before} in {short(names[0], 24)}",
            " up" if is_up else " down",
        )
        if before is None or before == after:
            words, kind = "new" if before is None else f"same in {short(names[0], 24)}", ""
        yield tag("span", words, class_=f"tag{kind}")
    if shown.score is not None and shown.ranks[-1] is not None:
        yield tag("span", f"score {shown.score:.3g}", class_="mute")


def sample_parts(
    sample: EvaluationSample,
    answers: Sequence[Answered],
    led: str | None,
    more: Node = None,
    *,
    in_file: bool = False,
) -> Markup:
    """Return everything about a sample: texts and documents, and beside them the scores; `led` is first."""
    documents = shown_documents(sample, answers)
    gold = [one for one in documents if one.is_gold]
    marks = [
        tag("mark", "gold span") if any(one.gold for one in documents) else None,
        " ",
        tag("mark", "cited", class_="cited") if any(one.cited for one in documents) else None,
    ]
    found = f"{sum(not one.is_missed for one in gold)} of {len(gold)} gold found " if gold else ""
    names = [each.name for each in answers]
    texts: list[Node] = [
        _texts(sample, answers, documents),
        (_claims(each) for each in answers if each.claims),
    ]
    beside: list[Node] = [
        more,
        _scores(answers, led, documents),
        None if in_file else _known_facts(sample, answers[-1]),
    ]
    items = tag("ul", (_document(one, names, in_file=in_file) for one in documents), class_="docs")
    # The documents come last: on a phone, where all of it is one column, they would hide the scores.
    parts = (
        tag("div", texts, class_="column"),
        tag("div", beside, class_="column"),
        section("Documents", items, about=[found, marks]),
    )
    return tag("div", parts, class_="sides sample")


def labels_of(sample: EvaluationSample) -> list[Markup]:
    """Return the labels of a sample as tags: "type: factoid"."""
    labels = [
        f"{name}: {value}" for name, value in sample.labels.items() if isinstance(value, str | int | float)
    ]
    return [tag("span", short(label, 80), class_="tag") for label in labels]


def _texts(
    sample: EvaluationSample, answers: Sequence[Answered], documents: Sequence[ShownDocument]
) -> Markup:
    """Return question, reference and each answer; of two answers the words that differ are marked."""
    parts: list[Node] = [
        tag("dt", "Question"),
        tag("dd", short(sample.query, LONGEST_TEXT), class_="query", dir="auto"),
    ]
    if sample.reference_answer is not None:
        reference = sample.reference_answer
        alternatives = reference.metadata.get("alternatives")
        also = "; ".join(map(str, alternatives[:10])) if isinstance(alternatives, list) else ""
        text = short(reference.text, LONGEST_TEXT)
        parts += [
            tag("dt", "Reference"),
            tag("dd", text, _soft(f" (or: {also})") if also else None, dir="auto"),
        ]
    texts = [short(each.output.response.text, LONGEST_TEXT) for each in answers]
    changed: Sequence[list[Span]] = [[] for _ in answers]
    if len(answers) == 2 and all(each.output.error is None for each in answers):
        changed = changed_spans(*texts)
    for place, each in enumerate(answers):
        spans: list[Layer] = [(span, partial(tag, ("del", "ins")[place])) for span in changed[place]]
        parts += _answer(each, _answer_text(texts[place], spans, each, sample, documents))
    return tag("dl", parts, class_="qa")


def _answer_text(
    text: str, spans: Sequence[Layer], each: Answered, sample: EvaluationSample, docs: Sequence[ShownDocument]
) -> Markup:
    """Return an answer with marks: what differs, what it cites, and what a judge said of its claims."""
    layers, after = list(spans), {}
    if "[" in each.output.response.text:  # as every mark of a citation
        for citation, _, at in _citations(docs, sample, each.output):
            if citation.at is not None and citation.at not in [span for span, _ in layers]:
                layers.append((citation.at, partial(tag, "a", href=f"#{docs[at].anchor}")))
    ranks = list(_CLASSES)
    places = {claim.at: claim for claim in sorted(each.claims, key=lambda one: ranks.index(one.sign))}
    for place, claim in places.items():
        if place is not None:
            layers.append((place, partial(tag, "u", class_=claim.kind)))
            after[place[1]] = tag("sup", claim.sign, class_=claim.kind)
    return layered(text, layers, after)


def _answer(each: Answered, text: Node) -> list[Markup]:
    heading = tag("dt", f"Answer of {short(each.name, 40)}" if each.name else "Answer")
    error = each.output.error
    if error is not None:
        words = tag("dd", f"Failed: {error.type}: {short(error.message, 2000)}", class_="failed")
        trace = [tag("dd", tag("pre", error.traceback[:2000], class_="trace"))] if error.traceback else []
        return [heading, words, *trace]
    shown = text if each.output.response.text.strip() else _soft("(empty)")
    return [heading, tag("dd", shown, dir="auto")]


def _soft(text: str) -> Markup:
    return tag("span", text, class_="mute")


def _claims(each: Answered) -> Markup:
    """Return the claims of an answer, in one panel for all metrics with the same verdicts."""
    lists: dict[str, list[Markup]] = {}
    for claim in each.claims:
        lists.setdefault(claim.metrics, []).append(_claim(claim))
    title = f"Claims of {each.name}" if each.name else "Claims"
    return join(
        card(f"{title}, {metrics}", tag("ol", items, class_="claims")) for metrics, items in lists.items()
    )


def _claim(claim: Claim) -> Markup:
    sign = tag("b", f"{claim.sign} {claim.verdict}", class_=claim.kind)
    score, words = claim.score, None
    if claim.quote == claim.text != "":  # the same words twice would only make the page longer
        score += f", word for word in {claim.source}"
    elif claim.quote:
        words = tag("blockquote", claim.quote, tag("span", f" ({claim.source})"))
    return tag("li", sign, " ", claim.text, _soft(f" — {score}"), words)


def _scores(answers: Sequence[Answered], led: str | None, documents: Sequence[ShownDocument]) -> Markup:
    """Return each metric's score with its reason, and with the change if there are two runs."""
    by_run = [{result.name: score for result, score in each.scores} for each in answers]
    metrics = {result.name: result for each in reversed(answers) for result, _ in each.scores}
    order = sorted(metrics, key=lambda name: name != led)
    items: list[Markup] = []
    said: set[str] = set()
    skipped: dict[str, list[str]] = {}
    for name in order:
        scores = [by_name.get(name) for by_name in by_run]
        if reason := _reason_of_all(scores):
            skipped.setdefault(reason, []).append(name)
            continue
        why = ""
        if answers[-1].output.error is None:
            why = _why(metrics[name], scores[-1], documents) or (meaning(name) if name == led else "")
        # Several metrics have the same reason: which gold was missed.
        why = "" if why in said else why
        said.add(why)
        items.append(_score(metrics[name], scores, why, is_led=name == led))
    if skipped:
        texts = (tag("p", f"{', '.join(names)}: {why}", class_="note") for why, names in skipped.items())
        count = sum(map(len, skipped.values()))
        items.append(tag("li", folded(f"{count} not measured", texts)))
    about = f"change against {short(answers[0].name, 30)}" if len(answers) == 2 else None
    return card("Scores", tag("ul", items, class_="scores"), about=about)


def _score(result: MetricResult, scores: Sequence[SampleScore | None], why: str, *, is_led: bool) -> Markup:
    score = scores[-1]
    value = score.value if score is not None else None
    change: Node = None
    before = scores[0].value if len(scores) == 2 and scores[0] is not None else None
    if value is not None and before is not None and abs(value - before) > LAST_BITS:
        gain = (value - before) * (1 if result.higher_is_better else -1)
        sign, kind = ("▲", "up") if gain > 0 else ("▼", "down")
        change = tag("span", f" {sign} {change_text(value - before, result.unit)}", class_=kind)
    return tag(
        "li",
        tag("span", tag("b", breakable(result.name)), change),
        chip(value, result, failed=score is not None and score.failed),
        tag("small", short(why, 300)) if why else None,
        class_="led" if is_led else None,
    )


def _why(result: MetricResult, score: SampleScore | None, documents: Sequence[ShownDocument]) -> str:
    """Return why a score is what it is: the reason that the metric gave, or which gold was missed."""
    if score is None or score.reason:
        return score.reason if score is not None else "not in this run"
    gold = [one for one in documents if one.is_gold]
    of_retrieval = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
    if result.target not in of_retrieval or not gold:
        return ""
    missed = [one.doc.doc_id for one in gold if one.is_missed]
    words = f"{len(gold) - len(missed)} of {len(gold)} gold documents retrieved"
    return f"{words}; missed {', '.join(missed[:3])}" if missed else words


def _known_facts(sample: EvaluationSample, answered: Answered) -> Node:
    """Return what is known of the call: stages, tokens, cost, and the prompt."""
    output = answered.output
    usage = usage_of(output)
    pairs: list[tuple[str, Node]] = [(name, number(each, "s")) for name, each in output.timings.items()]
    pairs += [(name.replace("_", " "), f"{count:,.0f}") for name, count in usage.items()]
    places = (output.response.metadata, output.extra)
    costs = [place.get(name) for place in places for name in ("cost", "cost_usd", "total_cost")]
    pairs += [("cost", f"{cost:.4g} USD") for cost in costs if isinstance(cost, int | float)][:1]
    prompt = next((text for place in places if isinstance(text := place.get("prompt"), str)), "")
    prompt = prompt or rag_prompt_of(sample)
    text = folded("Prompt", tag("pre", short(prompt, LONGEST_TEXT), class_="trace"))
    if not pairs and not prompt:
        return None
    return card("Call", facts(pairs) if pairs else None, tag("div", text, class_="pad") if prompt else None)


def _reason_of_all(scores: Sequence[SampleScore | None]) -> str:
    """Return why all runs skipped a sample; "" if one scored it, failed on it, or had another reason."""
    reasons = {
        score.reason if score is not None and score.value is None and not score.failed else ""
        for score in scores
    }
    return short(reasons.pop(), 160) if len(reasons) == 1 else ""
