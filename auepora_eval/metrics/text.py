"""Texts to tokens: words in any script, SQuAD's normalisation, sacrebleu's 13a."""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

from .porter import stem

_WORD_ASCII = re.compile(r"[a-z0-9]+")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

# Scripts that are written without spaces: each character is a word.
_UNSPACED = (
    ("぀", "ヿ"),  # Hiragana, Katakana
    ("㐀", "䶿"),
    ("一", "鿿"),  # CJK ideographs
    ("豈", "﫿"),
    ("\U00020000", "\U0003ffff"),
)


class _WordCharacters(dict[int, str]):
    """For str.translate: letters, digits and marks stay, an ideograph stands alone, the rest is space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if any(first <= character <= last for first, last in _UNSPACED):
            kept = f" {character} "
        elif character.isalnum() or unicodedata.category(character).startswith("M"):
            kept = character
        else:
            kept = " "
        self[code] = kept
        return kept


_WORD_CHARACTERS = _WordCharacters()


def words(text: str, *, stemmed: bool = False) -> list[str]:
    """The lower-case words of a text, as rouge-score cuts them; in scripts beyond ASCII too.

    >>> words("The naïve cafés, 2 of them!")
    ['the', 'naïve', 'cafés', '2', 'of', 'them']
    >>> words("东京塔")
    ['东', '京', '塔']
    """
    lowered = text.lower()
    if lowered.isascii():
        found = _WORD_ASCII.findall(lowered)
    else:
        found = unicodedata.normalize("NFC", lowered).translate(_WORD_CHARACTERS).split()
    if not stemmed:
        return found
    # rouge-score leaves words of up to three letters alone; the stemmer knows English letters only.
    return [stem(word) if len(word) > 3 and word.isascii() else word for word in found]


def squad_normalised(text: str) -> str:
    """Lower case, without punctuation and English articles, single spaces: SQuAD's notion of equal."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


_13A_ENTITIES = (("<skipped>", ""), ("-\n", ""), ("\n", " "))
_13A_SPLITS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


@lru_cache(maxsize=1 << 14)
def tokens_13a(text: str) -> tuple[str, ...]:
    """The tokens of mteval-v13a, sacrebleu's default."""
    for old, new in _13A_ENTITIES:
        text = text.replace(old, new)
    if "&" in text:
        for old, new in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
            text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _13A_SPLITS:
        text = pattern.sub(replacement, text)
    return tuple(text.split())
