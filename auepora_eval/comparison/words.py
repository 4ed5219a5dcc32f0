"""What a comparison means, for someone who has to decide and does not know the metrics' names.

A sentence for each thing that a system can be better or worse at: significant differences first, then what is
inconclusive, and how many more questions it would take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..core.display import bounds_text, listed, p_text, terminal_line, value_text
from ..core.types import EvaluationRun, Target, TargetCategory
from ..core.verdict import Verdict
from ..stats.significance import LEVEL
from .checks import failed_calls, left_unscored
from .compare import Comparison, MetricComparison


class _Topic(NamedTuple):
    """What metrics of some targets are about, and what a system does that is better or worse at it."""

    name: str
    better: str
    worse: str


def _at(name: str) -> _Topic:
    return _Topic(name, f"is better at {name}", f"is worse at {name}")


_TOPICS: dict[Target, _Topic] = {
    TargetCategory.RETRIEVAL_RELEVANCE: _at("finding the right documents"),
    TargetCategory.RETRIEVAL_ACCURACY: _at("finding the right documents"),
    TargetCategory.GENERATION_CORRECTNESS: _Topic(
        "correctness", "gives better answers", "gives worse answers"
    ),
    TargetCategory.GENERATION_FAITHFULNESS: _Topic(
        "faithfulness", "is more faithful to its documents", "is less faithful to its documents"
    ),
    TargetCategory.GENERATION_RELEVANCE: _Topic(
        "answer relevance", "gives more relevant answers", "gives less relevant answers"
    ),
    TargetCategory.LATENCY: _Topic(
        "speed", "answers faster or more reliably", "answers more slowly or less reliably"
    ),
    TargetCategory.NEGATIVE_REJECTION: _at("declining unanswerable questions"),
    TargetCategory.NOISE_ROBUSTNESS: _Topic(
        "noise robustness", "is more robust to noise", "is less robust to noise"
    ),
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS: _Topic(
        "counterfactual robustness", "is more robust to false documents", "is less robust to false documents"
    ),
    TargetCategory.DIVERSITY: _Topic("diversity", "is more diverse", "is less diverse"),
}

# Metrics whose value can be said without their name; `k` is what follows the @.
_SAID: dict[str, str] = {
    "recall": "{now} of the relevant documents are in the top {k}",
    "hit": "{now} of the questions have a relevant document in the top {k}",
    "precision": "{now} of the top {k} documents are relevant",
    "contains_answer": "{now} of the answers contain the reference answer",
    "exact_match": "{now} of the answers are exactly right",
    "grounding_overlap": "{now} of the words of an answer are in its documents",
    "rejection_rate": "it declines {now} of the unanswerable questions",
}

Grouped = dict[_Topic, list[MetricComparison]]


_COST = _Topic("cost", "costs less", "costs more")


def _topic(metric: MetricComparison) -> _Topic:
    """Return what a metric is about; a target that a user named is its own topic."""
    return _COST if metric.unit == "USD" else _TOPICS.get(metric.target) or _at(metric.target.name)


def comparison_in_plain_words(comparison: Comparison) -> list[str]:
    """The verdict, a sentence or two a topic: better, worse, no worse, inconclusive, the same."""
    if not comparison.metrics:
        reason = (
            "No metric can be compared." if comparison.not_compared else "The runs have no metric in common."
        )
        return [reason]
    topics: Grouped = {topic: [] for topic in (*_TOPICS.values(), _COST)}
    for metric in comparison.metrics:
        topics.setdefault(_topic(metric), []).append(metric)
    said = [*_sure(comparison, topics, Verdict.BETTER), *_sure(comparison, topics, Verdict.WORSE)]
    if said and not comparison.with_verdict(Verdict.WORSE):
        said.append("Nothing is significantly worse.")
    said += [*_cautions(comparison), *_failures(comparison)]
    if no_worse := comparison.with_verdict(Verdict.NO_WORSE):
        names = listed([f"{one.name} ({value_text(one.margin.size, one.unit)})" for one in no_worse])
        said.append(f"A loss as large as the margin is ruled out for {names}.")
    said += [*_unclear(comparison, topics), *_not_tested(comparison)]
    same = [
        topic.name
        for topic, members in topics.items()
        if members and all(metric.verdict is Verdict.SAME for metric in members)
    ]
    return [*said, f"No change in {listed(same)}."] if same else said


def _sure(comparison: Comparison, topics: Grouped, verdict: Verdict) -> list[str]:
    """What is better beyond chance, or worse: a sentence a topic."""
    sentences = []
    for topic, members in topics.items():
        decided = [metric for metric in members if metric.verdict is verdict]
        if not decided:
            continue
        # No loss that is allowed stands for one that is not.
        # Then one that can be said without its name, then the surest.
        first = min(
            decided,
            key=lambda one: (bool(one.margin.within), _family(one) not in _SAID, one.test.p_adjusted or 0.0),
        )
        others = [
            f"{one.name}{' (by less than its margin)' * margin_kept(one)}"
            for one in decided
            if one is not first
        ]
        what = topic.better if verdict is Verdict.BETTER else topic.worse
        margin = ", though by less than the margin" * margin_kept(first)
        too = f" {listed(others)} {'agree' if len(others) > 1 else 'agrees'}." if others else ""
        sentences.append(
            f"{compared_names(comparison)[1]} {what}: {_said(first)}{margin}. "
            f"The difference is significant ({p_text(first.test.p_adjusted)}).{too}"
        )
    return sentences


def _cautions(comparison: Comparison) -> list[str]:
    """Return which verdicts rest on so few samples that a rare large change would undo them."""
    few = []
    for metric in comparison.metrics:
        if (rests := metric.rests_on) is None:
            continue
        words = f"{metric.name} rests on {rests.differ} of {_units(metric, rests.units, comparison)}"
        if rests.undone_by is not None and rests.one_of is not None:
            size = value_text(rests.undone_by, metric.unit)
            words += f" (a change of {size} in one of every {rests.one_of:,} would undo it)"
        few.append(words)
    if not few:
        return []
    is_gain = any(one.rests_on is not None for one in comparison.with_verdict(Verdict.BETTER))
    advice = " --margin rules out a loss that matters." * is_gain
    return [f"Rare large changes the other way could undo a verdict: {listed(few)}.{advice}"]


def _units(metric: MetricComparison, count: int, comparison: Comparison) -> str:
    kind = (
        "questions" if comparison.repeats > 1 else "samples" if metric.test.clusters is None else "clusters"
    )
    return f"{count:,} {kind}"


def _unclear(comparison: Comparison, topics: Grouped) -> list[str]:
    """Return the topics without a significant difference, and how many more questions they need."""
    nearest: dict[str, MetricComparison] = {}
    more: list[tuple[int, str]] = []
    ruling_out = 0
    for topic, members in topics.items():
        unclear = [one for one in members if one.verdict is Verdict.INCONCLUSIVE and not _why_open(one)]
        if not unclear or any(metric.verdict.is_significant for metric in members):
            continue
        # The first that needs no explanation, and not the one that looks best: that would be picking.
        first = min(unclear, key=lambda one: _family(one) not in _SAID)
        # Another metric of the topic may be no worse: then only these are inconclusive.
        is_part = any(metric.verdict is Verdict.NO_WORSE for metric in members)
        name = f"{topic.name} ({listed([one.name for one in unclear])})" if is_part else topic.name
        nearest[name] = first
        ruling_out = max([ruling_out, *(one.margin.samples_needed or 0 for one in unclear)])
        if first.margin.samples_needed is None and first.power.samples_needed is not None:
            more.append((_rounded(first.power.samples_needed - first.pairs // comparison.repeats), name))
    if not nearest:
        return []
    why = "the differences may be due to chance"
    if len(nearest) == 1:
        [metric] = nearest.values()
        effect = metric.effect
        moved = f"{effect.wins:,} of {metric.pairs:,} samples gained, {effect.losses:,} lost"
        why = f"{_said(metric)}; {moved}, which may be due to chance"
    advice = ""
    if len(more) == 1 and len(nearest) == 1:
        advice = f" A verdict needs about {more[0][0]:,} more questions."
    elif more:
        each = listed([f"{count:,} for {name}" for count, name in sorted(more)])
        advice = f" A verdict needs more questions: about {each}."
    if ruling_out:
        advice += (
            f" Ruling out a loss of the margin takes about {ruling_out:,} questions, if there is no "
            "difference."
        )
    return [f"Inconclusive on {listed(list(nearest))}: {why}.{advice}"]


def _rounded(more: int) -> int:
    """Return a number of further questions to two digits, and at least 10."""
    more = max(10, more)
    step = int(10 ** max(1, len(str(more)) - 2))
    return math.ceil(more / step) * step


def _why_open(metric: MetricComparison) -> str:
    """Return why a metric is inconclusive for another reason than chance; "" if it is for that."""
    if metric.test.not_tested:
        return metric.test.not_tested
    if not metric.is_same_if_paired:
        return ""
    return (
        f"of the {metric.pairs:,} samples that both answered none differs, but "
        f"{metric.coverage.unmatched:,} others have a score in one run only"
    )


def _not_tested(comparison: Comparison) -> list[str]:
    """Return a sentence for each reason, other than chance, that leaves metrics inconclusive."""
    names: dict[str, list[str]] = {}
    for metric in comparison.with_verdict(Verdict.INCONCLUSIVE):
        if why := _why_open(metric):
            names.setdefault(why, []).append(metric.name)
    return [f"Inconclusive on {listed(each)}: {why}." for why, each in names.items()]


def _family(metric: MetricComparison) -> str:
    return metric.name.partition("[")[0].partition("@")[0]


def _said(metric: MetricComparison) -> str:
    """ "92% of the relevant documents are in the top 5, compared with 85% (recall@5)"."""
    template, values = _SAID.get(_family(metric)), (metric.candidate, metric.baseline)
    if template is not None:
        now, before = _told_apart(*(100 * value for value in values), fewest=0, mark="%")
        k = metric.name.partition("[")[0].partition("@")[2]
        return f"{template.format(now=now, k=k)}, compared with {before} ({metric.name})"
    if metric.unit or not all(map(math.isfinite, values)):
        now, before = (value_text(value, metric.unit) for value in values)
    else:
        now, before = _told_apart(*values, fewest=2)
    return f"{metric.name} is {now}, compared with {before}"


def _told_apart(now: float, before: float, *, fewest: int, mark: str = "") -> tuple[str, str]:
    """Return two numbers with as many digits as show that they differ, or with the `fewest`."""
    texts = [(f"{now:.{digits}f}{mark}", f"{before:.{digits}f}{mark}") for digits in range(fewest, 9)]
    return next((each for each in texts if each[0] != each[1]), texts[0])


# What failed calls do to a comparison, in words: how many there were, and which verdicts rest on them.


def _failures(comparison: Comparison) -> list[str]:
    """ "10 of 60 calls of new failed; each counts as wrong. The verdict on ... depends on that." """
    scored = [one for one in comparison.metrics if one.target is not TargetCategory.LATENCY]
    coverages = [(one.name, one.coverage) for one in scored]
    a, b = compared_names(comparison)
    counted = [
        failed_calls(b, [(each.failed_candidate, each.calls_candidate, name) for name, each in coverages]),
        failed_calls(a, [(each.failed_baseline, each.calls_baseline, name) for name, each in coverages]),
    ]
    failures = [one for one in counted if one]
    words = [f"{listed(failures)}; each counts as wrong.{_resting(scored)}"] if failures else []
    for one in comparison.metrics:
        has = one.coverage
        counts = (
            (has.unmeasured_candidate, has.calls_candidate, b),
            (has.unmeasured_baseline, has.calls_baseline, a),
        )
        if has.unmeasured:
            bounds = bounds_text(one.effect.bounds, one.unit)
            possible = (
                f" With them, the difference could be anything from {bounds}." if one.effect.bounds else ""
            )
            words.append(f"{left_unscored(one.name, counts)}.{possible}")
    return words


def _resting(metrics: Sequence[MetricComparison]) -> str:
    """The verdicts that would not be sure, had what failed been answered."""
    names = [
        one.name
        for one in metrics
        if one.verdict.is_significant
        and not one.coverage.unmeasured
        and (ends := one.effect.bounds)
        and ends[0] <= 0 <= ends[1]
    ]
    return f" The verdict on {listed(names)} depends on that." if names else ""


# The verdict on a metric as a table shows it: a loss within the margin is marked.


def margin_kept(metric: MetricComparison) -> bool:
    """Return whether a significantly worse metric lost less than its margin."""
    return metric.verdict is Verdict.WORSE and bool(metric.margin.within)


def verdict_text(metric: MetricComparison) -> str:
    """ "better", "worse", "worse, within margin", "no worse", "inconclusive" or "same"."""
    return f"{metric.verdict}{', within margin' * margin_kept(metric)}"


# An interval alone would mislead: it is of one metric, and of 95%, whatever the verdict is based on.


def interval_notes(comparison: Comparison) -> list[str]:
    """Return a sentence on inconclusive metrics whose test alone is significant, and so excludes 0."""
    names = [
        f"{one.name} ({p_text(one.test.p)}, with Holm {p_text(one.test.p_adjusted)})"
        for one in comparison.with_verdict(Verdict.INCONCLUSIVE)
        if one.test.p is not None and one.test.p < LEVEL
    ]
    if not names:
        return []
    tests = sum(metric.test.p_adjusted is not None for metric in comparison.metrics)
    return [
        f"{listed(names)}: the 95% interval excludes 0, but a verdict requires p below {comparison.alpha:g} "
        f"with Holm's correction for {tests} metrics: one of that many can do so by chance."
    ]


# What runs are called where they stand side by side: never two by the same letters.

LONGEST = 60  # letters of a name in a sentence


def compared_names(comparison: Comparison) -> tuple[str, str]:
    """Baseline and candidate: their systems, or the ids of the runs where both are of one system."""
    a, b = names_apart(
        [comparison.baseline_system, comparison.candidate_system],
        [comparison.baseline_id, comparison.candidate_id],
    )
    return a, b


def names_of_runs(runs: Sequence[EvaluationRun]) -> list[str]:
    """The same for any number of runs."""
    return names_apart([run.system_name for run in runs], [run.evaluation_id for run in runs])


def names_apart(systems: Sequence[str], run_ids: Sequence[str]) -> list[str]:
    """The systems' names, or the runs' ids if two names are the same, or these with their number.

    >>> names_apart(["rag", "rag"], ["monday", "tuesday"])
    ['monday', 'tuesday']
    """
    for names in ([terminal_line(name) for name in systems], [terminal_line(name) for name in run_ids]):
        if len(set(names)) == len(names):
            return shortened(names, LONGEST)
    return [f"{name} ({number})" for number, name in enumerate(shortened(names, LONGEST), start=1)]


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return names cut in their middle to a width, or to the least at which they still differ.

    >>> shortened(["bm25_clapnq_lastturn", "bm25_clapnq_rewrite"], 8)
    ['bm25…urn', 'bm25…ite']
    """
    longest = max(map(len, names), default=0)
    for letters in range(width, longest):
        tail = (letters - 1) // 2
        short = [
            name if len(name) <= letters else f"{name[: letters - 1 - tail]}…{name[len(name) - tail :]}"
            for name in names
        ]
        if len(set(short)) == len(set(names)):
            return short
    return list(names)
