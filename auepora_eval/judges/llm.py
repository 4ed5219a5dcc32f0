"""A language model as a judge, behind any endpoint that speaks OpenAI's chat protocol.

It answers in one of two modes, which is a part of its identity and never changes silently:

- `logprob`: one token is generated, and the score is the expectation over the probabilities of the options;
- `label`: a JSON object with a quote, then the verdict; a quote that is not in the text voids the verdict.

A question about several texts is answered in one reply with a label for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from ..calls.chat import ChatModel, Message, Reply, as_material, fence_of, parse_strictly
from ..calls.http import BadReplyError, tidy
from ..calls.keys import without_secrets
from ..errors import DataError
from ..text.content_words import content_words, numbers, without_marks
from ..text.tokens import words
from .judge import Judge, estimated_tokens
from .question import Judgement, Kind, Part, Question, numbered_texts, with_parts

T = TypeVar("T")
LABEL, LOGPROB = MODES = "label", "logprob"
LEAST_MASS = 0.8  # of the options among all tokens; below it the model did not answer the question
_ALTERNATIVES = 20  # the most that servers report
_LONGEST_QUOTE = 200
_RAW = 4_000  # characters of a reply that are stored
_TOKENS = 160  # of one of several verdicts at most, with its quote
# Marks that tokenizers put before a word, and signs that models put around it.
_AROUND = " \t\r\n▁Ġ\"'`*.:,()[]{}"


class _Entry(msgspec.Struct):
    verdict: str
    number: int = 1
    quote: str = ""
    passages: list[int] = []


class _Verdicts(msgspec.Struct):
    verdicts: list[_Entry]


class _Listed(msgspec.Struct):
    claims: list[str]


class _VoidError(Exception):
    """A reply, or a part of it, that is not a verdict."""


class LlmJudge(Judge):
    """A model at an endpoint as a judge. `mode`: label or logprob."""

    def __init__(self, model: ChatModel, mode: str = LABEL) -> None:
        if mode not in MODES:
            raise DataError("--mode", f"{mode!r:.40} is not a mode.", fix=f"Write {' or '.join(MODES)}.")
        self.model, self.mode = model, mode
        self.name = f"{model.server}#{model.model}"

    def identity(self, kind: Kind) -> str:
        # The server is a part of it: local ones call any model "default", so the name alone says little.
        mode = self._mode(kind)
        asked = f"{kind.prompt.sha256}\n{_reply_text(kind, mode)}\n{sorted(kind.scores.items())}"
        digest = sha256(asked.encode()).hexdigest()[:8]
        known = self.model.identity
        usual = {"temperature": 0.0, "max_tokens": 2048, "seed": None}
        changed = [f"{name}={known.get(name)}" for name, value in usual.items() if known.get(name) != value]
        changed += [f"{name}={value}" for name, value in known["extra"].items()]
        return "/".join([kind.name, f"{self.model.model}@{digest}", self.model.server, mode, *changed])

    def judge(self, question: Question) -> Judgement:
        if not question.kind.options:
            return self._listed(question)
        by_probability = self._mode(question.kind) == LOGPROB
        return self._by_probability(question) if by_probability else self._labelled(question)

    def tokens(self, question: Question) -> tuple[int, int]:
        mode = self._mode(question.kind)
        sent = estimated_tokens(message["content"] for message in self._messages(question, mode))
        return sent, 1 if mode == LOGPROB else super().tokens(question)[1]

    def _mode(self, kind: Kind) -> str:
        """Return the mode of questions of a kind: one token cannot answer about several texts."""
        return LABEL if kind.each or not kind.options else self.mode

    def close(self) -> None:
        self.model.close()

    def _messages(self, question: Question, mode: str) -> list[Message]:
        material = as_material(dict(question.material))
        return list(
            question.kind.prompt.filled(
                fence=fence_of(material), material=material, reply=_reply_text(question.kind, mode)
            )
        )

    def _by_probability(self, question: Question) -> Judgement:
        reply = self.model.complete(self._messages(question, LOGPROB), top_logprobs=_ALTERNATIVES)
        verdict = _verdict_of([reply])
        if reply.first_token is None:
            verdict.failed = "no_logprobs: the server did not report the probabilities of tokens"
            return verdict
        scores = question.kind.scores
        found = option_probabilities(reply.first_token, question.kind.options)
        mass = verdict.mass = math.fsum(found.values())
        if mass < LEAST_MASS:
            said = tidy(reply.text, 40)
            verdict.failed = f"no_mass: the options have {mass:.2f} of the probability; it said {said!r}"
            return verdict
        verdict.probabilities = {option: found[option] / mass for option in scores}
        expected = math.fsum(verdict.probabilities[option] * score for option, score in scores.items())
        verdict.score = min(1.0, max(0.0, expected))
        verdict.label = max(scores, key=lambda option: found[option])
        return verdict

    def _talk(
        self, question: Question, schema: dict[str, Any], read: Callable[[Reply], str]
    ) -> tuple[Judgement, str]:
        """Return a verdict without its decision, and what is still wrong with it.

        `read` takes a reply and says what is wrong, or "". The model is asked once more for what is.
        """
        messages, replies, wrong = self._messages(question, LABEL), [], ""
        tokens = _TOKENS * len(numbered_texts(question, question.kind.each))
        for _ in range(2):
            reply = self.model.complete(messages, response_schema=schema, least_tokens=tokens)
            replies.append(reply)
            if not (wrong := read(reply)):
                break
            tokens = 2 * max(tokens, reply.completion_tokens or 0)  # had it been cut off, it would be again
            again = f"{wrong}. Reply again in the same form, with a JSON object and nothing else."
            messages += [
                {"role": "assistant", "content": reply.text[:_RAW]},
                {"role": "user", "content": again},
            ]
        verdict = _verdict_of(replies)
        verdict.flags = ["repaired"] if len(replies) > 1 else []
        return verdict, without_secrets(wrong)

    def _labelled(self, question: Question) -> Judgement:
        """Return a verdict, or one for each of the numbered texts; what a reply lacks is asked for again."""
        parts: dict[int, Part] = {}

        def read(reply: Reply) -> str:
            parts.update(_read_parts(question, reply, [n for n, part in parts.items() if not part.failed]))
            wrong = [(n, part.failed) for n, part in sorted(parts.items()) if part.failed]
            return "; ".join(f"number {n}: {why}" if question.kind.each else why for n, why in wrong[:20])

        verdict, _ = self._talk(question, _schema(question), read)
        for part in parts.values():
            part.failed = without_secrets(part.failed)
        if question.kind.each:
            return with_parts(verdict, [part for _, part in sorted(parts.items())], question.kind.each)
        only = parts[1]
        verdict.label, verdict.score, verdict.quote = only.label, only.score, only.quote
        verdict.failed = only.failed
        return verdict

    def _listed(self, question: Question) -> Judgement:
        texts: list[str] = []

        def read(reply: Reply) -> str:
            try:
                texts[:] = filter(None, map(str.strip, _parsed(reply, _Listed).claims))
            except _VoidError as error:
                return str(error)
            return ""

        schema = _object({"claims": {"type": "array", "items": {"type": "string"}}})
        verdict, wrong = self._talk(question, schema, read)
        verdict.failed, verdict.texts, verdict.score = wrong, texts, None if wrong else 1.0
        return verdict


def _read_parts(question: Question, reply: Reply, known: Container[int]) -> dict[int, Part]:
    """Return the verdicts of a reply by their number, without the known ones; what cannot be used, failed."""
    each = question.kind.each
    count = len(numbered_texts(question, each)) if each else 1
    wanted = [number for number in range(1, count + 1) if number not in known]
    try:
        verdicts = _parsed(reply, _Verdicts).verdicts if each else [_parsed(reply, _Entry)]
    except _VoidError as error:
        return {number: Part(failed=str(error)) for number in wanted}
    parts = {}
    for number in wanted:
        entries = [one for one in verdicts if one.number == number or not each]
        try:
            if len({one.verdict for one in entries}) != 1:
                raise _VoidError(f"missing: there are {len(entries) or 'no'} verdicts on it")
            parts[number] = _part(question, entries[0])
        except _VoidError as error:
            parts[number] = Part(failed=str(error))
    return parts


def _part(question: Question, entry: _Entry) -> Part:
    """Return what a reply says of one text; _VoidError if it cannot be used."""
    kind = question.kind
    label = entry.verdict.strip().casefold()
    if label not in kind.scores:
        raise _VoidError(f"no_option: {tidy(entry.verdict, 40)!r} is not one of {', '.join(kind.options)}")
    part = Part(label, kind.scores[label])
    if not kind.quoted or label == kind.options[-1]:
        return part
    if kind.each and kind.quoted == "passage":
        named = dict.fromkeys(entry.passages)
        unknown = [number for number in named if f"passage {number}" not in question.material]
        if unknown or not named:
            raise _VoidError(f"unknown_passage: {unknown or 'none'} is named")
        sources = {number: question.material[f"passage {number}"] for number in named}
    else:
        sources = {0: question.material[kind.quoted]}
    for number, source in sources.items():
        place = find_quote(entry.quote, source)
        if place and says_something(entry.quote, source):
            part.quote = source[place[0] : place[1]]
            # The passage with the quote comes first.
            part.passages = [number, *(each for each in sources if each != number)] if number else []
            return part
    raise _VoidError(
        f"quote_not_found: {tidy(entry.quote, 80)!r} is not a phrase of the {kind.quoted}; copy it word for "
        "word, or choose another verdict"
    )


def _parsed(reply: Reply, kind: type[T]) -> T:
    try:
        return parse_strictly(reply.text, kind)
    except BadReplyError as error:
        if reply.finish_reason == "length":
            at = "" if reply.completion_tokens is None else f" after {reply.completion_tokens:,} tokens"
            raise _VoidError(f"cut_off: the reply was cut off{at}") from None
        raise _VoidError(f"unparsable: {tidy(error, 120)}") from None


def option_probabilities(
    alternatives: Sequence[tuple[str, float]], options: Sequence[str]
) -> dict[str, float]:
    """Return the probability of each option, by the alternatives for the first token.

    A token counts for the option that it is, or begins: "Yes", " yes" and "▁YES" are all yes, and "contrad"
    is the beginning of contradicted. A token that could begin several options counts for none.

    >>> found = option_probabilities([(" Yes", -0.1), ("no", -3.0), ("maybe", -4.0)], ["yes", "no"])
    >>> {option: round(value, 2) for option, value in found.items()}
    {'yes': 0.9, 'no': 0.05}
    """
    found = dict.fromkeys(options, 0.0)
    for token, logprob in alternatives:
        word = token.strip(_AROUND).casefold()
        if word in found:
            matches = [word]
        else:
            matches = [option for option in options if len(word) > 1 and option.startswith(word)]
        if len(matches) == 1 and logprob <= 0.001:
            found[matches[0]] += math.exp(min(0.0, logprob))
    return found


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a quote is in a text, whatever the white space and the case; None if it is not there.

    >>> find_quote("the  PIER", "At the pier.")
    (3, 11)
    """
    parts = quote.strip(" \"'“”").split()
    if not parts or len(quote) > 2 * _LONGEST_QUOTE:
        return None
    match = re.search(r"\s+".join(map(re.escape, parts)), text, re.IGNORECASE)
    return match.span() if match else None


