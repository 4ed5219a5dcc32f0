"""An answer with its claims, what each of them cites, and how far that bears it out.

What is cited is told by the system's list of citations, or else by the marks in the answer. Where it is
cited is told by the marks; without any, a listed citation belongs to each claim that it bears out (and to
the only claim, where there is but one). A mark with a number, [1], counts the list, where the system gave
one, or else what was retrieved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.types import Document, EvaluationSample, SystemOutputs
from ..errors import ScoringError
from ..judges.entailment import Support, checked_support
from .citation_marks import Mark, marks
from .citation_sources import OUT_OF_RANGE, Citation, Found, Place, Sources, citations_of, citations_of_marks
from .citation_spans import TOLERANCE, Match, assigned, overlapping
from .content import content_words, without_marks
from .sentences import sentence_spans

_BEFORE_A_STOP = re.compile(r" (?=[.,;:!?…])")
MOST_CLAIMS = 2_000  # of one answer; each is held against each citation
ClaimSplitter = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an answer: its text without marks, and where it stands, if it does so word by word."""

    text: str
    at: tuple[int, int] | None
    length: int


class CitedAnswer:
    """What can be found out about an answer's citations, found out once.

    Lists of citations are read again when asked for: to keep those of a million answers costs more.
    """

    def __init__(
        self,
        text: str,
        listed: Any,
        sources: Sources,
        gold: Any = None,
        *,
        split: ClaimSplitter | None = None,
    ) -> None:
        self.text = text
        self.sources = sources
        self._listed = listed
        self._gold = gold
        self._split = split
        self._pairs: dict[int, list[Match]] = {}
        self._matches: dict[int, list[Match]] = {}

    @cached_property
    def marks(self) -> list[Mark]:
        return marks(self.text)

    @property
    def listed(self) -> list[Citation] | None:
        """The system's own list; None where it gave none, or an empty one."""
        return None if self._listed is None else citations_of(self._listed, "citations") or None

    @property
    def cited(self) -> list[Citation]:
        """What is cited: the list, or else the marks."""
        listed = self.listed
        return citations_of_marks(self.marks) if listed is None else listed

    @property
    def gold(self) -> list[Citation]:
        return citations_of(self._gold or [], "the gold citations")

    @cached_property
    def places(self) -> tuple[list[Place], list[Place]]:
        """The gold places and the cited ones."""
        gold, cited = self.sources.places(self.gold, self.cited)
        return gold, cited

    def overlapping(self, tolerance: int = TOLERANCE) -> list[Match]:
        """The gold and cited places that have characters in common."""
        if tolerance not in self._pairs:
            self._pairs[tolerance] = overlapping(*self.places, tolerance)
        return self._pairs[tolerance]

    def matches(self, tolerance: int = TOLERANCE) -> list[Match]:
        """The best one-to-one choice of these."""
        if tolerance not in self._matches:
            self._matches[tolerance] = assigned(self.overlapping(tolerance))
        return self._matches[tolerance]

    @cached_property
    def attached(self) -> list[Citation]:
        """What is cited, with its place in the answer where there are marks."""
        if not self.marks:
            return self.cited
        marked = citations_of_marks(self.marks)
        listed = self.listed
        return marked if listed is None else _of_the_list(marked, listed)

    def found(self, citation: Citation) -> Found:
        """Where a citation leads. A number that is still one counts the ranking, or is beyond the list."""
        if citation.number is not None and self._listed:
            return Found(None, "", OUT_OF_RANGE)
        return self.sources.find(citation)

    @cached_property
    def claims(self) -> list[Claim]:
        """The sentences that say something; with a splitter, what it finds."""
        found = _sentences(self) if self._split is None else _located(self.text, self._split(self.text))
        if len(found) > MOST_CLAIMS:
            raise ScoringError(f"the answer has more than {MOST_CLAIMS} claims")
        return found


