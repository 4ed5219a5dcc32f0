"""An answer with its claims, the citations of each claim, and how far they support it.

Citations come from the system's list, or else from the marks in the answer. The marks say where a citation
is made; without marks, a listed citation belongs to each claim that it supports (and to the only claim,
where there is just one). The number of a mark, [1], counts the system's list if there is one, or else the
retrieved documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from ...core.matching import grade_of, source_of, spans_in
from ...core.metrics_base import BatchMetric, skip
from ...core.scores import Batch, Rows, Scores
from ...core.types import (
    Document,
    EvaluationSample,
    MetricResult,
    Response,
    SampleScore,
    SystemOutputs,
    TargetCategory,
    names_documents,
)
from ...errors import BadOutputError
from ...text.content_words import content_words, without_marks
from ...text.refusal import declines
from ...text.sentences import sentence_spans
from ..entailment import Support, checked_support, lexical_support, support_function, support_identity
from ..retrieval.hits import first_documents
from .sources import (
    OUT_OF_RANGE,
    TOLERANCE,
    Citation,
    Found,
    Match,
    Place,
    Sources,
    assigned,
    citations_of,
    marks,
    overlapping,
)

_BEFORE_A_STOP = re.compile(r" (?=[.,;:!?…])")
MOST_CLAIMS = 2_000  # of one answer; each is compared with each citation
ClaimSplitter = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an answer: its text without marks, and its place if the answer has it word by word."""

    text: str
    at: tuple[int, int] | None


@dataclass
class CitedAnswer:
    """An answer's citations, and how far they support its claims; each property is computed once.

    Lists of citations are read again at each use: keeping those of a million answers costs more.
    """

    response: Response
    own_list: Any
    sources: Sources
    gold_list: Any = None
    _: KW_ONLY
    spans: Sequence[Citation] = ()
    split: ClaimSplitter | None = None
    support_of: Support = lexical_support
    names_documents: bool = True  # without them nobody knows what the numbers of marks count
    _known: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    @property
    def text(self) -> str:
        return self.response.text

    @cached_property
    def marks(self) -> list[Citation]:
        return marks(self.text)

    @property
    def listed(self) -> list[Citation] | None:
        """The system's own list; None where it gave none, or an empty one."""
        return None if self.own_list is None else citations_of(self.own_list, "citations") or None

    @property
    def cited(self) -> list[Citation]:
        """What is cited: the list, or else the marks."""
        return self.listed or self.marks

    @property
    def gold(self) -> list[Citation]:
        return citations_of(self.gold_list or [], "the gold citations")

    @cached_property
    def places(self) -> tuple[list[Place], list[Place]]:
        """The gold places and the cited ones."""
        return self.sources.places(self.gold, self.cited)

    @cached_property
    def span_places(self) -> tuple[list[Place], list[Place]]:
        """The gold spans and the cited places; gold citations without any have those of gold documents."""
        gold = self.gold
        spans = [citation for citation in gold if citation.span is not None]
        return (
            self.places if len(spans) == len(gold) else self.sources.places(spans or self.spans, self.cited)
        )

    def matches(self, tolerance: int = TOLERANCE) -> list[Match]:
        """Return the best one-to-one assignment of overlapping places."""
        return assigned(overlapping(*self.span_places, tolerance))

    @cached_property
    def attached(self) -> list[Citation]:
        """What is cited, with its place in the answer where there are marks."""
        listed = self.listed
        if listed is None or not self.marks:
            return self.cited
        return _of_the_list(self.marks, listed)

    @property
    def counts_unknown_documents(self) -> bool:
        """Whether marks count documents that the output does not name."""
        is_open = not self.names_documents and self.listed is None
        return is_open and any(citation.number is not None for citation in self.marks)

    def find(self, citation: Citation) -> Found:
        """Return the document of a citation. A number without a list counts the ranking."""
        # Numbers count the system's own list where it has one; this one is beyond it.
        if citation.number is not None and self.own_list:
            return Found(None, "", OUT_OF_RANGE)
        return self.sources.find(citation)

    @cached_property
    def claims(self) -> list[Claim]:
        """The sentences that say something; with a splitter, what it finds. A refusal makes no claims."""
        if declines(self.response) and not self.cited:
            return []
        claims = _sentences(self) if self.split is None else _located(self.text, self.split(self.text))
        if len(claims) > MOST_CLAIMS:
            raise BadOutputError(f"the answer has more than {MOST_CLAIMS} claims")
        return claims

    def support(self, premise: str, claim: Claim) -> float:
        """Return how far a text supports a claim; an empty text supports nothing."""
        key = (premise, claim.text)
        if key not in self._known:
            self._known[key] = checked_support(self.support_of, *key) if premise.strip() else 0.0
        return self._known[key]

    @cached_property
    def found(self) -> list[Found]:
        """Where each attached citation leads."""
        return [self.find(citation) for citation in self.attached]

    @cached_property
    def is_attached(self) -> bool:
        """Whether it is known which citation belongs to which claim."""
        return bool(self.marks) or len(self.claims) < 2 or not self.attached

    def citations_at(self, claim: Claim) -> list[int]:
        """Return the numbers of the citations that a claim carries: all, where no mark says which."""
        at = claim.at
        return [
            number
            for number, citation in enumerate(self.attached)
            if citation.at is None or at is None or at[0] <= citation.at[0] < at[1]
        ]

    @cached_property
    def supports(self) -> list[float | None]:
        """The support of each citation for its claim, the best of several; None if it leads to no text."""
        best: list[float | None] = [0.0 if _leads(found) and found.text else None for found in self.found]
        for claim in self.claims:
            for number in self.citations_at(claim):
                if (so_far := best[number]) is not None:
                    best[number] = max(so_far, self.support(self.found[number].text, claim))
        return best

    @property
    def supports_or_zero(self) -> list[float]:
        """`supports` with 0 for citations that lead nowhere; documents without a text are left out."""
        return [
            score or 0.0
            for score, found in zip(self.supports, self.found, strict=True)
            if score is not None or found.trouble
        ]

    def is_cited(self, claim: Claim, threshold: float) -> bool:
        """Return whether a claim has a citation with a document; without marks, one that supports it."""
        leading = [self.found[number] for number in self.citations_at(claim) if _leads(self.found[number])]
        if self.is_attached:
            return bool(leading)
        return any(self.support(found.text, claim) >= threshold for found in leading)

    def support_by_citations(self, claim: Claim) -> float:
        """Return how far the cited texts of a claim, joined, support it."""
        # Each text once, in order: two citations may lead to the same passage.
        texts = dict.fromkeys(self.found[number].text for number in self.citations_at(claim))
        return self.support("\n".join(texts), claim)

    @cached_property
    def best_of_sources(self) -> list[float]:
        """The support of each claim by the document that supports it best."""
        texts = self.sources.texts
        return [max((self.support(text, claim) for text in texts), default=0.0) for claim in self.claims]


