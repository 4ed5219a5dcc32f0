"""A question to a judge, and its verdict.

A question is small: one claim and one passage, say. Its kind decides the prompt, the options to choose from
and their scores. A verdict has the score, and everything that is needed to check it or to compute it again.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    `quoted` names the text of the material that a quote must come from; `quote_for` are the options that
    need one. A kind without options asks for a list of texts.
    """

    name: str
    prompt: Prompt
    scores: Mapping[str, float]
    quoted: str = ""
    quote_for: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Return the words that a judge chooses from."""
        return tuple(self.scores)


_GRADES = {"0": 0.0, "1": 1 / 3, "2": 2 / 3, "3": 1.0}
# name: options with their scores, the text that quotes come from, the options that need a quote
_KINDS: dict[str, tuple[dict[str, float], str, tuple[str, ...]]] = {
    "support": ({"yes": 1.0, "no": 0.0}, "passage", ("yes",)),
    "contradiction": (
        {"supported": 0.0, "contradicted": 1.0, "unmentioned": 0.0},
        "passage",
        ("supported", "contradicted"),
    ),
    "relevance": (_GRADES, "", ()),
    "answer_relevance": ({"yes": 1.0, "partly": 0.5, "no": 0.0}, "", ()),
    "correctness": ({"same": 1.0, "incomplete": 0.5, "contradicts": 0.0, "refusal": 0.0}, "", ()),
    "nugget": ({"full": 1.0, "partial": 0.5, "none": 0.0}, "answer", ("full", "partial")),
    "preference": ({"first": 1.0, "tie": 0.5, "second": 0.0}, "", ()),
    "claims": ({}, "", ()),
}


@cache
def kind_named(name: str) -> Kind:
    """Return one of the kinds that the library knows; KeyError if it is none of them."""
    scores, quoted, quote_for = _KINDS[name]
    return Kind(name, read_prompt(PROMPTS / f"judge_{name}.md"), scores, quoted, quote_for)


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


class Judgement(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a judge said. A verdict without a score has failed, and `failed` says why."""

    score: float | None = None  # from 0 to 1
    label: str = ""  # the option that was chosen, or the likeliest one
    probabilities: dict[str, float] = {}  # of each option, where the judge has them; they sum to 1
    mass: float | None = None  # the probability of all options together, before they were scaled to 1
    texts: list[str] = []  # the reply to a question without options
    quote: str = ""
    quote_at: tuple[int, int] | None = None  # its first and last + 1 character in the quoted text
    raw: str = ""  # the reply, at most 4 kB of it
    mode: str = ""
    model: str = ""  # as the server reports it
    fingerprint: str = ""  # the server's system_fingerprint
    usage: dict[str, int] = {}  # input_tokens, output_tokens
    seconds: float | None = None
    attempts: int = 1
    flags: list[str] = []  # cut, suspicious, repaired
    failed: str = ""  # what went wrong: "no_mass: ...", "quote_not_found: ...", "TimeoutError: ..."
    may_pass: bool = False  # of a failure: asking again may help
    key: str = ""
    identity: str = ""
    kind: str = ""
    about: dict[str, Any] = {}
