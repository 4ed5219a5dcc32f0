"""A folder of documents to raw tasks: seeded, the same on every machine, without network and without a model.

    corpus = read_corpus("handbook")
    generation = Generation(corpus, Settings(per_document=10))
    save_records(generation.records(), Path("offline_dataset.jsonl"))
    print(generation.report())

Another source of questions, a language model say, is a `TaskMaker`: give it as `make`. What it makes passes
the same checks.
"""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from ..core.fingerprint import canonical_json
from ..errors import UnknownNameError
from .candidates import Candidate, TaskMaker
from .chunks import Chunk, CutDocument, cut
from .corpus import Corpus
from .extracts import statements, summary
from .passage_search import DEPTH, PassageSearch
from .question_checks import Checker
from .rule_tasks import questions_by_rule
from .tasks import NAMESPACE, Shown, Task, corpus_record, raw_record
from .variants import VARIANTS, Base, twins
from .vocabulary import vocabulary_of

TASKS = ("qa", "summaries", "citations")
SHOWN = 4

_QUERY_TYPES = {"number": "numeric", "date": "temporal", "list": "list"}


@dataclass(frozen=True)
class Settings:
    """What to make, and how much of it.

    `per_document` is the most questions that a document gets; statements to cite are a quarter as many, and a
    document has one summary. `variant_share` is the share of the questions that get their twins.
    """

    tasks: tuple[str, ...] = TASKS
    per_document: int = 8
    seed: int = 0
    chunk_tokens: int = 256
    overlap: int = 32
    variants: tuple[str, ...] = VARIANTS
    variant_share: float = 0.25

    def __post_init__(self) -> None:
        for given, known, what in ((self.tasks, TASKS, "task"), (self.variants, VARIANTS, "variant")):
            for name in given:
                if name not in known:
                    raise UnknownNameError(f"there is no {what} {name!r:.40}; there are {', '.join(known)}")
        if self.per_document < 1 or not 0 <= self.variant_share <= 1:
            raise ValueError("per_document is at least 1, and variant_share from 0 to 1")


@dataclass
class _Counts:
    """What happened, for the report."""

    candidates: int = 0
    rejects: Counter[str] = field(default_factory=Counter)
    not_made: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    scenarios: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    questions: dict[str, int] = field(default_factory=dict)
    first: int = 0
    never: int = 0


