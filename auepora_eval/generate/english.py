"""English word lists for the rules: verbs and their forms, function words, units, dates, numbers.

The lists are closed on purpose: a sentence with an unknown verb gives no question instead of a wrong one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

BE = frozenset(("is", "are", "was", "were"))
HAVE = frozenset(("has", "have", "had"))
MODALS = frozenset("will would can could may might must shall should".split())
AUXILIARIES = BE | HAVE | MODALS

_REGULAR = """accept achieve acquire act add address adopt affect agree aim allow announce answer appear
    apply appoint approve argue arrange arrive ask assume attack attend attract award ban base belong
    border call capture carry cause celebrate centre change charge claim close collaborate collapse
    collect combine command compare compete complete compose comprise conclude conduct confirm connect
    conquer consist construct consume contain continue contribute control convert cover create cross
    damage decide declare decline defeat defend deliver demand deny depart depend describe design destroy
    detect determine develop die differ discover discuss display divide dominate earn elect emerge employ
    enable encode encounter end enter escape establish estimate examine exceed exist expand expect explain
    express extend face fail feature fire focus follow force form found fund gain generate grant guarantee
    handle happen help host house identify implement improve include increase indicate induce influence
    inhabit inherit inspect inspire install introduce invade invent invest invite involve issue join kill
    lack land last launch lease license live locate maintain manage manufacture mark marry measure mention
    merge minister mount move name note number observe obtain occupy occur offer open operate oppose order
    organise organize originate own pass perform permit persuade place plan play possess praise precede
    predict prefer prepare present preserve prevent produce promote propose protect prove provide publish
    purchase pursue raise range rank reach receive recognise recognize recommend record reduce refer
    reflect refuse regulate reject relate release rely remain remove rename repair replace report
    represent require rescue resemble reside resign respond restore result retire return reveal rule sail
    save score separate serve settle share sign span sponsor start state stay store stretch study succeed
    suffer suggest supply support surrender surround survive target test threaten total trace train
    transfer travel treat trigger turn use visit vote walk want warn weigh work yield nest lift suit hire
    post lower climb pump drain burn heat cool melt hunt migrate export import borrow print translate
    paint graduate govern administer amend ratify enact abolish evacuate bomb besiege anchor dock renovate
    demolish upgrade modify adapt tour premiere air chart peak ship stream encrypt compile evolve inhibit
    activate interact grade dispatch erect excavate inventory collide wound elevate renumber decommission
    commission march reform""".split()
# base, present, past, participle.
_IRREGULAR = """become becomes became become; begin begins began begun; break breaks broke broken; bring
    brings brought brought; build builds built built; buy buys bought bought; catch catches caught caught;
    choose chooses chose chosen; come comes came come; cost costs cost cost; cut cuts cut cut; draw draws
    drew drawn; drive drives drove driven; eat eats ate eaten; fall falls fell fallen; feed feeds fed fed;
    fight fights fought fought; find finds found found; fly flies flew flown; get gets got got; give gives
    gave given; go goes went gone; grow grows grew grown; have has had had; hear hears heard heard; hit hits
    hit hit; hold holds held held; keep keeps kept kept; know knows knew known; lay lays laid laid; lead
    leads led led; leave leaves left left; lend lends lent lent; let lets let let; lie lies lay lain; lose
    loses lost lost; make makes made made; mean means meant meant; meet meets met met; pay pays paid paid;
    put puts put put; read reads read read; rise rises rose risen; run runs ran run; say says said said; see
    sees saw seen; seek seeks sought sought; sell sells sold sold; send sends sent sent; set sets set set;
    shoot shoots shot shot; show shows showed shown; sink sinks sank sunk; sit sits sat sat; speak speaks
    spoke spoken; spend spends spent spent; stand stands stood stood; strike strikes struck struck; take
    takes took taken; teach teaches taught taught; tell tells told told; think thinks thought thought; throw
    throws threw thrown; wear wears wore worn; win wins won won; rebuild rebuilds rebuilt rebuilt; breed
    breeds bred bred; ride rides rode ridden; sing sings sang sung; swim swims swam swum; bind binds bound
    bound; write writes wrote written"""


class Verb(NamedTuple):
    """A form of a verb: its base and the kind of form."""

    base: str
    form: str  # "present" (he goes), "past" (went), "base" (they go)


@cache
def verbs() -> dict[str, Verb]:
    """Return finite forms and their verbs. A form of two verbs belongs to the first."""
    forms: dict[str, Verb] = {}
    rows = [row.split() for row in _IRREGULAR.split(";")]
    rows += [[base, *_regular(base)] for base in _REGULAR]
    for base, present, past, *_ in rows:
        forms.setdefault(present, Verb(base, "present"))
        if past != base:
            forms.setdefault(past, Verb(base, "past"))
    for base, *_ in rows:
        forms.setdefault(base, Verb(base, "base"))
    return forms


@cache
def participles() -> frozenset[str]:
    """Return past participles, as in `was founded` and `has become`."""
    rows = [row.split() for row in _IRREGULAR.split(";")]
    regular = [_regular(base)[1] for base in _REGULAR]
    return frozenset([row[3] for row in rows] + regular + ["been", "born", "known", "located", "situated"])


def _regular(base: str) -> tuple[str, str]:
    if re.search(r"[^aeiou]y$", base):
        return f"{base[:-1]}ies", f"{base[:-1]}ied"
    present = f"{base}es" if re.search(r"(?:s|x|z|ch|sh|o)$", base) else f"{base}s"
    if base.endswith("e"):
        return present, f"{base}d"
    if base in ("ban", "plan", "prefer", "refer", "occur", "control", "span", "permit", "transfer", "regret"):
        return present, f"{base}{base[-1]}ed"
    return present, f"{base}ed"


# A sentence that starts with one of these depends on another one, or is not a plain statement.
LEANING = frozenset(
    """it its he she they this these those that there here his her their we our i my you your such both
    neither either another others some many most several few all none one and but or so yet nor for if when
    while because although though since unless until whereas however therefore thus hence moreover
    furthermore also then next finally instead otherwise nevertheless meanwhile still even yes no not never
    what who which where why how whether as than despite due among unlike like per except only just perhaps
    maybe well now today tonight indeed rather again soon later earlier afterwards thereafter additionally
    similarly conversely consequently accordingly respectively overall together first second third to from
    with without by of in on at after before during under over through between within about let according
    given based using note see please once whenever wherever whatever whoever each other same what's let's
    it's that's here's there's we're they're i'm don't last nobody everyone anyone someone nothing everything
    anything something today's many much more less further recently""".split()
)
# Words that refer outside the sentence: a question with one cannot be understood alone.
POINTING = frozenset(
    """it its itself he she they him them his her hers their theirs this these those we us our ours i me my
    mine you your yours here above below latter former such aforementioned following previous previously
    respectively tonight today yesterday tomorrow currently thereby therein thereof said herself himself
    themselves another others hereby hereinafter there""".split()
)
RELATIVE = frozenset(
    """who whom whose which that when where if because although though while as than unless whereas whether
    so""".split()
)
# Things that a text calls `the ...` after it has named them.
GENERIC = re.compile(
    r"\b(?:the|an?|our|each) (?:company|companies|corporation|firm|registrant|parent|bank|partnership|paper"
    r"|study|agreement|authors?|present|current|year|game|series|team|club|film|book|album|song|ship|article"
    r"|screen|experiments?|role|season|episode|event|war|serial|show|park|city|town|house|building|match"
    r"|tournament|election|school|church|festival|single|tour|storm|process|band|group|programme|program"
    r"|project|party|battle|region)"
    r"\b(?! (?-i:[A-Z]))",  # `the ship Annet` says which
    re.IGNORECASE,
)
# A negated statement has no question that asks for the same.
NEGATIVE = frozenset("not never no neither nor none cannot nothing nobody without hardly n't".split())
DETERMINERS = frozenset("the a an each every any all both some no another".split())
PREPOSITIONS = frozenset(
    """of in on at for from by with to between near into onto over under within during about against among
    through across after before behind beside beyond off per than toward towards upon via until since around
    along""".split()
)
STOP = (
    POINTING
    | RELATIVE
    | DETERMINERS
    | PREPOSITIONS
    | AUXILIARIES
    | frozenset(
        """and or but not be been being do does did how what when many much long often according fill blank
        up there also its own can far then am out find get""".split()
    )
)
ADVERBS = frozenset(
    """also now then still often always usually first later soon already even only just once never ever again
    too all""".split()
)

