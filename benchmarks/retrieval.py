"""Compare nine retrieval metrics with their peers on many queries: CPU time in one process, in turn.

    python benchmarks/retrieval.py                        # 50 to 100,000 queries, best of 5
    python benchmarks/retrieval.py --queries 2000 --rounds 2

Each contestant gets the same EvaluationSample and SystemOutputs objects, and the time to convert them to its
own form is counted. Ours also computes an interval for each mean, which is counted as well. At few queries
the fixed cost counts: the bar at 1,000 queries is 1.2 times the time of pytrec_eval. The exit code is 0 if
every bar holds, 1 if one is missed, 2 if a peer is not installed.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import math
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module

from auepora_eval.core.scores import Batch
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.parse import parse_metric

World = tuple[list[EvaluationSample], list[SystemOutputs]]
Means = Mapping[str, float]

NAMES = ("recall@10", "precision@10", "hit@10", "f1@10", "mrr", "map", "ndcg@10", "r_precision", "ndcg")
BARS = {"pytrec_eval-terrier": 1.0, "ir_measures": 1.5, "ranx": 3.0}
SMALL, BARS_OF_THOUSAND = 10_000, {"pytrec_eval-terrier": 1 / 1.2}
CORPUS, RETRIEVED, JUDGED = 200_000, 100, 11


def recorded_run(queries: int, *, seed: int = 0, shared: bool = False) -> World:
    """Return a recorded run and its gold, as read from files. Every line has its own documents.

    100 documents per query; 11 are graded, 10 of them relevant, and most of those are found. With `shared`
    all lists have the objects of one corpus, as a system in the same process returns them.
    """
    rng = random.Random(seed)
    corpus = [Document(f"doc-{number:06}", "") for number in range(CORPUS if shared else 0)]
    samples, outputs = [], []
    for query in range(queries):
        pool = rng.sample(range(CORPUS), RETRIEVED + 4)
        grades = [0, *rng.choices((1, 2, 3), k=JUDGED - 1)]
        gold = [
            Document(f"doc-{number:06}", "", {"relevance": grade})
            for number, grade in zip(rng.sample(pool, JUDGED), grades, strict=True)
        ]
        hits = [
            RetrievedDocument(
                corpus[number] if shared else Document(f"doc-{number:06}", ""), 1.0 / rank, rank
            )
            for rank, number in enumerate(pool[:RETRIEVED], start=1)
        ]
        samples.append(EvaluationSample(f"q{query}", "a query", relevant_docs=gold))
        outputs.append(SystemOutputs(hits, Response("")))
    return samples, outputs


def ours(world: World) -> Means:
    batch = Batch(*world)
    results = [metric.summarise(metric.score_batch(batch)) for metric in map(parse_metric, NAMES)]
    return {result.name: result.value for result in results}


def as_dicts(world: World) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return the judgements and the run in the form of the peers."""
    samples, outputs = world
    qrels = {
        sample.sample_id: {doc.doc_id: doc.metadata["relevance"] for doc in sample.relevant_docs or ()}
        for sample in samples
    }
    run = {
        sample.sample_id: {hit.doc.doc_id: hit.score for hit in output.retrieved}
        for sample, output in zip(samples, outputs, strict=True)
    }
    return qrels, run


def with_pytrec_eval(world: World) -> Means:
    """Eight of the nine: it has no F1 at a cutoff."""
    pytrec_eval = import_module("pytrec_eval")
    names = {
        "recall_10": "recall@10",
        "P_10": "precision@10",
        "success_10": "hit@10",
        "recip_rank": "mrr",
        "map": "map",
        "ndcg_cut_10": "ndcg@10",
        "Rprec": "r_precision",
        "ndcg": "ndcg",
    }
    qrels, run = as_dicts(world)
    wanted = {"recall.10", "P.10", "success.10", "recip_rank", "map", "ndcg_cut.10", "Rprec", "ndcg"}
    by_query = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    return {
        name: pytrec_eval.compute_aggregated_measure(measure, [query[measure] for query in by_query.values()])
        for measure, name in names.items()
    }


