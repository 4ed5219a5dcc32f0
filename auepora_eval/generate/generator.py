"""Generate raw tasks from a folder of documents: seeded, reproducible, without network or model.

corpus = read_corpus("handbook")
generation = Generation(corpus, Settings(per_document=10))
save_records(generation.records(), Path("offline_dataset.jsonl"))
print(generation.report())
"""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from random import Random

from ..builder.corpus import Corpus
from ..core.dataset import canonical_json
from ..errors import UnknownNameError
from .extracts import statements, summary
from .passages import CONTEXT_PASSAGES, DEPTH, Chunk, CutDocument, Hit, PassageSearch, cut
from .questions import Facts, Question, questions
from .records import NAMESPACE, Record, Task, corpus_record, raw_record
from .variants import VARIANTS, Base

TASKS = ("qa", "summaries", "citations")
_QUERY_TYPES = {"number": "numeric", "date": "temporal"}


@dataclass(frozen=True)
class Settings:
    """Which tasks to generate, and how many.

    `per_document` is the largest number of questions per document. There are a quarter as many statements to
    cite, and one summary. `variant_share` is the share of the questions that get variants.
    """

    tasks: tuple[str, ...] = TASKS
    per_document: int = 8
    seed: int = 0
    chunk_tokens: int = 256
    overlap: int = 32
    variants: tuple[str, ...] = tuple(VARIANTS)
    variant_share: float = 0.25

    def __post_init__(self) -> None:
        for names, allowed, what in ((self.tasks, TASKS, "task"), (self.variants, VARIANTS, "variant")):
            for name in names:
                if name not in allowed:
                    raise UnknownNameError(f"there is no {what} {name!r:.40}; there are {', '.join(allowed)}")


class TaskBuilder:
    """Gives questions their context and their variants, and counts all tasks for the report."""

    def __init__(self, documents: Sequence[CutDocument], settings: Settings) -> None:
        self.documents, self.settings = documents, settings
        self.chunks = [chunk for document in documents for chunk in document.chunks]
        self.search, self.facts = PassageSearch(self.chunks), Facts(documents)
        self.tasks: Counter[str] = Counter()
        self.scenarios: Counter[str] = Counter()
        self._ranks: list[int | None] = []  # of the first gold passage of each question
        self._bases = 0

    def corpus_records(self) -> Iterator[Record]:
        """Yield the passages for the systems under test to index."""
        return map(corpus_record, self.chunks)

    def context(self, question: str, gold: Sequence[Chunk]) -> tuple[tuple[Hit, ...], int | None]:
        """Return what a retriever would find for a question, with a gold passage added if it is missing.

        The second value is the rank of the first gold passage, or None if it is not found at all.
        """
        ranked = self.search.ranked(question)
        rank = next((place for place, hit in enumerate(ranked, start=1) if hit[0] in gold), None)
        self._ranks.append(rank)
        if rank is not None and rank <= CONTEXT_PASSAGES:
            return tuple(ranked[:CONTEXT_PASSAGES]), rank
        missing = (gold[0], None) if rank is None else ranked[rank - 1]
        return (*ranked[: CONTEXT_PASSAGES - 1], missing), rank

    def with_variants(self, task: Task, question: Question, document: CutDocument) -> Iterator[Task]:
        """Yield a question and, if it is its turn, its variants: evenly spread, starting with the first."""
        yield task
        self._bases += 1
        share = self.settings.variant_share
        if math.ceil(self._bases * share) == math.ceil((self._bases - 1) * share):
            return
        base = Base(task, question, document, self.search, self.facts)
        for kind in self.settings.variants:
            chance = Random(f"{self.settings.seed} {kind} {task.task_id}")  # noqa: S311 - not a secret
            yield from VARIANTS[kind](base, chance)

    def count(self, task: Task) -> None:
        """Count a task that is written."""
        self.tasks[task.task_type] += 1
        self.scenarios[str(task.labels["scenario"])] += 1

    def report(self) -> Record:
        """Return the counts, after all records were generated."""
        questions = len(self._ranks)
        return {
            "documents": len(self.documents),
            "passages": len(self.chunks),
            "tasks": dict(sorted(self.tasks.items())),
            "scenarios": dict(sorted(self.scenarios.items())),
            "questions": questions,
            "gold_first_share": self._ranks.count(1) / questions if questions else None,
            "gold_never_share": self._ranks.count(None) / questions if questions else None,
            "search_depth": DEPTH,
        }


class Generation(TaskBuilder):
    """One run of the generator over a corpus."""

    def __init__(self, corpus: Corpus, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        size = {"tokens": settings.chunk_tokens, "overlap": settings.overlap}
        super().__init__([cut(document, **size) for document in corpus.documents], settings)
        self.corpus = corpus
        self._families: Counter[str] = Counter()
        self._without_questions = 0
        texts = [[document.name, document.text] for document in corpus.documents]
        identity = canonical_json([asdict(settings), texts])
        self.run_id = str(uuid.uuid5(NAMESPACE, identity.decode("utf-8")))

    def records(self) -> Iterator[Record]:
        """Yield the raw records, document by document."""
        for index, document in enumerate(self.documents):
            for number, task in enumerate(self._tasks(document)):
                self.count(task)
                yield raw_record(task, run_id=self.run_id, document_index=index, task_index=number)

    def _tasks(self, document: CutDocument) -> Iterator[Task]:
        # One generator per document: a new document does not change the tasks of the others.
        chance = Random(f"{self.settings.seed} {document.source.name}")  # noqa: S311 - not a secret
        if "qa" in self.settings.tasks:
            yield from self._questions(document, chance)
        if "summaries" in self.settings.tasks:
            yield from summary(document, chance)
        if "citations" in self.settings.tasks:
            limit = max(1, self.settings.per_document // 4)
            yield from islice(statements(document, self.search, chance), limit)

    def _questions(self, document: CutDocument, chance: Random) -> Iterator[Task]:
        candidates = list(questions(document, self.facts))
        self._without_questions += not candidates
        for question in chance.sample(candidates, min(len(candidates), self.settings.per_document)):
            self._families[question.kind] += 1
            gold = document.chunks_with(*question.evidence)
            context, rank = self.context(question.text, gold)
            query_type = _QUERY_TYPES.get(question.kind, "factual")
            task = Task(
                "qa",
                question.kind,
                question.text,
                question.answer,
                document.source,
                context,
                tuple(chunk.id for chunk in gold),
                {"scenario": "base", "answerable": True, "query_type": query_type},
                span=(question.start, question.end),
                alternatives=question.alternatives,
                checks={"bm25_rank": rank},
            )
            yield from self.with_variants(task, question, document)

    def report(self) -> Record:
        """Return the counts, after all records were generated."""
        return {
            **super().report(),
            "left_out": dict(Counter(left.reason for left in self.corpus.left_out).most_common()),
            "documents_without_questions": self._without_questions,
            "families": dict(self._families.most_common()),
            "seed": self.settings.seed,
            "run_id": self.run_id,
        }
