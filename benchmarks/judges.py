"""Compare a judge with people on MTRAG: the agreement of its raters, and the labels that a judge saves.

    python benchmarks/judges.py reference_subset_with_human_evaluations.json
    python benchmarks/judges.py reference_subset_with_human_evaluations.json --to mtrag.jsonl

The file is part of IBM/mt-rag-benchmark (Apache-2.0): 318 answers of two models, each rated from 1 to 4 by
two or three people, with the score of a RAGAS-style LLM judge (`rl_f`). --to keeps the labelled claims for
`auepora judge-audit --labels mtrag.jsonl --label faithfulness --scale 1,4 --score rl_f`.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auepora_eval.io.jsonl import read_records
from auepora_eval.people.judge_audit import Audit, Columns, Estimate, audit, labelled_claims

SCORES = ("faithfulness", "naturalness", "completeness", "appropriateness")
COUNTS = (40, 80, 120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="reference_subset_with_human_evaluations.json")
    parser.add_argument("--to", type=Path, help="keep the labelled claims in this file (JSONL)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        labels = args.to or Path(folder) / "mtrag.jsonl"
        with labels.open("x", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(record)}\n" for record in claims(args.file))
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
    print("(95% intervals, conversations drawn whole)")
    for score in SCORES:
        columns = Columns(label=score, scale=(1.0, 4.0), score="rl_f", cluster="conversation")
        ceiling = audit(labelled_claims(read_records(labels), columns), None).human_ceiling
        assert ceiling is not None, "the answers of MTRAG are rated by several people"
        print(f"  {score:<16} {text(ceiling.alpha)}   {text(ceiling.one_person.spearman)}")


def worth(labels: Path, judge: str, columns: dict[str, str]) -> None:
    named = Columns(label="faithfulness", scale=(1.0, 4.0), **columns)  # type: ignore[arg-type]
    # 18 answers have no passages, so a judge that compares words finds no support for them.
    how = Audit(budget=COUNTS, unscored_as=0.0)
    report = audit(labelled_claims(read_records(labels), named), None if columns else judge, how)
    correlation = report.correlation or {}
    print(
        f"\n{judge} and human faithfulness: Pearson {text(correlation['pearson'])}, "
        f"Spearman {text(correlation['spearman'])}"
    )
    print("mean width of the 95% interval over 2,000 random splits")
    print("  labels   labels alone   judge at weight 1   judge at its best weight")
    for row in report.budget or ():
        print(
            f"  {row.labels:>6}   {row.people_alone:>12.3f}   {row.judge_at_weight_1:>17.3f}"
            f"   {row.judge_tuned:>24.3f}"
        )


def text(estimate: Estimate) -> str:
    low, high = estimate.confidence_interval or (math.nan, math.nan)
    return f"{estimate.value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    raise SystemExit(main())
