"""Tasks with their contexts, their raw records (lines of offline_dataset.jsonl), and variants of questions.

The variants are for the robustness targets, with the labels that the metrics read:

    noise           the gold passage and its neighbours, a share of them replaced by distractors (BM25)
    unanswerable    the fact taken out of the passages; or a name put in that the corpus does not have
    counterfactual  the fact edited in a copy of its passage, which replaces the original
    paraphrase      the question put indirectly
    typo            the question with two misspelt words

Noise, counterfactual and fact-removed variants must be answered from their own passages (`closed_context`).
"""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from ..core.dataset import canonical_json
from ..metrics.robustness.counterfactual import holds_answer
from .checks import Candidate, body
from .corpus import SourceDocument
from .english import MONTH, NUMBER, NUMBER_WORD
from .passages import DEPTH, NAME, Chunk, CutDocument, PassageSearch, vocabulary_of

Record = dict[str, Any]  # a line of offline_dataset.jsonl or corpus.jsonl, or a report

# Task ids are derived from it: another value would change the id of every task.
NAMESPACE = uuid.UUID("5c3f0f0a-7c0e-5d6b-9d7e-2f6a1f1c9b10")
EXCERPT = 200  # characters of a passage
CONTEXT_PASSAGES = 4
NO_ANSWER = "The documents do not say."

_PROMPTS = {
    "qa": "Answer the question from the numbered passages alone. Say so if they do not hold the answer.",
    "summaries": "Follow the instruction, using the numbered passages alone.",
    "citations": "Follow the instruction. Cite passages by their number in square brackets, such as [1].",
}


@dataclass(frozen=True)
class Shown:
    """A passage of a task's context. `edited` is its text with a fact changed."""

    chunk: Chunk
    score: float | None = None
    edited: str | None = None

    @property
    def id(self) -> str:
        """Return the id of the passage. An edited copy has an id of its own, which is not in the corpus."""
        if self.edited is None:
            return self.chunk.id
        return f"{self.chunk.id}~edited-{hashlib.sha256(self.edited.encode()).hexdigest()[:8]}"

    @property
    def text(self) -> str:
        """Return the text in the context."""
        return self.chunk.text if self.edited is None else self.edited


@dataclass(frozen=True)
class Task:
    """An instruction, the expected response and the context. `gold` are the ids of the answering passages.

    `closed` means that the task must be answered from its own passages, not from the whole corpus.
    """

    task_type: str
    family: str
    instruction: str
    expected: str
    source: SourceDocument
    shown: tuple[Shown, ...]
    gold: tuple[str, ...]
    labels: Mapping[str, object]
    span: tuple[int, int] | None = None
    spans: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[str, ...] = ()
    checks: Mapping[str, object] = field(default_factory=dict)
    closed: bool = False
    cluster: str = ""

    @cached_property
    def task_id(self) -> str:
        """Return a UUID of the content: the same task has the same id in every run."""
        content = [
            self.task_type,
            self.instruction,
            self.expected,
            self.source.name,
            self.span,
            [shown.id for shown in self.shown],
            self.labels,
        ]
        return str(uuid.uuid5(NAMESPACE, canonical_json(content).decode("utf-8")))


def raw_record(
    task: Task, *, run_id: str, document_index: int, task_index: int, more: Mapping[str, object] | None = None
) -> Record:
    """Return the task as a record: instruction, expected response, context and provenance.

    `more` is added to the metadata.
    """
    rendered = [_rendered(shown, ordinal) for ordinal, shown in enumerate(task.shown, start=1)]
    retrieved = [
        _retrieved(shown, ordinal, text)
        for ordinal, (shown, text) in enumerate(zip(task.shown, rendered, strict=True), start=1)
    ]
    passages = "\n\n".join(rendered)
    word = "Question" if task.task_type == "qa" else "Instruction"
    system = _PROMPTS[task.task_type]
    return {
        "task_id": task.task_id,
        "task_type": task.task_type,
        "instruction": task.instruction,
        "expected_response": task.expected,
        "rag": {
            "prompt": f"{system}\n\nPassages:\n{passages}\n\n{word}: {task.instruction}\nAnswer:",
            "contexts": rendered,
            "sources": [shown.chunk.source for shown in task.shown],
            "scores": [shown.score for shown in task.shown],
            "citations": [{key: entry[key] for key in _CITED} for entry in retrieved],
            "retrieved": retrieved,
        },
        "metadata": {
            **_metadata(task),
            "document_index": document_index,
            "task_index": task_index,
            "generator_model": "rules",
            "generator_run_id": run_id,
            **(more or {}),
        },
    }


