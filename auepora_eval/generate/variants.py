"""Variants of questions for the robustness targets, with the labels that the metrics read.

    noise           the gold passage and its neighbours, a share of them replaced by distractors (BM25)
    unanswerable    the fact taken out of the passages; or a name put in that the corpus does not have
    counterfactual  the fact edited in a copy of its passage, which replaces the original
    paraphrase      the question put indirectly
    typo            the question with one or two misspelt words

Noise, counterfactual and fact-removed variants must be answered from their own passages (`closed_context`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

from ..metrics.robustness.counterfactual import holds_answer
from ..text.spelled_numbers import spellings
from .passages import Chunk, CutDocument, Hit, PassageSearch
from .questions import NAME, VALUES, Facts, Question
from .records import Task

# Passages of a noise pack: with five, every ratio below is a whole number of passages.
PACK = 5
RATIOS = (0.0, 0.2, 0.4, 0.6, 0.8)
NO_ANSWER = "The documents do not say."
_MOST = 100  # values to choose from
_INDIRECT = ("Could you tell me {}?", "I would like to know {}.", "Do you know {}?", "Please tell me {}.")


@dataclass(frozen=True)
class Base:
    """A question with everything that its variants need."""

    task: Task
    question: Question
    document: CutDocument
    search: PassageSearch
    facts: Facts

    @property
    def gold(self) -> Chunk:
        """Return the first passage that contains the evidence."""
        return next(chunk for chunk in self.document.chunks if chunk.id == self.task.gold[0])

    def silent(self, *, without: Sequence[Chunk] = ()) -> list[Hit]:
        """Return the best passages for the question that do not contain the answer in any spelling."""
        answers = [
            form for text in (self.question.answer, *self.question.alternatives) for form in spellings(text)
        ]
        left_out = {*self.task.gold, *(chunk.id for chunk in without)}
        hits = (hit for hit in self.search.ranked(self.task.instruction) if hit[0].id not in left_out)
        return list(islice((hit for hit in hits if not holds_answer(hit[0].text, answers)), PACK - 1))

    def variant(self, scenario: str, labels: dict[str, object] | None = None, **changes: Any) -> Task:
        """Return the task with a new scenario and the changes."""
        own = {"scenario": scenario, "variant_of": self.task.task_id, **(labels or {})}
        return replace(self.task, labels={**self.task.labels, **own}, cluster=self.task.task_id, **changes)


def other_value(question: Question, facts: Facts, chance: Random) -> str:
    """Return the answer with another value of its kind and form from the corpus, or ""."""
    match = re.search(VALUES.get(question.kind, "^$"), question.answer)
    old = match.group() if match else ""
    values = facts.values.get(question.kind, [])
    others = [value for value in chance.sample(values, min(_MOST, len(values))) if _form(value) == _form(old)]
    others = [value for value in others if not set(value.split()) & set(old.split())]
    return question.answer.replace(old, chance.choice(others), 1) if others else ""


def _form(value: str) -> str:
    """Return a value with all digits and all words alike: `9 a 9999` of 1 October 2009."""
    return re.sub("[^\\W\\d]+", "a", re.sub(r"\d", "9", value))


def noise(base: Base, chance: Random) -> Iterator[Task]:
    """Yield contexts of up to five passages of which a share is noise: 0, 0.2, 0.4, 0.6, 0.8.

    What is not noise is the gold passage and its neighbours in the document. A document of few passages
    cannot fill every pack: then the ratios that come out exactly are made, of smaller packs for 0.
    """
    chunks = base.document.chunks
    places = [place for place, chunk in enumerate(chunks) if chunk.id in base.task.gold]
    around = [place for near in (1, 2) for place in (places[0] - near, places[-1] + near)]
    near = [chunks[place] for place in around if 0 <= place < len(chunks)]
    distractors = base.silent(without=near)
    for ratio in RATIOS if len(distractors) == PACK - 1 else ():
        count = round(PACK * ratio)
        if PACK - count - 1 <= len(near) or not ratio:
            own = [(chunk, None) for chunk in (base.gold, *near[: PACK - count - 1])]
            context = chance.sample([*own, *distractors[:count]], len(own) + count)
            yield base.variant("noise", {"noise_ratio": ratio}, context=tuple(context), closed=True)


def unanswerable(base: Base, chance: Random) -> Iterator[Task]:
    """Yield the question without its fact, and a question about a name that the corpus does not have."""
    nothing: dict[str, Any] = {
        "expected": NO_ANSWER,
        "gold": (),
        "span": None,
        "alternatives": (),
        "checks": {},
    }
    context = base.silent() if base.question.kind in ("number", "date", "name") else []
    if context:
        labels = {"answerable": False, "unanswerable": "fact_removed"}
        yield base.variant("unanswerable", labels, context=tuple(context), closed=True, **nothing)
    question = _about_nobody(base, chance)
    if question:
        labels = {"answerable": False, "unanswerable": "no_such_name"}
        context = base.search.ranked(question, PACK - 1)
        yield base.variant("unanswerable", labels, instruction=question, context=tuple(context), **nothing)


def _about_nobody(base: Base, chance: Random) -> str:
    """Return the question with a name that the corpus does not have: joined from two, or a changed code."""
    question = base.task.instruction
    known = re.search(rf"(?<![\w-])[A-Z]++-?\d++|(?<!^){NAME}", question)
    if known is None:
        return ""
    is_code = known.group()[-1].isdigit()
    start = known.group().rstrip("0123456789") if is_code else known.group().rpartition(" ")[0] + " "
    names = base.facts.values["name"]
    values = list(map(str, range(2, 99))) if is_code else [name.rpartition(" ")[2] for name in names]
    ends = chance.sample(values, min(_MOST, len(values)))
    unknown = [f"{start}{end}" for end in ends if not base.facts.count(f"{start}{end}")]
    return question.replace(known.group(), chance.choice(unknown)) if unknown else ""


def counterfactual(base: Base, chance: Random) -> Iterator[Task]:
    """Yield the question with the fact edited in a copy of its passage, and the true answer nowhere else."""
    question, gold = base.question, base.gold
    fake, truths = other_value(question, base.facts, chance), spellings(question.answer)
    edited = gold.text[: question.start - gold.start] + fake + gold.text[question.end - gold.start :]
    if fake and not any(
        (holds_answer(edited, truths), holds_answer(gold.text, fake), holds_answer(fake, truths))
    ):
        own_id = f"{gold.id}~edited-{hashlib.sha256(edited.encode()).hexdigest()[:8]}"
        copy = replace(gold, id=own_id, text=edited, edited_from=gold.id)
        context: list[Hit] = [(copy, None), *base.silent()]
        labels: dict[str, object] = {"true_answer": question.answer, "fake_answer": fake}
        mixed = tuple(chance.sample(context, len(context)))
        yield base.variant("counterfactual", labels, context=mixed, closed=True)


def paraphrase(base: Base, chance: Random) -> Iterator[Task]:
    """Yield the question in an indirect form."""
    if base.question.indirect:
        yield base.variant("paraphrase", instruction=chance.choice(_INDIRECT).format(base.question.indirect))


def typo(base: Base, chance: Random) -> Iterator[Task]:
    """Yield the question with one or two words of five letters or more misspelt, names unchanged."""
    question = base.task.instruction
    places = [match.span() for match in re.finditer(r"(?<![\w-])[a-z]{5,}(?![\w-])", question)]
    for start, end in sorted(chance.sample(places, min(2, len(places))), reverse=True):
        place = chance.randrange(start + 1, end - 1)
        question = question[:place] + chance.choice(("", question[place] * 2)) + question[place + 1 :]
    if places:
        yield base.variant("typo", instruction=question)


VARIANTS: dict[str, Callable[[Base, Random], Iterator[Task]]] = {
    "noise": noise,
    "unanswerable": unanswerable,
    "counterfactual": counterfactual,
    "paraphrase": paraphrase,
    "typo": typo,
}
