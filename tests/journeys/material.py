"""What the scenarios work on: three systems with seeded mistakes, and their runs, which are made once."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.journeys.recording import RESULTS, call, empty_folder

METRICS = "recall@5,mrr,ndcg@5,contains_answer,token_f1,bleu,over_refusal_rate,mean_latency,p95_latency"
DAYS = {"steady": 1, "shaky": 2, "other": 3, "sharp": 4, "few": 5, "few2": 6, "few3": 7}

RAG = """
import hashlib
from collections import Counter

CORPUS, COUNTS = {}, Counter()

def _load():
    if not CORPUS:
        from auepora_eval.demo.world import demo_corpus
        CORPUS.update({doc.doc_id: (doc.text, set(doc.text.lower().split())) for doc in demo_corpus()})
        COUNTS.update(word for _, known in CORPUS.values() for word in known)
    return CORPUS

def _number(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

class Rag:
    '''Word overlap with seeded mistakes: some calls fail, some answers are empty. Says how long it took.

    With rare=True it is the better system: rare words count more, and the best sentence is quoted.
    '''

    def __init__(self, salt="a", fails=0, rare=False):
        self.salt, self.fails, self.rare = salt, fails, rare

    def weight(self, words, known):
        return sum(10**6 // COUNTS[word] for word in words & known) if self.rare else len(words & known)

    def place(self, words, query, name, known):
        noise = 0 if self.rare else _number(self.salt + name + query) % 3
        return noise - self.weight(words, known), name

    def answer(self, words, text, luck):
        sentences = text.split(". ")
        if self.rare:
            return max(sentences, key=lambda one: self.weight(words, set(one.lower().split())))
        return ". ".join(sentences[: 1 + luck % 3])

    def __call__(self, query, top_k=5):
        luck = _number(self.salt + query) % 100
        if luck < self.fails:
            raise RuntimeError("no answer")
        words = set(query.lower().strip("?").split())
        places = {name: self.place(words, query, name, known) for name, (_, known) in _load().items()}
        found = [{"doc_id": name, "text": CORPUS[name][0]} for name in sorted(places, key=places.get)[:top_k]]
        answer = "" if luck > 95 else self.answer(words, found[0]["text"], luck)
        timings = {"retrieval": 0.01 * (luck + 1), "end_to_end": 0.02 * (luck + 1)}
        return {"answer": answer, "retrieved": found, "timings": timings}

steady = Rag()
shaky = Rag("b", 7)
other = Rag("c")
sharp = Rag("a", rare=True)
"""


def with_systems() -> None:
    """Write rag.py."""
    Path("rag.py").write_text(RAG, encoding="utf-8")


def with_runs(*names: str) -> None:
    """Write rag.py, few.jsonl and these stored runs.

    steady, shaky (some calls fail), other and sharp (the best) answer the demo; few, few2 and few3 are
    steady, shaky and sharp on few.jsonl.
    """
    source = Path(_prepared().name)
    for name in ("rag.py", "few.jsonl"):
        shutil.copy2(source / name, name)
    RESULTS.mkdir(parents=True)
    for name in names:
        for path in (source / RESULTS).glob(f"{name}.*"):
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, RESULTS / path.name)


@cache
def _prepared() -> tempfile.TemporaryDirectory[str]:
    """Return the folder that the runs were made in; it is removed when the process ends."""
    kept = tempfile.TemporaryDirectory(prefix="recorded-")
    with empty_folder() as here:
        with_systems()
        write_few("few.jsonl")
        for name in ("steady", "shaky", "other", "sharp"):
            run(name, f"--system rag.py:{name} --dataset demo")
        for name, system in (("few", "steady"), ("few2", "shaky"), ("few3", "sharp")):
            run(name, f"--system rag.py:{system} --dataset few.jsonl")
        shutil.copytree(here, kept.name, dirs_exist_ok=True)
    return kept


def run(name: str, flags: str, metrics: str = METRICS) -> None:
    """Run a system, and let it seem that it was on the day of its name."""
    call(f"run {flags} --id {name} --metrics {metrics} --min-coverage 0.5")
    date(name, DAYS.get(name, 9))


def date(name: str, day: int) -> None:
    """Let it seem that a run was on a day of January 2001, and took a second for each day until then."""
    path = RESULTS / f"{name}.results.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["timestamp"] = f"2001-01-{day:02}T02:00:00Z"
    document["summary"]["total_evaluation_time_seconds"] = float(day)
    path.write_text(json.dumps(document), encoding="utf-8")


def write_few(path: str) -> None:
    """Write twelve samples of the demo that have all its scenarios."""
    call("dataset convert demo all.jsonl")
    lines = Path("all.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("all.jsonl").unlink()
    Path(path).write_text("".join(lines[::14]), encoding="utf-8")