def answer_of(sample: EvaluationSample, output: SystemOutputs, support: str = "lexical") -> CitedAnswer:
    """Return the answer of an output; names cite the retrieved documents and those of the sample."""
    ranked = first_documents(output)
    more: list[Document] = [*(sample.relevant_docs or ()), *(sample.candidate_docs or ())]
    listed = output.response.metadata.get("citations")
    gold = sample.metadata.get("citations")
    return CitedAnswer(
        output.response,
        listed,
        Sources(more, ranked),
        gold,
        spans=spans_of(sample) if gold else (),
        support_of=support_function(support),
        names_documents=names_documents(output),
    )


def spans_of(sample: EvaluationSample) -> list[Citation]:
    """Return the spans of the relevant documents as citations."""
    return [
        Citation(str(span.get("source") or source_of(doc)), span=(span["start"], span["end"]))
        for doc in sample.relevant_docs or ()
        for span in spans_in(doc)
        if grade_of(doc) > 0
    ]


def _of_the_list(marked: Sequence[Citation], listed: Sequence[Citation]) -> list[Citation]:
    """Return marks whose numbers count the list, then the listed citations without a mark."""
    marked_citations = [
        listed[citation.number - 1]._replace(at=citation.at)
        if citation.number is not None and 1 <= citation.number <= len(listed)
        else citation
        for citation in marked
    ]
    # A listed citation that has a mark is not counted twice.
    seen = {(citation.file_name, citation.page, citation.span) for citation in marked_citations}
    return marked_citations + [one for one in listed if (one.file_name, one.page, one.span) not in seen]


def _leads(found: Found) -> bool:
    return found.document is not None and not found.trouble


def _sentences(answer: CitedAnswer) -> list[Claim]:
    masked, bare = _masked(answer.text, answer.marks)
    claims: list[Claim] = []
    for start, end in sentence_spans(masked):
        text = _tidy(bare[start:end])
        if content_words(text):
            claims.append(Claim(text, (start, end)))
        elif claims and claims[-1].at is not None:
            # Marks alone in a sentence belong to the sentence before.
            claims[-1] = Claim(claims[-1].text, (claims[-1].at[0], end))
    return claims