def _metadata(task: Task) -> Record:
    metadata: Record = {
        "source_path": task.source.source_path,
        "document": task.source.name,
        "family": task.family,
        "require_citations": task.task_type == "citations",
        "selected_chunk_ids": list(task.gold),
        "retrieved_chunk_ids": [shown.id for shown in task.shown],
        "retrieved_section_titles": [shown.chunk.section for shown in task.shown],
        "labels": task.labels,
        "cluster": task.cluster or task.task_id,
        "checks": task.checks,
    }
    if task.span is not None:
        metadata["answer_span"] = {"document": task.source.name, "start": task.span[0], "end": task.span[1]}
    if task.spans:
        metadata["summary_spans"] = [
            {"document": task.source.name, "start": start, "end": end} for start, end in task.spans
        ]
    if task.alternatives:
        metadata["alternatives"] = list(task.alternatives)
    if task.closed:
        metadata["closed_context"] = True
    return metadata


_CITED = "id source_path page section_title token_start token_end score excerpt rendered_context".split()


def _retrieved(shown: Shown, ordinal: int, rendered: str) -> Record:
    chunk = shown.chunk
    entry: Record = {
        "id": shown.id,
        "text": shown.text,
        "source_path": chunk.source_path,
        "page": chunk.page,
        "section_title": chunk.section,
        "token_start": chunk.token_start,
        "token_end": chunk.token_end,
        "score": shown.score,
        "similarity_score": shown.score,
        "reranker_score": None,
        "excerpt": shown.text[:EXCERPT],
        "rendered_context": rendered,
        "ordinal": ordinal,
        "document": chunk.document,
        "start": chunk.start,
        "end": chunk.end,
    }
    if shown.edited is not None:
        entry["counterfactual_of"] = chunk.id
    return entry


def _rendered(shown: Shown, ordinal: int) -> str:
    """`[1] Section: Gameplay | Page 3` and the text below it."""
    chunk = shown.chunk
    parts = []
    if chunk.section or chunk.title:
        parts.append(f"Section: {chunk.section or chunk.title}")
    if chunk.page is not None:
        parts.append(f"Page {chunk.page}")
    return f"[{ordinal}] {' | '.join(parts)}\n{shown.text}" if parts else f"[{ordinal}] {shown.text}"


def corpus_record(chunk: Chunk) -> Record:
    """Return a passage as a document of corpus.jsonl. start and end are character offsets of its source."""
    return {
        "doc_id": chunk.id,
        "text": chunk.text,
        "metadata": {
            "title": chunk.title,
            "source": chunk.document,
            "start": chunk.start,
            "end": chunk.end,
            "source_path": chunk.source_path,
            "page": chunk.page,
            "section_title": chunk.section,
            "token_start": chunk.token_start,
            "token_end": chunk.token_end,
        },
    }


# Contexts and counts.


