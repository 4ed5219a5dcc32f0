"""All the per-query values that IBM's MTRAG benchmark stores beside its nine runs."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.scores import Batch
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

MTRAG = Path(__file__).parents[3] / "shared" / "data" / "mtrag"
CUTOFFS = (1, 3, 5, 10)
RUNS = [
    f"{system}_clapnq_{queries}"
    for system in ("bm25", "bge", "elser")
    for queries in ("lastturn", "questions", "rewrite")
]

needs_mtrag = pytest.mark.skipif(
    not MTRAG.is_dir(), reason="needs MTRAG's files, which are not part of the project"
)


def grades() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with (MTRAG / "retrieval" / "clapnq" / "qrels" / "dev.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            found[row["query-id"]][row["corpus-id"]] = int(row["score"])
    return found


def stored_run(name: str) -> list[dict[str, Any]]:
    with gzip.open(MTRAG / "runs" / f"{name}.run.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@needs_mtrag
@pytest.mark.parametrize("name", RUNS)
def test_every_stored_value_is_reproduced(name: str) -> None:
    gold, rows = grades(), stored_run(name)
    batch = Batch(
        [a_sample(row["task_id"], relevant=gold[row["task_id"]]) for row in rows],
        # Their values are trec_eval's, which orders equal scores (BM25 has some) by descending name.
        [
            an_output(
                [doc for _, doc in sorted(((score, doc) for doc, score in row["contexts"]), reverse=True)]
            )
            for row in rows
        ],
    )
    assert len(batch) == 208
    for k in CUTOFFS:
        for ours, theirs in ((f"recall@{k}", f"recall_{k}"), (f"ndcg@{k}", f"ndcg_cut_{k}")):
            scores = parse_metric(ours).score_batch(batch)
            stored = [row["retriever_scores"][theirs] for row in rows]
            assert scores.values == pytest.approx(stored, abs=1e-9), ours
