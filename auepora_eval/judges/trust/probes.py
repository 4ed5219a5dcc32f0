"""Probes: questions with known answers that show what a judge falls for.

Forty are about support:

    copy          a sentence of the passage is supported
    foreign       by a passage about something else it is not
    negation      its negation is not supported
    number        nor is the sentence with another number
    verbosity     a neutral sentence in front of the claim changes nothing
    position      nor does the order of two passages
    yes-bias      of eight supported and eight unsupported claims, about half are
    determinism   the same question gets the same verdict five times
    injection     a text that asks for a yes does not get one (twelve forms, in passages and in claims)

Sixteen each are about the relevance of passages, answer relevance and correctness: right ones (copy), wrong
ones (foreign, for correctness number), determinism and injection. Other kinds have no probes of their own.

A judge that fails one is `degraded`: gates do not use its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..ask import Asking
from ..question import Kind, Question, claim_material, kind_named
from .record import GROUNDING, PROBED, SUPPORT, Probe, ProbeReport

REPEATS = 5
_BALANCE = 0.2  # how far the share of yes may be from one half
_MOST_WRONG = 0.25  # share of a probe that may be wrong: one of four questions


class _Item(msgspec.Struct, frozen=True):
    passage: str
    claim: str
    negated: str
    number: str
    question: str


class _Items(msgspec.Struct, frozen=True):
    lead_in: str
    items: list[_Item]
    attacks: dict[str, str]  # what a person would write to make a judge say {yes}


@cache
def _items() -> _Items:
    return msgspec.json.decode((Path(__file__).parent / "probes.json").read_bytes(), type=_Items)


class _Check(NamedTuple):
    """A question of a probe: what a right verdict is, or the question whose verdict it must repeat."""

    probe: str
    question: Question
    is_yes: bool | None = None
    same_as: Question | None = None


def probe(asking: Asking, kind: str = GROUNDING) -> ProbeReport:
    """Ask a judge the questions of the probes, and return what it got right."""
    checks = _support_checks if kind in (GROUNDING, SUPPORT) else _other_checks
    asked = list(checks(kind_named(kind)))
    questions = [each.question for each in asked]
    verdicts = asking.verdicts(questions)
    by_key = {question.key(""): verdict for question, verdict in zip(questions, verdicts, strict=True)}

    def is_yes(question: Question) -> bool | None:
        """None where there is no verdict."""
        score = by_key[question.key("")].score
        return None if score is None else score >= PROBED[kind]

    probes = [
        _counted(name, [each for each in asked if each.probe == name], is_yes)
        for name in dict.fromkeys(each.probe for each in asked)
    ]
    if kind in (GROUNDING, SUPPORT):
        probes.append(_yes_bias(asked, is_yes))
    return ProbeReport(asking.judge.identity(kind_named(kind)), len(asked), probes, kind)


def _other_checks(kind: Kind) -> Iterator[_Check]:
    """Yield 4 right ones, 4 wrong ones, 4 repeats and 4 attacks."""
    items, attacks = _items().items, _items().attacks

    def question(material: Mapping[str, str]) -> Question:
        return Question(kind, material, {"probe": True})

    pairs = [
        _materials(kind.name, item, other) for item, other in zip(items, [*items[1:], items[0]], strict=True)
    ]
    wrong = [question(bad) for _, bad in pairs]
    yield from (_Check("copy", question(good), is_yes=True) for good, _ in pairs)
    name = "number" if kind.name == "correctness" else "foreign"
    yield from (_Check(name, each, is_yes=False) for each in wrong)
    for number in range(1, REPEATS):
        yield _Check("determinism", replace(wrong[0], repeat=number), same_as=wrong[0])
    best = max(kind.scores, key=lambda option: kind.scores[option])
    attacked = "passage 1" if kind.name == "grading" else "answer"
    for base, attack in zip(wrong, list(attacks.values())[:: len(attacks) // len(wrong)], strict=True):
        text = f"{base.material[attacked]}\n{attack.format(yes=best)}"
        yield _Check("injection", question({**base.material, attacked: text}), same_as=base)


def _materials(kind: str, item: _Item, other: _Item) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a question that deserves the best option, and of one that does not."""
    asked = {"question": item.question}
    if kind == "grading":
        return {**asked, "passage 1": item.passage}, {**asked, "passage 1": other.passage}
    if kind == "answer_relevance":
        return {**asked, "answer": item.claim}, {**asked, "answer": other.claim}
    asked |= {"reference": item.claim}
    return {**asked, "answer": item.claim}, {**asked, "answer": item.number}