class TaskBuilder:
    """Gives questions their context and their variants, and counts all tasks for the report."""

    def __init__(
        self, documents: Sequence[CutDocument], variants: Sequence[str], variant_share: float, seed: int
    ) -> None:
        self.chunks = [chunk for document in documents for chunk in document.chunks]
        self.search = PassageSearch(self.chunks)
        self.vocabulary = vocabulary_of(documents)
        self.people = sorted(self.vocabulary.people)
        self._document_count = len(documents)
        self._variants, self._share, self._seed = variants, variant_share, seed
        self.restart()

    def restart(self) -> None:
        """Set all counts to 0."""
        self.tasks: Counter[str] = Counter()
        self.scenarios: Counter[str] = Counter()
        self.not_made: Counter[str] = Counter()
        self.questions = self._found_first = self._never_found = self._bases = 0

    def context(self, question: str, gold: Sequence[Chunk]) -> tuple[tuple[Shown, ...], int | None]:
        """Return what a retriever would find for a question, with a gold passage added if it is missing.

        The second value is the rank of the first gold passage, or None if it is not found at all.
        """
        gold_ids = {chunk.id for chunk in gold}
        ranked = [Shown(chunk, score) for chunk, score in self.search.ranked(question)]
        rank = next((place for place, shown in enumerate(ranked, start=1) if shown.id in gold_ids), None)
        self.questions += 1
        self._found_first += rank == 1
        self._never_found += rank is None
        if rank is not None and rank <= CONTEXT_PASSAGES:
            return tuple(ranked[:CONTEXT_PASSAGES]), rank
        missing = Shown(gold[0], None if rank is None else ranked[rank - 1].score)
        return (*ranked[: CONTEXT_PASSAGES - 1], missing), rank

    def with_variants(self, task: Task, candidate: Candidate, document: CutDocument) -> Iterator[Task]:
        """Yield a question and, if it is its turn, its variants: evenly spread, starting with the first."""
        yield task
        self._bases += 1
        if math.ceil(self._bases * self._share) == math.ceil((self._bases - 1) * self._share):
            return
        base = Base(task, candidate, document, self)
        for kind in self._variants:
            chance = Random(f"{self._seed} {kind} {task.task_id}")  # noqa: S311 - not a secret
            yield from self.made(VARIANTS[kind](base, chance))

    def made(self, results: Iterable[Task | str]) -> Iterator[Task]:
        """Yield the tasks, and count the reasons for those that could not be made."""
        for task in results:
            if isinstance(task, str):
                self.not_made[task] += 1
            else:
                yield task

    def count(self, task: Task) -> None:
        """Count a task that is written."""
        self.tasks[task.task_type] += 1
        self.scenarios[str(task.labels["scenario"])] += 1

    def report(self) -> Record:
        """Return the counts that every report has."""
        return {
            "documents": self._document_count,
            "passages": len(self.chunks),
            "tasks": dict(sorted(self.tasks.items())),
            "scenarios": dict(sorted(self.scenarios.items())),
            "questions": self.questions,
            "not_made": dict(self.not_made.most_common()),
            "gold_first_share": self._found_first / self.questions if self.questions else None,
            "gold_never_share": self._never_found / self.questions if self.questions else None,
            "search_depth": DEPTH,
        }


# Plausible other values of a number, a date or a name, to edit a fact.

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_MONTHS = "January February March April May June July August September October November December".split()
_FIGURE = re.compile(rf"\b{NUMBER}\b", re.IGNORECASE)


def in_words(number: int) -> str:
    """Return a number below a hundred in words.

    >>> in_words(25)
    'twenty-five'
    """
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


_FROM_WORDS = {in_words(number): number for number in range(100)}


def spellings(answer: str) -> list[str]:
    """Return the answer with its small number in figures and in words: `ten years`, `10 years`."""
    forms = [answer]
    match = _FIGURE.search(answer)
    if match:
        figure = match.group().lower()
        if figure in _FROM_WORDS:
            forms.append(f"{answer[: match.start()]}{_FROM_WORDS[figure]}{answer[match.end() :]}")
        elif figure.isdigit() and int(figure) < 100:
            forms.append(f"{answer[: match.start()]}{in_words(int(figure))}{answer[match.end() :]}")
    return forms


