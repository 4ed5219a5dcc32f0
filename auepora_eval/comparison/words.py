"""What a comparison means, for someone who has to decide and does not know the metrics' names.

A sentence for each thing that a system can be better or worse at: significant differences first, then what is
inconclusive, and how many more questions it would take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.display import bounds_text, listed, p_text, value_text
from ..core.types import EvaluationRun, Target, TargetCategory
from ..core.verdict import Verdict
from ..stats.significance import LEVEL
from .checks import failed_calls, left_unscored
from .compare import Comparison, MetricComparison
from .paired_tests import FAILED_AND_FASTER


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
_TOPICS: dict[Target, _Topic] = {
    TargetCategory.RETRIEVAL_RELEVANCE: _FINDING,
    TargetCategory.RETRIEVAL_ACCURACY: _FINDING,
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
    TargetCategory.NEGATIVE_REJECTION: _Topic(
        "declining unanswerable questions",
        "is better at declining unanswerable questions",
        "is worse at declining unanswerable questions",
    ),
    TargetCategory.NOISE_ROBUSTNESS: _Topic(
        "noise robustness", "is more robust to noise", "is less robust to noise"
    ),
    TargetCategory.COUNTERFACTUAL_ROBUSTNESS: _Topic(
        "counterfactual robustness", "is more robust to false documents", "is less robust to false documents"
    ),
    TargetCategory.DIVERSITY: _Topic("diversity", "is more diverse", "is less diverse"),
}
_TIME = _Topic("speed", "answers faster", "answers more slowly")  # a time is not about reliability
_SIGNIFICANT = {Verdict.BETTER, Verdict.WORSE}
_FAR = 10_000  # more questions than anyone will write

# Metrics whose value can be said without their name; `k` is what follows the @.
_SAID: dict[str, str] = {
    "recall": "{now}% of the relevant documents are in the top {k}",
    "hit": "{now}% of the questions have a relevant document in the top {k}",
    "precision": "{now}% of the top {k} documents are relevant",
    "contains_answer": "{now}% of the answers contain the reference answer",
    "exact_match": "{now}% of the answers are exactly right",
    "grounding_overlap": "{now}% of the words of an answer are in its documents",
    "rejection_rate": "it declines {now}% of the unanswerable questions",
    "over_refusal_rate": "it declines {now}% of the answerable questions",
    "fake_adoption_rate": "it falls for {now}% of the false documents",
}
_SAID_OF_THE_FIRST = {  # where k is 1
    "recall": "{now}% of the relevant documents are ranked first",
    "hit": "for {now}% of the questions the first document is relevant",
    "precision": "for {now}% of the questions the first document is relevant",
}
_SAID_IN_SECONDS = {
    "mean_latency": "an answer takes {now} on average",
    "latency": "an answer takes {now} at the {k} quantile",
}

_FIRST_MARGIN = {
    "": "",
    "yes": ", though by less than the margin",
    "no": ", which is more than the margin",
    "perhaps": ", possibly more than the margin",
}
_OTHER_MARGINS = {
    "": "",
    "yes": " (by less than its margin)",
    "no": " (by more than its margin)",
    "perhaps": " (possibly by more than its margin)",
}


def _topic(target: Target) -> _Topic:
    """Return what the metrics of a target are about; a target that a user named is its own topic."""
    name = target.name
    return _TOPICS.get(target) or _Topic(name, f"is better at {name}", f"is worse at {name}")


Grouped = dict[_Topic, list[MetricComparison]]


def comparison_in_plain_words(comparison: Comparison) -> list[str]:
    """The verdict, a sentence or two a topic: better, worse, no worse, inconclusive, the same."""
    if not comparison.metrics:
        reason = (
            "No metric can be compared." if comparison.not_compared else "The runs have no metric in common."
        )
        return [reason]
    topics: Grouped = {}
    every = (*_TOPICS.values(), *(_topic(metric.target) for metric in comparison.metrics))
    for topic in dict.fromkeys(every):
        members = [metric for metric in comparison.metrics if _topic(metric.target) == topic]
        if members:
            topics[topic] = members
    sure = [
        sentence
        for verdicts in ({Verdict.BETTER}, _SIGNIFICANT, {Verdict.WORSE})
        for topic, members in topics.items()
        if verdicts == {metric.verdict for metric in members} & _SIGNIFICANT
        for sentence in _sure(comparison, topic, members)
    ]
    if sure and not comparison.with_verdict(Verdict.WORSE):
        sure.append("Nothing is significantly worse.")
    sure += [*_cautions(comparison), *failures_in_words(comparison)]
    no_worse = [
        f"{metric.name} ({value_text(metric.margin.size, metric.unit)})"
        for metric in comparison.with_verdict(Verdict.NO_WORSE)
    ]
    if no_worse:
        sure.append(f"A loss as large as the margin is ruled out for {listed(no_worse)}.")
    unsure = [*_unclear(comparison, topics), *_margins_left_open(topics), *_untested(comparison)]
    same = [
        topic.name
        for topic, members in topics.items()
        if all(metric.verdict is Verdict.SAME for metric in members)
    ]
    no_change = [f"No change in {listed(same)}."] if same else []
    return [*sure, *unsure, *_same_if_paired(topics), *no_change]


def _sure(comparison: Comparison, topic: _Topic, members: Sequence[MetricComparison]) -> list[str]:
    """What is better, and what is worse, beyond chance; of a topic that has both, both."""
    sentences = []
    for verdict in (Verdict.BETTER, Verdict.WORSE):
        decided = [metric for metric in members if metric.verdict == verdict]
        if not decided:
            continue
        first = _most_telling(decided)
        others = [f"{one.name}{_OTHER_MARGINS[margin_kept(one)]}" for one in decided if one is not first]
        about = _TIME if first.unit == "s" else topic
        what = about.better if verdict is Verdict.BETTER else about.worse
        too = f" {listed(others)} {'agree' if len(others) > 1 else 'agrees'}." if others else ""
        sentences.append(
            f"{compared_names(comparison)[1]} {what}: {_said(first)}{_FIRST_MARGIN[margin_kept(first)]}. "
            f"The difference is significant ({p_text(first.test.p_adjusted)}).{too}"
        )
    return sentences


def _cautions(comparison: Comparison) -> list[str]:
    """Return which verdicts rest on so few samples that a rare large change would undo them."""
    few = [(metric, metric.rests_on) for metric in comparison.metrics if metric.rests_on is not None]
    if not few:
        return []
    better = any(metric.verdict is Verdict.BETTER for metric, _ in few)
    advice = " --margin rules out a loss that matters." if better else ""
    if len(few) > 1:
        names = [
            f"{metric.name} ({rests.differ} of {_units(metric, rests.units, comparison)})"
            for metric, rests in few
        ]
        return [
            f"Few samples differ on {listed(names)}: rare large changes would undo these verdicts.{advice}"
        ]
    metric, rests = few[0]
    words = (
        f"The verdict on {metric.name} rests on {rests.differ} of {_units(metric, rests.units, comparison)}"
    )
    if rests.undone_by is not None and rests.one_of is not None:
        kind = "loss" if metric.verdict is Verdict.BETTER else "gain"
        size = value_text(rests.undone_by, metric.unit)
        words += f"; a {kind} of {size} in one of every {rests.one_of:,} would undo it"
    return [f"{words}.{advice}"]


def _units(metric: MetricComparison, count: int, comparison: Comparison) -> str:
    kind = (
        "questions" if comparison.repeats > 1 else "samples" if metric.test.clusters is None else "clusters"
    )
    return f"{count:,} {kind}"


def _unclear(comparison: Comparison, topics: Grouped) -> list[str]:
    """Return the topics without a significant difference, and how many more questions they need."""
    needed: dict[str, int | None] = {}
    in_all: dict[str, int] = {}
    nearest: dict[str, MetricComparison] = {}
    for topic, members in topics.items():
        verdicts = {metric.verdict for metric in members}
        if verdicts & _SIGNIFICANT:
            continue
        unclear = [
            metric
            for metric in members
            if metric.verdict is Verdict.INCONCLUSIVE
            and metric.test.p_adjusted is not None
            and not metric.is_same_if_paired
        ]
        if not unclear:
            continue
        # The first that needs no explanation, and not the one that looks best: that would be picking.
        best = min(unclear, key=lambda metric: _template(metric) is None)
        # Another metric of the topic may be no worse: then only these are inconclusive.
        names = listed([metric.name for metric in unclear])
        name = f"{topic.name} ({names})" if Verdict.NO_WORSE in verdicts else topic.name
        nearest[name] = best
        if best.margin.samples_needed is None:
            more = best.power.samples_needed
            needed[name] = None if more is None else _rounded(more - best.pairs // comparison.repeats)
        else:
            named = unclear if Verdict.NO_WORSE in verdicts else [best]
            in_all[name] = max(metric.margin.samples_needed or 0 for metric in named)
    if not nearest:
        return []
    why = "the differences may be due to chance"
    if len(nearest) == 1:
        metric = next(iter(nearest.values()))
        why = f"{_said(metric)}, which may be due to chance"
        if _is_even(metric):
            effect = metric.effect
            why = f"on balance {_said(metric)}, but {effect.wins:,} samples gained and {effect.losses:,} lost"
            if effect.interval is not None:
                most = value_text(max(map(abs, effect.interval)), metric.unit)
                why += f". A difference of up to {most} in either direction cannot be ruled out"
    advice = f"{_telling(needed)}{_ruling_out(in_all, len(nearest))}"
    return [f"Inconclusive on {listed(list(nearest))}: {why}.{advice}"]


def _margins_left_open(topics: Grouped) -> list[str]:
    """Where other metrics of a topic are sure, those that may have lost their margin all the same."""
    names = [
        metric.name
        for members in topics.values()
        if {metric.verdict for metric in members} & _SIGNIFICANT
        for metric in members
        if metric.verdict is Verdict.INCONCLUSIVE
        and metric.margin.size is not None
        and not metric.test.not_tested
    ]
    return [f"A loss as large as the margin cannot be ruled out for {listed(names)}."] if names else []


def _untested(comparison: Comparison) -> list[str]:
    """Return sentences on times of one run each, and on what could not be tested, with the reason."""
    untested = [
        one
        for one in comparison.metrics
        if one.test.p_adjusted is None and one.verdict is Verdict.INCONCLUSIVE
    ]
    times = [one for one in untested if one.target is TargetCategory.LATENCY]
    sentences = [
        f"Inconclusive on {_topic(one.target).name}: {_said(one)}, but {one.test.not_tested}."
        for one in untested
        if one.target is not TargetCategory.LATENCY
    ]
    if times:
        why = "With one run of each system, the difference may come from the machine"
        if times[0].test.not_tested == FAILED_AND_FASTER:
            why = f"No verdict: {times[0].test.not_tested}"
        sentences.append(f"Inconclusive on speed: {_said(times[0])}. {why}.")
    return sentences


def _telling(needed: Mapping[str, int | None]) -> str:
    """Return " A verdict needs more questions: about 200 for correctness and 2,000 for faithfulness. ..."."""
    counts = sorted((more, name) for name, more in needed.items() if more is not None)
    near = [(more, name) for more, name in counts if more <= _FAR]
    if not counts:
        return ""
    if not near:
        return f" A verdict needs more than {_FAR:,} more questions."
    if len(needed) == 1:
        return f" A verdict needs about {near[0][0]:,} more questions."
    rest = f" The others need more than {_FAR:,}." if len(near) < len(counts) else ""
    each = listed([f"{more:,} for {name}" for more, name in near])
    return f" A verdict needs more questions: about {each}.{rest}"


def _ruling_out(in_all: Mapping[str, int], topics: int) -> str:
    """ " Ruling out a loss of the margin takes about 149 questions, if there is no difference." """
    if not in_all:
        return ""
    if min(in_all.values()) > _FAR:
        return f" Ruling out a loss of the margin takes more than {_FAR:,} questions."
    counts = sorted((count, name) for name, count in in_all.items())
    texts = [f"{count:,}" if count <= _FAR else f"more than {_FAR:,}" for count, _ in counts]
    texts[0] += " questions"
    if topics > 1:
        texts = [f"{text} for {name}" for text, (_, name) in zip(texts, counts, strict=True)]
    return f" Ruling out a loss of the margin takes about {', '.join(texts)}, if there is no difference."


def _rounded(more: int) -> int:
    """Return a number of further questions to two digits, and at least 10."""
    more = max(10, more)
    step = int(10 ** max(1, len(str(more)) - 2))
    return math.ceil(more / step) * step


def _same_if_paired(topics: Grouped) -> list[str]:
    """Return where the samples that both answered do not differ, and how many others there are."""
    sentences = []
    for topic, members in topics.items():
        unclear = [one for one in members if one.verdict is Verdict.INCONCLUSIVE]
        if not unclear or not all(metric.is_same_if_paired for metric in unclear):
            continue
        names = listed([metric.name for metric in unclear])
        fewest = min(unclear, key=lambda metric: metric.pairs)
        sentences.append(
            f"Inconclusive on {topic.name}: of the {fewest.pairs:,} samples that both answered none differs "
            f"({names}), but {fewest.coverage.unmatched:,} others have a score in one run only."
        )
    return sentences


def _most_telling(metrics: Sequence[MetricComparison]) -> MetricComparison:
    """One that can be said without its name if there is one, and of those the surest; no loss that is allowed
    stands for one that is not."""
    return min(
        metrics,
        key=lambda metric: (
            margin_kept(metric) == "yes",
            _template(metric) is None,
            metric.test.p_adjusted or 0.0,
        ),
    )


def _template(metric: MetricComparison) -> str | None:
    failed = metric.coverage.failed_baseline or metric.coverage.failed_candidate
    if failed and not metric.higher_is_better and metric.unit != "s":
        return None  # a failed call counts as the worst, but it did not decline, nor adopt anything
    family, _, k = metric.name.partition("[")[0].partition("@")
    if k == "1" and family in _SAID_OF_THE_FIRST:
        return _SAID_OF_THE_FIRST[family]
    return (_SAID_IN_SECONDS if metric.unit == "s" else _SAID).get(family)


def _said(metric: MetricComparison) -> str:
    template, name, percent = _template(metric), "", ""
    if metric.unit == "s" or (template is None and math.isnan(metric.candidate - metric.baseline)):
        now, before = (value_text(value, metric.unit) for value in (metric.candidate, metric.baseline))
    elif template is None:
        now, before = _told_apart(metric.candidate, metric.baseline, 2)
    else:
        name, percent = f" ({metric.name})", "%"
        now, before = _told_apart(100 * metric.candidate, 100 * metric.baseline, 0)
    # Not formatted without a template: the name of a user's metric may have braces.
    value = (
        template.format(now=now, k=metric.name.partition("[")[0].partition("@")[2])
        if template
        else f"{metric.name} is {now}"
    )
    return (
        f"{value}{name}, the same for both"
        if _is_even(metric) or now == before
        else f"{value}, compared with {before}{percent}{name}"
    )


def _is_even(metric: MetricComparison) -> bool:
    """Whether what some samples gained, others lost, to the last digit."""
    return math.isclose(metric.candidate, metric.baseline, rel_tol=1e-12, abs_tol=1e-12)


def _told_apart(now: float, before: float, fewest: int) -> tuple[str, str]:
    """Return two numbers with as many digits as show that they differ, or with the `fewest`."""
    texts = [(f"{now:.{digits}f}", f"{before:.{digits}f}") for digits in range(fewest, fewest + 7)]
    return next((each for each in texts if each[0] != each[1]), texts[0])


# What failed calls do to a comparison, in words: how many there were, and which verdicts rest on them.


def failures_in_words(comparison: Comparison) -> list[str]:
    """ "10 of 60 calls of new failed; each counts as wrong. The verdict on ... rests on that." """
    scored = [one for one in comparison.metrics if one.target is not TargetCategory.LATENCY]
    coverages = [(one.name, one.coverage) for one in scored]
    a, b = compared_names(comparison)
    counted = [
        failed_calls(b, [(each.failed_candidate, each.calls_candidate, name) for name, each in coverages]),
        failed_calls(a, [(each.failed_baseline, each.calls_baseline, name) for name, each in coverages]),
    ]
    failures = [one for one in counted if one]
    unscored = [one for one in comparison.metrics if one.coverage.unmeasured_share]
    words = [f"{listed(failures)}; each counts as wrong.{_resting(scored, unscored)}"] if failures else []
    for one in unscored:
        has = one.coverage
        counts = (
            (has.unmeasured_candidate, has.calls_candidate, b),
            (has.unmeasured_baseline, has.calls_baseline, a),
        )
        about = f"{left_unscored(one.name, counts)}.{_resting([one])}"
        if not _resting([one]) and one.effect.bounds is not None:
            bounds = bounds_text(one.effect.bounds, one.unit)
            about += f" With them, the difference could be anything from {bounds}."
        words.append(about)
    return words


def _resting(metrics: list[MetricComparison], but: Sequence[MetricComparison] = ()) -> str:
    """The verdicts that would not be sure, had what failed been answered."""
    metrics = [one for one in metrics if one not in but]
    tested = [one for one in metrics if one.verdict.is_significant and one.effect.bounds is not None]
    resting = [
        one for one in tested if one.effect.bounds and one.effect.bounds[0] <= 0 <= one.effect.bounds[1]
    ]
    if not resting:
        return ""
    if len(resting) > 1:
        return f" The verdicts on {listed([one.name for one in resting])} depend on that."
    bounds = bounds_text(resting[0].effect.bounds, resting[0].unit)
    return (
        f" The verdict on {resting[0].name} depends on that: "
        f"had they been answered, the difference could be anything from {bounds}."
    )


# The verdict on a metric as a table shows it: a loss within the margin is marked.


def margin_kept(metric: MetricComparison) -> str:
    """Return whether a significantly worse metric lost less than its margin: "yes", "no" or "perhaps".

    "" for any other metric, and where there is no margin.
    """
    if metric.verdict != "worse" or metric.margin.within is None:
        return ""
    if metric.margin.within:
        return "yes"
    beyond = metric.margin.size is not None and abs(metric.effect.change) >= metric.margin.size
    return "no" if beyond else "perhaps"


def verdict_text(metric: MetricComparison) -> str:
    """ "better", "worse", "worse, within margin", "no worse", "inconclusive" or "same"."""
    return f"{metric.verdict}{', within margin' if margin_kept(metric) == 'yes' else ''}"


# Where an interval alone would mislead: it is of one metric, and of 95%, whatever the verdict is based on.


def interval_notes(comparison: Comparison) -> list[str]:
    """Return sentences on inconclusive metrics whose test alone is significant, and so excludes 0."""
    alone = [
        (one, one.test.p)
        for one in comparison.with_verdict(Verdict.INCONCLUSIVE)
        if one.test.p is not None and one.test.p < LEVEL
    ]
    by_holm = [one for one, p in alone if p < comparison.alpha]
    by_alpha = [one for one, p in alone if p >= comparison.alpha]
    notes = []
    if by_holm:
        tests = sum(metric.test.p_adjusted is not None for metric in comparison.metrics)
        names = [
            f"{one.name} ({p_text(one.test.p)}, with Holm {p_text(one.test.p_adjusted)})" for one in by_holm
        ]
        notes.append(
            f"{listed(names)}: the interval excludes 0, but {tests} metrics were compared, and one of "
            "that many can do so by chance."
        )
    if by_alpha:
        names = [f"{one.name} ({p_text(one.test.p)})" for one in by_alpha]
        notes.append(
            f"{listed(names)}: the 95% interval excludes 0, but alpha requires p below {comparison.alpha:g}."
        )
    return notes


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
    for names in ([_flat(name) for name in systems], [_flat(name) for name in run_ids]):
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


def _flat(name: str) -> str:
    """On one line, and nothing that a terminal or a page would act on."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
