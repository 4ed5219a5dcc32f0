"""A language model as a judge, behind any endpoint that speaks OpenAI's chat protocol.

It answers in one of three modes, which is a part of its identity and never changes silently:

- `logprob`: one token is generated, and the score is the expectation over the probabilities of the options;
- `label`: a JSON object with a quote, then the verdict; a quote that is not in the text voids the verdict;
- `sampled:n`: the mean of n labels at a temperature above 0.

A question about several texts is answered in one reply with a label for each: in mode `label`, or sampled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from ..calls.chat import ChatModel, Message, Reply, as_material, fence_of, parse_strictly
from ..calls.http import BadReplyError, tidy
from ..calls.keys import without_secrets
from ..errors import CallError, DataError
from .injection import suspicious
from .judge import Judge
from .question import Judgement, Kind, Part, Question, kind_named, numbered_texts, with_parts

T = TypeVar("T")
AUTO, LOGPROB, LABEL, SAMPLED = "auto", "logprob", "label", "sampled"
LEAST_MASS = 0.8  # of the options among all tokens; below it the model did not answer the question
_ALTERNATIVES = 20  # the most that servers report
_LONGEST_QUOTE = 200
_RAW = 4_000  # characters of a reply that are stored
_TEMPERATURE = 0.7  # of samples
_TEXTS = 200  # items of a list that a model may return
# Marks that tokenizers put before a word, and signs that models put around it.
_AROUND = " \t\r\n▁Ġ\"'`*.:,()[]{}"


class _Labelled(msgspec.Struct):
    verdict: str
    quote: str = ""


class _Listed(msgspec.Struct):
    claims: list[str]


class _Numbered(msgspec.Struct):
    number: int
    verdict: str
    quote: str = ""
    passages: list[int] = []


class _Verdicts(msgspec.Struct):
    verdicts: list[_Numbered]


class _VoidError(Exception):
    """A reply that is not a verdict: what to write on record, and what to ask the model."""

    def __init__(self, reason: str, request: str) -> None:
        super().__init__(reason)
        self.request = request


class LlmJudge(Judge):
    """A model at an endpoint as a judge. `mode`: logprob, label, sampled:n, or auto (`settle` decides)."""

    keeps_time = True

    def __init__(self, model: ChatModel, mode: str = AUTO) -> None:
        self.model = model
        self.mode, self._samples = _checked_mode(mode)

    def settle(self) -> str:
        """Decide the mode, if it is `auto`, by one small question; return a sentence about it, or ""."""
        if self.mode != AUTO:
            return ""
        self.mode = LABEL if self._has_no_logprobs() else LOGPROB
        what = "reports" if self.mode == LOGPROB else "does not report"
        return f"judge: mode {self.mode}, since the server {what} the probabilities of tokens"

    def _has_no_logprobs(self) -> bool:
        question = Question(kind_named("support"), {"passage": "Snow is white.", "claim": "Snow is white."})
        try:
            reply = self.model.complete(self._messages(question, LOGPROB), top_logprobs=_ALTERNATIVES)
        except CallError as error:
            # Servers have no common code for a field that they do not know.
            if error.status in (400, 422) and "logprobs" in str(error):
                return True
            raise
        return not reply.first_token

    def identity(self, kind: Kind) -> str:
        mode = LABEL if kind.each and self.mode in (AUTO, LOGPROB) else self.mode
        asked = f"{kind.prompt.sha256}\n{_reply_text(kind, mode)}\n{sorted(kind.scores.items())}"
        digest = sha256(asked.encode()).hexdigest()[:8]
        text = self.mode_text() if mode == self.mode else mode
        return "/".join([kind.name, f"{self.model.model}@{digest}", text, *self._parameters()])

    @property
    def server(self) -> str:
        """Return who is asked: local servers call any model "default", so the name alone says little."""
        return self.model.server

    def mode_text(self) -> str:
        """Return the mode as --mode takes it."""
        return f"{SAMPLED}:{self._samples}" if self.mode == SAMPLED else self.mode

    def _parameters(self) -> list[str]:
        """Return the settings of the model that are not the usual ones."""
        usual = {"temperature": 0.0, "max_tokens": 2048}
        settings = self.model.identity
        changed = {name: settings.get(name) for name in ("temperature", "seed", "max_tokens")}
        return [
            f"{name}={value}"
            for name, value in changed.items()
            if value is not None and usual.get(name) != value
        ]

    def judge(self, question: Question) -> Judgement:
        if self.mode == AUTO and not question.kind.each:
            self.settle()
        verdict = self._answer(question)
        if any(map(suspicious, question.material.values())):
            verdict.flags.append("suspicious")
        return verdict

    def _answer(self, question: Question) -> Judgement:
        if not question.kind.options:
            return self._listed(question)
        if question.kind.each and self.mode != SAMPLED:
            return self._each(question)
        if self.mode == LOGPROB:
            return self._by_probability(question)
        if self.mode == LABEL:
            return self._labelled(question)
        return self._sampled(question)

    def calls_for(self, question: Question) -> int:
        return self._samples if question.kind.options else 1

    def close(self) -> None:
        self.model.close()

    def _messages(self, question: Question, mode: str) -> list[dict[str, str]]:
        material = as_material(dict(question.material))
        return question.kind.prompt.filled(
            fence=fence_of(material), material=material, reply=_reply_text(question.kind, mode)
        )

    def _by_probability(self, question: Question) -> Judgement:
        reply = self.model.complete(self._messages(question, LOGPROB), top_logprobs=_ALTERNATIVES)
        verdict = _verdict_of([reply], LOGPROB)
        if reply.first_token is None:
            verdict.failed = "no_logprobs: the server did not report the probabilities of tokens"
            return verdict
        found = option_probabilities(reply.first_token, question.kind.options)
        mass = verdict.mass = math.fsum(found.values())
        if mass < LEAST_MASS:
            said = tidy(reply.text, 40)
            verdict.failed = f"no_mass: the options have {mass:.2f} of the probability; it said {said!r}"
            return verdict
        scores = question.kind.scores
        verdict.probabilities = {option: found[option] / mass for option in scores}
        verdict.score = _expectation(verdict.probabilities, scores)
        verdict.label = max(scores, key=lambda option: found[option])
        return verdict

    def _labelled(self, question: Question, temperature: float | None = None) -> Judgement:
        talk = _Talk(self.model, self._messages(question, LABEL), _schema(question.kind), temperature)
        verdict = talk.verdict(partial(_read_label, question))
        verdict.mode = LABEL
        return verdict

    def _each(self, question: Question, temperature: float | None = None) -> Judgement:
        """Return a verdict for each of the numbered texts; those that the reply lacks are asked for again."""
        messages, schema = self._messages(question, LABEL), _each_schema(question)
        parts: dict[int, Part] = {}
        faults: dict[int, str] = {}
        replies: list[Reply] = []
        for _ in range(2):
            reply = self.model.complete(messages, response_schema=schema, temperature=temperature)
            replies.append(reply)
            faults = _read_parts(question, reply.text, parts)
            if not faults:
                break
            listed = "; ".join(f"number {number}: {fault}" for number, fault in list(faults.items())[:20])
            messages = [
                *messages,
                {"role": "assistant", "content": reply.text[:_RAW]},
                {"role": "user", "content": f"Reply again in the same form, for these numbers. {listed}."},
            ]
        verdict = _verdict_of(replies, LABEL)
        verdict.flags = ["repaired"] if len(replies) > 1 else []
        failed = {number: Part(failed=without_secrets(fault)) for number, fault in faults.items()}
        return with_parts(
            verdict, [part for _, part in sorted({**parts, **failed}.items())], question.kind.each
        )

    def _sampled(self, question: Question) -> Judgement:
        ask = self._each if question.kind.each else self._labelled
        verdicts = [ask(question, _TEMPERATURE) for _ in range(self._samples)]
        last = verdicts[-1]
        scored = [verdict for verdict in verdicts if verdict.score is not None]
        whole = Judgement(
            mode=self.mode_text(),
            model=last.model,
            fingerprint=last.fingerprint,
            usage=_sum_of(verdict.usage for verdict in verdicts),
            seconds=math.fsum(verdict.seconds or 0.0 for verdict in verdicts),
            attempts=sum(verdict.attempts for verdict in verdicts),
            raw=last.raw,
            flags=sorted({flag for verdict in verdicts for flag in verdict.flags}),
        )
        if len(scored) < len(verdicts):
            failures = [verdict.failed for verdict in verdicts if verdict.failed]
            whole.failed = f"{len(failures)} of {len(verdicts)} samples failed: {failures[0]}"
            return whole
        if question.kind.each:
            return with_parts(whole, [_mean_part(each) for each in _by_part(verdicts)], question.kind.each)
        scores = question.kind.scores
        whole.probabilities = {
            option: sum(verdict.label == option for verdict in scored) / len(scored) for option in scores
        }
        whole.score = _expectation(whole.probabilities, scores)
        whole.label = max(scores, key=lambda option: whole.probabilities[option])
        with_quote = next((verdict for verdict in scored if verdict.label == whole.label), last)
        whole.quote, whole.quote_at = with_quote.quote, with_quote.quote_at
        return whole

    def _listed(self, question: Question) -> Judgement:
        schema = {
            "type": "object",
            "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
            "required": ["claims"],
            "additionalProperties": False,
        }
        talk = _Talk(self.model, self._messages(question, LABEL), schema)
        verdict = talk.verdict(_read_texts)
        verdict.mode = LABEL
        return verdict


@dataclass
class _Talk:
    """One exchange with a model: a question, its reply, and one more turn if the reply is not a verdict."""

    model: ChatModel
    messages: Sequence[Message]
    schema: Mapping[str, Any]
    temperature: float | None = None
    replies: list[Reply] = field(default_factory=list)

    def verdict(self, read: Callable[[str, Judgement], None]) -> Judgement:
        """Return the verdict of the first reply that `read` accepts, else the failed one of the second."""
        messages = list(self.messages)
        for turn in range(2):
            reply = self.model.complete(messages, response_schema=self.schema, temperature=self.temperature)
            self.replies.append(reply)
            verdict = _verdict_of(self.replies, "")
            if turn:
                verdict.flags.append("repaired")
            try:
                read(reply.text, verdict)
            except _VoidError as error:
                verdict.failed = without_secrets(str(error))
                messages = [
                    *messages,
                    {"role": "assistant", "content": reply.text[:_RAW]},
                    {"role": "user", "content": error.request},
                ]
            else:
                return verdict
        return verdict


def _read_label(question: Question, text: str, verdict: Judgement) -> None:
    """Enter the label and the quote of a reply into a verdict."""
    kind = question.kind
    reply = _parsed(text, _Labelled)
    label = reply.verdict.strip().casefold()
    if label not in kind.scores:
        options = ", ".join(kind.options)
        raise _VoidError(f"no_option: {tidy(reply.verdict, 40)!r}", f"The verdict must be one of: {options}.")
    place = find_quote(reply.quote, question.material[kind.quoted]) if kind.quoted else None
    if label in kind.quote_for and place is None:
        raise _VoidError(
            f"quote_not_found: {tidy(reply.quote, 80)!r} is not in the {kind.quoted}",
            f"The quote is not in the {kind.quoted}. Copy it word for word, and reply again in the same "
            "form. If there is no such place, choose another verdict.",
        )
    verdict.label, verdict.score = label, kind.scores[label]
    if place is not None:
        verdict.quote_at = place
        verdict.quote = question.material[kind.quoted][place[0] : place[1]]


def _read_parts(question: Question, text: str, parts: dict[int, Part]) -> dict[int, str]:
    """Add the verdicts of a reply that can be used; return what is wrong with the others, by their number."""
    kind = question.kind
    count = len(numbered_texts(question, kind.each))
    open_numbers = [number for number in range(1, count + 1) if number not in parts]
    try:
        reply = _parsed(text, _Verdicts)
    except _VoidError as error:
        return dict.fromkeys(open_numbers, str(error))
    faults = {}
    for number in open_numbers:
        entries = [each for each in reply.verdicts if each.number == number]
        if len({each.verdict for each in entries}) != 1:
            faults[number] = f"missing: there are {len(entries) or 'no'} verdicts on it"
            continue
            continue
        try:
            parts[number] = _read_part(question, entries[0])
        except _VoidError as error:
            faults[number] = str(error)
    return faults


def _read_part(question: Question, entry: _Numbered) -> Part:
    kind = question.kind
    label = entry.verdict.strip().casefold()
    if label not in kind.scores:
        options = ", ".join(kind.options)
        raise _VoidError(f"no_option: {tidy(entry.verdict, 40)!r} is not one of {options}", "")
    part = Part(label, kind.scores[label])
    if label not in kind.quote_for:
        return part
    if kind.quoted == "passage":
        named = dict.fromkeys(entry.passages)
        unknown = [number for number in named if f"passage {number}" not in question.material]
        if unknown or not named:
            raise _VoidError(f"unknown_passage: {unknown or 'none'} is named", "")
        sources = {number: question.material[f"passage {number}"] for number in named}
    else:
        sources = {0: question.material[kind.quoted]}
    for number, source in sources.items():
        if place := find_quote(entry.quote, source):
            part.quote = source[place[0] : place[1]]
            # The passage with the quote comes first.
            part.passages = [number, *(each for each in sources if each != number)] if number else []
            return part
    raise _VoidError(f"quote_not_found: {tidy(entry.quote, 80)!r} is not in the {kind.quoted}", "")


def _by_part(verdicts: Sequence[Judgement]) -> list[tuple[Part, ...]]:
    return list(zip(*(verdict.parts for verdict in verdicts), strict=True))


def _mean_part(parts: Sequence[Part]) -> Part:
    """Return the mean of several verdicts on one text, with the words of one that has the commonest label."""
    label = Counter(part.label for part in parts).most_common(1)[0][0]
    first = next(part for part in parts if part.label == label)
    score = math.fsum(part.score or 0.0 for part in parts) / len(parts)
    return Part(label, score, first.passages, first.quote)


def _read_texts(text: str, verdict: Judgement) -> None:
    """Enter the list of a reply into a verdict."""
    texts = [each.strip() for each in _parsed(text, _Listed).claims[:_TEXTS]]
    verdict.texts = [each for each in texts if each]
    verdict.score = 1.0


def _parsed(text: str, kind: type[T]) -> T:
    try:
        return parse_strictly(text, kind)
    except BadReplyError as error:
        request = f"That cannot be read: {error}. Reply with the JSON object alone."
        raise _VoidError(f"unparsable: {tidy(error, 120)}", request) from None


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
    wanted = " ".join(quote.split()).casefold().strip(" \"'“”")
    if not wanted or len(wanted) > 2 * _LONGEST_QUOTE:
        return None
    letters: list[str] = []
    places: list[int] = []  # in the text, of each letter
    for place, letter in enumerate(text):
        folded = " " if letter.isspace() else letter.casefold()
        if folded == " " and letters and letters[-1] == " ":
            continue
        letters += folded
        places += [place] * len(folded)
    start = "".join(letters).find(wanted)
    return None if start < 0 else (places[start], places[start + len(wanted) - 1] + 1)


def _reply_text(kind: Kind, mode: str) -> str:
    """Return the last lines of the prompt: the form of the reply, and the options."""
    if not kind.options:
        return 'Reply with a JSON object and nothing else: {"claims": ["...", "..."]}.'
    options = ", ".join(kind.options)
    if kind.each:
        return _each_text(kind, options)
    if mode == LOGPROB:
        return f"Reply with one word and nothing else. The words to choose from: {options}."
    only = "Reply with a JSON object and nothing else"
    if not kind.quoted:
        return f'{only}: {{"verdict": "..."}}. The verdict is one of: {options}.'
    return (
        f'{only}: {{"quote": "...", "verdict": "..."}}. The quote is the part of the {kind.quoted} that '
        f"decides, copied word for word, at most {_LONGEST_QUOTE} characters, or empty if there is none. "
        f"The verdict is one of: {options}."
    )


def _each_text(kind: Kind, options: str) -> str:
    only, one = "Reply with a JSON object and nothing else", f"one entry for each {kind.each}"
    if not kind.quoted:
        return (
            f'{only}: {{"verdicts": [{{"number": 1, "verdict": "..."}}]}}, with {one}. '
            f"The verdict is one of: {options}."
        )
    named = '"passages": [1], ' if kind.quoted == "passage" else ""
    of = "one of these passages" if named else f"the {kind.quoted}"
    about = "Passages are the numbers of those that decide together, or empty. " if named else ""
    return (
        f'{only}: {{"verdicts": [{{"number": 1, {named}"quote": "...", "verdict": "..."}}]}}, with {one}. '
        f"{about}The quote is the part of {of} that decides, copied word for word, at most "
        f"{_LONGEST_QUOTE} characters, or empty if there is none. The verdict is one of: {options}."
    )


def _each_schema(question: Question) -> dict[str, Any]:
    kind = question.kind
    properties: dict[str, Any] = {"number": {"type": "integer"}}
    if kind.quoted == "passage":
        properties["passages"] = {"type": "array", "items": {"type": "integer"}}
    entry = _schema(kind)
    entry = {**entry, "properties": {**properties, **entry["properties"]}}
    entry["required"] = list(entry["properties"])
    return {
        "type": "object",
        "properties": {"verdicts": {"type": "array", "items": entry}},
        "required": ["verdicts"],
        "additionalProperties": False,
    }


def _schema(kind: Kind) -> dict[str, Any]:
    verdict = {"type": "string", "enum": list(kind.options)}
    # The quote comes first: the model looks for evidence before it decides.
    quote = {"quote": {"type": "string", "maxLength": _LONGEST_QUOTE}} if kind.quoted else {}
    properties = {**quote, "verdict": verdict}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _expectation(probabilities: Mapping[str, float], scores: Mapping[str, float]) -> float:
    value = math.fsum(probabilities[option] * score for option, score in scores.items())
    return min(1.0, max(0.0, value))


def _verdict_of(replies: Sequence[Reply], mode: str) -> Judgement:
    """Return a verdict with everything but the decision."""
    last = replies[-1]
    counts = (
        {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens} for reply in replies
    )
    return Judgement(
        mode=mode,
        model=last.model,
        fingerprint=last.fingerprint,
        raw=last.text[:_RAW],
        usage=_sum_of({name: count for name, count in each.items() if count is not None} for each in counts),
        seconds=math.fsum(reply.seconds for reply in replies),
        attempts=len(replies),
    )


def _sum_of(usages: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for usage in usages:
        for name, count in usage.items():
            total[name] = total.get(name, 0) + count
    return total


def _checked_mode(mode: str) -> tuple[str, int]:
    name, _, number = mode.partition(":")
    if name == SAMPLED and number.isdecimal() and 1 < int(number) <= 100:
        return SAMPLED, int(number)
    if mode in (AUTO, LOGPROB, LABEL):
        return mode, 1
    raise DataError("--mode", f"{mode!r:.40} is not a mode.", fix="Write auto, logprob, label or sampled:5.")


def language_models(judge: Judge) -> list[LlmJudge]:
    """Return the models that a judge asks: itself, those among its members, or none."""
    if isinstance(judge, LlmJudge):
        return [judge]
    return [model for member in judge.members for model in language_models(member)]


def settle_modes(judge: Judge, kinds: Iterable[Kind] | None = None) -> list[str]:
    """Decide the modes that are `auto`, if questions of these kinds need one; return a sentence for each."""
    if kinds is not None and all(kind.each or not kind.options for kind in kinds):
        return []
    return [sentence for model in language_models(judge) if (sentence := model.settle())]


def settle_modes_by(judge: Judge, kinds: Sequence[Kind], identities: Container[str]) -> None:
    """Decide modes that are `auto` by the identities of stored verdicts: nothing is sent."""
    for model in language_models(judge):
        if model.mode != AUTO:
            continue
        for mode in (LOGPROB, LABEL):
            model.mode = mode
            if any(model.identity(kind) in identities for kind in kinds):
                break
        else:
            model.mode = AUTO


def mode_of(judge: Judge) -> str:
    """Return the mode of the models of a judge; "auto" if they have different ones, "" if there are none."""
    modes = {model.mode_text() for model in language_models(judge)}
    if len(modes) > 1:
        return AUTO
    return modes.pop() if modes else ""
