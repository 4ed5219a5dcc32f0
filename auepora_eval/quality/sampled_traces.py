"""Choose traces for a test set: each question once, all kinds of traces, nothing that names a person.

Groups are made by time, length of the question, failure and feedback. Traces are drawn from one group after
the other, so rare groups have more than their share: the result is for annotation, not for estimating rates.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from rapidfuzz import fuzz, process

from ..calls.keys import without_secrets
from ..core.types import Document, EvaluationSample, Failure, RetrievedDocument, SystemOutputs
from ..text.tokens import stemmed_word, words

Pair = tuple[EvaluationSample, SystemOutputs]
Group = tuple[str, str, str, str]  # time, length, failure, feedback
_SAME = 95  # of 100: one wrong letter in a question of five words
_PERIODS = 4
_LENGTHS = ("short", "medium", "long")

# Every repetition is bounded, so that the time stays linear in the length of the text.
_PERSONAL = {
    "e-mail address": re.compile(
        r"[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}\.[A-Za-z]{2,24}"
    ),
    "key": re.compile(
        r"\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abprs]|hf|npm|pypi|AIza|AKIA|ASIA|eyJ)[-_A-Za-z0-9.]{12,2000}"
        r"|\b(?=[A-Za-z]{0,64}[0-9])(?=[0-9]{0,64}[A-Za-z])[A-Za-z0-9+/_-]{32,512}={0,2}"
    ),
    # A number with a leading + or 0, or in the form of North America. Dates and amounts have another form.
    "phone number": re.compile(
        r"(?<![\w.])(?<![0-9] )(?:\+[0-9]{1,3}|\(?0[0-9]{1,5}\)?)(?:[ ./-]{0,2}\(?[0-9]{1,6}\)?){2,6}(?![\w])"
        r"|(?<![\w.-])(?:\([0-9]{3}\) ?|[0-9]{3}[-. ])[0-9]{3}[-. ][0-9]{4}(?![\w-])"
    ),
}


@dataclass
class SampledTraces:
    """The traces that were chosen, and what was left out, grouped and masked."""

    pairs: list[Pair] = field(default_factory=list)
    repeated: int = 0  # traces whose question is nearly that of another one
    groups: list[tuple[Group, int, int]] = field(default_factory=list)  # with traces found and chosen
    masked: list[tuple[str, str, int]] = field(default_factory=list)  # sample, kind, how often

    def masked_by_kind(self) -> Counter[str]:
        """Return how often each kind of personal data was masked."""
        counts: Counter[str] = Counter()
        for _, kind, count in self.masked:
            counts[kind] += count
        return counts


def sample_traces(
    pairs: Sequence[Pair], started: Mapping[str, int], count: int, *, seed: int = 0
) -> SampledTraces:
    """Choose `count` traces; `started` has the time of each sample, in nanoseconds, where it is known."""
    unique = _each_once(pairs)
    groups: dict[Group, list[Pair]] = {}
    for pair, group in zip(unique, _groups(unique, started), strict=True):
        groups.setdefault(group, []).append(pair)
    sampled = SampledTraces(repeated=len(pairs) - len(unique))
    rng = random.Random(seed)  # noqa: S311 - nothing secret depends on it
    waiting = {group: rng.sample(members, len(members)) for group, members in sorted(groups.items())}
    chosen: list[tuple[Group, Pair]] = []
    while len(chosen) < count and any(waiting.values()):
        for group, members in waiting.items():
            if members and len(chosen) < count:
                chosen.append((group, members.pop()))
    taken = Counter(group for group, _ in chosen)
    sampled.groups = [(group, len(members), taken[group]) for group, members in sorted(groups.items())]
    places = {id(pair): place for place, pair in enumerate(unique)}
    for group, pair in sorted(chosen, key=lambda one: places[id(one[1])]):  # in the order of the file
        sampled.pairs.append(_masked(pair, group, sampled))
    return sampled


def _each_once(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the first trace of each question: the same words in any order and ending, or a wrong letter."""
    kept: list[Pair] = []
    keys: set[tuple[str, ...]] = set()
    texts: list[str] = []
    for pair in pairs:
        all_words = words(pair[0].query)
        key, text = tuple(sorted(map(stemmed_word, all_words))), " ".join(all_words)
        near = process.extractOne(text, texts, scorer=fuzz.ratio, score_cutoff=_SAME)
        if key in keys or (near is not None and _digits(near[0]) == _digits(text)):
            continue
        keys.add(key)
        texts.append(text)
        kept.append(pair)
    return kept


