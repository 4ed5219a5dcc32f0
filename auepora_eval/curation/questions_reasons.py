"""Questions about reasons and contents: why something is so, what something contains or does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .asking import Reading
from .candidates import Candidate
from .english import POINTING, PREPOSITIONS, RELATIVE

_REASON_ENDS = re.compile(r" ?[;:(—]| \. | ?, (?:and|but|so|which|while|although)\b")
_LIST = re.compile(r" ?, .* ?, (?:and|or)\b")
_BECAUSE = re.compile(r"[ ,]*\b(because(?: of)?|due to|owing to|in order to) (?=[a-z])")
# What is said of these can be asked for whole: `What does the pump house contain?`
_OBJECT_VERBS = frozenset(
    "contain include comprise encode manufacture measure regulate inhabit replace connect feature".split()
)


def about_reasons(reading: Reading) -> Iterator[Candidate]:
    """`... because the meter had stuck`: why?"""
    clause = reading.clause
    if clause is None:
        return
    behind = reading.text[clause.at :].rstrip(" .")
    match = _BECAUSE.search(behind)
    if match is None or match.start() == 0 or match.start() > len(clause.main) + 2:
        return
    pre, told = behind[: match.start()].rstrip(" ,"), behind[match.start(1) :]
    reason = _REASON_ENDS.split(told)[0].rstrip(" ,")
    if (
        RELATIVE & set(pre.lower().split())
        or "," in pre
        or _LIST.search(told)
        or re.search(r"\bto [a-z]+", pre)
    ):
        return
    if not 4 <= len(reason.split()) <= 30:
        return
    if re.search(r"\b(?:largely|partly|mainly|primarily|mostly|probably|likely|only|in part)$", pre):
        pre = pre.rpartition(" ")[0]
    if len(pre) < 4 or re.search(r"(?:^|\b)(?:be|been|to|also|due|increase|decrease)$", pre):
        return
    if clause.lead:
        pre = f"{pre} {clause.lead_word} {clause.lead}"
    start = clause.at + match.start(1)
    span = (start, start + len(reason))
    yield reading.put("reason", "text", f"why {clause.asked(pre)}", span, told=f"why {clause.told(pre)}")


def about_things(reading: Reading) -> Iterator[Candidate]:
    """`The north pier contains ...`: what does it contain? Only of what has a name."""
    clause = reading.clause
    if clause is None or clause.lead or clause.is_cut or clause.form == "auxiliary":
        return
    if clause.base not in _OBJECT_VERBS or not reading.vocabulary.has_name(clause.subject):
        return
    words = clause.main.split()
    if not 2 <= len(words) <= 14 or (RELATIVE | POINTING) & {word.lower() for word in words[:2]}:
        return
    if words[0].lower() in PREPOSITIONS | {"as", "up", "out"} or {"until", "when", "while"} & set(words):
        return
    span = (clause.at, clause.at + len(clause.main))
    question, told = f"what {clause.asked('')}", f"what {clause.told('')}"
    yield reading.put("thing", "text", question, span, told=told)
