"""Where wrong answers were lost, and what each fix would bring: rules over the runs of a probe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..comparison.compare import MetricComparison, compare_results
from ..core.display import p_cell
from ..core.matching import gold_found
from ..core.metrics_base import parse_metric
from ..core.scores import Note, Scores, as_columns, cluster_names, is_unanswerable
from ..core.types import EvaluationRun, MetricResult
from ..metrics.robustness.counterfactual import holds_answer
from ..metrics.robustness.rejection import HALF
from ..stats.arrays import Array, Mask
from ..stats.intervals import mean_interval
from ..stats.significance import holm
from ..text.refusal import declines
from .checks import is_stated, metric_can_tell
from .documents import DEEPER, DEPTH, FIXES
from .probe import RETRIEVED, Probe
from .probe import probe as make_probe
from .report import (
    ALPHA,
    DOUBTFUL,
    FEW,
    FIX_TEXTS,
    LEAST,
    ORACLE,
    OUTPUTS_ALONE,
    STAGES,
    TRIED,
    Diagnosis,
    Fix,
    StageShare,
    limits_text,
)

Stages = Mapping[str, list[int]]  # the places of the wrong answers that each stage lost


class Evidence:
    """The scores of a probe by intervention and question; NaN where a call failed: that is not measured."""

    def __init__(self, probe: Probe) -> None:
        self.probe, run = probe, probe.run
        places = [n for n, one in enumerate(run.samples) if one.sample_id in probe.cases]
        self.ids = [run.samples[place].sample_id for place in places]
        self.cases = cases = [probe.cases[name] for name in self.ids]
        self.clusters = cluster_names([case.sample for case in cases])
        asked = [name for name in (RETRIEVED, *FIXES) if name in probe.runs]
        self.right = {name: probe.right(name).values[places] for name in asked}
        declined = {name: [declines(out.response) for out in probe.runs[name].outputs] for name in asked}
        self.declined = {name: np.array(column)[places] for name, column in declined.items()}
        self.has_gold = _mask(case.gold for case in cases)
        self.missing = _mask(case.missing for case in cases)
        self.is_part = _mask(case.is_part for case in cases)
        self.unseen = _mask(case.unseen for case in cases)
        self.indexed = _mask(case.is_indexed for case in cases)
        self.placed = _mask(case.is_placed for case in cases)

    def is_right(self, name: str) -> Mask:
        return np.asarray(self.right[name] >= HALF)

    def is_measured(self, place: int) -> bool:
        """Return whether every intervention that decides about a stage was answered."""
        return all(np.isfinite(self.right[name][place]) for name in self.right if name != "deeper")

    def result(self, values: Array) -> MetricResult:
        """Return the result of a column of scores."""
        notes = {int(place): Note("not measured") for place in np.flatnonzero(~np.isfinite(values))}
        scores = Scores(self.ids, values, notes=notes)
        scores.clusters = self.clusters
        return self.probe.metric.summarise(scores)

    def compared(self, before: Array, after: Array) -> MetricComparison | None:
        """Compare two columns of scores; what was not measured in both is left out."""
        measured = np.isfinite(before) & np.isfinite(after)
        if not measured.any():
            return None
        sides = (self.result(np.where(measured, column, math.nan)) for column in (before, after))
        return compare_results(*sides)


def _mask(values: Iterable[object]) -> Mask:
    return np.array([bool(one) for one in values], dtype=bool)


def _rules(evidence: Evidence, place: int) -> Iterator[tuple[str, object]]:
    """Yield the stages that can have lost a wrong answer, and whether they have: the first one counts."""
    probe, case = evidence.probe, evidence.cases[place]
    yield "failed", case.output.error is not None
    yield "answered", is_unanswerable(case.sample)
    if probe.is_black_box:
        yield from _rules_of_outputs(evidence, place)
    yield "untraced", probe.unreached or not case.gold or not evidence.is_measured(place)
    yield "unstable", case.sample.sample_id in probe.again
    helps = {name for name in evidence.right if evidence.right[name][place] >= HALF}
    on_gold = helps & {"gold", "gold_first", "added"}
    is_helped = on_gold or "merged" in helps
    yield "metric", not is_helped and not metric_can_tell(case, probe.metric)
    yield "suspect", not is_helped and not is_stated(case)
    if not probe.names_documents:
        yield "unused", is_helped
        yield "declined", evidence.declined["gold"][place]
        yield "generator", True
    yield "order", "ordered" in helps
    yield "context", "cleaned" in helps
    yield "cutoff", case.is_part and "deeper" in helps
    yield "passage", case.is_part and is_helped
    yield "context", on_gold and not case.missing
    yield "missed", on_gold and not case.is_placed
    yield "cutoff", on_gold and not case.unseen
    yield "search", on_gold and case.is_indexed
    yield "index", on_gold
    yield "both", case.missing
    yield "order", "merged" in helps
    yield "declined", evidence.declined["gold"][place]
    yield "generator", True


def _rules_of_outputs(evidence: Evidence, place: int) -> Iterator[tuple[str, object]]:
    """Yield the same as far as the output alone says it."""
    case = evidence.cases[place]
    yield "untraced", not case.needed.relevant_docs
    yield "metric", case.gold and not metric_can_tell(case, evidence.probe.metric)
    yield "suspect", case.gold and not is_stated(case)
    yield "untraced", not evidence.probe.names_documents
    yield "missed", gold_found(case.needed, case.output, case.match)[1]
    found_text = "\n".join(doc.text for doc in case.found)
    yield "passage", case.is_part and case.answers and not holds_answer(found_text, case.answers)
    yield "declined", evidence.declined[RETRIEVED][place]
    yield "generator", True


def diagnose(probed: Probe | EvaluationRun) -> Diagnosis:
    """Say which stage lost each wrong answer and what each fix would bring at most, with intervals.

    A run alone is a black box: then the outputs say what they can, and no gains are known.
    """
    probe = make_probe(None, probed) if isinstance(probed, EvaluationRun) else probed
    evidence = Evidence(probe)
    base = evidence.right[RETRIEVED]
    stages: dict[str, list[int]] = {name: [] for name in STAGES}
    for place, value in enumerate(base):
        if evidence.cases[place].output.error is not None or value < HALF:
            stage = next(name for name, holds in _rules(evidence, place) if holds)
            stages[stage].append(place)
    columns = {} if probe.unreached else _fixed(evidence, stages)
    fixes = _fixes(evidence, stages, columns)
    first, rivals = _first(evidence, columns, fixes)
    result = evidence.result(base)
    return Diagnosis(
        probe.run.evaluation_id,
        probe.metric.name,
        result.value,
        result.interval,
        int(np.isfinite(base).sum()) + len(stages["failed"]),
        sum(map(len, stages.values())),
        _shares(evidence, stages),
        fixes,
        first,
        rivals,
        _unsupported(evidence),
        {kind: probe.calls[kind] for kind in ("generate", "retrieve")},
        [*probe.notes, *(() if probe.unreached else _notes(evidence))],
        probe.is_black_box,
        probe.unreached,
        int(evidence.has_gold.sum()),
    )


def _shares(evidence: Evidence, stages: Stages) -> list[StageShare]:
    """Return the stages that lost answers, the largest first."""
    texts = STAGES | (OUTPUTS_ALONE if evidence.probe.is_black_box else {})
    shares = []
    for name, places in stages.items():
        if not places:
            continue
        values = np.zeros(len(evidence.ids))
        values[places] = 1.0
        limits = mean_interval(values, bounds=(0, 1), clusters=evidence.clusters)
        ids = tuple(evidence.ids[place] for place in places)
        interval = (limits.low, limits.high) if limits else None
        shares.append(StageShare(name, *texts[name], len(places), float(values.mean()), interval, ids))
    return sorted(shares, key=lambda one: -one.count)


# Fixes. Each is a column of scores beside the system's own, compared as two runs are.
Columns = Mapping[str, tuple[Array, str | None]]  # with the intervention that the scores are of


def _fixed(evidence: Evidence, stages: Stages) -> Columns:
    """Return the scores under each fix."""
    base, probe, right = evidence.right[RETRIEVED], evidence.probe, evidence.right
    fixed: dict[str, tuple[Array, str | None]] = {}

    def where(name: str, applies: Mask) -> tuple[Array, str | None]:
        applies = evidence.has_gold & applies
        return np.where(applies, right[name], base), name if applies.any() else None

    def oracle(*names: str) -> tuple[Array, None]:
        values = base.copy()
        values[[place for name in names for place in stages[name]]] = 1.0
        return values, None

    if probe.is_asked:
        missing, unseen, placed = evidence.missing, evidence.unseen & evidence.placed, evidence.placed
        fixed["declines"], fixed["generator"] = oracle("declined"), oracle("generator")
        fixed["references"] = oracle(*DOUBTFUL)
        if not probe.names_documents:
            fixed["documents"] = where("gold", evidence.has_gold)
        elif not placed.all():  # where the gold of some questions is, is not known
            fixed["retrieval"] = where("gold_first", missing & ~placed)
        if "deeper" in right:
            fixed["index"] = where("gold_first", unseen & ~evidence.indexed)
            fixed["search"] = where("gold_first", unseen & evidence.indexed)
            fixed["rerank"] = where("gold_first", missing & placed & ~unseen)
            fixed["cutoff"] = where("deeper", evidence.has_gold)
        if "ordered" in right:
            # Where the order alone makes it right, that is the fix.
            by_order = evidence.is_right("ordered") & ~evidence.is_right(RETRIEVED)
            fixed["filter"], fixed["place"] = where("cleaned", ~by_order), oracle("order")
            fixed["chunks"] = where("merged", evidence.is_part & ~by_order)
    if not probe.is_black_box and any(is_unanswerable(case.sample) for case in evidence.cases):
        fixed["refusal"] = oracle("answered")
    return fixed


def _fixes(evidence: Evidence, stages: Stages, columns: Columns) -> list[Fix]:
    """Return what each fix brings, the largest gain first."""
    base, probe, rates = evidence.right[RETRIEVED], evidence.probe, _pass_rates(evidence, stages)
    changes = {name: evidence.compared(base, values) for name, (values, _) in columns.items()}
    tested = {name: change for name, change in changes.items() if change is not None}
    # A fix that applies to no question is not tested.
    family = [name for name in tested if columns[name][1] or FIX_TEXTS[name][1] == ORACLE]
    adjusted = dict(zip(family, holm([_p(tested[name]) for name in family]), strict=True))
    shown = max(len(case.retrieved) for case in evidence.cases) or probe.run.top_k  # may not be its top_k
    sizes = {"depth": DEPTH, "top_k": shown, "deeper": DEEPER * shown}
    fixes = []
    for name, change in tested.items():
        text, kind, _ = FIX_TEXTS[name]
        gain, limits, intervention = change.gain, change.effect.interval, columns[name][1]
        run_id = None if intervention is None else probe.runs[intervention].evaluation_id
        expected, p_holm = gain * rates.get(name, 1.0), adjusted.get(name, _p(change))
        fixes.append(
            Fix(name, text.format(**sizes), kind, gain, limits, _p(change), p_holm, expected, run_id)
        )
    # Of equal gains the one that was tried comes first: it needs no oracle.
    return sorted(fixes, key=lambda fix: (-round(fix.gain, 3), fix.kind != TRIED))


def _p(change: MetricComparison | None) -> float:
    return 1.0 if change is None or change.test.p is None else change.test.p


def _pass_rates(evidence: Evidence, stages: Stages) -> dict[str, float]:
    """Return how often an answer that gets past a fix also gets past the faults that an oracle skips."""
    if not evidence.probe.is_asked or not evidence.probe.names_documents:
        return {}
    chosen = evidence.has_gold & _mask(case.output.error is None for case in evidence.cases)
    chosen[[place for name in DOUBTFUL for place in stages[name]]] = False
    right, on_gold = evidence.is_right(RETRIEVED), evidence.is_right("gold")
    is_found, is_seen = ~evidence.missing, ~evidence.unseen

    def rate(passes: Mask, among: Mask) -> float:
        asked = chosen & among
        return float((passes & asked).sum() + 1) / float(asked.sum() + 1)  # one more that passes: never 0 / 0

    used = rate(right, is_found & on_gold)
    return {
        "index": used * rate(is_found, is_seen | evidence.indexed),
        "search": used * rate(is_found, is_seen),
        "generator": used,
        "declines": used * rate(on_gold, ~evidence.declined["gold"]),
        "references": rate(right, chosen),
    }


def _first(evidence: Evidence, columns: Columns, fixes: Sequence[Fix]) -> tuple[str | None, list[str]]:
    """Return the fix to try first, if one stands out, and those that may as well come first."""
    if len(evidence.cases) < FEW or all(is_unanswerable(case.sample) for case in evidence.cases):
        return None, []
    # What failed is not measured: a fix that was tried on a few questions is not the first one.
    base = evidence.right[RETRIEVED]
    tried = {name for name, (after, *_) in columns.items() if np.isfinite(base + after).sum() >= FEW}
    shown = [
        fix.name
        for fix in fixes
        if fix.name in tried - {"references"} and fix.p_holm < ALPHA and fix.gain >= LEAST
    ]
    if not shown:
        return None, []
    best, *others = shown
    return best, [
        name for name in others if _p(evidence.compared(columns[name][0], columns[best][0])) >= ALPHA
    ]


def _unsupported(evidence: Evidence) -> list[str]:
    """Return right answers to which neither gold nor any document with the answer was shown."""
    if not evidence.probe.names_documents:
        return []
    right = zip(evidence.ids, evidence.cases, evidence.is_right(RETRIEVED), strict=True)
    return [
        name
        for name, case, is_right in right
        if is_right and case.gold and len(case.silent(case.retrieved)) == len(case.retrieved)
    ]


def _notes(evidence: Evidence) -> Iterable[str]:
    """Yield what cannot be said, and what would help."""
    answerable = [case for case in evidence.cases if not is_unanswerable(case.sample)]
    gold = [case for case in answerable if case.needed.relevant_docs]
    if not answerable:
        yield "No question has an answer: only refusals can be judged. Add questions that have one."
    elif not gold:
        yield "No question has gold documents: where an answer was lost cannot be said. Add relevant_docs."
    untold = [case for case in gold if case.has_gold and not case.gold]
    example = next((doc.doc_id for case in untold for doc in case.needed.relevant_docs or ()), "")
    lacking = {
        "have no reference answer: whether they are answered right is not known. Add reference_answer.": [
            case for case in answerable if case.sample.reference_answer is None
        ],
        "have no gold documents: where their answers were lost cannot be said. Add relevant_docs.": [
            case for case in answerable if gold and not case.needed.relevant_docs
        ],
        f"have gold whose text is in neither the dataset nor the corpus, such as {example!r:.60}. "
        "Give the corpus of the system: --corpus FILE.": untold,
    }
    for what, cases in lacking.items():
        if cases:
            yield f"{len(cases)} of {len(answerable)} questions {what}"
    if gold and not evidence.probe.names_documents:
        yield (
            "The answers of the run name no documents: what was retrieved is not known. Let the system "
            "return them beside its answer, and run it again."
        )
    failed = sum(
        case.is_scored and case.output.error is None and not evidence.is_measured(place)
        for place, case in enumerate(evidence.cases)
    )
    if failed and evidence.probe.is_asked:
        yield f"{failed} questions have an intervention that failed: they are not measured. Diagnose again."
    answered = sum(case.output.error is None for case in evidence.cases)
    if answered < FEW:
        what = "" if answered == len(evidence.cases) else "answered "
        are = "question is" if answered == 1 else "questions are"
        yield f"{answered} {what}{are} too few to name a cause: take {2 * FEW} or more."


def stage_changes(before: Diagnosis, after: Diagnosis, run: EvaluationRun) -> Iterator[str]:
    """Yield in lines how the stages of two diagnoses of the same questions differ; `run` is one of them."""
    if not before.is_like(after):
        yield "The stages are not compared: the runs were not diagnosed alike. Give both"
        yield "diagnoses the same --metric, --corpus and kind of --system."
        return
    scores = max((as_columns(result.scores) for result in run.results), key=len)

    def lost(found: Diagnosis, name: str) -> MetricResult:
        stage = found.stage(name)
        ids = set(stage.sample_ids if stage else ())
        column = Scores(scores.sample_ids, [float(one in ids) for one in scores.sample_ids])
        column.clusters = scores.clusters
        return parse_metric("right").summarise(column)

    texts = {stage.name: stage.text for found in (before, after) for stage in found.stages}
    if not texts:
        return
    changes = {name: compare_results(lost(before, name), lost(after, name)) for name in texts}
    adjusted = dict(zip(changes, holm(list(map(_p, changes.values()))), strict=True))
    yield f"{'Where answers are lost':34}{'before':>6}{'now':>5}  {'change, 95%':20}{'p':>6} (Holm)"
    for name, one in sorted(changes.items(), key=lambda pair: pair[1].effect.change):
        p = adjusted[name]
        verdict = "" if p >= ALPHA else " better" if one.effect.change < 0 else " worse"
        change = f"{one.effect.change:+.0%} {limits_text(one.effect.interval, '+.0%')}"
        stages = (before.stage(name), after.stage(name))
        was, now = (stage.count if stage else 0 for stage in stages)
        yield f"  {texts[name]:32}{was:6}{now:5}  {change:20}{p_cell(p):>6}{verdict}"
