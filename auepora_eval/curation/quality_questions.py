"""Checks of the questions: ids used twice, nothing asked, the same asked twice, a wrong description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.types import EvaluationSample
from .quality_issue import QualityIssue
from .quality_spelling import spelt_alike
from .quality_view import DatasetView

# Words that change nothing about what is asked; "who", "not", "before", "from" and "to" do.
_EMPTY_WORDS = frozenset(
    "a an the is are was were be been being do does did of please can could would you tell me us".split()
)
SIMILAR_QUESTION = 85.0
_NEIGHBOURS = 3


def check_query_uniqueness(view: DatasetView) -> Iterator[QualityIssue]:
    """Ids that more than one sample has."""
    for sample_id, places in view.places_of_ids.items():
        if len(places) > 1 and sample_id:
            others = ", ".join(view.where(place) for place in places[1:6])
            yield QualityIssue(
                "error",
                "query_uniqueness",
                f"duplicate query id: {sample_id!r:.80} is used {len(places)} times, again at {others}.",
                where=view.where(places[0]),
                sample_id=sample_id,
                fix="Scores are matched by id: give each sample its own.",
            )


def check_empty_queries(view: DatasetView) -> Iterator[QualityIssue]:
    """Samples that ask nothing."""
    for place, sample in enumerate(view.samples):
        if not any(character.isalnum() for character in sample.query):
            yield QualityIssue(
                "error",
                "empty_queries",
                "the query is empty." if not sample.query.strip() else "the query has no word in it.",
                where=view.where(place),
                sample_id=sample.sample_id,
                fix="Write the question, or drop the sample.",
            )


def check_near_duplicates(view: DatasetView) -> Iterator[QualityIssue]:
    """Questions that are asked twice: in the same words, or with one word spelt differently.

    Variants of one question (`labels.variant_of`, `metadata.cluster`) are meant to be alike. Questions that
    differ in one word count only where they share their reference or a gold document, or have neither:
    Johnson and Johnston are two people.
    """
    keys = [_key_words(sample.query) for sample in view.samples]
    same: dict[tuple[str, ...], list[int]] = {}
    for place, key in enumerate(keys):
        if key:
            same.setdefault(tuple(sorted(key)), []).append(place)
    firsts = []
    for places in same.values():
        firsts.append(places[0])
        for place in _one_a_family(view, places)[1:]:
            yield _repeated(view, places[0], place)
    for first, second in _spelt_alike(keys, firsts, [sample.query for sample in view.samples]):
        a, b = view.samples[first], view.samples[second]
        if _family(a).isdisjoint(_family(b)) and _may_be_the_same(a, b):
            sure = bool(_answers(a) & _answers(b) or _gold(a) & _gold(b))
            yield _repeated(view, first, second, sure=sure)


def check_declared(view: DatasetView) -> Iterator[QualityIssue]:
    """What the description says about size and length, against what is there."""

    def issue(name: str, declared: Any, counted: str) -> QualityIssue:
        return QualityIssue(
            "warning",
            "declared",
            f"{name} is declared as {declared!r:.40}, but {counted}.",
            where=f"{view.declared_at}.{name}",
            fix="Correct it, or look for what is missing.",
        )

    count = len(view.samples)
    size, average = view.declared.get("size"), view.declared.get("avg_query_length")
    if size is not None and (isinstance(size, bool) or size != count):
        yield issue("size", size, f"there are {count} queries")
    if average is not None and count:
        mean = sum(len(sample.query) for sample in view.samples) / count
        if isinstance(average, bool | str | list | dict) or abs(average - mean) > max(1.0, 0.02 * mean):
            yield issue("avg_query_length", average, f"queries have {mean:.1f} characters on average")
    for place, sample in enumerate(view.samples):
        declared, gold = sample.metadata.get("num_relevant_docs"), len(sample.relevant_docs or ())
        if declared is not None and declared != gold:
            yield QualityIssue(
                "warning",
                "declared",
                f"num_relevant_docs is declared as {declared!r:.40}, but there are {gold}.",
                where=view.where(place, "metadata.num_relevant_docs"),
                sample_id=sample.sample_id,
                fix="Correct it, or look for what is missing.",
            )


def _key_words(query: str) -> tuple[str, ...]:
    from ..metrics.text import stemmed_word, words

    found = words(query)
    # The last word is never empty: "vitamin a" is not "vitamins".
    return tuple(stemmed_word(word) for word in found[:-1] if word not in _EMPTY_WORDS) + tuple(
        map(stemmed_word, found[-1:])
    )


def _one_a_family(view: DatasetView, places: list[int]) -> list[int]:
    """Of several samples, those that are no variant of an earlier one."""
    kept: list[int] = []
    taken: set[tuple[str, str]] = set()
    for place in places:
        family = _family(view.samples[place])
        if taken.isdisjoint(family):
            kept.append(place)
        taken |= family
    return kept


def _family(sample: EvaluationSample) -> set[tuple[str, str]]:
    base = sample.labels.get("variant_of")
    cluster = sample.metadata.get("cluster")
    family = {("id", sample.sample_id if base is None else str(base))}
    return family if cluster is None else family | {("cluster", str(cluster))}


def _spelt_alike(
    keys: list[tuple[str, ...]], places: list[int], queries: list[str]
) -> Iterator[tuple[int, int]]:
    """Pairs that differ in the spelling of one word.

    Questions that are equal but for one word meet in the block of the remaining words. A block may hold
    thousands ("Who is the mayor of ...?"), so in it only neighbours by spelling, from the front and from the
    back, are compared: the work grows with the number of questions, not with its square.
    """
    from rapidfuzz import fuzz

    blocks: dict[int, list[tuple[str, int]]] = {}
    for place in places:
        key = sorted(keys[place])
        for number, word in enumerate(key):
            if len(key) > 2:
                rest = hash((*key[:number], *key[number + 1 :]))
                blocks.setdefault(rest, []).append((word, place))
    seen: set[tuple[int, int]] = set()
    for block in blocks.values():
        if len(block) < 2:
            continue
        for order in (sorted(block), sorted(block, key=lambda each: each[0][::-1])):
            for step in range(1, _NEIGHBOURS + 1):
                for (word, first), (other, second) in zip(order, order[step:], strict=False):
                    pair = (min(first, second), max(first, second))
                    if pair in seen or not spelt_alike(word, other):
                        continue
                    seen.add(pair)
                    if fuzz.ratio(queries[first].lower(), queries[second].lower()) >= SIMILAR_QUESTION:
                        yield pair


def _may_be_the_same(a: EvaluationSample, b: EvaluationSample) -> bool:
    references, gold = [_answers(a), _answers(b)], [_gold(a), _gold(b)]
    if all(references) and not references[0].isdisjoint(references[1]):
        return True
    if all(gold):
        return not gold[0].isdisjoint(gold[1]) and not all(references)
    return not all(references)


def _repeated(view: DatasetView, first: int, second: int, *, sure: bool = True) -> QualityIssue:
    from ..metrics.text import words

    a, b = view.samples[first], view.samples[second]
    verbatim = words(a.query) == words(b.query)
    how = "asks the same as" if verbatim else "asks nearly the same as"
    answers = _answers(a), _answers(b)
    message = f"{how} {a.sample_id!r:.80}: {a.query!r:.90}"
    severity, fix = "warning" if sure else "note", "Keep one of them, or mark the other by labels.variant_of."
    if all(answers) and answers[0].isdisjoint(answers[1]):
        message += ", but has another reference"
        severity = "warning" if verbatim else "note"
        fix = "Say in the question what tells them apart, or correct the reference."
    return QualityIssue(
        severity,
        "near_duplicates",
        f"{message}.",
        where=view.where(second),
        sample_id=b.sample_id,
        fix=fix,
    )


def _answers(sample: EvaluationSample) -> set[str]:
    from ..metrics.text import squad_normalised

    if sample.reference_answer is None:
        return set()
    alternatives = sample.reference_answer.metadata.get("alternatives")
    texts = [sample.reference_answer.text, *(alternatives if isinstance(alternatives, list) else ())]
    return {flat for text in texts if isinstance(text, str) and (flat := squad_normalised(text))}


def _gold(sample: EvaluationSample) -> set[str]:
    return {doc.doc_id for doc in sample.relevant_docs or ()}
