"""The main clause of a plain statement: subject, verb, the rest. Sentences that are not plain give none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english import (
    ADVERBS,
    AUXILIARIES,
    DETERMINERS,
    HAVE,
    LEANING,
    NEGATIVE,
    PREPOSITIONS,
    RELATIVE,
    is_plural,
    participles,
    verbs,
)

_LEAD = re.compile(r"(In|On|By|Since|During|From|Until) ([^,]{3,40}?) ?, (?=\S)")
_ASIDE = re.compile(r"^([A-Z][^,;:()]{2,60}?) \([^()]{1,60}\)(?= [a-z])")  # behind the subject, in brackets
_LABEL = re.compile(  # of a structured abstract, run together with its first sentence
    r"(?:Abstract|Aims?|Background|Conclusions?|Data sources|Design|Discussion|Findings|Interpretation"
    r"|Introduction|Methods?|Objectives?|Purpose|Results?|Setting|Study selection|Summary|BACKGROUND"
    r"|CONCLUSIONS?|METHODS?|OBJECTIVES?|RESULTS?)\b:? ?(?=[A-Z0-9(])"
)
_WORD = re.compile(r"\S+")
_EDGE = "\"'“”‘’.,;:!?()[]"
# Where the main clause ends: a mark, but not the comma within a date or a number.
_BREAK = re.compile(r" ?(?:,(?! ?(?:1\d|20)\d\d\b)(?=\s)|[;:—]|(?<!\d)–|(?<!\d) – |\(| - |--)| \. ")
_LIST_GOES_ON = re.compile(r" ?\S+(?: \S+){0,3}?(?: ?,| and | or )")
_LONGEST_SUBJECT = 9


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as written: "In 1941, " + subject + verb + main. `at` is where main starts in the sentence."""

    subject: str
    verb: str
    base: str
    form: str  # "auxiliary", "present", "past" or "base"
    main: str
    at: int
    lead: str = ""
    lead_at: int = 0
    lead_word: str = ""
    is_cut: bool = False  # main ends within a list

    def asked(self, rest: str) -> str:
        """Verb and subject in the order of a question: `was the pier built`, `does the boat carry`."""
        if self.form == "auxiliary":
            return f"{self.verb} {self.subject} {rest}"
        helper = {"past": "did", "present": "does", "base": "do"}[self.form]
        return f"{helper} {self.subject} {self.base} {rest}"

    def told(self, rest: str) -> str:
        """The same in the order of a statement, for an indirect question: `the pier was built`."""
        return f"{self.subject} {self.verb} {rest}"


def clause(sentence: str) -> Clause | None:
    """The main clause of a sentence, or None if it is not plain enough to be turned into a question."""
    if sentence.endswith(("?", "!")) or is_labelled(sentence):
        return None
    sentence = _ASIDE.sub(
        lambda aside: aside[1] + " " * (len(aside.group()) - len(aside[1])), sentence, count=1
    )
    match = _LEAD.match(sentence)
    lead, lead_at, begin = (match[2], match.start(2), match.end()) if match else ("", 0, 0)
    lead_word = match[1].lower() if match else ""
    tokens = [(found.group(), found.start()) for found in _WORD.finditer(sentence, begin)]
    small = [word.strip(_EDGE).lower() for word, _ in tokens]
    place = _verb_place(tokens, small)
    if place is None:
        return None
    word, start = tokens[place]
    at = start + len(word) + 1
    main, is_cut = _main_part(sentence[at:])
    if not main or _has_second_verb(main) or NEGATIVE & set(small[place : place + 3]):
        return None
    base, form = _reading(small[place], small[place + 1] if place + 1 < len(small) else "")
    subject = " ".join(sentence[tokens[0][1] : start].split())
    return Clause(subject, word, base, form, main, at, lead, lead_at, lead_word, is_cut)


def is_labelled(sentence: str) -> bool:
    """Whether a sentence begins with the name of its section: `Results Two of five patients`."""
    return _LABEL.match(sentence) is not None


def _verb_place(tokens: list[tuple[str, int]], small: list[str]) -> int | None:
    """Where the verb stands after a subject that is a plain noun phrase."""
    if not tokens or (small[0] in LEANING and not _is_count(small)):
        return None
    for place in range(1, min(len(tokens), _LONGEST_SUBJECT + 1)):
        word = small[place]
        if tokens[place - 1][0][-1] in ",;:—" or word in RELATIVE or word in NEGATIVE:
            return None
        if not _may_be_verb(word, small, place) or tokens[place][0][0].isupper():
            continue
        before = small[place - 1]
        if before in PREPOSITIONS or before in DETERMINERS or before in ADVERBS or _is_adverb(before):
            return None
        if before in ("and", "or", "to") or tokens[place][0] != word:
            return None
        # "The ferry rules apply": a verb right behind it shows that this one is a noun.
        after = small[place + 1] if place + 1 < len(small) else ""
        if word not in AUXILIARIES and (
            after in AUXILIARIES or (after in verbs() and after not in PREPOSITIONS)
        ):
            continue
        return place if _is_subject([token for token, _ in tokens[:place]], small[:place]) else None
    return None


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and word not in (
        "supply",
        "family",
        "assembly",
        "reply",
        "july",
        "italy",
        "butterfly",
    )


