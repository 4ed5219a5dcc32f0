"""Who wins an experiment, if anybody, and why not.

A winner has enough samples, is better than every other variant on the primary metric, beyond chance and by
the minimum lead, and keeps to every guard rail. Whatever is lacking is said in a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..io.experiment_config import Experiment, GuardRail
from ..metrics.parse import parse_metric
from ..stats.power import sample_size
from .experiment_assignment import RatioCheck
from .experiment_sides import Side
from .experiment_tests import PairTest
from .paired_tests import is_of_time

NOBODY = "none"
USUAL_LEAD = 0.01
Sides = Mapping[str, Mapping[str, Side]]  # by metric, then by variant


@dataclass(frozen=True)
class RailCheck:
    """Whether a variant keeps to a guard rail, and the sentence that says so."""

    variant: str
    rail: GuardRail
    holds: bool
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The winner ("none" if there is none) and the reason; who leads, and how many samples are missing."""

    winner: str
    reason: str
    leader: str | None
    missing_samples: int
    rails: tuple[RailCheck, ...]


def verdict(
    experiment: Experiment,
    tests: Sequence[PairTest],
    primary: str,
    every_side: Sides,
    ratio: RatioCheck | None,
) -> Verdict:
    """The verdict on runs that are all there. `every_side` is what each metric says of each variant."""
    sides = every_side[primary]
    of_primary = [one for one in tests if one.metric == primary]
    leader = _leader(sides)
    samples = {name: len(side.rows) for name, side in sides.items()}
    rails = tuple(check for name in sides for check in _rail_checks(experiment, name, every_side, tests))
    fewest = min(samples, key=lambda name: samples[name])
    missing = max(0, experiment.min_sample_size - samples[fewest])

    def nobody(reason: str, beaten: str = "") -> Verdict:
        return Verdict(NOBODY, f"{reason}{beaten}", leader, missing, rails)

    if leader is None:
        failed = sum(side.failed for side in sides.values())
        why = f": all {failed:,} answers failed" if failed else ""
        return nobody(f"nothing was measured by {primary}{why}.")
    if cannot_decide(experiment):
        return nobody(cannot_decide(experiment))
    if missing:
        return nobody(
            f"{fewest} has {samples[fewest]:,} samples measured by {primary}, and "
            f"{experiment.min_sample_size:,} were asked for (min_sample_size): {missing:,} are missing."
        )
    if ratio is not None and ratio.is_mismatch:
        told = ", ".join(f"{name} {count:,}" for name, count in ratio.counts.items())
        return nobody(
            f"samples are not divided as planned ({told}; p = {ratio.p_value:.1g}): something loses them. "
            "Find out what before trusting any difference."
        )
    doubt = _doubt(experiment, leader, of_primary, primary)
    beaten = _better_than_control(experiment, of_primary, rails)
    if doubt:
        return nobody(doubt, beaten)
    broken = [check for check in rails if check.variant == leader and not check.holds]
    if broken:
        reasons = " And ".join(one.reason for one in broken)
        return nobody(f"{leader} is best on {primary}, but {reasons}", beaten)
    others = [name for name in sides if name != leader]
    told = " and ".join(f"{name} ({_told(_between(of_primary, leader, name), leader)})" for name in others)
    return Verdict(leader, f"{leader} is better on {primary} than {told}.", leader, 0, rails)


def cannot_decide(experiment: Experiment) -> str:
    """Why the primary metric can make no winner, whatever is measured; "" if it can."""
    metric = parse_metric(experiment.primary_metric)
    if not is_of_time(metric):
        return ""
    return (
        f"{metric.name} is of times, and one run each cannot tell about times: variants run one after the "
        "other, and the machine is not as fast in every run. Repeat the runs of both and compare them "
        "(auepora compare A1,A2,A3 B1,B2,B3), or make the time a guard rail."
    )


def minimum_lead(experiment: Experiment) -> float:
    """By how much the winner must lead. A hundredth is a share: seconds have no such usual lead."""
    if experiment.minimum_lead is not None:
        return experiment.minimum_lead
    return 0.0 if parse_metric(experiment.primary_metric).unit else USUAL_LEAD


def _leader(sides: Mapping[str, Side]) -> str | None:
    if not any(side.measured for side in sides.values()):
        return None
    known = {
        name: side.value if side.metric.higher_is_better else -side.value
        for name, side in sides.items()
        if math.isfinite(side.value)
    }
    return max(known, key=lambda name: known[name]) if known else None


def _between(tests: Sequence[PairTest], one: str, other: str) -> PairTest | None:
    return next((test for test in tests if {test.first, test.second} == {one, other}), None)


def _doubt(experiment: Experiment, leader: str, tests: Sequence[PairTest], primary: str) -> str:
    """Why the leader has not won; "" if it has."""
    least = minimum_lead(experiment)
    for other in (one.variant_id for one in experiment.variants if one.variant_id != leader):
        test = _between(tests, leader, other)
        if test is None:
            return f"{leader} and {other} have no sample in common that {primary} measured."
        if test.untold:
            return f"{leader} and {other} cannot be told apart on {primary}: {test.untold}."
        if test.better != leader:
            more = needed_text(test.samples_needed, "; ")
            return (
                f"the data cannot tell {leader} and {other} apart on {primary} ({_told(test, leader)}{more})."
            )
        if abs(test.difference) < least:
            return (
                f"{leader} leads {other} on {primary} by {abs(test.difference):.4g}, less than the "
                f"{least:g} that it should (minimum_lead)."
            )
    return ""


