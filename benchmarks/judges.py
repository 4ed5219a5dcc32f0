"""Measure what is said about judges: corrections by simulation, calibration and agreement on real labels.

    python benchmarks/judges.py
    python benchmarks/judges.py --attributionbench dev_all_subset_balanced.jsonl --support lexical
    python benchmarks/judges.py reference_subset_with_human_evaluations.json [--to mtrag.jsonl]

The first simulates a judge with sensitivity 0.9 and specificity 0.8, and 100 labels. The second calibrates a
support function on 100 labels of AttributionBench. The third compares a judge with people on a file of
IBM/mt-rag-benchmark (Apache-2.0): 318 answers of two models, each rated from 1 to 4 by two or three people,
with the score of a RAGAS-style LLM judge (`rl_f`). --to keeps the labelled claims for
`auepora judge-audit --labels mtrag.jsonl --columns label=faithfulness --scale 1,4 --score rl_f`.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.scores import Scores
from auepora_eval.core.types import EvaluationRun, MetricResult, TargetCategory
from auepora_eval.io.jsonl import read_records
from auepora_eval.judges.trust.audit import Audit, audit, judge_scores
from auepora_eval.judges.trust.calibration import Estimate, JudgeCalibration, Rate
from auepora_eval.judges.trust.correction import corrected_value
from auepora_eval.judges.trust.labels import Columns, labelled_claims
from auepora_eval.judges.trust.record import with_judge
from auepora_eval.stats.arrays import Array, Mask
from auepora_eval.stats.calibration import calibration, fit_platt, prediction_powered_mean
from auepora_eval.stats.intervals import mean_change_interval, mean_interval

SCORES = ("faithfulness", "naturalness", "completeness", "appropriateness")
COUNTS = (40, 80, 120)
SENSITIVITY, SPECIFICITY, LABELS = 0.9, 0.8, 100
COVERED, OFF, ERROR = 0.93, 0.05, 0.08  # the bars: coverage, bias of the raw value, calibration error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="reference_subset_with_human_evaluations.json")
    parser.add_argument("--to", type=Path, help="keep the labelled claims of MTRAG in this file (JSONL)")
    parser.add_argument("--attributionbench", type=Path, help="dev_all_subset_balanced.jsonl")
    parser.add_argument("--support", default="lexical", help="support function to calibrate")
    parser.add_argument("--simulations", type=int, default=1_000)
    args = parser.parse_args()
    if args.file is not None:
        return mtrag(args.file, args.to)
    if args.attributionbench is not None:
        return calibrated(args.attributionbench, args.support)
    return simulated(args.simulations)


# A judge with known errors.


class Coverage(NamedTuple):
    """How often intervals hold the true rate, and how far the raw value is from it."""

    rate: float
    by_labels: float
    by_error_rates: float
    raw: float
    bias: float

    def __str__(self) -> str:
        return (
            f"true rate {self.rate:.2f}: intervals hold it by labels of the run {self.by_labels:.1%}, "
            f"by error rates {self.by_error_rates:.1%}, uncorrected {self.raw:.1%} (off by {self.bias:+.3f})"
        )


def simulated(simulations: int) -> int:
    print(
        f"{simulations:,} simulations, 500 samples, a judge with sensitivity {SENSITIVITY} and specificity "
        f"{SPECIFICITY}, {LABELS} labels"
    )
    is_kept = True
    for each in coverage_of_corrections(simulations):
        kept = min(each.by_labels, each.by_error_rates) >= COVERED
        is_kept = is_kept and kept
        print(f"  {each}  {'ok' if kept else 'MISSED'}")
        # At 0.70 the errors of this judge nearly cancel out: that it looks right there is luck.
        if abs(each.rate - 0.7) > 0.1:
            is_kept = is_kept and abs(each.bias) > OFF and each.raw < COVERED
    print(f"bars: corrected >= {COVERED:.0%}, raw below that and off by more than {OFF} away from 0.70")
    for share in differences(simulations // 2):
        is_kept = is_kept and share.covered >= COVERED
        print(f"  {share}")
    return 0 if is_kept else 1


def coverage_of_corrections(
    simulations: int = 1_000, rates: Sequence[float] = (0.3, 0.7, 0.9, 0.95), samples: int = 500
) -> Iterator[Coverage]:
    """Yield the coverage at each true rate."""
    for rate in rates:
        rng = np.random.default_rng(17)
        held = np.zeros(3)
        means = []
        for _ in range(simulations):
            truth: Mask = rng.random(samples) < rate
            judged = verdicts(truth, rng)
            result = a_result(judged)
            chosen = rng.choice(samples, LABELS, replace=False).tolist()
            labels = {f"s{place}": float(truth[place]) for place in chosen}
            # The error rates come from other claims, of which half are true.
            other: Mask = rng.random(LABELS) < 0.5
            by_labels, _ = corrected_value(result, labels)
            by_rates, _ = corrected_value(result, {}, error_rates(other, verdicts(other, rng)))
            raw = mean_interval(judged, bounds=(0.0, 1.0))
            assert by_labels is not None
            limits = (by_labels.interval, None if by_rates is None else by_rates.interval, raw)
            # A correction that is refused says nothing wrong, but holds nothing either.
            held += [each is not None and each[0] <= rate <= each[1] for each in limits]
            means.append(float(judged.mean()))
        by_labels, by_error_rates, raw_share = (held / simulations).tolist()
        yield Coverage(rate, by_labels, by_error_rates, raw_share, fmean(means) - rate)


def verdicts(truth: Mask, rng: np.random.Generator, sensitivity: float = SENSITIVITY) -> Array:
    """Return what the judge says: 1 for yes, 0 for no."""
    chance = rng.random(len(truth))
    return np.where(truth, chance < sensitivity, chance >= SPECIFICITY).astype(np.float64)


def a_result(scores: Array) -> MetricResult:
    ids = [f"s{place}" for place in range(len(scores))]
    target = TargetCategory.GENERATION_FAITHFULNESS
    return MetricResult("judged", target, float(scores.mean()), {"bounds": [0, 1]}, Scores(ids, scores))


def error_rates(truth: Mask, judged: Array) -> JudgeCalibration:
    """Return a calibration with the counts of right verdicts; the rest of it is not used here."""
    yes = judged >= 0.5
    return JudgeCalibration(
        identity="noisy",
        date="",
        labels=len(truth),
        threshold=0.5,
        auroc=Estimate(),
        kappa=Estimate(),
        calibration_error=0.0,
        sensitivity=Rate(int((yes & truth).sum()), int(truth.sum())),
        specificity=Rate(int((~yes & ~truth).sum()), int((~truth).sum())),
        slope=1.0,
        intercept=0.0,
    )


class DifferenceCoverage(NamedTuple):
    """How often the interval of a corrected difference of two systems holds the true one."""

    method: str
    covered: float
    raw: float
    found: float

    def __str__(self) -> str:
        return (
            f"a true difference of 0.15 between two systems, corrected {self.method}: held by "
            f"{self.covered:.1%} of the intervals, by {self.raw:.1%} of those of judged scores; "
            f"significant in {self.found:.1%}"
        )


def differences(simulations: int = 500, samples: int = 300) -> Iterator[DifferenceCoverage]:
    """Yield the coverage of the difference between systems that are right on 0.60 and 0.75 of the samples."""
    for method in ("by labels of both runs", "by error rates"):
        rng = np.random.default_rng(18)
        covered = raw = found = 0
        for _ in range(simulations):
            truth = [rng.random(samples) < rate for rate in (0.6, 0.75)]
            judged = [verdicts(each, rng) for each in truth]
            other: Mask = rng.random(LABELS) < 0.5
            errors = error_rates(other, verdicts(other, rng))
            runs = [
                a_run(name, with_judge(a_result(scores), errors, labels=labels_of(each, method)))
                for name, scores, each in zip("ab", judged, truth, strict=True)
            ]
            metric = compare_runs(*runs, resamples=200).metrics[0]
            interval = metric.effect.interval
            plain = mean_change_interval(judged[1] - judged[0])
            covered += interval is not None and interval[0] <= 0.15 <= interval[1]
            raw += plain is not None and plain.low <= 0.15 <= plain.high
            found += metric.verdict == "better"
        counts = (covered / simulations, raw / simulations, found / simulations)
        yield DifferenceCoverage(method, *counts)


def labels_of(truth: Mask, method: str) -> dict[str, float]:
    return {f"s{n}": float(truth[n]) for n in range(LABELS)} if method == "by labels of both runs" else {}


def a_run(name: str, result: MetricResult) -> EvaluationRun:
    return EvaluationRun(name, name, "simulated", "same", [result], [], [])


# Calibration on a real set (row 11 of the bars).


def calibrated(path: Path, support: str, resamples: int = 20) -> int:
    claims = labelled_claims(read_records(path), Columns())
    scores = judge_scores(support, claims)
    pairs = [(score, one.people) for score, one in zip(scores, claims, strict=True) if score is not None]
    x, y = np.array(pairs, dtype=np.float64).T
    rng = np.random.default_rng(11)
    before, after = [], []
    for _ in range(resamples):
        order = rng.permutation(len(x))
        few, rest = order[:LABELS], order[LABELS:]
        chances = fit_platt(x[few], y[few]).chances(x[rest])
        before.append(calibration(x[rest], y[rest]).error)
        after.append(calibration(chances, y[rest]).error)
    is_kept = fmean(after) <= ERROR
    print(f"support:{support} on {len(x)} claims, {resamples} splits, mean calibration error:")
    print(f"  {fmean(before):.3f} raw, {fmean(after):.3f} after a fit on {LABELS} labels (bar {ERROR})")
    return 0 if is_kept else 1


# People and a judge on MTRAG.


def mtrag(path: Path, to: Path | None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        labels = to or Path(folder) / "mtrag.jsonl"
        with labels.open("x", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in claims(path))
        agreement(labels)
        for judge, columns in (("rl_f, an LLM judge", {"score": "rl_f"}), ("grounding_overlap", {})):
            worth(labels, judge, columns)
    return 0


def claims(path: Path) -> Iterator[dict[str, Any]]:
    """Return the answers of models, each with its passages, human ratings and judge score."""
    told = json.loads(path.read_text("utf-8"))
    texts = {document["document_id"]: document["text"] for document in told["documents"]}
    passages = {
        task["task_id"]: [texts[context["document_id"]] for context in task["contexts"]]
        for task in told["tasks"]
    }
    for one in told["evaluations"]:
        if one["model_id"] == "reference":
            continue
        said = one["annotations"]
        yield {
            "evidence": passages[one["task_id"]],
            "claim": one["model_response"],
            "conversation": one["task_id"].partition("<")[0],
            "rl_f": said["rl_f"]["composite"]["value"],
            **{name: {who: rating["value"] for who, rating in said[name].items()} for name in SCORES},
        }


def agreement(labels: Path) -> None:
    print("Krippendorff's alpha, ordinal; one person and the mean of the others, Spearman")
    print("(95% intervals, a conversation is one unit)")
    for score in SCORES:
        columns = Columns(label=score, scale=(1.0, 4.0), score="rl_f", cluster="conversation")
        ceiling = audit(labelled_claims(read_records(labels), columns), None).human_ceiling
        assert ceiling is not None, "the answers of MTRAG are rated by several people"
        print(f"  {score:<16} {text(ceiling.alpha)}   {text(ceiling.one_person.spearman)}")


def worth(labels: Path, judge: str, columns: dict[str, str]) -> None:
    named = Columns(label="faithfulness", scale=(1.0, 4.0), **columns)  # type: ignore[arg-type]
    # Answers that decline have no score: they count as an overlap of 0, as those without passages do.
    how = Audit(unscored_as=0.0)
    claims, asked = labelled_claims(read_records(labels), named), None if columns else judge
    report = audit(claims, asked, how)
    scores: Array = np.array([0.0 if one is None else one for one in judge_scores(asked, claims)])
    people: Array = np.array([one.people for one in claims])
    correlation = report.correlation or {}
    print(
        f"\n{judge} and human faithfulness: Pearson {text(correlation['pearson'])}, "
        f"Spearman {text(correlation['spearman'])}"
    )
    print("mean width of the 95% interval over 2,000 random splits")
    print("  labels   labels alone   judge at weight 1   judge at its best weight")
    for count in COUNTS:
        alone, full, tuned = widths(people, scores, count)
        print(f"  {count:>6}   {alone:>12.3f}   {full:>17.3f}   {tuned:>24.3f}")


def widths(people: Array, scores: Array, count: int, splits: int = 2_000) -> list[float]:
    """Return the mean width of the 95% interval with `count` labels, the rest being only judged."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(splits):
        order = rng.permutation(len(people))
        some, rest = order[:count], order[count:]
        powered = [
            prediction_powered_mean(people[some], scores[some], scores[rest], weight=weight).error
            for weight in (1.0, None)
        ]
        errors.append([float(people[some].std(ddof=1)) / math.sqrt(count), *powered])
    return [2 * 1.959964 * mean for mean in np.mean(errors, axis=0).tolist()]


def text(estimate: Estimate) -> str:
    low, high = estimate.confidence_interval or (math.nan, math.nan)
    return f"{estimate.value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    raise SystemExit(main())
