"""Texts to tokens: words in any script, SQuAD's normalisation, sacrebleu's 13a."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable

from .porter import stem

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)

# Scripts that are written without spaces: each character is a word. By number, since an editor may
# replace a compatibility ideograph by its counterpart thousands of places away.
_UNSPACED = (
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3400", "\u4dbf"),  # CJK ideographs
    ("\u4e00", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)
_IDEOGRAPH = re.compile("[" + "".join(f"{first}-{last}" for first, last in _UNSPACED) + "]")
_FIRST_PICTURE = "\u2600"  # from here on, symbols are pictures or Braille: words in their own way


class _WordCharacters(dict[int, str]):
    """For str.translate: letters, digits and marks stay, an ideograph stands alone, the rest is space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if _IDEOGRAPH.match(character) or (category == "So" and character >= _FIRST_PICTURE):
            kept = f" {character} "
        elif character.isalnum() or category.startswith("M"):
            kept = character
        else:
            kept = " "
        self[code] = kept
        return kept


_WORD_CHARACTERS = _WordCharacters()
# The same for ASCII, with capitals made small: bytes.translate needs no look-up by character.
_ASCII_WORDS = bytes(ord(chr(n).lower()) if n < 128 and chr(n).isalnum() else 32 for n in range(256))


def words(text: str, *, stemmed: bool = False) -> list[str]:
    """Return the lower-case words of a text, as rouge-score cuts them; in scripts beyond ASCII too.

    >>> words("The naïve cafés, 2 of them!")
    ['the', 'naïve', 'cafés', '2', 'of', 'them']
    >>> words("东京塔")
    ['东', '京', '塔']
    """
    if text.isascii():
        tokens = text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
    else:
        tokens = unicodedata.normalize("NFC", text.lower()).translate(_WORD_CHARACTERS).split()
    return [stemmed_word(word) for word in tokens] if stemmed else tokens


def cased_words(text: str) -> list[str]:
    """Return the words of a text as they are written, cut where `words` cuts them."""
    return unicodedata.normalize("NFC", text).translate(_WORD_CHARACTERS).split()


def stemmed_word(word: str) -> str:
    """Return the stem of a word, as rouge-score takes it: words of up to three letters are left alone.

    So are words in other letters than English ones, which the stemmer does not know.
    """
    return stem(word) if len(word) > 3 and word.isascii() else word


def squad_normalised(text: str) -> str:
    """Lower case, without punctuation and English articles, single spaces: SQuAD's notion of equal."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def folded(text: str) -> str:
    """Lower case, and single spaces; no spaces at all in a text with ideographs, where they mean nothing.

    >>> folded(" North  Pier "), folded("东京 塔")
    ('north pier', '东京塔')
    """
    return ("" if has_ideographs(text) else " ").join(text.lower().split())


_DOTTED = re.compile(r"(?<=\b[^\W\d_])\.(?=[^\W\d_]\b)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IN_NUMBER = re.compile(r"(?<=\d)[.,:](?=\d)")
_SIGN = re.compile(r"[-−–](?<![\w.,)%].)(?=\.?\d)")  # the sign first: few texts have one
_SIGN_WORD = re.compile(r"(?<!\d )\b(?:minus|negative) (?=\.?\d)", re.IGNORECASE)


def word_text(text: str) -> str:
    """Return the words of a text with single spaces between them; a number is one word, with its sign.

    >>> word_text("At 7:40 a.m., for $1,500!"), word_text("-3.5")
    ('at 7d40 am for 1500', 'n3d5')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    # A letter in the place of the sign: "5" is not a word of "-5".
    text = _SIGN.sub("n", text)
    small = text.lower()
    if "minus " in small or "negative " in small:
        text = _SIGN_WORD.sub("n", text)
    if "." in text or "," in text or ":" in text:
        # A letter in the place of the point keeps a number together: "5" is not a word of "3.5".
        text = _IN_NUMBER.sub("d", _GROUPED.sub("", _DOTTED.sub("", text)))
    return " ".join(words(text))


def word_search(text: str) -> Callable[[str], bool]:
    """Return the function that decides whether the text contains another one, as whole words.

    Case, punctuation and a first article do not count.

    >>> list(map(word_search("I know 120 piers."), ("No", "2", "the piers", "120 Piers!")))
    [False, False, True, True]
    """
    plain = word_text(text)

    def contains(wanted: str) -> bool:
        sought = word_text(wanted)
        if not sought:
            return wanted.strip() in text  # a sign, such as "+"
        first, _, rest = sought.partition(" ")
        return _holds(plain, rest if rest and first in ("a", "an", "the") else sought)

    return contains


def _holds(plain: str, sought: str) -> bool:
    start = plain.find(sought)
    while start >= 0:
        end = start + len(sought)
        if not _is_joined(plain[start - 1 : start + 1]) and not _is_joined(plain[end - 1 : end + 1]):
            return True
        start = plain.find(sought, start + 1)
    return False


def _is_joined(pair: str) -> bool:
    """Return whether two neighbouring characters are of one word.

    Only where words stand apart: not in Chinese or Thai, nor in Korean, where particles follow a noun without
    a space. Latin, Greek, Cyrillic and Armenian are in these two ranges.
    """
    return len(pair) == 2 and all(
        letter != " " and (letter < "\u0590" or "\u1e00" <= letter < "\u2000") for letter in pair
    )


def has_ideographs(text: str) -> bool:
    """Return whether a text holds characters of a script that is written without spaces."""
    return not text.isascii() and _IDEOGRAPH.search(text) is not None


_13A_SPLITS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_13A_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def tokens_13a(text: str) -> list[str]:
    """Return the tokens of mteval-v13a, sacrebleu's default."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for old, new in _13A_ENTITIES:
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _13A_SPLITS:
        text = pattern.sub(replacement, text)
    return text.split()
