"""Compare the ways in of other tools with these tools: CPU time, in turn, best of several rounds.

    python benchmarks/interop.py                     # a run of 1,000,000 lines, best of 3
    python benchmarks/interop.py --lines 100000 --rounds 5

1. Reading a TREC run. Ours orders the documents of each query; ir_measures makes a list of documents.
2. The whole command on TREC files: `auepora score`, with intervals and a stored run, and `ir_measures`.
3. Nine metrics of 3,000 rankings with 100 documents each, which are dicts, TREC files or a table.

The exit code is 0 if every bar holds, 1 if one is missed, 2 if a peer is not installed.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import auepora_eval as ae
from auepora_eval.io.trec import read_run
from benchmarks.retrieval import NAMES, as_dicts, recorded_run

PER_QUERY = 1_000
MEASURES = {"ndcg@10": "nDCG@10", "map": "AP", "mrr": "RR", "recall@10": "R@10"}
Times = tuple[str, float, dict[str, tuple[float, float]]]  # what, our seconds; seconds and bar of each peer


def written_run(path: Path, lines: int, *, seed: int = 0) -> None:
    """Write a run with a thousand documents per query, in the order of their scores, and its qrels."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file, path.with_suffix(".qrels").open("w") as judged:
        for query in range(lines // PER_QUERY):
            numbers = rng.sample(range(9_000_000), PER_QUERY)
            for rank, number in enumerate(numbers, start=1):
                score = PER_QUERY - rank + rng.random()
                file.write(f"{query} Q0 MARCO_{number} {rank} {score:.4f} run\n")
            for number in rng.sample(numbers, 15):
                judged.write(f"{query} 0 MARCO_{number} {rng.choice((0, 1, 1, 2, 3))}\n")


def best_of(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the shortest CPU time of each call; they take turns, as the machine may be busy for a while."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, seconds, strict=True):
            gc.collect()
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return list(map(min, seconds))


def best_command(rounds: int, *commands: list[str]) -> list[float]:
    """Return the shortest CPU time of each command, in a process of its own, after a first call of each."""
    seconds: list[list[float]] = [[] for _ in commands]
    # Without this variable both have their bytecode on the disk after the first call.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for turn in range(rounds + 1):
        for command, times in zip(commands, seconds, strict=True):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True, env=variables)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            times.extend([used] if turn else [])
    return list(map(min, seconds))


def reading(peer: Any, path: Path, rounds: int) -> Times:
    ours, theirs = best_of(rounds, lambda: read_run(path), lambda: list(peer.read_trec_run(str(path))))
    return "read a run", ours, {"ir_measures": (theirs, 1.0)}


def whole_command(path: Path, rounds: int) -> Times:
    scripts, files = Path(sys.executable).parent, [str(path.with_suffix(".qrels")), str(path)]
    ours, theirs = best_command(
        rounds,
        [
            *(str(scripts / "auepora"), "score", "--dataset", files[0], "--outputs", files[1]),
            *("--metrics", ",".join(MEASURES), "--out", str(path.parent / "runs"), "--id", "a", "--force"),
        ],
        [str(scripts / "ir_measures"), *files, *MEASURES.values()],
    )
    return "the whole command", ours, {"ir_measures": (theirs, 1.0)}


def rankings(peer: Any, folder: Path, rounds: int) -> list[Times]:
    """Eight of the nine for the peers: they have no F1 at a cutoff."""
    pytrec_eval = import_module("pytrec_eval")
    qrels, run = as_dicts(recorded_run(3_000))
    wanted = {"recall.10", "P.10", "success.10", "recip_rank", "map", "ndcg_cut.10", "Rprec", "ndcg"}
    measures = list(map(peer.parse_measure, "R@10 P@10 Success@10 RR AP nDCG@10 Rprec nDCG".split()))
    files = folder / "b.qrels", folder / "b.run"
    for path, lists, form in ((files[0], qrels, "{} 0 {} {}\n"), (files[1], run, "{} Q0 {} 0 {} t\n")):
        path.write_text("".join(form.format(q, d, n) for q, docs in lists.items() for d, n in docs.items()))
    tables = [
        {
            "query_id": [query for query, docs in lists.items() for _ in docs],
            "doc_id": [doc for docs in lists.values() for doc in docs],
            name: [number for docs in lists.values() for number in docs.values()],
        }
        for lists, name in ((qrels, "relevance"), (run, "score"))
    ]
    frame = import_module("pandas").DataFrame
    frames = [frame(table) for table in tables]

    def with_pytrec(judged: Any, ranked: Any) -> object:
        return pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate(ranked)

    def from_files() -> object:
        with files[0].open() as judged, files[1].open() as ranked:
            return with_pytrec(pytrec_eval.parse_qrel(judged), pytrec_eval.parse_run(ranked))

    rows = []
    for what, ours, calls in (
        ("nine metrics of dicts", (qrels, run), [lambda: with_pytrec(qrels, run)]),
        ("nine metrics of TREC files", files, [from_files]),
        ("nine metrics of a table", frames, []),
    ):
        times = best_of(
            rounds,
            partial(ae.score_rankings, *ours, metrics=NAMES),
            partial(_with_ir_measures, peer, measures, ours, files),
            *calls,
        )
        # The bars hold for files too, although reading takes most of their time: a user waits for both.
        peers = {"ir_measures": (times[1], 1.3)}
        peers |= {"pytrec_eval": (times[2], 0.7)} if calls else {}
        rows.append((what, times[0], peers))
    return rows


def _with_ir_measures(peer: Any, measures: list[Any], source: Any, files: Any) -> object:
    """Compute the metrics from what ir_measures takes: dicts, frames, or the results of its own readers."""
    if source is files:
        source = peer.read_trec_qrels(str(files[0])), peer.read_trec_run(str(files[1]))
    return peer.calc_aggregate(measures, *source)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    try:
        peer = import_module("ir_measures")
        import_module("pytrec_eval")
    except ImportError as error:
        print(f"{error.name} is not installed")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.run"
        written_run(path, args.lines)
        rows = [reading(peer, path, args.rounds), whole_command(path, args.rounds)]
        rows += rankings(peer, Path(folder), args.rounds)
    held = True
    print("| what | ours, CPU s | peer | CPU s | times ours | bar |")
    print("|---|---:|---|---:|---:|---|")
    for what, ours, peers in rows:
        for name, (theirs, bar) in peers.items():
            ratio = theirs / ours
            held = held and ratio >= bar
            verdict = f"≥ {bar:g}× {'holds' if ratio >= bar else 'MISSED'}" if bar else "-"
            print(f"| {what} | {ours:.3f} | {name} | {theirs:.3f} | {ratio:.2f}× | {verdict} |")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