def _is_count(small: list[str]) -> bool:
    """`Some 6,380 people`: the one use of a leaning word that leans on nothing."""
    return len(small) > 1 and small[0] in ("some", "about") and small[1][:1].isdigit()


def _may_be_verb(word: str, small: list[str], place: int) -> bool:
    if word in AUXILIARIES:
        return True
    verb = verbs().get(word)
    if verb is None:
        return False
    if verb.form == "base":
        return is_plural(small[place - 1]) and word not in ("number", "range", "state", "end", "house")
    return True


def _is_subject(tokens: list[str], small: list[str]) -> bool:
    """A noun phrase without marks, verbs or words that begin another clause."""
    text = " ".join(tokens)
    if re.search(r",(?!\d)|[;:()\[\]\"“”*<>{}|/\\=]", text) or RELATIVE & set(small):
        return False
    if small[-1] in ADVERBS or small[-1] in ("and", "or"):
        return False
    initials = any(re.fullmatch(r"[B-HJ-Z]", token) for token in tokens)  # as in a list of references
    if "-" in tokens or tokens[-1] == "&" or initials:
        return False
    behind = zip(small, tokens[1:], strict=False)
    if any(word.endswith("ed") and word.islower() and before not in DETERMINERS for before, word in behind):
        return False  # perhaps a verb that we do not know
    # A participle or an adverb in front: the sentence is turned round, and its subject comes later.
    return not (tokens[0].islower() or tokens[0].istitle()) or not small[0].endswith(("ing", "ed", "ly"))


def _main_part(rest: str) -> tuple[str, bool]:
    """The rest of the clause, up to a mark or to a second verb behind `and`; whether a list was cut there."""
    rest = rest.rstrip().rstrip(".!?").rstrip()
    match = _BREAK.search(rest)
    part = rest[: match.start()] if match else rest
    is_cut = match is not None and bool(_LIST_GOES_ON.match(rest, match.end()) or _goes_on(rest, match))
    if re.search(r"\bbetween (?!.* and )|\beither (?!.* or )|\bboth (?!.* and )", part):
        return "", False  # the mark stood within the phrase
    for joined in re.finditer(r" (?:and|but|or|so|yet) (\S+)(?: (\S+))?", part):
        after = {joined[1].lower(), (joined[2] or "").lower()}
        if after & AUXILIARIES or any(word in verbs() and verbs()[word].form != "base" for word in after):
            return part[: joined.start()], False
        if joined[1].lower() in DETERMINERS and _says_more(part[joined.start(2) :] if joined[2] else ""):
            return part[: joined.start()], False
        if after & {"it", "he", "she", "they", "we", "there", "is", "not", "then", "also"}:
            return part[: joined.start()], False
    return part, is_cut


def _says_more(words: str) -> bool:
    """Whether a verb in the past or an auxiliary is among the next words: `and the board approved`."""
    near = words.lower().split()[1:4]
    return any(word in AUXILIARIES or (word in verbs() and verbs()[word].form == "past") for word in near)


def _goes_on(rest: str, mark: re.Match[str]) -> bool:
    """Whether a phrase goes on behind the mark: `a tall, detached house`, `41 feet (12 m) wide`."""
    if mark.group().endswith(","):
        word = (rest[mark.end() :].split() or [""])[0]
        plain = word.isalpha() or "-" in word
        starts = word in LEANING or word in PREPOSITIONS or word in RELATIVE or word in DETERMINERS
        return plain and word.islower() and not starts and not word.endswith(("ing", "ed", "ly"))
    if mark.group().strip() in (":", "-", "--", "—", "–"):
        return True
    if not mark.group().endswith("("):
        return False
    behind = rest[mark.end() :].partition(")")[2].strip()
    return not mark.group().startswith(" ") or behind[:1].isalpha()


def _has_second_verb(main: str) -> bool:
    """Whether an auxiliary comes without a word that would begin a clause of its own: we misread the verb."""
    for word in main.lower().split():
        if word in RELATIVE or word in ("since", "before", "after", "until"):
            return False
        if word in AUXILIARIES and word not in ("may", "might", "will", "can", "must"):
            return True
    return False


def _reading(word: str, after: str) -> tuple[str, str]:
    """(base, form) of the verb; `has` before anything but a participle is a verb of its own."""
    if (
        word in HAVE
        and after not in participles()
        and after not in ADVERBS
        and not after.endswith(("ed", "ly"))
    ):
        return "have", {"has": "present", "had": "past", "have": "base"}[word]
    if word in AUXILIARIES:
        return word, "auxiliary"
    verb = verbs()[word]
    return verb.base, verb.form
