"""Train the weights of the support function `trained`, and write them with their sources.

    python -m benchmarks.train_support [--data ../shared/data] [--to auepora_eval/judges/support_weights.json]

Two families of answers with their documents, both Apache-2.0:

    MTRAG     answers with the mean faithfulness that about three people gave them, scaled to 0 to 1
    CLAP NQ   gold answers with their passage, and the same with one thing changed, which is not supported: an
              edit of benchmarks/grounding.py, the passage without the sentences that annotators selected for
              the answer, or the passage of another question

The model is a logistic regression on the mean features of an answer's sentences, a sentence counting as much
as it has content words. Each weight keeps the sign of its feature. Each family counts the same and has its
own intercept: the families differ in how close their answers are to the documents, and that must not be
learned. The weights that ship have the mean intercept. The features and the penalty were chosen by how well
weights trained on one family rank the answers of the other, with the figures of AttributionBench in view. A
larger penalty ranks them a little better still, but moves every score to the middle.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import minimize

from auepora_eval.judges.support import Weights, WeightsFile, compare
from auepora_eval.judges.support_features import FEATURES, SIGNS
from auepora_eval.stats.arrays import Array
from benchmarks.grounding import EDITS, Answer

DATA = Path(__file__).parents[2] / "shared" / "data"
WEIGHTS = Path(__file__).parents[1] / "auepora_eval" / "judges" / "support_weights.json"
RIDGE = 0.3
DIGITS = 10
SOURCES: dict[str, dict[str, str]] = {
    "MTRAG": {
        "repository": "IBM/mt-rag-benchmark",
        "licence": "Apache-2.0",
        "labels": "mean faithfulness by about three people",
    },
    "CLAP NQ": {
        "repository": "primeqa/clapnq",
        "licence": "Apache-2.0 (passages from Wikipedia: CC BY-SA)",
        "labels": "gold answers, and the same with one thing changed",
    },
}


class Example(NamedTuple):
    """An answer, its documents, how far it is supported (0 to 1), and the kind of change to it."""

    text: str
    documents: Sequence[str]
    label: float
    kind: str = ""


class Family(NamedTuple):
    """Answers of one dataset: a row of mean features each, their labels, and weights with sum 1."""

    rows: Array
    labels: Array
    weights: Array


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--to", type=Path, default=WEIGHTS)
    args = parser.parse_args()
    examples = training_examples(args.data)
    weights = train([family(listed) for listed in examples.values()])
    content = WeightsFile(
        weights=weights,
        sources=[
            {"name": name, **SOURCES[name], "answers": len(listed)} for name, listed in examples.items()
        ],
        trained_by={"script": "benchmarks/train_support.py", "sha256": script_hash()},
    )
    args.to.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    print(f"{', '.join(f'{len(listed)} answers of {name}' for name, listed in examples.items())}")
    print(f"intercept {weights.intercept:.3f}", *(f"{k} {w:+.3f}" for k, w in weights.features.items()))
    print(f"written: {args.to}")
    return 0


def script_hash() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def training_examples(data: Path) -> dict[str, list[Example]]:
    """Return the answers of each family."""
    return {"MTRAG": list(mtrag(data)), "CLAP NQ": list(clapnq(data))}


def mtrag(data: Path) -> Iterator[Example]:
    """Yield the rated answers of MTRAG that have documents; the kind is the model that wrote the answer."""
    path = data / "mtrag" / "reference_subset_with_human_evaluations.json"
    document: Any = json.loads(path.read_text("utf-8"))
    texts = {each["document_id"]: each["text"] for each in document["documents"]}
    passages = {
        task["task_id"]: [texts[context["document_id"]] for context in task["contexts"]]
        for task in document["tasks"]
    }
    for each in document["evaluations"]:
        ratings = [float(rating["value"]) for rating in each["annotations"]["faithfulness"].values()]
        documents = passages[each["task_id"]]
        if ratings and documents:
            yield Example(each["model_response"], documents, (fmean(ratings) - 1) / 3, each["model_id"])


def clapnq(data: Path) -> Iterator[Example]:
    """Yield the gold answers of CLAP NQ, and for each the changed answers or documents."""
    path = data / "clapnq" / "clapnq_dev_answerable.jsonl"
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    records = [record for record in records if record["output"][0]["answer"] not in ("", "NA")]
    others = records[:]
    random.Random(0).shuffle(others)
    for record, other in zip(records, others, strict=True):
        gold = record["output"][0]
        documents = [passage["text"] for passage in record["passages"]]
        answer = Answer(gold["answer"], documents)
        yield Example(answer.text, documents, 1.0, "gold")
        rest = [
            " ".join(one for one in passage["sentences"] if one not in gold["selected_sentences"])
            for passage in record["passages"]
        ]
        yield Example(answer.text, rest, 0.0, "without its sentences")
        if other is record:
            continue
        foreign = Answer(other["output"][0]["answer"], [passage["text"] for passage in other["passages"]])
        yield Example(answer.text, foreign.documents, 0.0, "another passage")
        for kind, edit in EDITS.items():
            changed = edit(answer, foreign)
            if changed is not None:
                yield Example(changed, documents, 0.0, kind)


def family(examples: Sequence[Example]) -> Family:
    """Return the features of answers. Each kind of change counts the same, all together as much as gold."""
    kept = [(each, mean) for each in examples if (mean := mean_features(each)) is not None]
    kinds = Counter(each.kind for each, _ in kept)
    is_edited = "gold" in kinds
    weights = np.array([1 / kinds[each.kind] if is_edited else 1.0 for each, _ in kept])
    if is_edited:
        # There is one kind of supported answers, and len(kinds) - 1 kinds of others.
        weights[[each.kind == "gold" for each, _ in kept]] *= len(kinds) - 1
    return Family(
        np.array([mean for _, mean in kept]),
        np.array([each.label for each, _ in kept]),
        weights / weights.sum(),
    )


def mean_features(example: Example) -> Array | None:
    """Return the mean features of an answer; None if it has no sentence to compare."""
    rows, sizes = compare("\n".join(example.documents), example.text)
    return np.average(rows, axis=0, weights=sizes) if len(rows) else None


def train(families: Sequence[Family]) -> Weights:
    """Return the sign-constrained logistic regression with the least penalised log loss."""
    means = [np.average(each.rows, axis=0, weights=each.weights) for each in families]
    centred = [each.rows - mean for each, mean in zip(families, means, strict=True)]
    weights = np.concatenate([each.weights for each in families]) / len(families)
    labels = np.concatenate([each.labels for each in families])
    rows = np.concatenate(centred)
    spread = np.sqrt(np.average(rows**2, axis=0, weights=weights))
    spread[spread == 0] = 1.0  # a feature that never varies has the weight 0 whatever its scale
    which = np.repeat(np.arange(len(families)), [len(each.labels) for each in families])
    inputs = np.column_stack([rows / spread, np.eye(len(families))[which]])
    penalty = np.array([RIDGE] * len(FEATURES) + [0.0] * len(families))

    def loss(at: Array) -> tuple[float, Array]:
        odds = inputs @ at
        misses = weights * (1 / (1 + np.exp(-odds)) - labels)
        value = weights @ (np.logaddexp(0.0, odds) - labels * odds) + penalty @ at**2 / 2
        return float(value), inputs.T @ misses + penalty * at

    bounds = [(0.0, None) if SIGNS[name] > 0 else (None, 0.0) for name in FEATURES]
    best = minimize(
        loss,
        np.zeros(len(penalty)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds + [(None, None)] * len(families),
        options={"maxiter": 10_000, "ftol": 1e-16, "gtol": 1e-10},
    ).x
    slopes, intercepts = best[: len(FEATURES)] / spread, best[len(FEATURES) :]
    return Weights(
        intercept=round(float(intercepts.mean() - np.mean(means, axis=0) @ slopes), DIGITS),
        features={name: round(float(slope), DIGITS) for name, slope in zip(FEATURES, slopes, strict=True)},
    )


if __name__ == "__main__":
    raise SystemExit(main())
