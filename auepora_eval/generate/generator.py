"""Generate raw tasks from a folder of documents: seeded, reproducible, without network or model.

corpus = read_corpus("handbook")
generation = Generation(corpus, Settings(per_document=10))
save_records(generation.records(), Path("offline_dataset.jsonl"))
print(generation.report())
"""

from __future__ import annotations

import math
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from random import Random

from ..core.dataset import canonical_json
from ..errors import UnknownNameError
from ..text.tokens import words
from .checks import Candidate, Checker, is_plain
from .clauses import clause
from .corpus import Corpus
from .english import LEANING, POINTING, STOP
from .passages import CutDocument, Sentence, cut, tidy
from .questions import questions_by_rule
from .tasks import NAMESPACE, VARIANTS, Record, Shown, Task, TaskBuilder, corpus_record, raw_record

# Tasks whose answer is sentences of the text: extractive summaries, and statements to cite.


SUMMARY_SENTENCES = 3
SUMMARY_PASSAGES = 4
CITED_PASSAGES = 4
# The least share of the characters that must be plain statements: less is a table, a list or a dialogue.
_MOSTLY = 0.6
# A passage with this share of the content words of a statement may support it, too.
_SAYS_THE_SAME = 0.85


def summary(document: CutDocument, chance: Random) -> Task | str:
    """Return a summary in sentences of the text, the first and the two most central, or a reason.

    For a long document it covers four consecutive passages.
    """
    chunks = document.chunks
    begin = chance.randrange(len(chunks) - SUMMARY_PASSAGES + 1) if len(chunks) > SUMMARY_PASSAGES else 0
    part = chunks[begin : begin + SUMMARY_PASSAGES]
    text = document.source.text
    sentences = [
        sentence
        for sentence in document.outline.sentences
        if part[0].start <= sentence.start and sentence.end <= part[-1].end and _is_statement(text, sentence)
    ]
    prose_length = sum(sentence.end - sentence.start for sentence in sentences)
    if len(sentences) < SUMMARY_SENTENCES + 2 or prose_length < _MOSTLY * (part[-1].end - part[0].start):
        return "summary: not enough plain prose"
    chosen = _central(text, sentences)
    if len(chosen) < 2:
        return "summary: too few sentences that stand alone"
    whole = len(part) == len(chunks)
    return Task(
        "summaries",
        "summary",
        _instruction(document, sentences[0], len(chosen), whole=whole),
        " ".join(text[sentence.start : sentence.end] for sentence in chosen),
        document.source,
        tuple(Shown(chunk) for chunk in part),
        tuple(chunk.id for chunk in part),
        {"scenario": "base", "answerable": True, "query_type": "summary"},
        spans=tuple((sentence.start, sentence.end) for sentence in chosen),
        checks={"sentences_exact": True},
        closed=not whole,
    )


def _instruction(document: CutDocument, first: Sentence, count: int, *, whole: bool) -> str:
    title = tidy(document.source.title)
    named = f'"{title}"' if title else f'the document "{document.source.name}"'
    length = "three sentences" if count == SUMMARY_SENTENCES else "two sentences"
    if whole:
        return f"Summarise {named} in {length}."
    begins = " ".join(tidy(document.source.text[first.start : first.end]).split()[:8])
    return f'Summarise the part of {named} that begins with "{begins}" in {length}.'


def _is_statement(text: str, sentence: Sentence) -> bool:
    piece = text[sentence.start : sentence.end]
    return (
        not sentence.is_item
        and piece.endswith((".", '."', ".”"))
        and 4 <= len(piece.split()) <= 45
        and is_plain(piece)
        and (piece[:1].isupper() or text[:5000].islower())
    )


