"""Compare text metrics with the reference tools: CPU time, equality of the scores, and memory.

    python benchmarks/text.py             # all workloads, a few minutes
    python benchmarks/text.py --only EM   # the workloads whose name contains this
    python benchmarks/text.py --quick     # a tenth of the pairs and best of 2, to check that it runs

Each workload runs the reference tool and ours in turn, five times, and takes the best CPU time of each. Ours
starts from samples and outputs as the library has them, with empty caches. The texts are random, from a
fixed seed: words of a Zipf-like vocabulary with English suffixes, so that stemming changes them.

The exit code is 0 if all bars hold, 1 if one is missed. Needs rouge-score and sacrebleu (the extra `test`).
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import re
import string
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from auepora_eval.core.scores import Batch
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text import porter

EXIT_OK, EXIT_MISSED = 0, 1
MOST_MEGABYTES = 200
TIMES_SETS = 10
SUFFIXES = (
    "",
    "",
    "",
    "s",
    "ed",
    "ing",
    "er",
    "ly",
    "ness",
    "ation",
    "ational",
    "ization",
    "iveness",
    "ies",
    "y",
)

Pairs = list[tuple[str, str]]  # answer, reference
Scores = list[list[float]]


class Workload(NamedTuple):
    """A reference tool and ours on the same pairs; `bar` is how many times faster ours must be."""

    name: str
    peer: str
    pairs: Pairs
    theirs: Callable[[Pairs], Scores]
    metrics: tuple[str, ...]
    bar: float
    margin: float
    corpus: bool = False  # one value for all pairs instead of one each


class Row(NamedTuple):
    """The result of a workload."""

    workload: Workload
    theirs: float
    ours: float
    difference: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def holds(self) -> bool:
        return self.ratio >= self.workload.bar and self.difference <= self.workload.margin


def vocabulary(size: int, rng: random.Random) -> list[str]:
    """Return English-looking words: syllables and a suffix."""
    syllables = [c + v for c in "bcdfghlmnprstvw" for v in ("a", "e", "i", "o", "u", "ou", "an", "er")]
    found: dict[str, None] = dict.fromkeys("the of and to a in is it that was an for".split())
    while len(found) < size:
        found["".join(rng.choices(syllables, k=rng.randint(1, 3))) + rng.choice(SUFFIXES)] = None
    return list(found)


def random_pairs(count: int, words: int, *, lines: int = 1, seed: int = 0) -> Pairs:
    """Pairs that share about six words of ten; each text of `words` words, punctuation and capitals."""
    rng = random.Random(seed)
    known = vocabulary(20_000, rng)
    weights = [1 / (rank + 1) for rank in range(len(known))]
    pool = rng.choices(known, weights, k=1_000_000)

    def written(tokens: Sequence[str]) -> str:
        size = -(-len(tokens) // lines)
        pieces = [" ".join(tokens[n : n + size]).capitalize() + "." for n in range(0, len(tokens), size)]
        return "\n".join(pieces).replace(" of ", ", of ", 2)

    pairs = []
    for _ in range(count):
        start = rng.randrange(len(pool) - words)
        gold = pool[start : start + words]
        given = [word if rng.random() < 0.6 else rng.choice(pool) for word in gold]
        pairs.append((written(given), written(gold)))
    return pairs


def rouge_score(kinds: tuple[str, ...]) -> Callable[[Pairs], Scores]:
    """rouge-score, F-measures with stemming."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(kinds), use_stemmer=True)

    def run(pairs: Pairs) -> Scores:
        found = [scorer.score(gold, answer) for answer, gold in pairs]
        return [[scores[kind].fmeasure for scores in found] for kind in kinds]

    return run


_REGEX_ARTICLES = r"\b(a|an|the)\b"


def squad_normalise(text: str) -> str:
    """Normalise a text as SQuAD's script does."""
    punctuation = set(string.punctuation)
    kept = "".join(character for character in text.lower() if character not in punctuation)
    return " ".join(re.compile(_REGEX_ARTICLES, re.UNICODE).sub(" ", kept).split())


def squad(pairs: Pairs) -> Scores:
    """Exact match and F1 as SQuAD's script computes them: each normalises both texts."""
    exact, f1 = [], []
    for answer, gold in pairs:
        exact.append(float(squad_normalise(answer) == squad_normalise(gold)))
        given, right = squad_normalise(answer).split(), squad_normalise(gold).split()
        shared = sum((Counter(given) & Counter(right)).values())
        if not given or not right:
            f1.append(float(given == right))
        elif not shared:
            f1.append(0.0)
        else:
            precision, recall = shared / len(given), shared / len(right)
            f1.append(2 * precision * recall / (precision + recall))
    return [exact, f1]


