"""Detect answers that decline to answer, and the phrase that shows it.

Three tiers, the first that has something to say decides:

1. a flag of the system's own: `declined`, `refused`, `abstained` or `no_answer`, true or false, in
   `response.structured` or `response.metadata`;
2. the text: empty, or a phrase of refusal within its first 400 characters, in fifteen languages;
3. neither: it is an answer.

English refusals are recognised by families of phrasing: the speaker does not know, it cannot be determined,
or what was given does not have it. There are four exceptions, since more of them turn plain refusals into
answers: a text that starts with "yes", a concession ("while the documents do not say when, they ..."), an
answer after all ("However, it mentions ..."), and a remark on the documents after the first sentence.

How far to trust it: `python benchmarks/refusal.py` prints precision and recall against people's labels,
source by source. The rules were chosen on one half of the sources and are reported on the other half;
docs/metrics.md has the table. Languages other than English are not measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from ..core.types import Response

FLAGS = ("declined", "refused", "abstained", "no_answer")
WINDOW = 400  # a refusal comes first; further down, real answers note what they leave out
_READ = 8 * WINDOW  # characters that are looked at, white space included

# In the signature of the metrics that use it: values by other rules are not compared with these.
DETECTOR = f"a flag, else no text, else phrases in 15 languages in the first {WINDOW} characters, rules 2"

# English refusals, by families of phrasing.
_SOURCE = (
    r"(?:documents?|text|passages?|contexts?|evidence|filings?|articles?|sources?|excerpts?|materials?|data"
    r"|information|reports?|statements?|question|knowledge base|search results?|snippets?|content|corpus)"
)
_MATTER = (
    r"(?:information|info|data|context|details?|evidence|answer|knowledge|documents?|specifics|figures?)"
)
_TELL = (
    r"(?:answer|determine|provide|find|say|tell|calculate|compute|give|verify|confirm|locate|assist|help"
    r"|identify|access|respond|conclude|ascertain|establish|offer|infer)"
)
_HOLD = (
    r"(?:provide|contain|include|mention|specify|state|say|address|discuss|give|have|indicate|disclose|offer"
    r"|cover|list|explain|answer|describe|detail|refer|appear to|seem to|tell)"
)
_NOT = r"(?:\s+not|n't)"
_CANNOT = r"(?:cannot|can not|can't|could not|couldn't|unable to|not able to|was unable to|were unable to)"
_GIVEN = r"(?:mentioned|provided|specified|stated|given|available|included|disclosed|addressed|found|present)"
_IS_NOT = rf"\b(?:is|are|was|were){_NOT}"

# The speaker does not know, has no access, or is sorry.
_NO_KNOWLEDGE = (
    rf"\b(?:i|we) (?:do|would){_NOT} (?:\w+ )?(?:know|recall)\b",
    rf"\bi (?:do|did|could){_NOT} (?:\w+ )?find\b",
    rf"\b(?:i|we) (?:do|did){_NOT} (?:\w+ )?have\b[^.!?\n]{{0,60}}?\b(?:{_MATTER}|access|abilit(?:y|ies))\b",
    r"\b(?:i|we) have no (?:\w+ ){0,2}(?:information|idea|data|knowledge|access|record)\b",
    r"\bi(?:'m| am) (?:not (?:sure|certain|aware)|unsure)\b",
    r"\b(?:outside|beyond) (?:of )?(?:my|the) (?:knowledge|scope)\b",
    r"^\W*(?:i(?:'m| am) (?:very |so |really )?sorry\b(?! to hear)|sorry,|i apologi[sz]e|my apologies)",
    r"^\W*(?:(?:it|this|that)(?: is|'s) )?(?:unanswerable|no answer|n/?a|idk"
    r"|not (?:mentioned|specified|found|available|provided|stated|given))\W*$",
)
# It cannot be determined, or would take something that is missing.
_NOT_POSSIBLE = (
    rf"\b(?:i|the assistant)(?: am|'m)? (?:sorry,? )?(?:but )?(?:i )?(?:also )?{_CANNOT}(?: \w+)? {_TELL}\b",
    rf"\bwe(?: are|'re)? (?:also )?{_CANNOT}(?: \w+)? (?!find|identify|confirm|establish){_TELL}\b",
    rf"(?:^|[.!?,;:]\s*)(?:cannot|can't|unable to|could not|not able to)(?: \w+)? {_TELL}\b",
    rf"\bit(?: is|'s| was| would be) (?:not possible|impossible|unclear|not clear|difficult)"
    rf"(?: for me)? (?:to (?:\w+ )?{_TELL}|from the (?:\w+ )?{_SOURCE})\b",
    r"\b(?:cannot|can't|could not|couldn't) be (?:\w+ )?"
    r"(?:answered|determined|calculated|ascertained|inferred)\b",
    r"\b(?:you|we|one|i)(?: would|'d) (?:\w+ )?(?:need|require) "
    r"(?:to (?:know|have|see|look|access|obtain|find)|access"
    r"|(?:the|more|additional|further|specific|detailed|both|information|data|figures)\b)",
    rf"\bplease (?:provide|share|supply) (?:\w+ )?(?:the )?(?:necessary|more|additional|further)(?: \w+)? "
    rf"{_MATTER}\b",
)
# What was given does not have it.
_NOT_GIVEN = (
    rf"(?:\binsufficient|\binadequate|(?:\bnot|n't) (?:\w+ )?(?:enough|sufficient)"
    rf"|\black(?:s|ing)?(?: the| sufficient| specific| necessary)?) (?:\w+ ){{0,2}}(?!evidence){_MATTER}\b",
    rf"\b{_SOURCE}\b(?:[^.,!?\n]{{0,60}}?|[^.!?\n]{{0,80}}?, (?:but |yet )?(?:it|they) )"
    rf"\b(?:do|does|did){_NOT} (?:\w+ ){{0,2}}?{_HOLD}\b",
    rf"\b{_SOURCE}\b[^.,!?\n]{{0,40}}?\b(?:(?:gives?|provides?|contains?|makes?) no|(?:is|are) silent)\b",
    rf"\bnone of the (?:\w+ )?{_SOURCE}\b[^.!?\n]{{0,30}}?{_HOLD}",
    rf"\bnothing in the (?:\w+ )?{_SOURCE}\b",
    rf"\b{_MATTER}\b[^.!?\n]{{0,90}}?(?:{_IS_NOT}|\b(?:cannot|can't) be) (?:\w+ ){{0,2}}?{_GIVEN}\b",
    rf"{_IS_NOT} (?:\w+ )?(?:(?:{_GIVEN}|discussed|covered) (?:anywhere )?)?(?:in|by|within|from|part of)"
    rf" (?:the |this |these |any )(?:\w+ )?{_SOURCE}\b",
    r"\bno (?:\w+ ){0,2}?(?:information|mention|details?|answer)\b (?:(?:is|are|was|were) )?(?:\w+ )?"
    r"(?:in|about|on|of|for|to|regarding|concerning|available|provided|found|given|mentioned|included)\b",
    rf"\bno (?:\w+ ){{0,2}}?data (?:(?:is|are|was|were) )?(?:\w+ )?(?:in|about|on|for|{_GIVEN})\b",
)

_YES = re.compile(r"\W*yes\b")
# "While the documents do not say when, they ...": the main clause is the answer.
_CONCESSION = re.compile(r"\b(?:while|although|though|whereas|despite)\b[^,;]*\Z")
# "However, it does mention ...", "If we assume ...": the answer comes after all.
_AFTER_ALL = re.compile(
    r"\bhowever,? (?:it|they|the \w+)(?: \w+)? (?:mentions?|states?|notes?|indicates?|says?|reports?|shows?"
    r"|suggests?)\b|\bif we (?:assume|use|take)\b|\bwe can (?:\w+ )?(?:infer|calculate|estimate|deduce)\b"
)

_PHRASES = {
    "German": (
        r"\bwei(?:ß|ss) (?:ich )?(?:\w+ )?nicht\b",
        r"\b(?:kann|können|konnte|lässt sich|lassen sich)\b[^.!?\n]{0,90}?\bnicht (?:\w+ )?"
        r"(?:beantwort|sagen|beurteil|ermittel|bestimm|gefunden|finden|helfen|feststell|entnehmen|angeben)",
        r"\b(?:keine|nicht gen[uü]g(?:end)?|nicht ausreichend|unzureichende|zu wenige?) (?:\w+ ){0,2}?"
        r"(?:informationen|angaben|daten|antwort|hinweise|auskunft)\b",
        r"\b(?:geht|gehen) [^.!?\n]{0,60}?nicht hervor\b",
        r"\b(?:nicht|nirgends) (?:erwähnt|genannt|angegeben|enthalten)\b",
        r"^\W*(?:es )?tut mir leid\b",
    ),
    "French": (
        r"\bje ne (?:le )?sais pas\b|\bje l'ignore\b",
        r"\bje ne (?:\w+ )?(?:peux|suis|dispose|trouve|possède)\b[^.!?\n]{0,20}?\bpas\b",
        r"\binformations?\b[^.!?\n]{0,40}?\b(?:insuffisante?s?|ne suffi)",
        r"\b(?:pas|ni) (?:assez|suffisamment) d'informations?\b|\baucune (?:information|mention"
        r"|réponse|donnée)\b",
        r"\b(?:documents?|textes?|contexte|passages?|sources?) (?:\w+ ){0,2}?ne \w+ (?:pas|aucun)",
        r"\b(?:n'est|n'a|ne sont|n'ont) pas (?:été )?(?:mentionn|précis|indiqu|fourni|disponible)",
        r"\bimpossible de (?:répondre|déterminer|dire|savoir)\b|\bil n'est pas possible de\b",
        r"^\W*(?:je suis )?(?:vraiment )?désolée?\b",
    ),
    "Spanish": (
        r"\bno (?:lo )?sé\b|\bdesconozco\b",
        r"\bno (?:\w+ ){0,4}?(?:información|datos) (?:\w+ )?(?:suficiente|sobre|en|para|disponible|acerca)",
        r"\bno (?:puedo|podemos|es posible|se puede|fue posible) (?:\w+ )?(?:respond|contest"
        r"|determin|proporcion|saber|decir|encontr)",
        r"\binformación (?:\w+ ){0,2}?insuficiente|\binsuficiente información\b|\bninguna información\b",
        r"\b(?:documentos?|textos?|contextos?|pasajes?"
        r"|fuentes?) (?:\w+ ){0,2}?no (?:\w+ )?(?:mencion|contien|proporcion|incluy|indic|especific"
        r"|dice)",
        r"\bno se (?:mencion|especific|indic|proporcion)",
        r"^\W*(?:lo siento|lo lamento)\b",
    ),
    "Italian": (
        r"\bnon (?:lo )?so\b",
        r"\bnon (?:\w+ ){0,4}?informazion[ie] (?:\w+ )?(?:sufficient|su|in|per|disponibil|riguard)",
        r"\bnon (?:posso|possiamo|è possibile|sono in grado di|riesco a|si può) (?:\w+ )?(?:rispond"
        r"|determin|dire|forni|stabili|trov)",
        r"\binformazion[ie] (?:\w+ ){0,2}?insufficient|\bnessuna informazione\b",
        r"\b(?:document[oi]|test[oi]|contest[oi]|bran[oi]"
        r"|font[ei]) (?:\w+ ){0,2}?non (?:\w+ )?(?:menzion|conten|contien|fornisc|specific|indic"
        r"|dic)",
        r"\bnon (?:è|viene|sono|vengono) (?:menzionat|specificat|indicat|fornit)",
        r"^\W*(?:mi dispiace|mi spiace)\b",
    ),
    "Portuguese": (
        r"\bnão (?:o )?sei\b|\bdesconheço\b",
        r"\bnão (?:\w+ ){0,4}?(?:informaç(?:ão|ões)|dados) (?:\w+ )?(?:suficiente|sobre|em|no|na"
        r"|para|disponíve)",
        r"\bnão (?:posso|podemos|é possível|consigo|foi possível|se pode) (?:\w+ )?(?:respond"
        r"|determin|dizer|fornec|saber|encontr)",
        r"\binformaç(?:ão|ões) (?:\w+ ){0,2}?insuficiente|\bnenhuma informação\b",
        r"\b(?:documentos?|textos?|contextos?|trechos?"
        r"|fontes?) (?:\w+ ){0,2}?não (?:\w+ )?(?:mencion|cont[eé]m|fornec|inclu|indic|especific"
        r"|diz)",
        r"\bnão (?:é|são|foi|foram|está|estão) (?:mencionad|especificad|indicad|fornecid)",
        r"^\W*(?:sinto muito|desculpe|lamento)\b",
    ),
    "Dutch": (
        r"\bik weet (?:het )?niet\b|\bgeen (?:\w+ )?(?:informatie|gegevens|antwoord)\b",
        r"\b(?:onvoldoende|niet genoeg|niet voldoende|te weinig) (?:informatie|gegevens)\b",
        r"\b(?:kan|kunnen)\b[^.!?\n]{0,60}?\bniet (?:\w+ )?(?:beantwoord|bepal|zeggen|vinden|vaststell)",
        r"^\W*(?:het )?spijt me\b",
    ),
    "Polish": (
        r"\bnie wiem\b|\bbrak (?:\w+ )?(?:informacji|danych|odpowiedzi)\b"
        r"|\bnie ma (?:\w+ )?(?:informacji|danych)\b",
        r"\bnie (?:mogę|można|jestem w stanie|da się) (?:\w+ )?(?:odpowiedzieć|określić|ustalić"
        r"|stwierdzić|znaleźć)\b",
        r"\bniewystarczając\w+ (?:informacj|dan)|\bza mało (?:informacji|danych)\b"
        r"|^\W*(?:przepraszam|przykro mi)\b",
    ),
    "Turkish": (
        r"\bbilmiyorum\b|\b(?:yeterli )?bilgi (?:yok|bulunm|yer alm|verilm|mevcut değil)"
        r"|\byeterli bilgi\w* (?:sahip değil)",
        r"\b(?:cevapla|yanıtla|belirle|cevap ver|yanıt ver)\w*(?:yamıyor|yemiyor|emiyor|amıyor"
        r"|yamam|yemem|emem)|^\W*üzgünüm\b",
    ),
    "Russian": (
        r"\bне знаю\b|\bмне неизвестно\b",
        r"\bне (?:могу|можем|удалось|удаётся|удается|представляется возможным) (?:\w+ )?"
        r"(?:ответ|определ|найти|предостав|сказать|дать|установ)",
        r"\b(?:невозможно|нельзя) (?:\w+ )?(?:ответ|определ|установ|сказать)",
        r"\b(?:недостаточно|нет|отсутству\w+) (?:\w+ ){0,2}?(?:информаци|данных|сведени)",
        r"\b(?:информаци\w|данные|сведения)\b[^.!?\n]{0,60}?\b(?:отсутству|не (?:упомина|указан"
        r"|содерж|предоставл|привод))",
        r"\b(?:документ|текст|контекст|источник|отрыв)\w*\b[^.!?\n]{0,40}?\bне (?:упомина|указ"
        r"|содерж|говорит|сообща)",
        r"^\W*(?:извините|простите)\b",
    ),
    "Chinese": (
        r"(?:信息|資訊|资料|資料|数据)(?:不足|不够|不夠|缺失)",
        r"[无無]法(?:回答|确定|確定|判断|判斷|得知|提供|给出|給出|找到|得出|从|從|根据|根據)|不能(?:回答|确定|確定)",
        r"(?:我|我们|我們)?(?:并)?不(?:知道|清楚|了解|确定|確定)(?:答案|这|這|该|該|。|，|$)|[我](?:并)?不知道",
        r"[没沒]有(?:足够|足夠|相关|相關|具体|具體|任何|提供|提及|提到|说明|說明|包含|找到|给出|給出)",
        r"(?:文档|文檔|文件|文中|文章|资料|資料|上下文|段落)[^。！？\n]{0,20}?(?:未|并未|[没沒])(?:有)?(?:提|说|說|给|給|包|涉|找)",
        r"^\W*(?:很|非常)?(?:抱歉|对不起|對不起)",
    ),
    "Japanese": (
        r"(?:わか|分か|判)りません|わからない|分からない|知りません|存じません|不明です",
        r"情報(?:が|は)?[^。\n]{0,12}?(?:不足|不十分|ありません|ない|含まれて|見つかり|足りま|記載されて(?:い)?ま?せん)",
        r"(?:お答え|回答|判断|特定|確認|お応え|提供)(?:することが|することは|は|が)?(?:でき(?:ません|ない|かね)|いたしかね)|答えられ(?:ません|ない)",
        r"(?:記載|言及|記述|説明)(?:が|は|も)?(?:されて)?(?:い)?(?:ありません|ません|ない|なく)|^\W*申し訳|^\W*すみません",
    ),
    "Korean": (
        r"모르겠|알 수 (?:없|가 없)|정보가? ?(?:없|부족|충분하지|제공되지|포함되)",
        r"(?:답변|대답|답)을? ?(?:드릴|할) 수 (?:없|가 없)",
        r"(?:언급|명시|제공|기재)되(?:어 있)?지 않|^\W*죄송",
    ),
    "Arabic": (
        r"لا (?:أعرف|أعلم|أدري)|لا (?:توجد|يوجد|تتوفر|تتوافر) (?:\w+ )?(?:معلومات|إجابة|بيانات)",
        r"معلومات (?:\w+ )?غير كافية|لا (?:يمكنني|أستطيع|يمكن) (?:\w+ )?(?:الإجابة|تحديد|تقديم)"
        r"|(?:النص|السياق|المستند|الوثيقة) لا (?:يذكر|يحتوي|يوفر|تذكر|تحتوي)|^\W*(?:عذرا|عذرًا|آسف"
        r"|أعتذر)",
    ),
    "Hindi": (
        r"नहीं पता|मुझे (?:इसकी )?जानकारी नहीं|(?:पर्याप्त|कोई) (?:\S+ )?जानकारी (?:\S+ )?नहीं"
        r"|जानकारी (?:उपलब्ध|मौजूद|पर्याप्त) नहीं",
        r"(?:उत्तर|जवाब) (?:\S+ )?नहीं (?:दे|दिया)|(?:उल्लेख|वर्णन) नहीं|^\W*(?:क्षमा करें|माफ़? ?कीजिए)",
    ),
}
_OTHER_LANGUAGES = tuple(phrase for phrases in _PHRASES.values() for phrase in phrases)
_ENGLISH = (*_NO_KNOWLEDGE, *_NOT_POSSIBLE, f"(?P<not_given>{'|'.join(_NOT_GIVEN)})")


def declines(response: Response) -> bool:
    """Return whether a response declines to answer.

    >>> declines(Response("I’m sorry, but the documents don’t say."))
    True
    >>> declines(Response("Nobody knows.", metadata={"declined": False}))
    False
    """
    flags = _flags(response, FLAGS)
    if flags:
        return any(flags.values())  # one true flag is enough
    return not response.text.strip() or _has_phrase(response.text[:_READ])


@lru_cache(maxsize=1 << 11)  # of a batch, which several metrics go through one after the other
def _has_phrase(text: str) -> bool:
    plain = " ".join(text.split()).lower().replace("’", "'").replace("ʼ", "'")
    return _declines_in_english(plain) or _any_of(_OTHER_LANGUAGES).search(plain[:WINDOW]) is not None


def _declines_in_english(text: str) -> bool:
    """Return whether a text has a sentence that declines, and does not answer after all."""
    if _YES.match(text):
        return False
    for match in _any_of(_ENGLISH).finditer(text, 0, WINDOW):
        start = max(text.rfind(mark, 0, match.start()) for mark in (". ", "! ", "? ")) + 1
        # "It leaves at noon. The documents do not say what it costs."
        is_remark = start > 0 and match.lastgroup == "not_given"
        if not is_remark and not _CONCESSION.search(text[start : match.end()]):
            return not _AFTER_ALL.search(text, match.end(), match.end() + WINDOW)
    return False


def _flags(response: Response, names: Iterable[str]) -> dict[str, bool]:
    """Return the flags of these names that a system has set in its response."""
    return {
        name: place[name]
        for place in (response.metadata, response.structured)
        if isinstance(place, dict)
        for name in names
        if isinstance(place.get(name), bool)
    }


@cache  # compiled when first used: start-up has no time for it
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(phrases))


# Whether an answer says that its documents are wrong.
#
# First a flag of the system's own: `factual_error`, `factual_errors` or `error_detected`, true or false, in
# `response.structured` or `response.metadata`. Where there is none, phrases in thirteen languages, unless a
# word of negation stands right before ("no factual errors", "没有事实性错误").
#
# How many such remarks the phrases miss is not known: no public answers carry that label. False alarms: none
# in 750 answers to FinanceBench, 477 of MTRAG and 2,750 passages of RGB, whose documents are not called
# wrong.

ERROR_FLAGS = ("factual_error", "factual_errors", "error_detected")

_WRONG_SOURCE = (
    r"(?:documents?|passages?|contexts?|texts?|sources?|articles?|excerpts?|references?|information)"
)
_WRONG = r"(?:incorrect|inaccurate|wrong|mistaken|erroneous|false|in error|untrue|outdated or wrong)"

_ERROR_PHRASES = (
    # English
    r"\bfactual(?:ly)? (?:errors?|mistakes?|inaccurac(?:y|ies)|incorrect|inaccurate|wrong|false)\b",
    rf"\b(?:the|these|this|that|some|your|provided|given|retrieved) (?:\w+ ){{0,2}}?{_WRONG_SOURCE}\b"
    rf"[^.,;!?\n]{{0,40}}?\b(?:is|are|was|were|be|seems?|appears?)(?: to be)? (?:\w+ly )?{_WRONG}\b",
    rf"\b{_WRONG_SOURCE}\b[^.,;!?\n]{{0,30}}?\b(?:contains?|ha(?:s|ve)|includes?)(?: \w+){{0,2}}"
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
    """Return whether a response says that the documents are wrong.

    >>> flags_an_error(Response("There are factual errors in the provided documents. It was 1911."))
    True
    >>> flags_an_error(Response("There are no factual errors in the provided documents."))
    False
    """
    flags = _flags(response, ERROR_FLAGS)
    if flags:
        return any(flags.values())
    text = " ".join(response.text.lower().replace("’", "'").split())
    return any(
        not _DENIED.search(text[max(0, m.start() - 40) : m.start()])
        for m in _any_of(_ERROR_PHRASES).finditer(text)
    )