def with_ir_measures(world: World) -> Means:
    """Eight of the nine: it has no F1 at a cutoff."""
    peer = import_module("ir_measures")
    names = {
        peer.R @ 10: "recall@10",
        peer.P @ 10: "precision@10",
        peer.Success @ 10: "hit@10",
        peer.RR: "mrr",
        peer.AP: "map",
        peer.nDCG @ 10: "ndcg@10",
        peer.Rprec: "r_precision",
        peer.nDCG: "ndcg",
    }
    qrels, run = as_dicts(world)
    means = peer.calc_aggregate(list(names), qrels, run)
    return {name: means[measure] for measure, name in names.items()}


def with_ranx(world: World) -> Means:
    peer = import_module("ranx")
    names = {
        "recall@10": "recall@10",
        "precision@10": "precision@10",
        "hit_rate@10": "hit@10",
        "f1@10": "f1@10",
        "mrr": "mrr",
        "map": "map",
        "ndcg@10": "ndcg@10",
        "r-precision": "r_precision",
        "ndcg": "ndcg",
    }
    qrels, run = as_dicts(world)
    means = peer.evaluate(peer.Qrels(qrels), peer.Run(run), list(names))
    return {name: float(means[measure]) for measure, name in names.items()}


CONTESTANTS: dict[str, Callable[[World], Means]] = {
    "auepora-eval": ours,
    "pytrec_eval-terrier": with_pytrec_eval,
    "ir_measures": with_ir_measures,
    "ranx": with_ranx,
}


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "this source tree" if name == "auepora-eval" else None


def measure(world: World, rounds: int) -> dict[str, float]:
    """Return the smallest CPU time of each installed contestant, after a first call on small data."""
    present = {name: run for name, run in CONTESTANTS.items() if version(name)}
    small = recorded_run(20, seed=1)
    for run in present.values():  # imports, and what ranx compiles, are not counted
        run(small)
    best = dict.fromkeys(present, math.inf)
    expected = ours(world)
    for _ in range(rounds):
        for name, run in present.items():
            gc.collect()
            start = time.process_time()
            means = run(world)
            best[name] = min(best[name], time.process_time() - start)
            for metric, value in means.items():
                if not math.isclose(value, expected[metric], abs_tol=1e-6):
                    sys.exit(f"{name} says that {metric} is {value}, we say {expected[metric]}")
    return best


def bars_of(queries: int) -> Mapping[str, float]:
    """Return how many times our time each peer must take."""
    if queries >= SMALL:
        return BARS
    return BARS_OF_THOUSAND if queries == 1_000 else {}


def report(queries: str, best: Mapping[str, float], bars: Mapping[str, float]) -> tuple[list[str], bool]:
    """Return the lines of a table, and whether every bar that could be checked holds."""
    unit = best["auepora-eval"]
    lines, held = [], True
    for name in CONTESTANTS:
        if name not in best:
            lines.append(f"| {queries} | {name} | not installed | - | - | |")
            continue
        ratio = best[name] / unit
        bar = bars.get(name)
        verdict = "" if bar is None else f"≥ {bar:.2g}× {'holds' if ratio >= bar else 'MISSED'}"
        held = held and (bar is None or ratio >= bar)
        lines.append(
            f"| {queries} | {name} | {version(name)} | {best[name]:.3f} | {ratio:.2f}× | {verdict} |"
        )
    return lines, held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument(
        "--queries", type=int, nargs="+", default=[50, 200, 1_000, 2_000, 2_001, 10_000, 100_000]
    )
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("| queries | tool | version | CPU s | times ours | bar |")
    print("|---:|---|---|---:|---:|---|")
    all_held = True
    for queries in args.queries:
        for shared in (False, True) if queries == SMALL else (False,):
            best = measure(recorded_run(queries, shared=shared), args.rounds)
            lines, held = report(f"{queries:,}{', shared corpus' if shared else ''}", best, bars_of(queries))
            print("\n".join(lines), flush=True)
            all_held = all_held and held
    print(
        f"\nNine metrics ({', '.join(NAMES)}), {RETRIEVED} retrieved and {JUDGED} judged documents a query; "
        f"best of {args.rounds}, in turn, after a first call that is not counted. "
        f"Python {platform.python_version()}, {os.cpu_count()} cores."
    )
    if not all_held:
        return 1
    return 0 if all(version(name) for name in CONTESTANTS) else 2


if __name__ == "__main__":
    sys.exit(main())