class Generation:
    """One run of the generator over a corpus."""

    def __init__(
        self, corpus: Corpus, settings: Settings | None = None, *, make: TaskMaker | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.corpus = corpus
        self.documents = [
            cut(document, tokens=self.settings.chunk_tokens, overlap=self.settings.overlap)
            for document in corpus.documents
        ]
        self.chunks: list[Chunk] = [chunk for document in self.documents for chunk in document.chunks]
        self._vocabulary = vocabulary_of(self.documents)
        self._people = sorted(self._vocabulary.people)
        self._search = PassageSearch(self.chunks)
        self._checker = Checker(self.documents)
        self._make = make or questions_by_rule(self._vocabulary)
        self._counts = _Counts()
        self.run_id = str(uuid.uuid5(NAMESPACE, canonical_json(self._identity()).decode("utf-8")))

    def _identity(self) -> list[Any]:
        texts = [[document.source.name, document.source.text] for document in self.documents]
        return [asdict(self.settings), texts]

    def corpus_records(self) -> Iterator[dict[str, Any]]:
        """The passages, as the systems under test index them."""
        return map(corpus_record, self.chunks)

    def records(self, on_document: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
        """The raw records, document by document."""
        self._counts = _Counts()
        for index, document in enumerate(self.documents):
            for number, task in enumerate(self._tasks(document)):
                self._counts.tasks[task.task_type] += 1
                self._counts.scenarios[task.labels["scenario"]] += 1
                yield raw_record(task, run_id=self.run_id, document_index=index, task_index=number)
            on_document()

    def _tasks(self, document: CutDocument) -> Iterator[Task]:
        wanted = self.settings.tasks
        if "qa" in wanted:
            yield from self._questions(document)
        if "summaries" in wanted:
            yield from self._made(summary(document, self._chance(document, "summary")))
        if "citations" in wanted:
            yield from self._statements(document)

    def _chance(self, document: CutDocument, what: str) -> Random:
        return Random(f"{self.settings.seed} {what} {document.source.name}")  # noqa: S311 - not a secret

    def _made(self, task: Task | str) -> Iterator[Task]:
        if isinstance(task, str):
            self._counts.not_made[task] += 1
        else:
            yield task

    def _questions(self, document: CutDocument) -> Iterator[Task]:
        counts, name = self._counts, document.source.name
        counts.questions[name] = 0
        for candidate in self._make(document, self._chance(document, "questions")):
            counts.candidates += 1
            if counts.questions[name] == self.settings.per_document:
                counts.rejects["more than were asked for"] += 1
                continue
            refusal = self._checker.refusal(candidate)
            if refusal:
                counts.rejects[refusal] += 1
                continue
            self._checker.take(candidate)
            counts.questions[name] += 1
            counts.families[candidate.family] += 1
            base = self._base(document, candidate)
            yield base.task
            if self._has_twins(sum(counts.questions.values())):
                for twin in twins(base, self.settings.variants, self.settings.seed):
                    yield from self._made(twin)

    def _has_twins(self, number: int) -> bool:
        """Whether the question of this number gets twins: evenly spread, the first among them."""
        share = self.settings.variant_share
        return math.ceil(number * share) > math.ceil((number - 1) * share)

    def _base(self, document: CutDocument, candidate: Candidate) -> Base:
        gold = tuple(chunk.id for chunk in document.chunks_with(*candidate.evidence))
        ranked = self._search.ranked(candidate.question)
        rank = next((place for place, (chunk, _) in enumerate(ranked, start=1) if chunk.id in gold), None)
        self._counts.first += rank == 1
        self._counts.never += rank is None
        shown = [Shown(chunk, score) for chunk, score in ranked[:SHOWN]]
        if rank is None or rank > SHOWN:
            # The task shows what a retriever found, and the fact that it needs.
            score = None if rank is None else ranked[rank - 1][1]
            shown = [*shown[: SHOWN - 1], Shown(document.chunks_with(*candidate.evidence)[0], score)]
        labels = {
            "scenario": "base",
            "answerable": True,
            "query_type": _QUERY_TYPES.get(candidate.kind, "factual"),
        }
        checks = {
            "span_exact": True,
            "answer_in_question": False,
            "answered_elsewhere": False,
            "bm25_rank": rank,
        }
        task = Task(
            "qa",
            candidate.family,
            candidate.question,
            candidate.answer,
            document.source.name,
            document.source.source_path,
            tuple(shown),
            gold,
            labels,
            span=(candidate.start, candidate.end),
            alternatives=candidate.alternatives,
            checks=checks,
        )
        return Base(task, candidate, document, self._search, self._vocabulary, self._people)

    def _statements(self, document: CutDocument) -> Iterator[Task]:
        wanted = max(1, self.settings.per_document // 4)
        made = 0
        chance = self._chance(document, "statements")
        for task in statements(document, self._vocabulary, self._search, chance):
            for each in self._made(task):
                made += 1
                yield each
            if made == wanted:
                return

    def report(self) -> dict[str, Any]:
        """What came of it; of use once all records have been made."""
        counts = self._counts
        questions = sum(counts.questions.values())
        judged = counts.candidates - counts.rejects["more than were asked for"]
        per_document = sorted(counts.questions.values())
        return {
            "documents": len(self.documents),
            "passages": len(self.chunks),
            "left_out": dict(Counter(left.reason for left in self.corpus.left_out).most_common()),
            "tasks": dict(sorted(counts.tasks.items())),
            "scenarios": dict(sorted(counts.scenarios.items())),
            "questions": questions,
            "questions_per_document": {
                "mean": questions / len(per_document) if per_document else None,
                "least": per_document[0] if per_document else None,
                "most": per_document[-1] if per_document else None,
                "documents_without": per_document.count(0),
            },
            "families": dict(counts.families.most_common()),
            "candidates": counts.candidates,
            "accepted_share": questions / judged if judged else None,
            "rejected": dict(counts.rejects.most_common()),
            "not_made": dict(counts.not_made.most_common()),
            "gold_first_share": counts.first / questions if questions else None,
            "gold_never_share": counts.never / questions if questions else None,
            "search_depth": DEPTH,
            "seed": self.settings.seed,
            "run_id": self.run_id,
        }