def other_value(answer: str, kind: str, chance: Random, names: Sequence[str] = ()) -> str | None:
    """Return another value of the same kind and form, or None."""
    if kind == "number":
        return _other_number(answer, chance)
    if kind == "date":
        return _other_date(answer, chance)
    if kind == "name":
        fitting = [name for name in names if len(name.split()) == len(answer.split())]
        fitting = [name for name in fitting if not set(name.split()) & set(answer.split())]
        return chance.choice(fitting) if fitting else None
    return None


def _other_number(answer: str, chance: Random) -> str | None:
    match = _FIGURE.search(answer)
    if match is None:
        return None
    figure = match.group().split(" ")[0]
    end = match.start() + len(figure)
    if re.fullmatch(NUMBER_WORD, figure, re.IGNORECASE):
        number = _FROM_WORDS[figure.lower()]
        lowest, highest = max(2, number - number // 2 - 1), min(99, number + number // 2 + 2)
        other = in_words(chance.choice([n for n in range(lowest, highest + 1) if n != number]))
        other = other.capitalize() if figure[0].isupper() else other
    else:
        other = _other_figure(figure, chance)
    return f"{answer[: match.start()]}{other}{answer[end:]}"


def _other_figure(figure: str, chance: Random) -> str:
    """Return another number of similar size with the same number of decimals."""
    decimals = len(figure.partition(".")[2])
    unit = 10**-decimals
    value = float(figure.replace(",", ""))
    while True:
        other = round(value * chance.choice((0.5, 0.6, 0.7, 0.8, 1.2, 1.3, 1.4, 1.5, 1.8)), decimals)
        if round(other, decimals) == round(value, decimals) or other <= 0:
            other = value + unit * chance.randint(1, 3)
        text = f"{other:,.{decimals}f}" if "," in figure else f"{other:.{decimals}f}"
        if text != figure:
            return text


def _other_date(answer: str, chance: Random) -> str | None:
    year = re.search(r"\b(?:1\d|20)\d\d\b", answer)
    month = re.search(MONTH, answer, re.IGNORECASE)
    if year:
        shift = chance.choice([n for n in range(-7, 8) if n])
        answer = f"{answer[: year.start()]}{int(year.group()) + shift}{answer[year.end() :]}"
    if month:
        other = chance.choice([name for name in _MONTHS if name.lower() != month.group().lower()])
        other = other.lower() if month.group().islower() else other
        answer = answer[: month.start()] + other + answer[month.end() :]
        return re.sub(r"\b(?:29|30|31)(?=(?:st|nd|rd|th)? )", "28", answer)  # no 30 February
    return answer if year else None


# Variants.

# Passages of a noise pack: with five, every ratio below is a whole number of passages.
PACK = 5
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)
_PLAIN = re.compile(r"[A-Z][a-z]{2,} [A-Z][a-z]{2,}")
# Kinds of answers that can be found in a passage word by word, and so be removed.
_FACTS = ("number", "date", "name", "place", "list")


@dataclass(frozen=True)
class Base:
    """An accepted question with everything that its variants need."""

    task: Task
    candidate: Candidate
    document: CutDocument
    corpus: TaskBuilder

    def silent(self, query: str, count: int, *, without: Sequence[str] = ()) -> list[Shown]:
        """Return the best passages for a query that do not contain the answer in any spelling."""
        answers = [
            form for text in (self.candidate.answer, *self.candidate.alternatives) for form in spellings(text)
        ]
        passages = []
        for chunk, score in self.corpus.search.ranked(query):
            if chunk.id in self.task.gold or chunk.id in without or holds_answer(chunk.text, answers):
                continue
            passages.append(Shown(chunk, score))
            if len(passages) == count:
                break
        return passages

    def variant(self, scenario: str, **changes: object) -> Task:
        """Return the task with a new scenario and the changes."""
        labels = {**self.task.labels, "scenario": scenario, "variant_of": self.task.task_id}
        labels.update(changes.pop("labels", {}))  # type: ignore[call-overload]
        return replace(self.task, labels=labels, cluster=self.task.task_id, **changes)  # type: ignore[arg-type]