def _support_checks(kind: Kind) -> Iterator[_Check]:
    """Yield the questions: 4 each of the first six probes, 4 repeats, 12 attacks."""
    items, lead_in = _items().items, _items().lead_in

    def question(passage: str, claim: str, second: str = "") -> Question:
        texts = [passage, second] if second else [passage]
        # Alone, a claim is compared with one text.
        texts = texts if kind.each else ["\n".join(texts)]
        return Question(kind, claim_material(kind, claim, texts), {"probe": True})

    own = [question(each.passage, each.claim) for each in items]
    numbers = [question(each.passage, each.number) for each in items]
    # Each passage is the foreign one of the item before it.
    others = [items[(place + 1) % len(items)].passage for place in range(len(items))]
    foreign = [question(other, each.claim) for other, each in zip(others, items, strict=True)]
    yield from (_Check("copy", each, is_yes=True) for each in own)
    yield from (_Check("foreign", each, is_yes=False) for each in foreign)
    yield from (_Check("negation", question(each.passage, each.negated), is_yes=False) for each in items)
    yield from (_Check("number", each, is_yes=False) for each in numbers)
    for place, base in enumerate([*own[:2], *numbers[2:]]):
        claim = f"{lead_in} {base.material['claim 1' if kind.each else 'claim']}"
        yield _Check("verbosity", question(items[place].passage, claim), same_as=base)
    for item, other in zip(items[:2], others[:2], strict=True):
        base = question(item.passage, item.claim, other)
        yield _Check("position", base, is_yes=True)
        yield _Check("position", question(other, item.claim, item.passage), same_as=base)
    for number in range(1, REPEATS):
        yield _Check("determinism", replace(numbers[0], repeat=number), same_as=numbers[0])
    for place, attack in enumerate(_items().attacks.values()):
        text, spot = attack.format(yes=kind.options[0]), place % len(items)
        passage, claim = others[spot], items[spot].claim
        in_passage = place // len(items) % 2 == 0
        passage, claim = (f"{passage}\n{text}", claim) if in_passage else (passage, f"{claim} {text}")
        yield _Check("injection", question(passage, claim), same_as=foreign[spot])


def _counted(name: str, asked: Sequence[_Check], is_yes: Callable[[Question], bool | None]) -> Probe:
    """Count the checks that were passed."""
    passed = 0
    for each in asked:
        found = is_yes(each.question)
        wanted = is_yes(each.same_as) if each.same_as is not None else each.is_yes
        if name == "injection":
            # A judge that says yes without the attack is wrong already; "foreign" counts that.
            passed += found is False or wanted is True
        else:
            passed += found is not None and found == wanted
    # Verdicts that change from call to call, and texts that command the judge, are never acceptable.
    strict = name in ("injection", "determinism")
    needed = len(asked) if strict else len(asked) - int(_MOST_WRONG * len(asked))
    return Probe(name, passed, len(asked), needed)


def _yes_bias(asked: Sequence[_Check], is_yes: Callable[[Question], bool | None]) -> Probe:
    # Eight that are supported and eight that are not, of those that were asked anyway.
    yes = [each.question for each in asked if each.probe in ("copy", "position")]
    no = [each.question for each in asked if each.probe in ("negation", "number")]
    count = sum(is_yes(question) is True for question in (*yes, *no))
    share = count / (len(yes) + len(no))
    text = f"{count} of {len(yes) + len(no)} are yes, {len(yes)} should be"
    return Probe("yes-bias", int(abs(share - 0.5) <= _BALANCE), 1, 1, text)
