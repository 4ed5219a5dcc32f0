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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..ask import Asking
from ..question import Kind, Question, claim_material, kind_named
from .record import GROUNDING, PROBED, SUPPORT, Probe, ProbeReport, probed_kinds

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
    asked = list(_checks(kind_named(kind)))
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


def probe_questions(kinds: Iterable[str]) -> list[Question]:
    """Return the questions of the probes for these kinds of questions."""
    return [each.question for kind in probed_kinds(kinds) for each in _checks(kind_named(kind))]


def _checks(kind: Kind) -> Iterator[_Check]:
    """Yield the questions of all probes: 40 about support, 16 of another kind."""
    items, attacks = _items().items, list(_items().attacks.values())
    is_support = kind.name in (GROUNDING, SUPPORT)
    # The text of another item is the wrong one of the item before it.
    pairs = [_materials(kind, one, other) for one, other in zip(items, [*items[1:], items[0]], strict=True)]
    right, wrong = ([_asked(kind, each) for each in side] for side in zip(*pairs, strict=True))
    yield from (_Check("copy", each, is_yes=True) for each in right)
    name = "number" if kind.name == "correctness" else "foreign"
    yield from (_Check(name, each, is_yes=False) for each in wrong)
    if is_support:
        yield from _support_checks(kind, right)
    for number in range(1, REPEATS):
        yield _Check("determinism", replace(wrong[0], repeat=number), same_as=wrong[0])
    best = max(kind.scores, key=lambda option: kind.scores[option])
    attacked = [text for text in wrong[0].material if text.startswith(("passage", "claim", "answer"))]
    for place, attack in enumerate(attacks if is_support else attacks[:: len(attacks) // len(wrong)]):
        base, spot = wrong[place % len(wrong)], attacked[place // len(wrong) % len(attacked)]
        text = f"{base.material[spot]}\n{attack.format(yes=best)}"
        yield _Check("injection", _asked(kind, {**base.material, spot: text}), same_as=base)


def _asked(kind: Kind, material: Mapping[str, str]) -> Question:
    return Question(kind, material, {"probe": True})


def _materials(kind: Kind, item: _Item, other: _Item) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of a question that deserves the best option, and of one that does not."""
    if kind.name in (GROUNDING, SUPPORT):
        texts = [item.passage], [other.passage]
        right, wrong = (claim_material(kind, item.claim, each) for each in texts)
        return right, wrong
    asked = {"question": item.question}
    if kind.name == "grading":
        return {**asked, "passage 1": item.passage}, {**asked, "passage 1": other.passage}
    if kind.name == "answer_relevance":
        return {**asked, "answer": item.claim}, {**asked, "answer": other.claim}
    asked |= {"reference": item.claim}
    return {**asked, "answer": item.claim}, {**asked, "answer": item.number}


def _support_checks(kind: Kind, own: Sequence[Question]) -> Iterator[_Check]:
    """Yield 4 questions each of the probes that are about support only; `own` are those that are right."""
    items, lead_in = _items().items, _items().lead_in

    def question(claim: str, *passages: str) -> Question:
        # Alone, a claim is compared with one text.
        texts = passages if kind.each else ["\n".join(passages)]
        return _asked(kind, claim_material(kind, claim, texts))

    numbers = [question(each.number, each.passage) for each in items]
    yield from (_Check("negation", question(each.negated, each.passage), is_yes=False) for each in items)
    yield from (_Check("number", each, is_yes=False) for each in numbers)
    for place, base in enumerate([*own[:2], *numbers[2:]]):
        claim = f"{lead_in} {base.material['claim 1' if kind.each else 'claim']}"
        yield _Check("verbosity", question(claim, items[place].passage), same_as=base)
    for place in (0, 1):
        item, other = items[place], items[place + 1]
        base = question(item.claim, item.passage, other.passage)
        yield _Check("position", base, is_yes=True)
        yield _Check("position", question(item.claim, other.passage, item.passage), same_as=base)


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