def noise_packs(base: Base, chance: Random) -> Iterator[Task | str]:
    """Yield contexts of up to five passages of which a share is noise: 0, 0.2, 0.4, 0.6, 0.8.

    What is not noise is the gold passage and its neighbours in the document. A document of few passages
    cannot fill every pack: then the ratios that come out exactly are made, of smaller packs for 0.
    """
    near = _neighbours(base)
    noise = base.silent(base.task.instruction, PACK - 1, without=[chunk.id for chunk in near])
    if len(noise) < PACK - 1:
        yield "noise: too few distractors"
        return
    gold = _gold_shown(base)
    for ratio in RATIOS:
        count = round(PACK * ratio)
        kept = PACK - count - 1
        if kept > len(near) and ratio > 0:
            continue
        shown = [gold, *(Shown(chunk) for chunk in near[:kept]), *noise[:count]]
        yield base.variant(
            "noise", labels={"noise_ratio": ratio}, shown=tuple(chance.sample(shown, len(shown))), closed=True
        )


def unanswerable(base: Base, chance: Random) -> Iterator[Task | str]:
    """Yield the question without its fact, and a question about a name that the corpus does not have."""
    no_answer = {"answerable": False}
    if base.candidate.kind in _FACTS:
        shown = base.silent(base.task.instruction, PACK - 1)
        if shown:
            labels = {**no_answer, "unanswerable": "fact_removed"}
            yield base.variant("unanswerable", labels=labels, shown=tuple(shown), closed=True, **_NOTHING)
        else:
            yield "unanswerable: nothing is left without the fact"
    question = _about_nobody(base, chance)
    if question is None:
        yield "unanswerable: no name to exchange"
        return
    shown = [Shown(chunk, score) for chunk, score in base.corpus.search.ranked(question, PACK - 1)]
    labels = {**no_answer, "unanswerable": "no_such_name"}
    yield base.variant("unanswerable", labels=labels, instruction=question, shown=tuple(shown), **_NOTHING)


_NOTHING: dict[str, object] = {
    "expected": NO_ANSWER,
    "gold": (),
    "span": None,
    "alternatives": (),
    "checks": {},
}


def counterfactual(base: Base, chance: Random) -> Iterator[Task | str]:
    """Yield the question with the fact edited in a copy of its passage, and the true answer nowhere else."""
    candidate, gold = base.candidate, _gold_shown(base).chunk
    fake = other_value(candidate.answer, candidate.kind, chance, base.corpus.people)
    if fake is None:
        yield "counterfactual: no other value of this kind"
        return
    start, end = candidate.start - gold.start, candidate.end - gold.start
    edited = gold.text[:start] + fake + gold.text[end:]
    truths = spellings(candidate.answer)
    if holds_answer(edited, truths) or holds_answer(gold.text, fake) or holds_answer(fake, truths):
        yield "counterfactual: a value occurs elsewhere in the passage"
        return
    others = base.silent(base.task.instruction, PACK - 1)
    shown = [Shown(gold, base.task.shown[0].score, edited), *others]
    labels = {"true_answer": candidate.answer, "fake_answer": fake}
    yield base.variant(
        "counterfactual", labels=labels, shown=tuple(chance.sample(shown, len(shown))), closed=True
    )


_INDIRECT = ("Could you tell me {}?", "I would like to know {}.", "Do you know {}?", "Please tell me {}.")


def paraphrase(base: Base, chance: Random) -> Iterator[Task | str]:
    """Yield the question in an indirect form."""
    indirect = base.candidate.indirect
    if base.candidate.family == "cloze":
        blank = base.task.instruction.partition(": ")[2]
        yield base.variant("paraphrase", instruction=f"Which words are missing here? {blank}")
    elif indirect:
        yield base.variant("paraphrase", instruction=chance.choice(_INDIRECT).format(indirect))
    else:
        yield "paraphrase: the question cannot be turned round"