def sacrebleu_bleu(pairs: Pairs) -> Scores:
    """Return sacrebleu's corpus BLEU, with an empty cache of its tokenizer."""
    from sacrebleu.metrics import BLEU
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    Tokenizer13a.__call__.cache_clear()
    TokenizerRegexp.__call__.cache_clear()
    return [[BLEU().corpus_score([answer for answer, _ in pairs], [[gold for _, gold in pairs]]).score]]


def sacrebleu_chrf(word_order: int) -> Callable[[Pairs], Scores]:
    """sacrebleu's corpus chrF or chrF++."""
    from sacrebleu.metrics import CHRF

    def run(pairs: Pairs) -> Scores:
        answers, golds = [answer for answer, _ in pairs], [gold for _, gold in pairs]
        return [[CHRF(word_order=word_order).corpus_score(answers, [golds]).score]]

    return run


def ours(workload: Workload) -> Callable[[Pairs], Scores]:
    """Run our metrics on a batch of samples and outputs. They share its cached values."""
    samples = [
        EvaluationSample(str(n), "a query", reference_answer=Response(gold))
        for n, (_, gold) in enumerate(workload.pairs)
    ]
    outputs = [SystemOutputs([], Response(answer)) for answer, _ in workload.pairs]
    metrics = [parse_metric(name) for name in workload.metrics]

    def run(_: Pairs) -> Scores:
        porter.stem.cache_clear()
        batch = Batch(samples, outputs)
        scores = [metric.score_batch(batch) for metric in metrics]
        if workload.corpus:
            return [[float(metric.aggregate(s.rows()))] for metric, s in zip(metrics, scores, strict=True)]
        return [found.values.tolist() for found in scores]

    return run


def measure(workload: Workload, repeats: int) -> Row:
    """Run both in turn and keep the best CPU time of each."""
    contestants = [workload.theirs, ours(workload)]
    best = [float("inf")] * 2
    found: list[Scores] = [[], []]
    for _ in range(repeats):
        for place, run in enumerate(contestants):
            start = time.process_time()
            found[place] = run(workload.pairs)
            best[place] = min(best[place], time.process_time() - start)
    difference = max(
        abs(a - b)
        for theirs_of, ours_of in zip(*found, strict=True)
        for a, b in zip(theirs_of, ours_of, strict=True)
    )
    return Row(workload, best[0], best[1], difference)


