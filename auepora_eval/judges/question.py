"""A question to a judge, and its verdict.

A question is about one claim and one passage, say, or about all claims and passages of an answer: then its
verdict has a part for each claim. Its kind decides the prompt, the options to choose from and their scores. A
verdict has the score, and everything that is needed to check it or to compute it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ..calls.chat import Prompt, read_prompt
from ..core.dataset import canonical_json

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True)
class Kind:
    """A kind of question: its prompt, its options (single words) and the score of each.

    `quoted` names the text of the material that a quote must come from. The last option says that nothing is
    there, and needs no quote. A kind without options asks for a list of texts.

    `each` names the numbered texts ("claim 1", "claim 2") that have a verdict each, in one reply. `single` is
    the kind of question about one of them, for judges that compare texts one by one.
    """

    name: str
    prompt: Prompt
    scores: Mapping[str, float]
    quoted: str = ""
    each: str = ""
    single: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Return the words that a judge chooses from."""
        return tuple(self.scores)


_GRADES = {"0": 0.0, "1": 1 / 3, "2": 2 / 3, "3": 1.0}
_GROUNDING = {"supported": 1.0, "contradicted": 0.0, "unmentioned": 0.0}
_COVERAGE = {"full": 1.0, "partial": 0.5, "none": 0.0}
# By name: the options with their scores, the text that quotes come from, and of a kind with a verdict for
# each of several texts the name of these and the kind for one of them.
_KINDS: dict[str, tuple[dict[str, float], str, str, str]] = {
    "support": ({"yes": 1.0, "no": 0.0}, "passage", "", ""),
    "relevance": (_GRADES, "", "", ""),
    "answer_relevance": ({"yes": 1.0, "partly": 0.5, "no": 0.0}, "", "", ""),
    "correctness": ({"same": 1.0, "incomplete": 0.5, "contradicts": 0.0, "refusal": 0.0}, "", "", ""),
    "nugget": (_COVERAGE, "answer", "", ""),
    "claims": ({}, "", "", ""),
    "preference": ({"first": 1.0, "tie": 0.5, "second": 0.0}, "", "", ""),
    "grounding": (_GROUNDING, "passage", "claim", "support"),
    "grading": (_GRADES, "", "passage", "relevance"),
    "nuggets": (_COVERAGE, "answer", "information", "nugget"),
}
# About one text, which only functions are asked.
_PROMPT_OF = {"relevance": "grading", "nugget": "nuggets"}


@cache
def kind_named(name: str) -> Kind:
    """Return one of the kinds that the library knows; KeyError if it is none of them."""
    prompt = read_prompt(PROMPTS / f"judge_{_PROMPT_OF.get(name, name)}.md")
    return Kind(name, prompt, *_KINDS[name])


@dataclass(frozen=True)
class Question:
    """A question of some kind about some texts.

    `about` says where the texts come from (sample, claim, passage): it is stored with the verdict, and is
    not shown to the judge. `repeat` numbers the times that the same question is asked.
    """

    kind: Kind
    material: Mapping[str, str]
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)
    repeat: int = 0

    def key(self, identity: str) -> str:
        """Return what the verdict of a judge is stored under: the same question has the same key."""
        content = canonical_json([identity, self.kind.name, dict(self.material), self.repeat])
        return blake2b(content, digest_size=16).hexdigest()


def numbered(name: str, texts: Iterable[str]) -> dict[str, str]:
    """Return texts as a part of the material: {"claim 1": ..., "claim 2": ...}."""
    return {f"{name} {number}": text for number, text in enumerate(texts, start=1)}


def numbered_texts(question: Question, name: str) -> list[str]:
    """Return the numbered texts of the material, in their order."""
    texts: list[str] = []
    while (text := question.material.get(f"{name} {len(texts) + 1}")) is not None:
        texts.append(text)
    return texts


def claim_material(kind: Kind, claim: str, passages: Sequence[str]) -> dict[str, str]:
    """Return the material of a question about one claim and all of its passages."""
    if kind.each:
        return {**numbered("passage", passages), **numbered("claim", [claim])}
    joined = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages, start=1))
    return {"passage": passages[0] if len(passages) == 1 else joined, "claim": claim}


class Part(msgspec.Struct, omit_defaults=True):
    """The verdict on one of several texts; `passages` are the numbers of those that it is based on."""

    label: str = ""
    score: float | None = None
    passages: list[int] = []
    quote: str = ""
    failed: str = ""


class Judgement(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a judge said. A verdict without a score has failed, and `failed` says why."""

    score: float | None = None  # from 0 to 1
    label: str = ""  # the option that was chosen, or the likeliest one
    probabilities: dict[str, float] = {}  # of each option, where the judge has them; they sum to 1
    mass: float | None = None  # the probability of all options together, before they were scaled to 1
    texts: list[str] = []  # the reply to a question without options
    parts: list[Part] = []  # the verdict on each text, of a question about several
    quote: str = ""
    raw: str = ""  # the reply, at most 4 kB of it
    model: str = ""  # as the server reports it
    usage: dict[str, int] = {}  # input_tokens, output_tokens
    seconds: float | None = None
    attempts: int = 1
    flags: list[str] = []  # repaired
    failed: str = ""  # what went wrong: "no_mass: ...", "quote_not_found: ...", "TimeoutError: ..."
    key: str = ""
    identity: str = ""
    kind: str = ""
    about: dict[str, Any] = {}


def with_parts(verdict: Judgement, parts: Sequence[Part], each: str) -> Judgement:
    """Return a verdict with its parts; it fails if one of them failed, but the others can be used."""
    verdict.parts = list(parts)
    verdict.label = " ".join(part.label or "-" for part in parts)
    failed = [part.failed for part in parts if part.failed]
    scores = [part.score for part in parts if part.score is not None]
    if failed:
        verdict.failed = f"{len(failed)} of {len(parts)} {each} verdicts failed: {failed[0]}"
    elif scores:
        verdict.score = sum(scores) / len(scores)
    return verdict
