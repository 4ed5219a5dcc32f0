"""Tasks whose answer is sentences of the text: extractive summaries, and statements to be supported."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from ..metrics.text import words
from .chunks import CutDocument
from .clauses import clause
from .english import LEANING, POINTING, STOP
from .passage_search import PassageSearch
from .question_checks import is_plain
from .sentences import Sentence, tidy
from .tasks import Shown, Task
from .vocabulary import Vocabulary

SUMMARY_SENTENCES = 3
SUMMARY_PASSAGES = 4
_MOSTLY = 0.6
CITED_PASSAGES = 4


def summary(document: CutDocument, chance: Random) -> Task | str:
    """A summary in the text's own sentences: the first, and the two that say most of what the others say.

    Of a long document a part is summarised: four passages in a row.
    """
    chunks = document.chunks
    begin = chance.randrange(len(chunks) - SUMMARY_PASSAGES + 1) if len(chunks) > SUMMARY_PASSAGES else 0
    part = chunks[begin : begin + SUMMARY_PASSAGES]
    text = document.source.text
    sentences = [
        sentence
        for sentence in document.outline.sentences
        if part[0].start <= sentence.start and sentence.end <= part[-1].end and _is_statement(text, sentence)
    ]
    told = sum(sentence.end - sentence.start for sentence in sentences)
    if len(sentences) < SUMMARY_SENTENCES + 2 or told < _MOSTLY * (part[-1].end - part[0].start):
        return "summary: not enough plain prose"
    chosen = _central(text, sentences)
    if len(chosen) < 2:
        return "summary: too few sentences that stand alone"
    whole = len(part) == len(chunks)
    return Task(
        "summaries",
        "summary",
        _instruction(document, sentences[0], len(chosen), whole=whole),
        " ".join(text[sentence.start : sentence.end] for sentence in chosen),
        document.source.name,
        document.source.source_path,
        tuple(Shown(chunk) for chunk in part),
        tuple(chunk.id for chunk in part),
        {"scenario": "base", "answerable": True, "query_type": "summary"},
        spans=tuple((sentence.start, sentence.end) for sentence in chosen),
        checks={"sentences_exact": True},
        closed=not whole,
    )


def _instruction(document: CutDocument, first: Sentence, count: int, *, whole: bool) -> str:
    title = tidy(document.source.title)
    named = f'"{title}"' if title else f'the document "{document.source.name}"'
    length = "three sentences" if count == SUMMARY_SENTENCES else "two sentences"
    if whole:
        return f"Summarise {named} in {length}."
    begins = " ".join(tidy(document.source.text[first.start : first.end]).split()[:8])
    return f'Summarise the part of {named} that begins with "{begins}" in {length}.'


def _is_statement(text: str, sentence: Sentence) -> bool:
    piece = text[sentence.start : sentence.end]
    return (
        not sentence.is_item
        and piece.endswith((".", '."', ".”"))
        and 4 <= len(piece.split()) <= 45
        and is_plain(piece)
        and (piece[:1].isupper() or text[:5000].islower())
    )


def _central(text: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """The first sentence that stands alone, and those nearest to all others, in the text's order."""
    bags = [
        Counter(word for word in words(text[each.start : each.end], stemmed=True) if word not in STOP)
        for each in sentences
    ]
    found_in = Counter(word for bag in bags for word in bag)
    vectors = [
        {word: n * math.log(1 + len(bags) / found_in[word]) for word, n in bag.items()} for bag in bags
    ]
    norms = [math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0 for vector in vectors]
    total: Counter[str] = Counter()
    for vector, norm in zip(vectors, norms, strict=True):
        for word, weight in vector.items():
            total[word] += weight / norm  # type: ignore[assignment]  # a Counter adds up numbers of any kind
    centrality = [
        sum(weight * total[word] for word, weight in vector.items()) / norm
        for vector, norm in zip(vectors, norms, strict=True)
    ]
    alone = [place for place in range(len(sentences)) if _does_not_lean(text, sentences[place])]
    chosen = alone[:1]
    for place in sorted(alone[1:], key=lambda number: (-centrality[number], number)):
        repeats = any(len(bags[place] & bags[other]) > 0.6 * len(bags[place]) for other in chosen)
        if not repeats:
            chosen.append(place)
        if len(chosen) == SUMMARY_SENTENCES:
            break
    return [sentences[place] for place in sorted(chosen)]


def _does_not_lean(text: str, sentence: Sentence) -> bool:
    """Whether a sentence begins with something that can be understood without the one before."""
    first = words(text[sentence.start : sentence.end])[:3]
    return bool(first) and first[0] not in LEANING and not POINTING & set(first)


def statements(
    document: CutDocument, vocabulary: Vocabulary, search: PassageSearch, chance: Random
) -> Iterator[Task | str]:
    """Statements to be repeated with the number of the passage that supports them."""
    text = document.source.text
    fitting = [
        sentence
        for sentence in document.outline.sentences
        if _is_statement(text, sentence) and _stands_alone(text[sentence.start : sentence.end], vocabulary)
    ]
    for sentence in chance.sample(fitting, len(fitting)):
        yield _supported(document, sentence, search, chance)


def _stands_alone(piece: str, vocabulary: Vocabulary) -> bool:
    read = clause(piece)
    named = read is not None and vocabulary.has_name(read.subject)
    found = words(piece)
    return named and found[0] not in LEANING and not POINTING & set(found) and 7 <= len(found) <= 35


def _supported(
    document: CutDocument, sentence: Sentence, search: PassageSearch, chance: Random
) -> Task | str:
    statement = document.source.text[sentence.start : sentence.end]
    gold = document.chunks_with(sentence.start, sentence.end)
    if not gold:
        return "statement: no passage holds the whole sentence"
    holding = {chunk.id for chunk in gold}
    others = []
    for chunk, score in search.ranked(statement, 20):
        if chunk.id in holding:
            continue
        if statement in chunk.text or _says_the_same(statement, chunk.text):
            return "statement: supported elsewhere, too"
        others.append(Shown(chunk, score))
    shown = [Shown(gold[0]), *others[: CITED_PASSAGES - 1]]
    if len(shown) < 2:
        return "statement: no distractor"
    shown = chance.sample(shown, len(shown))
    number = next(place for place, each in enumerate(shown, start=1) if each.id == gold[0].id)
    clean = tidy(statement)
    return Task(
        "citations",
        "statement",
        f"Which of the passages supports this statement? Repeat it with the passage's number: {clean}",
        f"{clean} [{number}]",
        document.source.name,
        document.source.source_path,
        tuple(shown),
        (gold[0].id,),
        {"scenario": "base", "answerable": True, "query_type": "citation"},
        span=(sentence.start, sentence.end),
        checks={"span_exact": True, "supported_elsewhere": False},
        closed=True,
    )


def _says_the_same(statement: str, passage: str) -> bool:
    """Whether a passage has nearly every word of a statement that carries meaning."""
    wanted = {word for word in words(statement, stemmed=True) if word not in STOP}
    return len(wanted & set(words(passage, stemmed=True))) >= 0.85 * len(wanted)
