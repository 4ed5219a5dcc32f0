"""The documents that a generator is shown instead of those that it would get.

Each intervention is a function of one question and of what is known about it: its case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from ..core.matching import BY_ID, BY_SOURCE, gold_found, grade_of, source_of
from ..core.rag_interface import hits_of
from ..core.scores import is_unanswerable, spaced
from ..core.types import Document, EvaluationSample, Response, SystemOutputs, gold_documents
from ..errors import ScoringError
from ..metrics.generation_text import required_answers
from ..metrics.robustness.counterfactual import holds_answer
from ..text.bm25 import Scorer, bm25_scorer
from ..text.spelled_numbers import spellings
from ..text.tokens import words

DEPTH = 50  # how far a retriever is asked for what it did not return
NOTHING = SystemOutputs([], Response(""))
DEEPER = 4  # times the documents that the generator usually gets


class Corpus:
    """The documents that can be shown: a corpus if there is one, and what samples and outputs hold."""

    def __init__(self, documents: Iterable[Document], samples: Iterable[EvaluationSample]) -> None:
        self.by_id = {doc.doc_id: doc for doc in documents if doc.text}
        for sample in samples:
            for doc in (*gold_documents(sample), *(sample.candidate_docs or ())):
                if doc.text:
                    self.by_id.setdefault(doc.doc_id, doc)

    @cached_property
    def documents(self) -> list[Document]:
        return list(self.by_id.values())

    @cached_property
    def by_source(self) -> dict[str, list[Document]]:
        sources: dict[str, list[Document]] = {}
        for doc in self.documents:
            sources.setdefault(source_of(doc), []).append(doc)
        return sources

    def known(self, doc: Document) -> Document:
        """Return a document with its text, if that is known."""
        known = self.by_id.get(doc.doc_id)
        return doc if doc.text or known is None else replace(doc, text=known.text)

    def with_texts(self, doc: Document, match: str) -> list[Document]:
        """Return a gold document with its text, or the chunks of its source; none if no text is known."""
        known = self.known(doc)
        if known.text:
            return [known]
        return self.by_source.get(source_of(doc), []) if match == BY_SOURCE else []

    @cached_property
    def _scores(self) -> Scorer:
        return bm25_scorer([words(doc.text, stemmed=True) for doc in self.documents])

    def near(self, query: str) -> list[Document]:
        """Return all documents, those first that share most words with a query (BM25)."""
        scores = self._scores(words(query, stemmed=True))
        return [self.documents[place] for place in sorted(range(len(scores)), key=lambda n: -scores[n])]


@dataclass
class Case:
    """One question: what was retrieved for it, its gold with text, and where to look for more."""

    sample: EvaluationSample
    output: SystemOutputs
    corpus: Corpus
    deep: SystemOutputs | None = None  # the retriever's list at the largest depth
    match: str = BY_ID
    is_scored: bool = True  # False if there is no reference to score an answer by
    is_placed: bool = True  # False if it is not known how far down its gold is
    is_indexed: bool = True  # False if its gold is not found by its own words

    @cached_property
    def needed(self) -> EvaluationSample:
        """The sample with the gold of the highest grade alone."""
        gold = gold_documents(self.sample)
        try:
            top = max(map(grade_of, gold), default=1.0)
            gold = [doc for doc in gold if grade_of(doc) == top]
        except ScoringError:  # a grade that is not a number: all of them
            pass
        return replace(self.sample, relevant_docs=gold)

    @property
    def has_gold(self) -> bool:
        """Whether gold documents are named, with text or without, for a question that has an answer."""
        return self.is_scored and bool(self.needed.relevant_docs) and not is_unanswerable(self.sample)

    @cached_property
    def gold(self) -> list[Document]:
        """The gold documents whose texts are known; none of a question that has no answer."""
        if not self.has_gold:
            return []
        return [
            doc for one in self.needed.relevant_docs or () for doc in self.corpus.with_texts(one, self.match)
        ]

    @cached_property
    def gold_text(self) -> str:
        return "\n".join(doc.text for doc in self.gold)

    @cached_property
    def retrieved(self) -> list[Document]:
        return [self.corpus.known(hit.doc) for hit in self.output.retrieved]

    @cached_property
    def found(self) -> list[Document]:
        """The gold among the retrieved documents."""
        is_gold, _ = gold_found(self.needed, self.output, self.match)
        return [doc for doc, gold in zip(self.retrieved, is_gold, strict=True) if gold]

    @cached_property
    def others(self) -> list[Document]:
        found = {doc.doc_id for doc in self.found}
        return [doc for doc in self.retrieved if doc.doc_id not in found]

    @cached_property
    def missing(self) -> list[Document]:
        """The gold that was not retrieved."""
        return self._missing_in(self.output)

    @cached_property
    def is_part(self) -> bool:
        """Whether chunks of the gold were found, of which none has the whole text."""
        shown = [spaced(doc.text) for doc in self.found]
        gold = {spaced(doc.text) for doc in self.gold}
        is_cut = len(gold) > len(set(map(source_of, self.gold)))
        return not self.missing and (is_cut or any(all(text not in one for one in shown) for text in gold))

    @cached_property
    def unseen(self) -> list[Document] | None:
        """The gold that the retriever does not find at any depth; None if that is not known."""
        return None if self.deep is None or self.deep.error is not None else self._missing_in(self.deep)

    def _missing_in(self, output: SystemOutputs) -> list[Document]:
        _, missing = gold_found(self.needed, output, self.match)
        return [text for doc in missing for text in self.corpus.with_texts(doc, self.match)]

    @cached_property
    def required(self) -> list[list[str]]:
        """What the answer must hold: one of each list; nothing if the sample says it in no known form."""
        try:
            return required_answers(self.sample)
        except ScoringError:
            return []

    @cached_property
    def answers(self) -> list[list[str]]:
        """The same in all spellings."""
        return [[form for text in group for form in spellings(text)] for group in self.required]

    def silent(self, documents: Iterable[Document]) -> list[Document]:
        """Return the documents that are not gold and do not hold the answer."""
        listed = list(documents)
        is_gold, _ = gold_found(self.sample, SystemOutputs(hits_of(listed), Response("")), self.match)
        others = [doc for doc, gold in zip(listed, is_gold, strict=True) if not gold]
        return [doc for doc in others if not (self.answers and holds_answer(doc.text, self.answers))]


def _merged(case: Case) -> list[Document]:
    """Return the gold as one document: a reader that skips documents has read all of it then."""
    if len(case.gold) < 2:
        return case.gold
    first, text = case.gold[0], "\n\n".join(doc.text for doc in case.gold)
    return [Document("+".join(doc.doc_id for doc in case.gold), text, first.metadata)]


def _deeper(case: Case) -> list[Document]:
    if case.deep is None or case.deep.error is not None:
        return case.retrieved
    return [case.corpus.known(hit.doc) for hit in case.deep.retrieved[: DEEPER * max(1, len(case.retrieved))]]


# The documents of each fix, for a question with gold. Each bounds what one kind of fix can bring, but for
# `deeper`, which is tried as it is.
FIXES: dict[str, Callable[[Case], list[Document]]] = {
    "gold": lambda case: case.gold,
    "merged": _merged,
    "ordered": lambda case: [*case.found, *case.others],
    "cleaned": lambda case: case.found or case.retrieved,
    "deeper": _deeper,
    "added": lambda case: [*case.retrieved, *case.missing],
    "gold_first": lambda case: [*case.gold, *case.others],
}