def _better_than_control(
    experiment: Experiment, tests: Sequence[PairTest], rails: Sequence[RailCheck]
) -> str:
    """Who keeps to the guard rails and is surely better than the control, though nobody wins."""
    control, least = experiment.variants[0].variant_id, minimum_lead(experiment)
    broken = {check.variant for check in rails if not check.holds}
    found = []
    for name in (one.variant_id for one in experiment.variants[1:] if one.variant_id not in broken):
        test = _between(tests, control, name)
        if test is not None and test.better == name and abs(test.difference) >= least:
            found.append(f"{name} ({_told(test, name)})")
    if not found:
        return ""
    verb = "is" if len(found) == 1 else "are each"
    return f" But {' and '.join(found)} {verb} better than {control}, the control."


def needed_text(needed: int | None, before: str = "", after: str = "") -> str:
    """How many samples it would take, in words; nothing where that is not known."""
    if needed is None:
        return ""
    count = "over a million" if needed > 1_000_000 else f"about {needed:,}"
    return f"{before}{count} samples a variant would{after}"


def _told(test: PairTest | None, leader: str) -> str:
    if test is None or test.p_adjusted is None:
        return "not compared"
    difference = test.difference if leader == test.second else -test.difference
    p = "p < 0.001" if test.p_adjusted < 0.001 else f"p = {test.p_adjusted:.3f}"
    return f"{difference:+.4g}, {p}" if difference else f"no difference, {p}"


def _rail_checks(
    experiment: Experiment, name: str, every_side: Sides, tests: Sequence[PairTest]
) -> list[RailCheck]:
    """The guard rails of one variant; the control has no one to be worse than."""
    control = experiment.variants[0].variant_id
    checks = []
    for rail in experiment.guard_rails:
        metric = parse_metric(rail.metric).name
        side = every_side[metric][name]
        if not side.measured:
            checks.append(RailCheck(name, rail, False, f"{metric} was not measured."))
        elif rail.kind in ("min", "max"):
            checks.append(_absolute(name, rail, side))
        elif name != control and rail.kind == "max_increase":
            checks.append(_increase(name, rail, side, every_side[metric][control], control))
        elif name != control:
            test = _between([one for one in tests if one.metric == metric], name, control)
            checks.append(_margin(experiment, name, rail, test, control))
    return checks


def _failed_text(side: Side) -> str:
    """How much of a value is not measured, but stands for failed answers."""
    if not side.failed:
        return ""
    worst = "slowest" if is_of_time(side.metric) else "worst"
    return f" ({side.failed:,} of {len(side.rows):,} failed and count as the {worst})"


def _absolute(name: str, rail: GuardRail, side: Side) -> RailCheck:
    holds = side.value <= rail.limit if rail.kind == "max" else side.value >= rail.limit
    word = ("at most" if rail.kind == "max" else "at least") if holds else "not"
    bound = "" if holds else (" at most" if rail.kind == "max" else " at least")
    about = f"its {side.metric.name} is {side.value:.4g}, {word}{bound} {rail.limit:g}"
    return RailCheck(name, rail, holds, f"{about}{_failed_text(side)}.")


def _increase(name: str, rail: GuardRail, side: Side, before: Side, control: str) -> RailCheck:
    metric = side.metric.name
    if not before.measured:
        return RailCheck(name, rail, False, f"{metric} of {control} was not measured.")
    if not before.value > 0:
        holds = side.value <= before.value
        about = f"its {metric} is {side.value:.4g}, that of {control} {before.value:.4g}"
        return RailCheck(name, rail, holds, f"{about}{_failed_text(side)}.")
    change = side.value / before.value - 1
    holds = change <= rail.limit
    word = "within" if holds else "more than"
    about = f"its {metric} is {change:+.0%} against {control}, {word} the {rail.limit:+.0%} allowed"
    return RailCheck(name, rail, holds, f"{about}{_failed_text(side)}.")


def _margin(
    experiment: Experiment, name: str, rail: GuardRail, test: PairTest | None, control: str
) -> RailCheck:
    if test is None:
        return RailCheck(name, rail, False, f"{rail.metric} could not be compared with {control}.")
    if test.untold:
        return RailCheck(name, rail, False, f"a loss of {test.metric} cannot be ruled out: {test.untold}.")
    if not test.tested:
        reason = f"one run each cannot rule out a loss of {test.metric}, which is of times."
        return RailCheck(name, rail, False, reason)
    # The control is the first of every pair that it is in.
    p_value, change = test.margin_p(rail.limit), test.difference
    gain = change if test.higher_is_better else -change
    moved = f"changes by {change:+.4g}" if change else "does not change"
    about = f"{test.metric} {moved} against {control}"
    if p_value < experiment.alpha:
        return RailCheck(
            name, rail, True, f"{about}: a loss of {rail.limit:g} is ruled out (p = {p_value:.2g})."
        )
    if gain <= -rail.limit:
        return RailCheck(name, rail, False, f"{about}, a loss of more than {rail.limit:g}.")
    # One-sided: a two-sided test at twice the level.
    needed = None
    if test.error > 0:
        sd = test.error * math.sqrt(min(test.samples))
        needed = sample_size(
            gain + rail.limit, sd, alpha=2 * experiment.alpha, power=experiment.power, by="z"
        )
    more = needed_text(needed, " (", ")")
    return RailCheck(name, rail, False, f"{about}: the data cannot rule out a loss of {rail.limit:g}{more}.")
