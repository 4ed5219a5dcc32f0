"""Twins of a question for the robustness targets, labelled as the library's metrics read them.

    noise           the gold passage and its neighbours, a share of them replaced by distractors (BM25)
    unanswerable    the fact taken out of the passages; or a name put in that the corpus does not have
    counterfactual  the fact edited in a copy of its passage; the copy is shown in the place of the original
    paraphrase      the question put indirectly
    typo            the question with two misspelt words

Noise, counterfactual and fact-removed twins are to be answered from their own passages (`closed_context`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from ..errors import UnknownNameError
from ..metrics.counterfactual import holds_answer
from .candidates import Candidate
from .chunks import Chunk, CutDocument
from .other_values import other_value, spellings
from .passage_search import PassageSearch
from .question_checks import body
from .tasks import NO_ANSWER, Shown, Task
from .vocabulary import NAME, Vocabulary

PACK = 5
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)
VARIANTS = ("noise", "unanswerable", "counterfactual", "paraphrase", "typo")
_PLAIN = re.compile(r"[A-Z][a-z]{2,} [A-Z][a-z]{2,}")
_FACTS = ("number", "date", "name", "place", "list")


@dataclass(frozen=True)
class Base:
    """A question that became a task, and what its twins are made from."""

    task: Task
    candidate: Candidate
    document: CutDocument
    search: PassageSearch
    vocabulary: Vocabulary
    people: Sequence[str] = ()

    def silent(self, query: str, count: int, *, without: Sequence[str] = ()) -> list[Shown]:
        """The best passages for a query that do not hold the answer in any spelling."""
        answers = [
            form for text in (self.candidate.answer, *self.candidate.alternatives) for form in spellings(text)
        ]
        found = []
        for chunk, score in self.search.ranked(query):
            if chunk.id in self.task.gold or chunk.id in without or holds_answer(chunk.text, answers):
                continue
            found.append(Shown(chunk, score))
            if len(found) == count:
                break
        return found

    def twin(self, scenario: str, **changes: object) -> Task:
        """The task as a variant of itself."""
        labels = {**self.task.labels, "scenario": scenario, "variant_of": self.task.task_id}
        labels.update(changes.pop("labels", {}))  # type: ignore[call-overload]
        return replace(self.task, labels=labels, cluster=self.task.task_id, **changes)  # type: ignore[arg-type]


def twins(base: Base, kinds: Sequence[str], seed: int) -> Iterator[Task | str]:
    """The variants of a question; for one that cannot be made, a reason."""
    for kind in kinds:
        if kind not in _MAKERS:
            raise UnknownNameError(f"there is no variant {kind!r:.40}; there are {', '.join(VARIANTS)}")
        yield from _MAKERS[kind](base, Random(f"{seed} {kind} {base.task.task_id}"))  # noqa: S311 - not a secret


def noise_packs(base: Base, chance: Random) -> Iterator[Task | str]:
    """Packs of up to five passages of which a share is noise: 0, 0.2, 0.4, 0.6, 0.8.

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
        yield base.twin(
            "noise", labels={"noise_ratio": ratio}, shown=tuple(chance.sample(shown, len(shown))), closed=True
        )


def unanswerable_twins(base: Base, chance: Random) -> Iterator[Task | str]:
    """The same question without its fact, and a question about what the corpus does not have."""
    no_answer = {"answerable": False}
    if base.candidate.kind in _FACTS:
        shown = base.silent(base.task.instruction, PACK - 1)
        if shown:
            labels = {**no_answer, "unanswerable": "fact_removed"}
            yield base.twin("unanswerable", labels=labels, shown=tuple(shown), closed=True, **_NOTHING)
        else:
            yield "unanswerable: nothing is left without the fact"
    question = _about_nobody(base, chance)
    if question is None:
        yield "unanswerable: no name to exchange"
        return
    shown = [Shown(chunk, score) for chunk, score in base.search.ranked(question, PACK - 1)]
    labels = {**no_answer, "unanswerable": "no_such_name"}
    yield base.twin("unanswerable", labels=labels, instruction=question, shown=tuple(shown), **_NOTHING)


_NOTHING: dict[str, object] = {
    "expected": NO_ANSWER,
    "gold": (),
    "span": None,
    "alternatives": (),
    "checks": {},
}


