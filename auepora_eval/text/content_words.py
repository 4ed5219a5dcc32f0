"""What a text is about: its content words, numbers and names.

Content words are the words that are not in a list of function words. The list is the English one unless
that of another language (German, French, Spanish, Italian, Portuguese) covers more words of the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from .sentences import sentences
from .tokens import cased_words, words

_FUNCTION_WORDS = {
    "English": (
        "a about above after again against all also am an and any are aren as at be because been "
        "before being below between both but by can cannot could did didn do does doesn doing don "
        "down during each few for from further had has have having he her here hers herself him "
        "himself his how however i if in into is isn it its itself just ll me might more most must my "
        "myself no nor not now of off on once only or other our ours ourselves out over own per re s "
        "same shall she should so some such t than that the their theirs them themselves then there "
        "these they this those through to too under until up upon us ve very was wasn we were what "
        "when where whether which while who whom whose why will with within without would yes you "
        "your yours yourself yourselves"
    ),
    "German": (
        "aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem "
        "den denn der des deren die dies diese diesem diesen dieser dieses doch dort du durch ein "
        "eine einem einen einer eines er es euch für gegen haben hat hatte hatten hier hinter ich ihr "
        "ihre ihrem ihren ihrer im in ist ja jede jeder jedes kann kein keine können man mehr mein "
        "mit muss nach nein nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit "
        "sich sie sind so über um und uns unter vom von vor war waren warum was weil welche welcher "
        "welches wenn wer werden wie wieder wird wo worden wurde wurden zu zum zur zwischen"
    ),
    "French": (
        "à ai ainsi alors au aucun aussi autre aux avait avant avec avoir c ce ceci cela celle celui "
        "ces cet cette ceux comme comment d dans de depuis des donc dont du elle elles en encore "
        "entre est et été être eu eux fait il ils j je jusqu l la le les leur leurs lui m ma mais me "
        "même mes moi mon n ne ni non nos notre nous on ont or ou où oui par parce pas pendant plus "
        "pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son "
        "sont sous sur t ta te tes toi ton tous tout toute toutes tu un une vos votre vous y"
    ),
    "Spanish": (
        "a al algo ante antes como con contra cual cuál cuales cuáles cuando cuándo de del desde "
        "donde dónde dos durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos "
        "esta está estaba están estas este esto estos fue fueron ha había han hasta hay la las le les "
        "lo los más me mi mis muy nada ni no nos nosotros o otra otras otro otros para pero poco por "
        "porque qué que quien quién quienes se sea ser sí si sido sin sobre son su sus también tan te "
        "tiene todo todos tu tus un una uno unos y ya yo"
    ),
    "Italian": (
        "a ad agli ai al alla alle allo anche avere aveva c che chi ci come con contro cosa cui d da "
        "dagli dai dal dalla dalle dallo degli dei del della delle dello di dopo dove e è ed era "
        "erano essere fra gli ha hanno i il in io la le lei li lo loro lui ma mi mio ne negli nei nel "
        "nella nelle nello noi non o ogni per perché però più quale quali quando quanto quella quelle "
        "quelli quello questa queste questi questo se sei si sia sono stata stato su sua sue sugli "
        "sui sul sulla sulle sullo suo suoi tra tu tutti tutto un una uno vi voi"
    ),
    "Portuguese": (
        "a à ao aos aquela aquele aqueles aquilo as às até com como da das de dela dele deles depois "
        "do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estão este "
        "estes eu foi foram há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem no "
        "nos nós num numa o onde os ou para pela pelas pelo pelos por porque qual quais quando quem "
        "que se sem ser seu seus só sua suas também te tem têm ter teu um uma umas uns você vocês"
    ),
}
# Particles of scripts that are cut by character; no word of another language looks like one of them.
_PARTICLES = frozenset("的了是在和与與及或而也都就之其这這那个個吗嗎呢吧们們はがをにのでともへかや")

_CITATION = re.compile(r"\[\^?\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")
_SPACED_CITATION = re.compile(rf"(?<![ \t])[ \t]*+{_CITATION.pattern}")
_ENUMERATOR = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[-*•])[ \t]+", re.MULTILINE)
# A comma and a space group digits only before 000 or behind a currency sign: "12, 345 and 350" are three.
_NUMBER = re.compile(
    r"\d{1,3}(?:(?:[,\u00a0\u202f'’]|,[ ](?=000\b))\d{3})+(?!\d)(?:\.\d+)?"
    r"|(?<=[$€£¥])\d{1,3}(?:,[ ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?"
)
_SEPARATOR = re.compile(r"[,\u00a0\u202f'’ ]")


def without_marks(text: str) -> str:
    """Return a text without citation marks like [3] and without the numbers and bullets of its lists."""
    return _ENUMERATOR.sub("", _CITATION.sub(" ", text))


def without_citations(text: str) -> str:
    """Return a text without citation marks like [3]; a text of nothing else is returned as it is.

    >>> without_citations("13 berths [1].")
    '13 berths.'
    """
    if "[" not in text:
        return text
    plain = _SPACED_CITATION.sub(
        lambda mark: " " if text[mark.end() : mark.end() + 1].isalnum() else "", text
    )
    return plain if plain.strip() else text


def content_words(text: str, *, stemmed: bool = False) -> list[str]:
    """Return the words of a text that are not function words, in order, repeated as they are.

    >>> content_words("Where does the Annet moor?")
    ['annet', 'moor']
    """
    tokens = words(text)
    dropped = _function_words(tokens)
    kept = [word for word in tokens if word not in dropped and word not in _PARTICLES]
    return words(" ".join(kept), stemmed=True) if stemmed else kept


def numbers(text: str) -> list[str]:
    """Return the numbers written in digits, one spelling for each: "1,000.50" is "1000.5".

    A comma, an apostrophe or a thin space before three digits groups them; a point starts the decimals.

    >>> numbers("1,577 of 3000.0 in FY2018, or 235, 000")
    ['1577', '3000', '2018', '235000']
    """
    return [_plain_number(match) for match in _NUMBER.findall(text)]


def names(text: str) -> list[str]:
    """Return the capitalised words of a text that are likely names, in lower case.

    The first word of a sentence is capitalised anyway: it counts if it is followed by another capitalised
    word, is capitalised within a sentence elsewhere in the text, or has a capital beyond its first letter.
    """
    inside: list[str] = []
    first: list[tuple[str, bool]] = []
    for sentence in sentences(text):
        tokens = cased_words(sentence)
        capitalised = [word[0].isupper() for word in tokens]
        inside += [word for word, capital in zip(tokens[1:], capitalised[1:], strict=True) if capital]
        if tokens and capitalised[0]:
            first.append((tokens[0], capitalised[1:2] == [True]))
    inside_words = set(inside)
    likely = inside + [
        word
        for word, in_a_run in first
        if in_a_run or word in inside_words or any(c.isupper() for c in word[1:])
    ]
    english = _lists()["English"]
    return [part for word in likely for part in words(word) if part not in english]


def _function_words(tokens: list[str]) -> frozenset[str]:
    lists = _lists()
    english = lists["English"]
    covered = {language: sum(word in listed for word in tokens) for language, listed in lists.items()}
    best = max(covered, key=lambda language: covered[language])
    # One word proves nothing: "Die Hard" is not German.
    return lists[best] if covered[best] > covered["English"] and covered[best] > 1 else english


@cache
def _lists() -> dict[str, frozenset[str]]:
    return {language: frozenset(listed.split()) for language, listed in _FUNCTION_WORDS.items()}


# Digits of any script: ١٢ and 12 are the same number.
def _plain_number(written: str) -> str:
    whole, point, decimals = _SEPARATOR.sub("", written).partition(".")
    if not written.isascii():
        whole, decimals = ("".join(str(unicodedata.decimal(c)) for c in part) for part in (whole, decimals))
    decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if point and decimals else whole
