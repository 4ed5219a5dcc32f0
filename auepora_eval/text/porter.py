"""Porter's stemmer (1980) with the departures of NLTK, which rouge-score uses: equal stems, equal scores.

The departures: a pool of irregular words, "ies" and "ied" in words of four letters, y after a
consonant, two-letter stems that end in vowel + consonant, and the suffixes alli, bli, fulli and logi.
"""

from __future__ import annotations

from functools import lru_cache


def _rules(text: str) -> tuple[tuple[str, str], ...]:
    """Read "enci:ence ative:" as suffixes with their replacements."""
    return tuple((suffix, new) for suffix, _, new in (rule.partition(":") for rule in text.split()))


_IRREGULAR = dict(
    _rules(
        "sky:sky skies:sky dying:die lying:lie tying:tie news:news innings:inning inning:inning "
        "outings:outing outing:outing cannings:canning canning:canning howe:howe proceed:proceed "
        "exceed:exceed succeed:succeed"
    )
)
# In the order in which they are tried; the first suffix that fits decides.
_STEP_2 = _rules(
    "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous "
    "ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive "
    "biliti:ble fulli:ful"
)
_STEP_3 = _rules("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
    *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
)

# Letters to v and c; what y is depends on the letter before it.
_VOWELS_AND_CONSONANTS = {
    **dict.fromkeys(map(ord, "bcdfghjklmnpqrstvwxz0123456789"), "c"),
    **dict.fromkeys(map(ord, "aeiou"), "v"),
}


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-case word.

    >>> stem("relational"), stem("flies"), stem("dies")
    ('relat', 'fli', 'die')
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past_and_gerund(word)
    if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c":
        word = word[:-1] + "i"
    word = _replace_first(_double_suffix(word), _STEP_3)
    return _final_e_and_l(_single_suffix(word))


def _plural(word: str) -> str:
    if not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _past_and_gerund(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    if word.endswith("ed"):
        base = word[:-2]
    elif word.endswith("ing"):
        base = word[:-3]
    else:
        return word
    shape = _shape(base)
    if "v" not in shape:
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-2:-1] == base[-1] and shape[-1] == "c":
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if shape.count("vc") == 1 and _ends_cvc(base, shape) else base


def _double_suffix(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _double_suffix(word[:-2])
    if word.endswith("logi"):
        # Measured with its l: "analogi" becomes "analog", as without a rule of its own it would not.
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace_first(word, _STEP_2)


def _single_suffix(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            removable = _measure(base) > 1 and (suffix != "ion" or base[-1] in "st")
            return base if removable else word
    return word


def _final_e_and_l(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        shape = _shape(base)
        measure = shape.count("vc")
        if measure > 1 or (measure == 1 and not _ends_cvc(base, shape)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _replace_first(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _shape(word: str) -> str:
    """Return a v for each vowel and a c for each consonant; y is a consonant at the start and after a vowel.

    >>> _shape("syzygy"), _shape("toy")
    ('cvcvcv', 'cvc')
    """
    shape = word.translate(_VOWELS_AND_CONSONANTS)
    if "y" not in shape:
        return shape
    letters, before = list(shape), "v"
    for place, letter in enumerate(letters):
        if letter == "y":
            letters[place] = letter = "c" if before == "v" else "v"
        before = letter
    return "".join(letters)


def _measure(word: str) -> int:
    """Return how many times a vowel is followed by a consonant."""
    return _shape(word).count("vc")


def _ends_cvc(word: str, shape: str) -> bool:
    if len(word) == 2:
        return shape == "vc"
    return shape.endswith("cvc") and word[-1] not in "wxy"
