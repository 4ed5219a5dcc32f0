"""Judges against people on MTRAG: the agreement of its raters, and what a judge saves in labels.

    python benchmarks/judges.py reference_subset_with_human_evaluations.json
    python benchmarks/judges.py reference_subset_with_human_evaluations.json --to mtrag.jsonl

The file is part of IBM/mt-rag-benchmark (Apache-2.0): 318 answers of two models, each rated from 1 to 4 by
two or three people, with the score of a RAGAS-style LLM judge (`rl_f`). With --to the labelled claims are
kept, for `auepora judge-audit --labels mtrag.jsonl --label faithfulness --scale 1,4 --score rl_f`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auepora_eval.io.jsonl import read_records
from auepora_eval.runs.judge_audit import Audit, Columns, audit, labelled_claims

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
    """The answers of models, each with its passages, what people said and what the judge said."""
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
        ceiling = audit(labelled_claims(read_records(labels), columns), None)["human_ceiling"]
        print(f"  {score:<16} {shown(ceiling['alpha'])}   {shown(ceiling['one_person']['spearman'])}")


def worth(labels: Path, judge: str, columns: dict[str, str]) -> None:
    named = Columns(label="faithfulness", scale=(1.0, 4.0), **columns)  # type: ignore[arg-type]
    # 18 answers have no passages: to a judge of words nothing of them is borne out.
    how = Audit(budget=COUNTS, unscored_as=0.0)
    found = audit(labelled_claims(read_records(labels), named), None if columns else judge, how)
    print(
        f"\n{judge} and human faithfulness: Pearson {shown(found['correlation']['pearson'])}, "
        f"Spearman {shown(found['correlation']['spearman'])}"
    )
    print("mean width of the 95% interval over 2,000 random splits")
    print("  labels   labels alone   judge at weight 1   judge at its best weight")
    for row in found["budget"]:
        print(
            f"  {row['labels']:>6}   {row['people_alone']:>12.3f}   {row['judge_at_weight_1']:>17.3f}"
            f"   {row['judge_tuned']:>24.3f}"
        )


def shown(figure: dict[str, Any]) -> str:
    low, high = figure["confidence_interval"]
    return f"{figure['value']:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    raise SystemExit(main())