def _central(text: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the first self-contained sentence and those most similar to all others, in text order."""
    bags = [
        Counter(word for word in words(text[each.start : each.end], stemmed=True) if word not in STOP)
        for each in sentences
    ]
    found_in = Counter(word for bag in bags for word in bag)
    vectors = [
        {word: n * math.log(1 + len(bags) / found_in[word]) for word, n in bag.items()} for bag in bags
    ]
    norms = [math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0 for vector in vectors]
    total: dict[str, float] = defaultdict(float)
    for vector, norm in zip(vectors, norms, strict=True):
        for word, weight in vector.items():
            total[word] += weight / norm
    centrality = [
        sum(weight * total[word] for word, weight in vector.items()) / norm
        for vector, norm in zip(vectors, norms, strict=True)
    ]
    openings = [words(text[each.start : each.end])[:3] for each in sentences]
    # A sentence that opens with `however` or `this` needs the one before it.
    alone = [
        place
        for place, opening in enumerate(openings)
        if opening and opening[0] not in LEANING and not POINTING & set(opening)
    ]
    chosen = alone[:1]
    for place in sorted(alone[1:], key=lambda number: (-centrality[number], number)):
        repeats = any(len(bags[place] & bags[other]) > 0.6 * len(bags[place]) for other in chosen)
        if not repeats:
            chosen.append(place)
        if len(chosen) == SUMMARY_SENTENCES:
            break
    return [sentences[place] for place in sorted(chosen)]


def statements(document: CutDocument, corpus: TaskBuilder, chance: Random) -> Iterator[Task | str]:
    """Yield statements to be repeated with the number of the passage that supports them."""
    text = document.source.text
    fitting = []
    for sentence in document.outline.sentences:
        piece = text[sentence.start : sentence.end]
        main_clause = clause(piece) if _is_statement(text, sentence) else None
        if main_clause is None or not corpus.vocabulary.has_name(main_clause.subject):
            continue
        tokens = words(piece)
        if tokens[0] not in LEANING and not POINTING & set(tokens) and 7 <= len(tokens) <= 35:
            fitting.append(sentence)
    for sentence in chance.sample(fitting, len(fitting)):
        yield _supported(document, sentence, corpus, chance)


def _supported(document: CutDocument, sentence: Sentence, corpus: TaskBuilder, chance: Random) -> Task | str:
    statement = document.source.text[sentence.start : sentence.end]
    gold = document.chunks_with(sentence.start, sentence.end)
    if not gold:
        return "statement: no passage holds the whole sentence"
    content = {word for word in words(statement, stemmed=True) if word not in STOP}
    others = []
    for chunk, score in corpus.search.ranked(statement, 20):
        if chunk in gold:
            continue
        shared = len(content & set(words(chunk.text, stemmed=True)))
        if statement in chunk.text or shared >= _SAYS_THE_SAME * len(content):
            return "statement: supported elsewhere, too"
        others.append(Shown(chunk, score))
    shown = [Shown(gold[0]), *others[: CITED_PASSAGES - 1]]
    if len(shown) < 2:
        return "statement: no distractor"
    shown = chance.sample(shown, len(shown))
    number = next(place for place, each in enumerate(shown, start=1) if each.id == gold[0].id)
    clean = tidy(statement)
    return Task(
        "citations",
        "statement",
        f"Which of the passages supports this statement? Repeat it with the passage's number: {clean}",
        f"{clean} [{number}]",
        document.source,
        tuple(shown),
        (gold[0].id,),
        {"scenario": "base", "answerable": True, "query_type": "citation"},
        span=(sentence.start, sentence.end),
        checks={"span_exact": True, "supported_elsewhere": False},
        closed=True,
    )


# The generator.


TASKS = ("qa", "summaries", "citations")

_QUERY_TYPES = {"number": "numeric", "date": "temporal", "list": "list"}
_TOO_MANY = "more than were asked for"


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


class Generation:
    """One run of the generator over a corpus."""

    def __init__(self, corpus: Corpus, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.corpus = corpus
        self.documents = [
            cut(document, tokens=self.settings.chunk_tokens, overlap=self.settings.overlap)
            for document in corpus.documents
        ]
        self._builder = TaskBuilder(
            self.documents, self.settings.variants, self.settings.variant_share, self.settings.seed
        )
        texts = [[document.name, document.text] for document in corpus.documents]
        identity = canonical_json([asdict(self.settings), texts])
        self.run_id = str(uuid.uuid5(NAMESPACE, identity.decode("utf-8")))
        self._restart()

    def _restart(self) -> None:
        self._builder.restart()
        self._rejects: Counter[str] = Counter()
        self._families: Counter[str] = Counter()
        self._without_questions = 0

    def corpus_records(self) -> Iterator[Record]:
        """Yield the passages for the systems under test to index."""
        return map(corpus_record, self._builder.chunks)

    def records(self) -> Iterator[Record]:
        """Yield the raw records, document by document."""
        self._restart()
        checker = Checker(self.documents)
        for index, document in enumerate(self.documents):
            for number, task in enumerate(self._tasks(document, checker)):
                self._builder.count(task)
                yield raw_record(task, run_id=self.run_id, document_index=index, task_index=number)

    def _tasks(self, document: CutDocument, checker: Checker) -> Iterator[Task]:
        wanted = self.settings.tasks
        if "qa" in wanted:
            yield from self._questions(document, checker)
        if "summaries" in wanted:
            yield from self._builder.made([summary(document, self._chance(document, "summary"))])
        if "citations" in wanted:
            results = statements(document, self._builder, self._chance(document, "statements"))
            yield from islice(self._builder.made(results), max(1, self.settings.per_document // 4))

    def _chance(self, document: CutDocument, what: str) -> Random:
        # One generator per document and kind of task: a new document does not change the tasks of the others.
        return Random(f"{self.settings.seed} {what} {document.source.name}")  # noqa: S311 - not a secret

    def _questions(self, document: CutDocument, checker: Checker) -> Iterator[Task]:
        accepted = 0
        chance = self._chance(document, "questions")
        for candidate in questions_by_rule(document, self._builder.vocabulary, chance):
            is_enough = accepted == self.settings.per_document
            reason = _TOO_MANY if is_enough else checker.rejection(candidate)
            if reason:
                self._rejects[reason] += 1
                continue
            checker.take(candidate)
            accepted += 1
            self._families[candidate.family] += 1
            yield from self._builder.with_variants(self._question(document, candidate), candidate, document)
        self._without_questions += not accepted

    def _question(self, document: CutDocument, candidate: Candidate) -> Task:
        gold = document.chunks_with(*candidate.evidence)
        shown, rank = self._builder.context(candidate.question, gold)
        return Task(
            "qa",
            candidate.family,
            candidate.question,
            candidate.answer,
            document.source,
            shown,
            tuple(chunk.id for chunk in gold),
            {
                "scenario": "base",
                "answerable": True,
                "query_type": _QUERY_TYPES.get(candidate.kind, "factual"),
            },
            span=(candidate.start, candidate.end),
            alternatives=candidate.alternatives,
            checks={
                "span_exact": True,
                "answer_in_question": False,
                "answered_elsewhere": False,
                "bm25_rank": rank,
            },
        )

    def report(self) -> Record:
        """Return the counts, after all records were generated."""
        questions, rejected = self._builder.questions, self._rejects.total()
        judged = questions + rejected - self._rejects[_TOO_MANY]
        return {
            **self._builder.report(),
            "left_out": dict(Counter(left.reason for left in self.corpus.left_out).most_common()),
            "documents_without_questions": self._without_questions,
            "families": dict(self._families.most_common()),
            "candidates": questions + rejected,
            "accepted_share": questions / judged if judged else None,
            "rejected": dict(self._rejects.most_common()),
            "seed": self.settings.seed,
            "run_id": self.run_id,
        }
