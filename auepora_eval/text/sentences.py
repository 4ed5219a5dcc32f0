"""A text into sentences, each with its place; in any script, in linear time whatever the text.

A full stop ends a sentence if white space and something that may begin one come after it: not in 3.5, in an
address, after an initial, an abbreviation or the number of a list item, nor before a small letter (unless the
text is written without capitals, or the word is one like iPhone). Closing quotes and citation marks behind
the stop belong to the sentence. 。！？ need no space. An empty line ends a sentence, and so does the end of a
line, unless the line is long and goes on: texts are wrapped.
"""

from __future__ import annotations

import re

Span = tuple[int, int]

_CLOSING = "\"'”’»›)\\]}）」』】》〉"
_LINE_ENDS = "\n\r\f\v\x85\u2028\u2029"
# A citation behind the stop: "pier.[2]", "pier. [2][3]", "pier.[ferries.pdf:1:10-20]".
_MARK = r"(?:[ \t]?\[[\d^,;–\- ]{1,40}+\]|\[[^\[\]\n]{1,2000}+\])"
_BEHIND = rf"(?:[{_CLOSING}]|{_MARK})*+"
# One class at the front lets the search skip from candidate to candidate. What follows it is
# possessive, and a run of stops is looked at from its first only: no text makes this slower than linear.
_CANDIDATE = re.compile(
    rf"[.!?…।॥؟۔።。！？｡．{_LINE_ENDS}]"
    r"(?:"
    rf"(?<=[.!?…।॥؟۔።])(?<![.!?…।॥؟۔።]{{2}})[.!?…।॥؟۔።]*+{_BEHIND}(?=\s|\Z)"
    rf"|(?<=[。！？｡])[。！？｡．!?…]*+[{_CLOSING}]*+(?!と)()"
    r"|(?<=．)(?!\d)()"
    rf"|(?<=[{_LINE_ENDS}])\s*+()()"
    r")"
)
_LINE = 4  # the last group of a match says which of the four it is; a stop has none
_AFTER = re.compile(r"\s*+[\"'“‘«‹(\[{¿¡（「『【《〈*_]*+(\w+|.)?+", re.DOTALL)
_ITEM = re.compile(r"\s*+(?:[-*+•‣▪◦–—]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)])[ \t]")
_ENUMERATOR = re.compile(r"\s*+(?:[-*+•]\s+)?[(\[]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_BREAK = re.compile(rf"\r\n|[{_LINE_ENDS}]")
_WRAPPED = 50  # a line at least this long may have been broken by a margin

_LONGEST = 6  # letters of an abbreviation

# Abbreviations that never end a sentence, ...
_NEVER = frozenset(
    "mr mrs ms mx dr prof gen maj col capt cpt lt sgt cmdr adm gov sen rep rev hon pres st mt ft messrs mme "
    "mlle vs viz cf e.g i.e eg ie approx incl excl resp bzw z.b d.h u.a p.ej p.ex sr sra dott ing".split()
)
# ... that end one only if an unmistakable first word comes next, ...
_SELDOM = frozenset(
    "inc ltd co corp llc plc bros jr etc al est dept univ assn ave blvd rd hwy ca c fl b d dz usw ed eds "
    "trans ph.d m.d b.a m.a a.m p.m am pm ph".split()
)
# ... and that do not before a number.
_BEFORE_NUMBERS = frozenset(
    "no nos nr fig figs eq eqs vol vols ch chap sec sect art p pp pg para ref refs tab app ver v ex par cl "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_FIRST_WORDS = frozenset(
    "an the this that these those it its he she they we you his her their our my there here in on at by "
    "for from with as if when while since after before because although though however but and so then thus "
    "therefore moreover furthermore meanwhile also both each some many most all no none what who why how "
    "where "
    "der die das ein eine er sie es wir im le la les un une il elle el los las".split()
)
_MONTHS_BY_ORDINAL = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember "
    "jahrhundert jahrhunderts jh".split()
)


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Return where the sentences of text[start:end] begin and end; only white space is between them.

    >>> text = "The U.S. mint opened in 1792. It struck 3.5 million coins."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['The U.S. mint opened in 1792.', 'It struck 3.5 million coins.']
    """
    end = len(text) if end is None else min(end, len(text))
    small_starts = _is_written_small(text, start, end)
    spans: list[Span] = []
    begin = start
    for match in _CANDIDATE.finditer(text, start, end):
        place, stop = match.span()
        kind = match.lastindex
        if kind is None:
            if stop < end and not _ends_here(text, begin, place, stop, end, small_starts):
                continue
        elif kind == _LINE and not _ends_with_the_line(text, begin, place, stop, end):
            continue
        _add(spans, text, begin, stop)
        begin = stop
    _add(spans, text, begin, end)
    return spans


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the white space between them."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _add(spans: list[Span], text: str, begin: int, end: int) -> None:
    piece = text[begin:end]
    bare = piece.strip()
    if bare:
        first = begin if piece[0] == bare[0] else text.index(bare[0], begin)
        spans.append((first, first + len(bare)))


def _ends_here(text: str, begin: int, place: int, stop: int, end: int, small_starts: bool) -> bool:
    """Return whether a stop that is followed by white space ends a sentence, by the text around it."""
    first = text[stop + 1 : stop + 2]
    camel = text[stop + 2 : stop + 3].isupper()  # iPhone, eBay
    if first.islower() and not small_starts and not camel:
        return False
    # Two stops, or a quote behind the stop, are no abbreviation's.
    if text[place] == "." and stop == place + 1 and _is_abbreviation(text, begin, place, end):
        return False
    return first.isupper() or camel or small_starts or not _word_after(text, stop, end)[:1].islower()


def _word_after(text: str, stop: int, end: int) -> str:
    after = _AFTER.match(text, stop, end)
    return (after and after[1]) or ""


def _is_abbreviation(text: str, begin: int, dot: int, end: int) -> bool:
    first = max(begin, dot - 16, text.rfind(" ", max(begin, dot - 16), dot) + 1)
    last = text[first:dot]
    if last.isalpha() and len(last) > _LONGEST:
        return False
    word = (last.split() or [""])[-1].lstrip("([{\"'“‘«*_-–—/").lower()
    if word in _NEVER:
        return True
    if len(word) > 1 and word.isalpha() and word not in _SELDOM and word not in _BEFORE_NUMBERS:
        return dot - begin <= 8 and _ENUMERATOR.fullmatch(text, begin, dot) is not None
    return _is_short_for_something(text, begin, dot, word, _word_after(text, dot + 1, end).lower())


def _is_short_for_something(text: str, begin: int, dot: int, word: str, following: str) -> bool:
    if dot - begin <= 8 and _ENUMERATOR.fullmatch(text, begin, dot):
        return True
    if word in _BEFORE_NUMBERS and (len(word) > 1 or following[:1].isdigit()):
        return following[:1].isdigit()
    if word in _SELDOM or _ACRONYM.fullmatch(word) or (len(word) == 1 and word.isalpha()):
        return following not in _FIRST_WORDS
    return word.isdigit() and len(word) <= 2 and following in _MONTHS_BY_ORDINAL


def _ends_with_the_line(text: str, begin: int, place: int, stop: int, end: int) -> bool:
    """Return whether a sentence ends where its line does."""
    if stop >= end or len(_BREAK.findall(text, place, stop)) > 1:
        return True
    if text[stop].islower():
        return False
    if text[stop] in "#|>" or _ITEM.match(text, stop, min(end, stop + 12)):
        return True
    if place == begin or text[place - 1] in ".!?:;…":
        return True
    # A long line that stops in the middle of things was broken by a margin.
    return place - begin < _WRAPPED or _BREAK.search(text, place - _WRAPPED, place) is not None


def _is_written_small(text: str, start: int, end: int) -> bool:
    """Return whether a text does without capitals, so that a small letter may begin a sentence."""
    piece = text[start : min(end, start + 4000)]
    letters = piece.encode("ascii", "ignore")
    capitals = len(letters) - len(letters.translate(None, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    if not capitals and len(letters) < len(piece):
        capitals = sum(map(str.isupper, piece))
    return capitals <= 0.002 * len(piece)
