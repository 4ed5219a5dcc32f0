"""Whether an answer says that its documents are wrong.

First a flag of the system's own: `factual_error`, `factual_errors` or `error_detected`, true or false, in
`response.structured` or `response.metadata`. Where there is none, phrases in thirteen languages, unless a
word of negation stands right before ("no factual errors", "没有事实性错误").

How many such remarks the phrases miss is not known: no public answers carry that label. False alarms: none
in 750 answers to FinanceBench, 477 of MTRAG and 2,750 passages of RGB, whose documents are not called wrong.
"""

from __future__ import annotations

import re
from functools import cache

from ..core.types import Response

FLAGS = ("factual_error", "factual_errors", "error_detected")

_SOURCE = r"(?:documents?|passages?|contexts?|texts?|sources?|articles?|excerpts?|references?|information)"
_WRONG = r"(?:incorrect|inaccurate|wrong|mistaken|erroneous|false|in error|untrue|outdated or wrong)"

_PHRASES = (
    # English
    r"\bfactual(?:ly)? (?:errors?|mistakes?|inaccurac(?:y|ies)|incorrect|inaccurate|wrong|false)\b",
    rf"\b(?:the|these|this|that|some|your|provided|given|retrieved) (?:\w+ ){{0,2}}?{_SOURCE}\b"
    rf"[^.,;!?\n]{{0,40}}?\b(?:is|are|was|were|be|seems?|appears?)(?: to be)? (?:\w+ly )?{_WRONG}\b",
    rf"\b{_SOURCE}\b[^.,;!?\n]{{0,30}}?\b(?:contains?|ha(?:s|ve)|includes?)(?: \w+){{0,2}}"
    r" (?:errors?|mistakes?)\b",
    # Chinese, Japanese, Korean
    r"事[实實](?:性)?(?:的)?[错錯][误誤]|[与與]事[实實]不符|不符合事[实實]",
    r"事実(?:誤認|と異な|に反)|事実(?:関係)?の?誤り",
    r"사실(?:적|관계)? ?오류|사실과 (?:다르|다릅|맞지)",
    # German, French, Spanish, Italian, Portuguese, Dutch
    r"\b(?:sachliche|faktische|inhaltliche)[nr]? fehler|\b(?:sachlich|faktisch) (?:falsch|unrichtig)\b",
    r"\berreurs? factuelles?\b|\berreurs? de fait\b|\bfactuellement (?:faux|fausse|incorrect|inexact)",
    r"\berror(?:es)? (?:factual(?:es)?|fácticos?|de hecho)\b",
    r"\berror[ei] (?:fattual[ei]|di fatto)\b",
    r"\berros? (?:factua(?:l|is)|fatua(?:l|is)|de facto|de fato)\b",
    r"\bfeitelijke (?:fouten|fout|onjuistheden|onjuistheid)\b|\bfeitelijk onjuist\b",
    # Polish, Russian, Arabic
    r"\bbłęd\w* (?:faktyczn|rzeczow)\w+|\bbłąd (?:faktyczny|rzeczowy)\b",
    r"\bфактическ\w+ ошиб\w+|\bне соответству\w+ действительности\b",
    r"(?:أخطاء|خطأ) (?:واقعية|واقعي|في الحقائق)",
)
_DENIED = re.compile(
    r"(?:\b(?:no|not|any|without|free (?:of|from)|keine?[nr]?|ohne|nicht|sans|aucune?|sin"
    r"|ning[uú]n\w*|no hay|sem|nenhum\w*|não|senza|nessun\w*|non|geen|zonder|niet|нет|без|bez|nie|żadn\w+)\b"
    r"[\s\w']{0,20}|\bpas d(?:e |')|[没沒]有?|不存在|不包?含|[并並]?[无無]|未(?:发现|發現|包含|见|見)"
    r"|لا (?:توجد|يوجد) (?:أي )?)[^。，,.;；]{0,8}\Z"
)


def flags_an_error(response: Response) -> bool:
    """Whether a response says that the documents are wrong.

    >>> flags_an_error(Response("There are factual errors in the provided documents. It was 1911."))
    True
    >>> flags_an_error(Response("There are no factual errors in the provided documents."))
    False
    """
    for place in (response.structured, response.metadata):
        for name in FLAGS if isinstance(place, dict) else ():
            flag = place.get(name) if place else None
            if isinstance(flag, bool):
                return flag
    text = " ".join(response.text.lower().replace("’", "'").split())
    return any(
        not _DENIED.search(text[max(0, m.start() - 40) : m.start()]) for m in _phrases().finditer(text)
    )


@cache
def _phrases() -> re.Pattern[str]:
    return re.compile("|".join(_PHRASES))