def workloads(scale: int) -> list[Workload]:
    """All workloads, with 1/scale of their pairs."""
    short = random_pairs(10_000 // scale, 50)
    long = random_pairs(2_000 // scale, 300)
    multi_line = random_pairs(10_000 // scale, 50, lines=4)
    all_rouges = ("rouge1", "rouge2", "rougeL", "rougeLsum")
    our_rouges = ("rouge1", "rouge2", "rougeL_answer", "rougeLsum")
    kinds = f"{len(short):,} × 50 words"
    rouge, sacre = (f"{name} {version(name)}" for name in ("rouge-score", "sacrebleu"))
    one = rouge_score(("rougeL",))
    return [
        Workload(f"ROUGE-L, {kinds}", rouge, short, one, ("rougeL_answer",), 5, 0),
        Workload(f"ROUGE-L, {len(long):,} × 300 words", rouge, long, one, ("rougeL_answer",), 5, 0),
        Workload(f"ROUGE-1/2/L/Lsum, {kinds}", rouge, short, rouge_score(all_rouges), our_rouges, 5, 0),
        Workload(
            f"ROUGE-1/2/L/Lsum, {kinds}, 4 lines",
            rouge,
            multi_line,
            rouge_score(all_rouges),
            our_rouges,
            5,
            0,
        ),
        Workload(
            f"EM and token F1, {kinds}", "SQuAD's logic", short, squad, ("exact_match", "token_f1"), 0.5, 0
        ),
        Workload(f"corpus BLEU, {kinds}", sacre, short, sacrebleu_bleu, ("bleu",), 0.5, 1e-9, corpus=True),
        Workload(f"corpus chrF, {kinds}", sacre, short, sacrebleu_chrf(0), ("chrf",), 0.7, 1e-9, corpus=True),
        Workload(
            f"corpus chrF++, {kinds}", sacre, short, sacrebleu_chrf(2), ("chrfpp",), 0.7, 1e-9, corpus=True
        ),
    ]


def peak_megabytes(metric: str, scale: int) -> float:
    """Return the peak memory of a fresh process that creates the texts and scores them."""
    command = [sys.executable, __file__, "--only-ours", metric, "--scale", str(scale)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def only_ours(metric: str, scale: int) -> None:
    """Run one of our metrics and print this process's peak, for peak_megabytes."""
    nothing: Any = None
    pairs = random_pairs(10_000 // scale, 50)
    ours(Workload("", "", pairs, nothing, (metric,), 0, 0, corpus=True))(pairs)
    # Not getrusage: on Linux its peak includes that of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    print(int(peak[1]) / 1e3 if peak else "nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs, best of 2")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    parser.add_argument("--only-ours", metavar="METRIC", help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    scale, repeats = (10, 2) if args.quick else (args.scale, 5)
    if args.only_ours:
        only_ours(args.only_ours, scale)
        return EXIT_OK
    print("| workload | reference | its CPU s | ours, CPU s | times faster | bar | max. difference | |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    holds = True
    for workload in workloads(scale):
        if args.only not in workload.name:
            continue
        row = measure(workload, repeats)
        holds &= row.holds
        print(
            f"| {workload.name} | {workload.peer} | {row.theirs:.2f} | {row.ours:.3f} | {row.ratio:.1f} | "
            f"{workload.bar:g} | {row.difference:.1g} | {'holds' if row.holds else 'MISSED'} |",
            flush=True,
        )
    print(f"\nPython {platform.python_version()}, {os.cpu_count()} cores; best of {repeats}, in turn.")
    for metric in ("chrf", "chrfpp", "bleu", "rougeLsum"):
        peak = peak_megabytes(metric, scale)
        holds &= peak < MOST_MEGABYTES
        verdict = "holds" if peak < MOST_MEGABYTES else "MISSED"
        print(
            f"- {verdict}: {metric}, peak of a process with its texts: {peak:.0f} MB (below {MOST_MEGABYTES})"
        )
    for metric in ("rougeL_answer", "rougeLsum"):
        seconds = seconds_of_a_megabyte(metric)
        holds &= seconds < 1
        verdict = "holds" if seconds < 1 else "MISSED"
        print(f"- {verdict}: {metric} of texts of 1 MB, refused after {seconds:.2f} s (below 1)")
    for metric, shingle in (("lexical_diversity", 1), ("near_duplicate_rate", 3)):
        ratio, seconds = times_faster_than_sets(f"{metric}@200", shingle, repeats)
        holds &= ratio >= TIMES_SETS
        verdict = "holds" if ratio >= TIMES_SETS else "MISSED"
        print(
            f"- {verdict}: {metric} of 200 documents with 100 words, {seconds:.3f} s, {ratio:.1f} times as "
            f"fast as sets that are compared pair by pair (at least {TIMES_SETS})"
        )
    return EXIT_OK if holds else EXIT_MISSED


def times_faster_than_sets(metric: str, shingle: int, repeats: int) -> tuple[float, float]:
    """Return how many times faster a metric of pairs of documents is than plain sets, and its CPU seconds."""
    rng = random.Random(0)
    known = vocabulary(5_000, rng)
    texts = [" ".join(rng.choices(known, k=100)) for _ in range(200)]
    hits = [RetrievedDocument(Document(f"d{n}", text), 1 / n, n) for n, text in enumerate(texts, start=1)]
    sample, output = EvaluationSample("1", "a query"), SystemOutputs(hits, Response(""))

    def by_sets() -> None:
        tokens = [text.split() for text in texts]
        sets = [{tuple(each[n : n + shingle]) for n in range(len(each) - shingle + 1)} for each in tokens]
        for one, other in combinations(sets, 2):
            len(one & other) / len(one | other)

    best = [math.inf, math.inf]
    for _ in range(repeats):
        for place, work in enumerate((lambda: parse_metric(metric).compute([sample], [output]), by_sets)):
            start = time.process_time()
            work()
            best[place] = min(best[place], time.process_time() - start)
    return best[1] / best[0], best[0]


def seconds_of_a_megabyte(metric: str) -> float:
    """Return the CPU seconds until texts of 1 MB in lines are found to be too long to compare."""
    rng = random.Random(0)
    known = vocabulary(20_000, rng)
    lines = ("\n".join(" ".join(rng.choices(known, k=12)) for _ in range(13_000)) for _ in range(2))
    texts = [text[:1_000_000] for text in lines]
    sample = EvaluationSample("1", "a query", reference_answer=texts[0])
    start = time.process_time()
    result = parse_metric(metric).compute([sample], [SystemOutputs([], Response(texts[1]))])
    if result.scores[0].value is not None:
        raise SystemExit(f"{metric} compared texts of a megabyte")
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
