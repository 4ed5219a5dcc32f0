"""What a diagnosis is, and how it is printed: at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from ..core.display import html_text, terminal_line

LEAST = 0.03  # a gain below it is not worth naming first
_LEAST_SHOWN = 0.005
_MOST_SHOWN = 6  # stages and fixes: all of the screen fits 24 lines, and --json has the others
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
    "passage": ("document found, not its passage", "right on the whole document, not on its parts"),
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
    "passage": ("document found, not its passage", "what was retrieved of it lacks the answer"),
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
    "chunks": (
        "whole documents, not their parts",
        BOUND,
        "the chunks: where they are cut, or which are found",
    ),
    "place": ("read every place alike", ORACLE, "how the generator reads its documents"),
    "filter": ("keep only the gold that was found", BOUND, "a filter of the retrieved documents"),
    "generator": ("right where it is wrong on gold", ORACLE, "the generator (wrong on its gold)"),
    "declines": ("answer where it declines on gold", ORACLE, "the generator (declines on its gold)"),
    "refusal": ("decline where there is no answer", ORACLE, "refusals where there is no answer"),
    "references": ("correct references and metric", ORACLE, "the test set"),
}
Limits = tuple[float, float] | None  # of an interval; one question has none


def limits_text(limits: Limits, form: str) -> str:
    """Return an interval for a table.

    >>> limits_text((0.1, 0.25), ".2f"), limits_text(None, ".2f")
    ('[0.10, 0.25]', '-')
    """
    return "-" if limits is None else f"[{limits[0]:{form}}, {limits[1]:{form}}]"


USE_DOCUMENTS = "Check that the generator puts the documents that it is handed into its prompt."


def unreached_text(asked: int, instead: str = "without them") -> str:
    """Return why nothing can be said of a generator whose answers do not depend on documents."""
    return f"documents do not reach the generator: 0 of {asked} answers change {instead}"


@dataclass(frozen=True)
class StageShare:
    """How many wrong answers a stage lost, as a share of all questions with its interval."""

    name: str
    text: str
    rule: str
    count: int
    share: float
    interval: Limits
    sample_ids: tuple[str, ...]

    @property
    def words(self) -> str:
        """The text, marked if the fault may be the test set's."""
        return f"? {self.text}" if self.name in DOUBTFUL else self.text


@dataclass(frozen=True)
class Fix:
    """What a fix brings at most, and what is to be expected if the other faults stay as they are."""

    name: str
    text: str
    kind: str
    gain: float
    interval: Limits
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
    interval: Limits
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
    traced: int = 0  # questions with gold whose text is known: a corpus makes them more
    corpus: str | None = None  # the --corpus that it was made with

    def stage(self, name: str) -> StageShare | None:
        """Return a stage by its name; None if it lost nothing."""
        return next((one for one in self.stages if one.name == name), None)

    @property
    def shown_fixes(self) -> list[Fix]:
        """The fixes that bring something; to correct references is not a fix of the system."""
        return [one for one in self.fixes if one.name != "references" and one.gain > _LEAST_SHOWN]

    @property
    def reach(self) -> tuple[bool, int]:
        """How much could be asked: what a diagnosis with less of it says is less certain."""
        return not (self.is_black_box or self.unreached), self.traced

    def is_like(self, other: Diagnosis) -> bool:
        """Whether the stages of two diagnoses mean the same; where nothing is wrong, there is none."""
        if self.metric == other.metric and not (self.wrong and other.wrong):
            return True
        names = [{fix.name for fix in each.fixes} for each in (self, other)]
        return (self.metric, self.reach, names[0]) == (other.metric, other.reach, names[1])

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as it is stored and printed by --json."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Diagnosis:
        """Return the diagnosis of a stored document."""
        value = math.nan if document["value"] is None else document["value"]
        return msgspec.convert({**document, "value": value}, cls)

    def __str__(self) -> str:
        return "\n".join(diagnosis_lines(self))

    def __repr__(self) -> str:
        stages = ", ".join(f"{one.name} {one.count}" for one in self.stages[:3])
        return f"Diagnosis({self.wrong} of {self.n} wrong: {stages or 'no stage'}; first: {self.first})"

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(str(self))}</pre>"


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    """Yield the lines of a diagnosis."""
    if found.n:
        right = f": right {found.value:.2f}" if math.isfinite(found.value) else ""
        limits = f" {limits_text(found.interval, '.2f')}" if found.interval else ""
        yield f"{found.wrong} of {found.n} answers are wrong{right}{limits}"
    doubted = sum(one.count for one in found.stages if one.name in DOUBTFUL)
    if found.unreached:
        yield from _wrapped(f"{found.unreached} No cause can be named.")
    else:
        if doubted:
            yield f"Look at {doubted} of them first: they may be the fault of the test set (marked ?)."
        yield from _tables(found)
    for sentence in (*([] if found.unreached else [verdict(found)]), *found.notes):
        yield from _wrapped(sentence)
    per = found.calls.get("generate", 0) / max(1, found.n)
    of = {"generate": f"of the generator ({per:.1f} per question)", "retrieve": "of the retriever"}
    made = [f"{count} call{'s' * (count > 1)} {of[kind]}" for kind, count in found.calls.items() if count]
    if made:
        yield f"{', '.join(made)}."