def _digits(text: str) -> list[str]:
    return re.findall(r"[0-9]+", text)


def _groups(pairs: Sequence[Pair], started: Mapping[str, int]) -> list[Group]:
    times = sorted(started[sample.sample_id] for sample, _ in pairs if sample.sample_id in started)
    lengths = sorted(len(words(sample.query)) for sample, _ in pairs)
    groups = []
    for sample, output in pairs:
        time = started.get(sample.sample_id)
        period = "unknown time" if time is None else f"period {_part(times, time, _PERIODS) + 1}"
        length = _LENGTHS[_part(lengths, len(words(sample.query)), len(_LENGTHS))]
        outcome = "answered" if output.error is None else "failed"
        groups.append((period, length, outcome, _feedback(output)))
    return groups


def _part(ordered: Sequence[int], value: int, parts: int) -> int:
    """Return the number of the part that a value is in, of an ordered list in equal parts."""
    return min(parts - 1, ordered.index(value) * parts // len(ordered))


def _feedback(output: SystemOutputs) -> str:
    """Return whether people were content: by the lowest of their scores."""
    values = [one.get("value") for one in output.extra.get("feedback") or () if isinstance(one, Mapping)]
    scores = [float(value) for value in values if isinstance(value, int | float)]
    if not scores:
        return "no feedback"
    return "bad feedback" if min(scores) <= 0 else "good feedback"


def _masked(pair: Pair, group: Group, sampled: SampledTraces) -> Pair:
    sample, output = pair
    counts: Counter[str] = Counter()

    def mask(value: Any) -> Any:
        if isinstance(value, str):
            return _without_personal_data(value, counts)
        if isinstance(value, list | tuple):
            return [mask(each) for each in value]
        return {mask(key): mask(each) for key, each in value.items()} if isinstance(value, dict) else value

    about = {
        # Masked ids would make one cluster of several conversations.
        key: _pseudonym(value, counts) if key in ("conversation_id", "cluster") else mask(value)
        for key, value in sample.metadata.items()
    }
    names = ("time", "length", "outcome", "feedback")
    sample_id = _pseudonym(sample.sample_id, counts)
    masked_sample = replace(
        sample,
        sample_id=sample_id,
        query=mask(sample.query),
        metadata={**about, "group": dict(zip(names, group, strict=True))},
    )
    hits = [
        RetrievedDocument(
            Document(hit.doc.doc_id, mask(hit.doc.text), mask(hit.doc.metadata)), hit.score, hit.rank
        )
        for hit in output.retrieved
    ]
    error = output.error and Failure(output.error.type, mask(output.error.message), output.error.seconds)
    response = replace(output.response, text=mask(output.response.text))
    masked_output = replace(output, retrieved=hits, response=response, extra=mask(output.extra), error=error)
    sampled.masked += [(sample_id, kind, count) for kind, count in counts.items()]
    return masked_sample, masked_output


def _without_personal_data(text: str, counts: Counter[str]) -> str:
    for kind, pattern in _PERSONAL.items():
        text, count = pattern.subn(f"[{kind}]", text)
        if count:
            counts[kind] += count
    shown = without_secrets(text)  # passwords in URLs, named keys, values of the environment
    counts.update({"key": 1} if shown != text else {})
    return shown


def _pseudonym(value: Any, counts: Counter[str]) -> str:
    """Return an id as it is, or a hash of it if it names a person."""
    text = str(value)
    found: Counter[str] = Counter()
    if _is_hash(text) or _without_personal_data(text, found) == text:
        return text
    counts.update(found)
    return f"masked-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _is_hash(text: str) -> bool:
    """Return whether an id is hexadecimal, as those of traces are, which look like keys."""
    return re.fullmatch(r"(?:tr-)?[0-9a-fA-F-]{8,64}", text) is not None


def groups_in_words(groups: Iterable[tuple[Group, int, int]]) -> list[str]:
    """Return a line per group: its name, and how many of its traces were chosen."""
    return [f"{', '.join(group)}: {chosen} of {found}" for group, found, chosen in groups]