class JudgedAnswer:
    """A cited answer, with a support function to judge it by."""

    def __init__(self, answer: CitedAnswer, support: Support) -> None:
        self.answer = answer
        self._support = support
        self._known: dict[tuple[str, str], float] = {}

    @property
    def claims(self) -> list[Claim]:
        return self.answer.claims

    def support(self, premise: str, claim: Claim) -> float:
        """How far a text bears out a claim; nothing bears out nothing."""
        if not premise.strip():
            return 0.0
        key = (premise, claim.text)
        if key not in self._known:
            self._known[key] = checked_support(self._support, premise, claim.text)
        return self._known[key]

    @cached_property
    def found(self) -> list[Found]:
        """Where each attached citation leads."""
        return [self.answer.found(citation) for citation in self.answer.attached]

    @cached_property
    def is_attached(self) -> bool:
        """Whether it is known which citation belongs to which claim."""
        return bool(self.answer.marks) or len(self.claims) < 2 or not self.answer.attached

    def citations_at(self, claim: Claim) -> list[int]:
        """The numbers of the citations that a claim carries: all, where no mark says which."""
        at = claim.at
        return [
            number
            for number, citation in enumerate(self.answer.attached)
            if citation.at is None or at is None or at[0] <= citation.at[0] < at[1]
        ]

    @cached_property
    def supports(self) -> list[float | None]:
        """How far each citation bears out its claim, the best of several; None if it leads to no text."""
        best: list[float | None] = [0.0 if _leads(found) and found.text else None for found in self.found]
        for claim in self.claims:
            for number in self.citations_at(claim):
                known = best[number]
                if known is not None:
                    best[number] = max(known, self.support(self.found[number].text, claim))
        return best

    @property
    def supports_or_zero(self) -> list[float]:
        """The same, 0 for what leads nowhere; only documents without a text are left out."""
        return [
            score or 0.0
            for score, found in zip(self.supports, self.found, strict=True)
            if score is not None or found.trouble
        ]

    def is_cited(self, claim: Claim, threshold: float) -> bool:
        """Whether a claim carries a citation that leads somewhere; without marks, one that bears it out."""
        leading = [self.found[number] for number in self.citations_at(claim) if _leads(self.found[number])]
        if self.is_attached:
            return bool(leading)
        return any(self.support(found.text, claim) >= threshold for found in leading)

    def support_by_citations(self, claim: Claim) -> float:
        """How far all that a claim cites bears it out, taken together."""
        texts = dict.fromkeys(self.found[number].text for number in self.citations_at(claim))
        return self.support("\n".join(texts), claim)

    @cached_property
    def best_of_sources(self) -> list[float]:
        """For each claim, how far the document that does it best bears it out."""
        texts = self.answer.sources.texts
        return [max((self.support(text, claim) for text in texts), default=0.0) for claim in self.claims]


def answer_of(sample: EvaluationSample, output: SystemOutputs) -> CitedAnswer:
    """The answer of an output; names cite what was retrieved, and also what the sample knows."""
    ranked = [hit.doc for hit in sorted(output.retrieved, key=lambda hit: hit.rank)]
    more: list[Document] = [*(sample.relevant_docs or ()), *(sample.candidate_docs or ())]
    listed = output.response.metadata.get("citations")
    return CitedAnswer(output.response.text, listed, Sources(more, ranked), sample.metadata.get("citations"))


def _of_the_list(marked: Sequence[Citation], listed: Sequence[Citation]) -> list[Citation]:
    """Marks whose numbers count the list, and then what is listed but stands at no mark."""
    found = [
        listed[citation.number - 1]._replace(at=citation.at)
        if citation.number is not None and 1 <= citation.number <= len(listed)
        else citation
        for citation in marked
    ]
    seen = {(citation.file_name, citation.page, citation.span) for citation in found}
    return found + [one for one in listed if (one.file_name, one.page, one.span) not in seen]


def _leads(found: Found) -> bool:
    return found.document is not None and not found.trouble


def _sentences(answer: CitedAnswer) -> list[Claim]:
    masked, bare = _masked(answer.text, answer.marks)
    claims: list[Claim] = []
    for start, end in sentence_spans(masked):
        text = _tidy(bare[start:end])
        if content_words(text):
            claims.append(Claim(text, (start, end), len(text)))
        elif claims and claims[-1].at is not None:
            # Marks that stand by themselves belong to what they follow.
            claims[-1] = Claim(claims[-1].text, (claims[-1].at[0], end), claims[-1].length)
    return claims


def _tidy(text: str) -> str:
    """A claim without the marks and bullets, and without the spaces that these leave before a stop."""
    return _BEFORE_A_STOP.sub("", " ".join(without_marks(text).split()))


def _masked(text: str, found: Sequence[Mark]) -> tuple[str, str]:
    """The answer with marks that end no sentence, and the answer without them: each as long as before."""
    masked, bare, done = [], [], 0
    for start, end in sorted({mark.at for mark in found}):
        masked += [text[done:start], "[", "1" * (end - start - 2), "]"]
        bare += [text[done:start], " " * (end - start)]
        done = end
    return "".join([*masked, text[done:]]), "".join([*bare, text[done:]])


def _located(answer: str, claims: Sequence[str]) -> list[Claim]:
    found, cursor = [], 0
    for text in claims:
        start = answer.find(text, cursor)
        at = None if start < 0 else (start, start + len(text))
        cursor = cursor if at is None else at[1]
        found.append(Claim(_tidy(text), at, len(text)))
    return found
