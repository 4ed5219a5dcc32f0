"""Questions that the text asks itself, and questions about what it lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .asking import Reading
from .candidates import Candidate
from .chunks import CutDocument
from .english import NUMBER_WORD, POINTING
from .sentences import Sentence, tidy

_ENUMERATED = re.compile(
    rf"\b(?:the|its|their|these|into|of) ?(?P<count>{NUMBER_WORD}) (?P<noun>(?:[a-z-]+ ){{0,3}}[a-z-]+s) ?: "
    r"(?P<items>[^.;:!?]+?(?:,| ,) ?[^.;:!?]+? and [^.;:!?,]+)(?= ?[.;])"
)
_MOST_ITEMS = 12


def self_asked(reading: Reading) -> Iterator[Candidate]:
    """A question in the text, or as a heading, with the sentence that follows as its answer."""
    text, after = reading.text, reading.after
    if not text.endswith("?") or after is None or after.paragraph != reading.sentence.paragraph:
        return
    whole = reading.document.source.text
    answer = whole[after.start : after.end]
    words = text.lower().rstrip("?").split()
    asked = [each for each in reading.document.outline.sentences if each.paragraph == after.paragraph]
    if sum(whole[each.start : each.end].endswith("?") for each in asked) < 2 or "n't" in text:
        return  # one question among statements is rhetorical
    if answer.endswith("?") or not 4 <= len(words) <= 25 or not 3 <= len(answer.split()) <= 60:
        return
    if words[0] not in ("who what when where which why how can may is are do does must will should".split()):
        return
    span = (after.start - reading.sentence.start, after.end - reading.sentence.start)
    evidence = (reading.sentence.start, after.end)
    question = reading.vocabulary.lowered(text[:1].lower() + text[1:])
    yield reading.put("self_asked", "text", question, span, subject=text, evidence=evidence)


def enumerated(reading: Reading) -> Iterator[Candidate]:
    """`the five islands: A, B, C, D and E`: what are the five islands?"""
    match = _ENUMERATED.search(reading.text)
    if match is None or len(match["items"].split()) > 40:
        return
    question = f"what are the {match['count']} {match['noun']}"
    told = f"what the {match['count']} {match['noun']} are"
    yield reading.put("list", "list", question, match.span("items"), told=told, subject="")


def listed(document: CutDocument) -> Iterator[Candidate]:
    """The items of a list under a heading or behind a line that ends in a colon."""
    text = document.source.text
    items: list[Sentence] = []
    for sentence in [*document.outline.sentences, None]:
        if sentence is not None and sentence.is_item and (not items or sentence.section == items[0].section):
            items.append(sentence)
            continue
        yield from _about_items(document, items, text)
        items = [sentence] if sentence is not None and sentence.is_item else []


def _about_items(document: CutDocument, items: list[Sentence], text: str) -> Iterator[Candidate]:
    first_of = {item.paragraph: item for item in reversed(items)}
    if not 3 <= len(first_of) <= _MOST_ITEMS or len(first_of) != len(items) or not items[0].section:
        return
    start, end = items[0].start, items[-1].end
    if end - start > 1_000 or any(len(text[item.start : item.end].split()) > 25 for item in items):
        return
    if re.search(r"\n\s*\n\s*\n|[{}<>|]", text[start:end]):
        return
    heading, title = items[0].section, document.source.title or items[0].topic
    if POINTING & set(heading.lower().split()):
        return
    within = f' of "{tidy(title)}"' if title and title != heading else ""
    question = f'Which {len(items)} items are listed under "{heading}"{within}?'
    told = f'which {len(items)} items are listed under "{heading}"{within}'
    yield Candidate(
        "list",
        question,
        text[start:end],
        document.source.name,
        start,
        end,
        (start, end),
        "list",
        told,
        (),
        heading,
    )
