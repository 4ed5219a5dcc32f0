"""What a comparison means, for someone who has to decide and does not know the metrics' names.

A sentence for each thing that a system can be better or worse at, what is certain first; then what the data
cannot tell, and how many more questions it would take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.types import TargetCategory
from ..runs.compare import Comparison, MetricComparison
from .failure_words import failures_in_words
from .number_texts import listed, p_text, value_text
from .run_names import compared_names
from .verdict_words import margin_kept


class _Topic(NamedTuple):
    """What metrics of some targets are about, and what a system does that is better or worse at it."""

    name: str
    better: str
    worse: str


_FINDING = _Topic(
    "finding the right documents",
    "is better at finding the right documents",
    "is worse at finding the right documents",
)
_TOPICS: dict[TargetCategory, _Topic] = {
    TargetCategory.RETRIEVAL_RELEVANCE: _FINDING,
    TargetCategory.RETRIEVAL_ACCURACY: _FINDING,
    TargetCategory.GENERATION_CORRECTNESS: _Topic(
        "right answers", "gives better answers", "gives worse answers"
    ),
    TargetCategory.GENERATION_FAITHFULNESS: _Topic(
        "keeping to the documents", "keeps closer to its documents", "strays further from its documents"
    ),
    TargetCategory.GENERATION_RELEVANCE: _Topic(
        "keeping to the question", "keeps closer to the question", "strays further from the question"
    ),
    TargetCategory.LATENCY: _Topic(
        "speed", "answers faster or more reliably", "answers more slowly or less reliably"
    ),
    TargetCategory.NEGATIVE_REJECTION: _Topic(
        "knowing when to decline", "knows better when to decline", "knows less well when to decline"
    ),
    TargetCategory.NOISE_ROBUSTNESS: _Topic(
        "coping with noise", "copes better with noise", "copes worse with noise"
    ),
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS: _Topic(
        "withstanding false documents", "withstands false documents better", "withstands false documents less"
    ),
    TargetCategory.DIVERSITY: _Topic("variety", "is more varied", "is less varied"),
}
_FAR = 10_000  # more questions than anyone will write

# Metrics whose value can be said without their name; `k` is what stands behind the @.
_SAID: dict[str, str] = {
    "recall": "of the right documents, {now} in 100 are among the first {k} instead of {before}",
    "hit": "for {now} in 100 questions a right document is among the first {k} instead of {before}",
    "precision": "of the first {k} documents {now} in 100 are right ones instead of {before}",
    "contains_answer": "{now} in 100 answers contain the right one instead of {before}",
    "exact_match": "{now} in 100 answers are exactly the right one instead of {before}",
    "grounding_overlap": "{now} in 100 words of an answer are in its documents instead of {before}",
    "rejection_rate": "of 100 questions without an answer it declines {now} instead of {before}",
    "over_refusal_rate": "of 100 questions that have an answer it declines {now} instead of {before}",
    "fake_adoption_rate": "of 100 false documents it falls for {now} instead of {before}",
}
_SAID_OF_THE_FIRST = {  # where k is 1
    "recall": "of the right documents, {now} in 100 come first instead of {before}",
    "hit": "for {now} in 100 questions the first document is a right one instead of {before}",
    "precision": "for {now} in 100 questions the first document is a right one instead of {before}",
}
_SAID_IN_SECONDS = {"mean_latency": "an answer takes {now} on average instead of {before}"}

_FIRST_MARGIN = {
    "": "",
    "yes": ", though by less than the margin",
    "no": ", which is more than the margin",
    "perhaps": ", perhaps more than the margin",
}
_OTHER_MARGINS = {
    "": "",
    "yes": " (by less than its margin)",
    "no": " (by more than its margin)",
    "perhaps": " (perhaps by more than its margin)",
}

Grouped = dict[_Topic, list[MetricComparison]]


def comparison_in_plain_words(comparison: Comparison) -> list[str]:
    """The verdict, a sentence or two a topic: better, worse, no worse, cannot tell, the same."""
    if not comparison.metrics:
        return ["The runs have no metric in common."]
    topics: Grouped = {}
    for topic in _TOPICS.values():
        members = [metric for metric in comparison.metrics if _TOPICS[metric.target] == topic]
        if members:
            topics[topic] = members
    sure = [
        sentence
        for verdicts in ({"better"}, {"better", "worse"}, {"worse"})
        for topic, members in topics.items()
        if verdicts == {metric.verdict for metric in members} & {"better", "worse"}
        for sentence in _sure(comparison, topic, members)
    ]
    if sure and not comparison.with_verdict("worse"):
        sure.append("Nothing is surely worse.")
    sure += failures_in_words(comparison)
    unsure = [*_unclear(comparison, topics), *_margins_left_open(topics), *_untested(comparison)]
    return [*sure, *_no_worse(comparison), *unsure, *_same(topics)]


def _sure(comparison: Comparison, topic: _Topic, members: Sequence[MetricComparison]) -> list[str]:
    """What is better, and what is worse, beyond chance; of a topic that has both, both."""
    sentences = []
    for verdict, what in (("better", topic.better), ("worse", topic.worse)):
        found = [metric for metric in members if metric.verdict == verdict]
        if not found:
            continue
        first = _most_telling(found)
        others = [_with_margin(metric) for metric in found if metric is not first]
        if first.unit == "s":
            what = what.partition(" or ")[0]  # a time tells of speed alone
        too = f" {listed(others)} {'say' if len(others) > 1 else 'says'} so too." if others else ""
        sentences.append(
            f"{compared_names(comparison)[1]} {what}: {_said(first)}{_FIRST_MARGIN[margin_kept(first)]}. "
            f"That is more than chance explains ({p_text(first.p_adjusted)}).{too}"
        )
    return sentences


def _no_worse(comparison: Comparison) -> list[str]:
    found = [
        f"{metric.name} ({value_text(metric.margin, metric.unit)})"
        for metric in comparison.with_verdict("no worse")
    ]
    return [f"No worse than the margin allows: {listed(found)}."] if found else []


def _unclear(comparison: Comparison, topics: Grouped) -> list[str]:
    """Topics on which nothing is sure, and how many questions more would tell."""
    needed: dict[str, int | None] = {}
    in_all: dict[str, int] = {}
    nearest: dict[str, MetricComparison] = {}
    for topic, members in topics.items():
        verdicts = {metric.verdict for metric in members}
        if "cannot tell" not in verdicts or verdicts & {"better", "worse"}:
            continue
        unclear = [m for m in members if m.verdict == "cannot tell" and m.p_adjusted is not None]
        if not unclear:
            continue
        # The first that needs no explanation, and not the one that looks best: that would be picking.
        best = min(unclear, key=lambda metric: _template(metric) is None)
        # Another metric of the topic may be no worse: then it is these alone that cannot be told.
        names = listed([metric.name for metric in unclear])
        name = f"{topic.name} ({names})" if "no worse" in verdicts else topic.name
        nearest[name] = best
        if best.samples_for_margin is None:
            needed[name] = _more_questions(best, comparison.repeats)
        else:
            named = unclear if "no worse" in verdicts else [best]
            in_all[name] = max(metric.samples_for_margin or 0 for metric in named)
    if not nearest:
        return []
    more = f"{_telling(needed)}{_ruling_out(in_all, len(nearest))}"
    if len(nearest) == 1:
        ((name, metric),) = nearest.items()
        if _is_even(metric):
            return [f"On {name} we cannot tell: on balance {_said(metric)}, but {_both_ways(metric)}.{more}"]
        return [f"On {name} we cannot tell: {_said(metric)}, which may be chance.{more}"]
    return [f"We cannot tell about {listed(list(nearest))}: what differs may be chance.{more}"]


def _both_ways(metric: MetricComparison) -> str:
    """ "40 gained and 40 lost; a difference of up to 0.1710 either way cannot be ruled out" """
    gone = f"{metric.wins:,} gained and {metric.losses:,} lost"
    if metric.interval is None:
        return gone
    most = value_text(max(map(abs, metric.interval)), metric.unit)
    return f"{gone}; a difference of up to {most} either way cannot be ruled out"


def _margins_left_open(topics: Grouped) -> list[str]:
    """Where other metrics of a topic are sure, those that may have lost their margin all the same."""
    found = [
        metric.name
        for members in topics.values()
        if {metric.verdict for metric in members} & {"better", "worse"}
        for metric in members
        if metric.verdict == "cannot tell" and metric.margin is not None and not metric.untold
    ]
    return [f"A loss of the margin cannot be ruled out in {listed(found)}."] if found else []


def _untested(comparison: Comparison) -> list[str]:
    """Times of one run each, which may differ by the machine; and what no test can tell, with the reason."""
    found = [one for one in comparison.metrics if one.p_adjusted is None and one.verdict == "cannot tell"]
    times = [one for one in found if one.target is TargetCategory.LATENCY]
    told = [
        f"On {_TOPICS[one.target].name} we cannot tell: {_said(one)}, but {one.untold}."
        for one in found
        if one.target is not TargetCategory.LATENCY
    ]
    if times:
        told.append(f"On speed one run of each cannot tell: {_said(times[0])}, which may be the machine.")
    return told


def _telling(needed: Mapping[str, int | None]) -> str:
    """ " About 200 more questions would tell about speed, 2,000 about answers; the rest needs ..." """
    known = sorted((more, name) for name, more in needed.items() if more is not None)
    near = [f"{more:,}{_about(name, needed)}" for more, name in known if more <= _FAR]
    far = f"more than {_FAR:,}"
    if not known:
        return ""
    if not near:
        return f" It would take {far} more questions to tell."
    more = f" About {near[0].replace(' about', ' more questions would tell about', 1)}"
    if len(needed) == 1:
        more = f" About {near[0]} more questions would tell"
    rest = f"; the rest would take {far}" if len(near) < len(known) else ""
    return f"{', '.join([more, *near[1:]])}{rest}."


def _ruling_out(in_all: Mapping[str, int], topics: int) -> str:
    """ " About 149 questions in all would rule out a loss of the margin, if there is no difference." """
    if not in_all:
        return ""
    if min(in_all.values()) > _FAR:
        return f" It would take more than {_FAR:,} questions to rule out a loss of the margin."
    nearest_first = sorted(in_all, key=lambda name: in_all[name])
    counts = [
        f"{in_all[name]:,}" if in_all[name] <= _FAR else f"more than {_FAR:,}" for name in nearest_first
    ]
    if topics > 1:
        counts = [f"{count} in {name}" for count, name in zip(counts, nearest_first, strict=True)]
    first = counts[0].replace(" in ", " questions in all would rule out a loss of the margin in ", 1)
    if topics == 1:
        first = f"{counts[0]} questions in all would rule out a loss of the margin"
    return f" About {', '.join([first, *counts[1:]])}, if there is no difference."


def _about(name: str, needed: Mapping[str, int | None]) -> str:
    return f" about {name}" if len(needed) > 1 else ""


def _more_questions(metric: MetricComparison, repeats: int) -> int | None:
    """How many more would tell, to two digits, if the difference is what it seems to be."""
    if metric.samples_needed is None:
        return None
    more = max(10, metric.samples_needed - metric.pairs // repeats)
    step = int(10 ** max(1, len(str(more)) - 2))
    return math.ceil(more / step) * step


def _same(topics: Grouped) -> list[str]:
    same = [t.name for t, members in topics.items() if {metric.verdict for metric in members} == {"same"}]
    return [f"No change at all in {listed(same)}."] if same else []


def _most_telling(metrics: Sequence[MetricComparison]) -> MetricComparison:
    """One that can be said without its name if there is one, and of those the surest; no loss that is allowed
    stands for one that is not."""
    return min(
        metrics,
        key=lambda metric: (
            margin_kept(metric) == "yes",
            _template(metric) is None,
            metric.p_adjusted or 0.0,
        ),
    )


def _with_margin(metric: MetricComparison) -> str:
    """A metric that lost, and whether that is more than it may lose."""
    return f"{metric.name}{_OTHER_MARGINS[margin_kept(metric)]}"


def _template(metric: MetricComparison) -> str | None:
    family, _, k = metric.name.partition("[")[0].partition("@")
    if k == "1" and family in _SAID_OF_THE_FIRST:
        return _SAID_OF_THE_FIRST[family]
    return (_SAID_IN_SECONDS if metric.unit == "s" else _SAID).get(family)


def _said(metric: MetricComparison) -> str:
    template, known = "{name} is {now} instead of {before}", _template(metric)
    if known is None or metric.unit == "s":
        template = known or template
        now, before = _told_apart(metric.candidate, metric.baseline, metric.unit)
    else:
        template = f"{known} ({{name}})"
        now, before = _of_100(metric.candidate, metric.baseline)
    if _is_even(metric):
        template = template.replace(" instead of {before}", ", as before")
    return template.format(name=metric.name, now=now, before=before, k=metric.name.partition("@")[2])


def _is_even(metric: MetricComparison) -> bool:
    """Whether what some samples gained, others lost, to the last digit."""
    return math.isclose(metric.candidate, metric.baseline, rel_tol=1e-12, abs_tol=1e-12)


def _of_100(now: float, before: float) -> tuple[str, str]:
    digits = next((d for d in range(7) if f"{100 * now:.{d}f}" != f"{100 * before:.{d}f}"), 0)
    return f"{100 * now:.{digits}f}", f"{100 * before:.{digits}f}"


def _told_apart(now: float, before: float, unit: str) -> tuple[str, str]:
    if unit == "s":
        return value_text(now, unit), value_text(before, unit)
    digits = next((d for d in range(2, 9) if f"{now:.{d}f}" != f"{before:.{d}f}"), 2)
    return f"{now:.{digits}f}", f"{before:.{digits}f}"