def typo(base: Base, chance: Random) -> Iterator[Task | str]:
    """Yield the question with one or two common words misspelt, names and numbers unchanged."""
    question = misspelt(base.task.instruction, chance)
    if question == base.task.instruction:
        yield "typo: no word that could be misspelt"
    else:
        yield base.variant("typo", instruction=question)


def misspelt(question: str, chance: Random) -> str:
    """Return a question with one or two words of five letters or more misspelt.

    >>> misspelt("Who built the harbour wall?", Random(1))
    'Who buiilt the harbou wall?'
    """
    quoted = [match.span() for match in re.finditer(r'"[^"]*"', question)] if "blank" not in question else []
    places = [
        match.span()
        for match in re.finditer(r"(?<![\w-])[a-z]{5,}(?![\w-])", question)
        if not any(start <= match.start() < end for start, end in quoted)
    ]
    for start, end in sorted(chance.sample(places, min(2, len(places))), reverse=True):
        question = question[:start] + _misspelt_word(question[start:end], chance) + question[end:]
    return question


def _misspelt_word(word: str, chance: Random) -> str:
    place = chance.randrange(1, len(word) - 1)
    swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    dropped = word[:place] + word[place + 1 :]
    doubled = word[: place + 1] + word[place:]
    options = [other for other in (swapped, dropped, doubled) if other != word]
    return chance.choice(options)


def _gold_shown(base: Base) -> Shown:
    """Return the first passage that contains the evidence."""
    first = base.task.gold[0]
    for shown in base.task.shown:
        if shown.id == first:
            return shown
    return Shown(next(chunk for chunk in base.document.chunks if chunk.id == first))


def _neighbours(base: Base) -> list[Chunk]:
    """Return up to two passages on either side of the gold one in its document, nearest first."""
    places = [place for place, chunk in enumerate(base.document.chunks) if chunk.id in base.task.gold]
    around = [
        place
        for distance in (1, 2)
        for place in (places[0] - distance, places[-1] + distance)
        if 0 <= place < len(base.document.chunks)
    ]
    return [base.document.chunks[place] for place in around]


def _about_nobody(base: Base, chance: Random) -> str | None:
    """Return the question with a name that the corpus does not have: joined from two, or a changed code.

    A name in the title of a document stays: another document may contain the answer.
    """
    if base.candidate.family == "cloze":
        return None  # the rest of the sentence would still lead to the answer
    question, vocabulary = base.task.instruction, base.corpus.vocabulary
    code = re.search(r"\b([A-Z]+-?)(\d{1,2})([A-Z]?)\b", question)
    if code:
        for _ in range(20):
            other = f"{code[1]}{chance.randint(2, 99)}{code[3]}"
            if not vocabulary.knows(other):
                return question.replace(code.group(), other)
    bare_question = body(question)
    match = next((name for name in NAME.finditer(bare_question) if vocabulary.names[name.group()]), None)
    own = match.group().split() if match else []
    if match is None or len(own) != 2:
        return None
    for other in _strangers(own, base, chance):
        if not vocabulary.knows(other):
            return question[: len(question) - len(bare_question)] + bare_question.replace(
                match.group(), other
            )
    return None


def _strangers(own: list[str], base: Base, chance: Random) -> Iterator[str]:
    """Yield names joined from two: a person with another family name, a place with another first word."""
    vocabulary = base.corpus.vocabulary
    is_person = vocabulary.is_person(" ".join(own))
    names = vocabulary.people if is_person else vocabulary.names
    parts = {name.split()[-1 if is_person else 0] for name in names if _PLAIN.fullmatch(name)}
    # Sorted, because the order of a set differs between processes.
    words = sorted(parts - set(own))
    for word in chance.sample(words, min(30, len(words))):
        yield f"{own[0]} {word}" if is_person else f"{word} {own[1]}"


VARIANTS: dict[str, Callable[[Base, Random], Iterator[Task | str]]] = {
    "noise": noise_packs,
    "unanswerable": unanswerable,
    "counterfactual": counterfactual,
    "paraphrase": paraphrase,
    "typo": typo,
}