def _tables(found: Diagnosis) -> Iterator[str]:
    """Yield the stages and the fixes, if there are some."""
    if not found.stages:
        return
    if found.is_black_box:
        yield from _wrapped(
            "The generator cannot be handed documents, so no fix was tried. From the outputs alone:"
        )
    yield ""
    yield f"{'Where they were lost':36}{'answers':>8}   {'of all, 95%':14}  for example"
    for one in found.stages[:_MOST_SHOWN]:
        share = f"{one.share:4.0%} {limits_text(one.interval, '3.0%'):10}"
        yield f"  {one.words:34}{one.count:8}  {share}   {terminal_line(one.sample_ids[0], 16)}"
    if rest := found.stages[_MOST_SHOWN:]:
        yield f"  {'at other stages (--json)':34}{sum(one.count for one in rest):8}"
    if found.shown_fixes:
        yield ""
        yield f"{'What a fix would bring (* p<.05, Holm)':38}{'at most':>8}  {'95%':15} {'expect':>7}"
        yield from map(_fix_line, found.shown_fixes[:_MOST_SHOWN])
    yield ""
    if found.unsupported:
        count, example = len(found.unsupported), terminal_line(found.unsupported[0], 16)
        yield f"{count} right answers had no document with the answer, such as {example}."


def _fix_line(fix: Fix) -> str:
    star = "*" if fix.p_holm < ALPHA else " "
    expected = "tried" if fix.kind == TRIED else f"{fix.expected:+.2f}"
    return f"  {fix.text:36}{fix.gain:+8.2f}{star} {limits_text(fix.interval, '+.2f'):14}  {expected:>6}"


def verdict(found: Diagnosis) -> str:
    """Return what to fix first, in words; "" if too little was tried."""
    if not found.wrong:
        return "No answer is wrong: there is nothing to fix." if found.n else ""
    if found.is_black_box:
        return (
            "To learn what a fix would bring, give a system that can be handed documents: --system "
            "FILE.py:rag with def rag(query, documents=None), which searches only if there are none, or "
            "rag = (retrieve, generate)."
        )
    failed = found.stage("failed")
    answered = found.n - (failed.count if failed else 0)
    if found.first is None and (not found.calls.get("generate") or answered < FEW):
        return ""  # nothing was tried, or too little: the notes say why
    untraced = found.stage("untraced")
    if found.first is None and untraced and 2 * untraced.count > found.wrong:
        share = f"{untraced.count} of {found.wrong}"
        return f"What to fix first cannot be said: {share} wrong answers cannot be traced."
    if found.first is None:
        nothing = f"Nothing stands out: no fix is shown to bring {LEAST} or more with {found.n} questions."
        largest = next((fix for fix in found.shown_fixes if fix.gain >= LEAST), None)
        more = f" The largest gain ({largest.text}) may be chance: take more questions." if largest else ""
        return nothing + more
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
