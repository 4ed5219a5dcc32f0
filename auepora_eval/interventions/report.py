"""What a diagnosis is, and how it is printed: at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.display import html_text, terminal_line

LEAST = 0.03  # a gain below it is not worth naming first
ALPHA = 0.05
FEW = 30  # questions, below which nothing can be named

# Stages: what is printed, and the rule. The first that holds decides. Rules by which a score means nothing
# come before those that use it, but only where no document makes the answer right: if one does, metric and
# gold are sound. Then the smallest change of the documents that does, so that a stage's count is what that
# fix alone brings. What no document makes right is the generator's, or needs two fixes.
STAGES = {
    "failed": ("the call failed", "the output is an error"),
    "answered": ("answered, but there is no answer", "labels.answerable is false, and it answered"),
    "untraced": ("cannot be traced", "no gold document with text, or its calls failed"),
    "unstable": ("another answer the second time", "right when asked again, same documents"),
    "metric": ("the metric cannot judge it", "nothing helps; the metric fails its own test"),
    "suspect": ("question or gold suspect", "nothing helps; the gold does not hold the reference"),
    "order": ("found, but its place matters", "right with the found gold first, or joined"),
    "context": ("found, but lost among others", "right with the found gold alone"),
    "index": ("not in the index", "right on gold, which its own words do not find"),
    "search": ("not found at any depth", "right on gold, which its own words find"),
    "cutoff": ("below the cutoff", "right on gold, which is found further down"),
    "missed": ("not retrieved", "right on gold, which was not retrieved"),
    "unused": ("gold not used or not retrieved", "right on gold; not known what was retrieved"),
    "both": ("not retrieved, and wrong on gold", "needs two fixes: one alone brings nothing"),
    "declined": ("declined on its gold", "nothing else holds; declines on gold alone"),
    "generator": ("wrong on its gold", "nothing else holds; wrong on gold alone"),
}
# Without a hook: from the outputs alone.
OUTPUTS_ALONE = {
    "missed": ("its gold was not retrieved", "some gold is not among the retrieved documents"),
    "declined": ("declined, its gold was retrieved", "all gold retrieved, and it declined"),
    "generator": ("wrong, its gold was retrieved", "all gold retrieved, and the answer is wrong"),
}
DOUBTFUL = ("metric", "suspect")  # the fault may be the test set's

BOUND, TRIED, ORACLE = "bound", "tried", "oracle"
# Fixes: what is printed; what the gain is: of documents that no retriever could give (bound), of documents
# that it gave (tried), of right answers put in for a stage (oracle); what is named first.
FIX_TEXTS = {
    "index": ("complete the index", BOUND, "the index"),
    "search": ("find what no depth finds", BOUND, "the search"),
    "rerank": ("lift gold from the first {depth}", BOUND, "the order of the candidates"),
    "cutoff": ("top_k {deeper} instead of {top_k}", TRIED, "top_k"),
    "retrieval": ("retrieve all gold", BOUND, "the retriever"),
    "documents": ("retrieve and use all gold", BOUND, "the documents that the generator gets"),
    "place": ("read every place alike", ORACLE, "how the generator reads its documents"),
    "filter": ("keep only the gold that was found", BOUND, "a filter of the retrieved documents"),
    "generator": ("right where it is wrong on gold", ORACLE, "the generator (wrong on its gold)"),
    "declines": ("answer where it declines on gold", ORACLE, "the generator (declines on its gold)"),
    "refusal": ("decline where there is no answer", ORACLE, "refusals where there is no answer"),
    "references": ("correct references and metric", ORACLE, "the test set"),
}
NO_LIMITS = (math.nan, math.nan)


@dataclass(frozen=True)
class StageShare:
    """How many wrong answers a stage lost, as a share of all questions with its interval."""

    name: str
    text: str
    rule: str
    count: int
    share: float
    interval: tuple[float, float]
    sample_ids: tuple[str, ...]


@dataclass(frozen=True)
class Fix:
    """What a fix brings at most, and what is to be expected if the other faults stay as they are."""

    name: str
    text: str
    kind: str
    gain: float
    interval: tuple[float, float]
    p: float
    p_holm: float
    expected: float
    run_id: str | None = None


@dataclass(repr=False)
class Diagnosis:
    """Where wrong answers were lost, what each fix would bring, and which to try first (`first`, a name)."""

    run_id: str
    metric: str
    value: float
    interval: tuple[float, float]
    n: int
    wrong: int
    stages: list[StageShare]
    fixes: list[Fix]
    first: str | None
    rivals: list[str] = field(default_factory=list)  # fixes that may as well come first
    unsupported: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_black_box: bool = False
    unreached: str = ""  # why nothing can be said, if documents do not reach the generator

    def stage(self, name: str) -> StageShare | None:
        """Return a stage by its name; None if it lost nothing."""
        return next((one for one in self.stages if one.name == name), None)

    def is_like(self, other: Diagnosis) -> bool:
        """Return whether the stages of two diagnoses mean the same: they were made in the same way."""
        ways = [
            (one.is_black_box, bool(one.unreached), {fix.name for fix in one.fixes}) for one in (self, other)
        ]
        return ways[0] == ways[1]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as it is stored and printed by --json."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Diagnosis:
        """Return the diagnosis of a stored document."""
        stages = [StageShare(**{**one, "sample_ids": tuple(one["sample_ids"])}) for one in document["stages"]]
        return cls(**{**document, "stages": stages, "fixes": [Fix(**one) for one in document["fixes"]]})

    def __str__(self) -> str:
        return "\n".join(diagnosis_lines(self))

    def __repr__(self) -> str:
        stages = ", ".join(f"{one.name} {one.count}" for one in self.stages[:3])
        return f"Diagnosis({self.wrong} of {self.n} wrong: {stages or 'no stage'}; first: {self.first})"

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    """Yield the lines of a diagnosis."""
    low, high = found.interval
    yield f"{found.wrong} of {found.n} answers are wrong: right {found.value:.2f} [{low:.2f}, {high:.2f}]"
    doubted = sum(one.count for one in found.stages if one.name in DOUBTFUL)
    if doubted and not found.unreached:
        yield f"Look at {doubted} of them first: they may be the fault of the test set (marked ?)."
    if found.unreached:
        yield from _wrapped(found.unreached)
        return
    if found.is_black_box:
        yield from _wrapped(
            "No system was asked whose generator can be handed documents, so no fix was tried. "
            "From the outputs alone:"
        )
    if not found.stages:
        return
    yield ""
    yield f"{'Where they were lost':36}{'answers':>8}   {'of all, 95%':14}  for example"
    for one in found.stages:
        mark = "? " if one.name in DOUBTFUL else ""
        share = f"{one.share:4.0%} [{one.interval[0]:3.0%}, {one.interval[1]:3.0%}]"
        yield f"  {mark + one.text:34}{one.count:8}  {share}   {terminal_line(one.sample_ids[0], 16)}"
    fixes = [fix for fix in found.fixes if fix.name != "references" and fix.gain > 0.005]
    if fixes:
        yield ""
        yield f"{'What a fix would bring':38}{'at most':>8}  {'95%':15} {'expect':>7}"
        yield from map(_fix_line, fixes)
        yield "  * different from 0 after Holm's correction over all fixes"
    yield ""
    if found.unsupported:
        count, example = len(found.unsupported), terminal_line(found.unsupported[0], 16)
        yield f"{count} right answers had no document with the answer, such as {example}."
    yield from _wrapped(verdict(found))
    for note in found.notes:
        yield from _wrapped(note)
    if found.calls.get("generate"):
        generate, retrieve = found.calls.get("generate", 0), found.calls.get("retrieve", 0)
        per = generate / max(1, found.n)
        yield f"{generate} calls of the generator ({per:.1f} per question), {retrieve} of the retriever."


def _fix_line(fix: Fix) -> str:
    star = "*" if fix.p_holm < ALPHA else " "
    expected = "tried" if fix.kind == TRIED else f"{fix.expected:+.2f}"
    low, high = fix.interval
    return f"  {fix.text:36}{fix.gain:+8.2f}{star} [{low:+.2f}, {high:+.2f}]  {expected:>6}"


def verdict(found: Diagnosis) -> str:
    """Return what to fix first, in words; "" if too little was tried."""
    if found.is_black_box:
        return (
            "To learn what a fix would bring, let the generator be handed documents: --system with a pair "
            "(retrieve, generate) or a function with a parameter `documents`."
        )
    if found.first is None and (not found.calls.get("generate") or found.n < FEW):
        return ""  # nothing was tried, or too little: the notes say why
    if found.first is None:
        return f"Nothing stands out: no fix is shown to bring {LEAST} or more with {found.n} questions."
    named = " or ".join(FIX_TEXTS[name][2] for name in (found.first, *found.rivals[:1]))
    more_of = "; which of them is not clear from these questions" if found.rivals else ""
    if {found.first, *found.rivals[:1]} == {"generator", "declines"}:
        named, more_of = "the generator (wrong on its gold, or declines)", ""
    both = found.stage("both")
    more = f" {both.count} answers need two fixes." if both else ""
    kinds = {fix.name: fix.kind for fix in found.fixes}
    documents = [fix.gain for fix in found.fixes if fix.kind != ORACLE and fix.name != "filter"]
    if kinds[found.first] == ORACLE and documents and max(documents) > 0:
        more = f" Retrieval alone: at most {max(documents):+.2f}.{more}"
    return f"First: {named}{more_of}.{more}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 80, break_long_words=False, break_on_hyphens=False)