# `X is a surveyor`: X is a person, and the question is who, not what.
PERSON_NOUNS = frozenset(
    """actor actress admiral architect artist astronaut astronomer author biologist bishop botanist
    businessman businesswoman captain chairman chairwoman chancellor chemist chief clerk coach colonel
    commander composer cricketer dancer deputy designer diplomat director doctor driver economist editor
    electrician emperor engineer explorer farmer fisherman footballer founder general geologist governor
    guitarist head historian inventor journalist judge keeper king lawyer leader lecturer lieutenant lord
    magistrate manager master mathematician mayor mechanic member merchant minister missionary monk musician
    naturalist novelist nurse officer painter philosopher photographer physician physicist pianist pilot
    player poet politician president priest prince princess producer professor programmer queen researcher
    saint scholar scientist sculptor secretary senator sergeant singer skipper soldier songwriter student
    superintendent surgeon teacher representative assistant agent executive owner attorney barrister
    statesman advocate activist entrepreneur detective technician translator treasurer warden warrior
    wrestler writer
    zoologist""".split()
)
PERSON_TITLES = frozenset(
    """mr mrs ms miss dr prof professor sir dame lady lord president king queen prince princess captain
    colonel general major lieutenant admiral senator governor judge bishop pope saint commander
    sergeant""".split()
)
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_YEAR = r"(?:1[0-9]\d\d|20\d\d)"
# A year alone is one from 1000 to 2099, and neither an amount nor part of a code.
DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? {MONTH},? {_YEAR}|{MONTH} \d{{1,2}}(?:st|nd|rd|th)? ?, {_YEAR}"
    rf"|{MONTH}(?: ?,)? {_YEAR}|\d{{1,2}} {MONTH}|{MONTH} \d{{1,2}}"
    rf"|(?<![\d.,:$-]){_YEAR}(?![\d%]|[.,]\d|-))\b",
    re.IGNORECASE,
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SMALL = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    "|nineteen"
)
# Without `one`, which is mostly a pronoun.
NUMBER_WORD = rf"(?:(?:{_TENS})(?:-(?:one|{_SMALL}))?|{_SMALL})"
NUMBER = (
    rf"(?:(?!0\d)\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|(?!0\d)\d+(?:\.\d+)?|{NUMBER_WORD})"
    r"(?: (?:hundred|thousand|million|billion|trillion))?"
)
# Words before a number that are not part of the exact answer.
QUALIFIER = (
    r"(?:up to |at least |at most |about |around |approximately |nearly |almost |roughly |some |over |under "
    r"|more than |less than |fewer than |only |just |exactly |as many as )"
)
MEASURES = frozenset(
    """metre metres meter meters kilometre kilometres kilometer kilometers centimetre centimetres centimeter
    centimeters millimetre millimetres millimeter millimeters km cm mm nm kg g mg ml kilogram kilograms gram
    grams tonne tonnes ton tons pound pounds mile miles foot feet inch inches yard yards acre acres hectare
    hectares litre litres liter liters gallon gallons crown crowns dollar dollars euro euros cent cents
    degree degrees knot knots watt watts kilowatt kilowatts megawatt megawatts gigawatt gigawatts
    kilowatt-hour kilowatt-hours megawatt-hour megawatt-hours volt volts byte bytes kilobytes megabytes
    gigabytes percent""".split()
)
TIMES = frozenset(
    """second seconds minute minutes hour hours day days night nights week weeks fortnight month months year
    years decade decades century centuries""".split()
)
PLURALS = frozenset(
    "people staff men women children feet mice teeth species aircraft sheep crew cattle".split()
)
DIMENSIONS = frozenset("long high wide deep tall old thick heavy across".split())


def is_plural(word: str) -> bool:
    """Return whether a lower-case word looks like a plural noun."""
    return word in PLURALS or bool(re.fullmatch(r"[a-z][a-z-]+(?<!s)(?<!u)(?<!i)s", word))