def counterfactual_twin(base: Base, chance: Random) -> Iterator[Task | str]:
    """The fact edited in a copy of its passage; the true answer stands in no passage that is shown."""
    candidate, gold = base.candidate, _gold_shown(base).chunk
    fake = other_value(candidate.answer, candidate.kind, chance, base.people)
    if fake is None:
        yield "counterfactual: no other value of this kind"
        return
    start, end = candidate.start - gold.start, candidate.end - gold.start
    edited = gold.text[:start] + fake + gold.text[end:]
    truths = spellings(candidate.answer)
    if holds_answer(edited, truths) or holds_answer(gold.text, fake) or holds_answer(fake, truths):
        yield "counterfactual: a value stands elsewhere in the passage"
        return
    others = base.silent(base.task.instruction, PACK - 1)
    shown = [Shown(gold, base.task.shown[0].score, edited), *others]
    labels = {"true_answer": candidate.answer, "fake_answer": fake}
    yield base.twin(
        "counterfactual", labels=labels, shown=tuple(chance.sample(shown, len(shown))), closed=True
    )


_INDIRECT = ("Could you tell me {}?", "I would like to know {}.", "Do you know {}?", "Please tell me {}.")


def paraphrase(base: Base, chance: Random) -> Iterator[Task | str]:
    """The question put indirectly: `Could you tell me how long the crossing takes?`"""
    told = base.candidate.told
    if base.candidate.family == "cloze":
        blank = base.task.instruction.partition(": ")[2]
        yield base.twin("paraphrase", instruction=f"Which words are missing here? {blank}")
    elif told:
        yield base.twin("paraphrase", instruction=chance.choice(_INDIRECT).format(told))
    else:
        yield "paraphrase: the question cannot be turned round"


def typo(base: Base, chance: Random) -> Iterator[Task | str]:
    """The question with one or two of its common words misspelt; names and numbers are left alone."""
    question = misspelt(base.task.instruction, chance)
    if question == base.task.instruction:
        yield "typo: no word that could be misspelt"
    else:
        yield base.twin("typo", instruction=question)


def misspelt(question: str, chance: Random) -> str:
    """A question with one or two words of five letters or more misspelt.

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
    """The gold passage: the first of those that hold the evidence."""
    first = base.task.gold[0]
    for shown in base.task.shown:
        if shown.id == first:
            return shown
    return Shown(next(chunk for chunk in base.document.chunks if chunk.id == first))


def _neighbours(base: Base) -> list[Chunk]:
    """The passages around the gold one in its document, nearest first, up to two on either side."""
    places = [place for place, chunk in enumerate(base.document.chunks) if chunk.id in base.task.gold]
    around = [
        place
        for distance in (1, 2)
        for place in (places[0] - distance, places[-1] + distance)
        if 0 <= place < len(base.document.chunks)
    ]
    return [base.document.chunks[place] for place in around]


def _about_nobody(base: Base, chance: Random) -> str | None:
    """The question with a name that the corpus does not have: made of two that it has, or a code changed.

    A name in the title of a document is left alone: what is asked may stand in another document, too.
    """
    if base.candidate.family == "cloze":
        return None  # the rest of the sentence would still lead to the answer
    question, vocabulary = base.task.instruction, base.vocabulary
    code = re.search(r"\b([A-Z]+-?)(\d{1,2})([A-Z]?)\b", question)
    if code:
        for _ in range(20):
            other = f"{code[1]}{chance.randint(2, 99)}{code[3]}"
            if not vocabulary.knows(other):
                return question.replace(code.group(), other)
    asked = body(question)
    match = next((found for found in NAME.finditer(asked) if vocabulary.names[found.group()]), None)
    own = match.group().split() if match else []
    if match is None or len(own) != 2:
        return None
    for other in _strangers(own, base, chance):
        if not vocabulary.knows(other):
            return question[: len(question) - len(asked)] + asked.replace(match.group(), other)
    return None


def _strangers(own: list[str], base: Base, chance: Random) -> Iterator[str]:
    """Names made of two: a person with another's family name, `Gull Rock` as another's rock."""
    is_person = base.vocabulary.is_person(" ".join(own))
    pairs = sorted(
        name for name in (base.people if is_person else base.vocabulary.names) if _PLAIN.fullmatch(name)
    )
    words = sorted({name.split()[-1 if is_person else 0] for name in pairs} - set(own))
    for word in chance.sample(words, min(30, len(words))):
        yield f"{own[0]} {word}" if is_person else f"{word} {own[1]}"


_MAKERS: dict[str, Callable[[Base, Random], Iterator[Task | str]]] = {
    "noise": noise_packs,
    "unanswerable": unanswerable_twins,
    "counterfactual": counterfactual_twin,
    "paraphrase": paraphrase,
    "typo": typo,
}