def says_something(quote: str, text: str) -> bool:
    """Return whether a quote is a phrase, or the whole text: a letter or a mark, "[2]", is in many texts.

    >>> [says_something(quote, "The pier is [2] long.") for quote in ("the pier", "p", "is", "[2]")]
    [True, False, False, False]
    """
    bare = without_marks(quote)
    is_phrase = len(words(bare)) > 1 and bool(content_words(bare) or numbers(bare))
    return is_phrase or words(bare) == words(without_marks(text))


def _reply_text(kind: Kind, mode: str) -> str:
    """Return the last lines of the prompt: the form of the reply, and the options."""
    only, options = "Reply with a JSON object and nothing else", ", ".join(kind.options)
    if not kind.options:
        return f'{only}: {{"claims": ["...", "..."]}}.'
    if mode == LOGPROB:
        return f"Reply with one word and nothing else. The words to choose from: {options}."
    names_passages = kind.each and kind.quoted == "passage"
    entry = '"number": 1, ' if kind.each else ""
    entry += '"passages": [1], ' if names_passages else ""
    entry += '"quote": "...", ' if kind.quoted else ""
    form = f'{{{entry}"verdict": "..."}}'
    if kind.each:
        form = f'{{"verdicts": [{form}]}}, with one entry for each {kind.each}'
    text = f"{only}: {form}."
    if names_passages:
        text += " Passages are the numbers of all that support or contradict it, or empty."
    if kind.quoted:
        of = "one of these passages" if names_passages else f"the {kind.quoted}"
        text += f" The quote is the part of {of} that decides, copied word for word, at most "
        text += f"{_LONGEST_QUOTE} characters, or empty if there is none."
    return f"{text} The verdict is one of: {options}."


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(question: Question) -> dict[str, Any]:
    kind, count = question.kind, len(numbered_texts(question, question.kind.each))
    properties: dict[str, Any] = {"number": {"type": "integer"}} if kind.each else {}
    if kind.each and kind.quoted == "passage":
        most = len(numbered_texts(question, "passage"))
        properties["passages"] = {"type": "array", "items": {"type": "integer"}, "maxItems": most}
    if kind.quoted:  # before the verdict: the model looks for evidence before it decides
        properties["quote"] = {"type": "string", "maxLength": _LONGEST_QUOTE}
    entry = _object({**properties, "verdict": {"type": "string", "enum": list(kind.options)}})
    if not kind.each:
        return entry
    # With the number of entries: small models would go on until the reply is cut off.
    return _object({"verdicts": {"type": "array", "items": entry, "minItems": count, "maxItems": count}})


def _verdict_of(replies: Sequence[Reply]) -> Judgement:
    """Return a verdict with everything but the decision."""
    last, usage = replies[-1], dict[str, int]()
    for reply in replies:
        counts = {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}
        for name, count in counts.items():
            if count is not None:
                usage[name] = usage.get(name, 0) + count
    return Judgement(
        model=last.model,
        raw=last.text[:_RAW],
        usage=usage,
        seconds=math.fsum(reply.seconds for reply in replies),
        attempts=len(replies),
    )