def _tidy(text: str) -> str:
    """Return a claim without marks and bullets, and without the spaces that these leave before a stop."""
    return _BEFORE_A_STOP.sub("", " ".join(without_marks(text).split()))


def _masked(text: str, marked: Sequence[Citation]) -> tuple[str, str]:
    """Return the answer with marks that end no sentence, and without marks; each keeps its length."""
    masked, bare, done = [], [], 0
    for start, end in sorted({mark.at for mark in marked if mark.at is not None}):
        masked += [text[done:start], "[", "1" * (end - start - 2), "]"]
        bare += [text[done:start], " " * (end - start)]
        done = end
    return "".join([*masked, text[done:]]), "".join([*bare, text[done:]])


def _located(answer: str, claims: Sequence[str]) -> list[Claim]:
    located, cursor = [], 0
    for text in claims:
        start = answer.find(text, cursor)
        at = None if start < 0 else (start, start + len(text))
        cursor = cursor if at is None else at[1]
        located.append(Claim(_tidy(text), at))
    return located


# The base classes of the citation metrics. Answers and citations are read once per batch.

THRESHOLD = 0.7  # a claim with at least this support counts as supported
# A failed answer's number of claims or citations is not known; its bounds are those of one with this many.
# In a comparison it has as many as another answer to the question, or as usual.
_IF_FAILED = 20.0


class CitationMetric(BatchMetric):
    """A metric of an answer and what it cites."""

    target = TargetCategory.GENERATION_FAITHFULNESS

    support: str = "lexical"  # the name of the support function, for metrics that have one

    def score_all(self, batch: Batch) -> Scores:
        answers = batch.once(cited_answers, self.support)
        return self.score_each(batch, self._of_known, zip(batch.samples, answers, strict=True))

    def _of_known(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if answer.counts_unknown_documents:
            return skip("the answer cites by number, and the output names no documents")
        return self.of_answer(sample, answer)

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        """Return the score of one answer."""
        raise NotImplementedError

    def ready(self) -> None:
        support_function(self.support)


class CitationShare(CitationMetric):
    """A share over all answers: sums of what counts / sums of what there is, not a mean of shares.

    `counted_as` names the two sums in the result's details.
    """

    counted_as: ClassVar[tuple[str, str]]
    of_sums = True

    def aggregate(self, rows: Rows) -> Rows:
        shares: Rows = rows[..., 1].sum(axis=-1) / rows[..., 2].sum(axis=-1)
        return shares

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        rows = scores.rows()
        sums = rows[:, 1:3].sum(axis=0).tolist() if rows.shape[1] > 1 else (0, 0)
        for name, total in zip(self.counted_as, sums, strict=True):
            # Counts are whole numbers in the report; sums of Jaccards are not.
            result.details[name] = int(total) if total == int(total) else total
        return result

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return share(self.bounds[high] * (whole := self.whole_if_failed(sample)), whole, "nothing to count")

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        if len(usual) < 2 or not usual[1] or not self.whole_if_failed(sample):
            return super().counted_if_failed(sample, usual)
        worst = self.bounds[not self.higher_is_better]
        return share(worst * usual[1], usual[1], "nothing to count")

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        """Return how much there would have been to count in an answer that failed."""
        return _IF_FAILED


@dataclass
class NeedsSupport(CitationMetric):
    """A metric with a support function, given by its name, and the support that is enough."""

    threshold: float = THRESHOLD
    support: str = "lexical"
    ranges = {"threshold": "(0, 1]"}  # noqa: RUF012

    def signature(self) -> Mapping[str, object]:
        return {
            "support": support_identity(self.support),
            "threshold": self.threshold,
            "claims": "sentences",
        }


class SupportMetric(NeedsSupport, CitationShare):
    """A share that needs a support function."""


def share(part: float, whole: float, if_none: str) -> SampleScore:
    """Return part / whole with both as parts, or skip the sample where there is nothing to count."""
    return SampleScore(part / whole, parts=(part, whole)) if whole else skip(if_none)


def cited_answers(batch: Batch, support: str) -> list[CitedAnswer]:
    """Return every answer with the support function of that name; for batch.once."""
    pairs = zip(batch.samples, batch.outputs, strict=True)
    return [answer_of(sample, output, support) for sample, output in pairs]
