"""Measure `auepora view` at 100,000 samples: start, pages, search, comparison, memory, sizes, report.

    python benchmarks/view.py                    # 100,000 samples
    python benchmarks/view.py --samples 5000 --pages 50

Two runs are made in a temporary folder (about 1.2 GB), with texts of the demo. Times are CPU times of the
process that serves. The exit code is 0 if every bar holds, 1 if one is missed. The bars are for the default
size.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import psutil
from starlette.types import ASGIApp

from auepora_eval.cli.main import main as command
from auepora_eval.cli.main import spare_the_start
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.demo.world import demo_corpus, demo_dataset
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.pages.app import view_application
from auepora_eval.pages.one_file import one_file
from auepora_eval.pages.security import Access
from auepora_eval.pages.server import ASSETS
from auepora_eval.pages.workspace import Workspace
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.writer import drafted

BARS = {
    "start to first page, CPU s": 1.0,
    "list, p95 ms": 10.0,
    "filter, p95 ms": 10.0,
    "sample, p95 ms": 10.0,
    "search, p95 ms": 100.0,
    **{f"{kind}, p95 ms": 10.0 for kind in ("run", "runs", "trend", "gate")},
    **{f"{kind}, p95 ms": 10.0 for kind in ("compared list", "compared sample")},
    "compare from the cached pair, p95 ms": 10.0,
    "largest page, KB": 60.0,
    "memory of the server, MB": 120.0,
    "JS and CSS, KB": 120.0,
    "packages of the extra": 10.0,
    "size of the extra, MB": 4.0,
    "static report of the demo, KB": 1_500.0,
}
METRICS = ("recall@5", "ndcg@10", "mrr", "token_f1", "contains_answer", "grounding_overlap", "rougeL_answer")
CHUNK = 10_000


def store(storage: EvaluationResultsStorage, name: str, samples: int, seed: int) -> None:
    """Store a run with the questions of the demo, five documents each, and made-up scores."""
    questions, corpus = list(demo_dataset()), demo_corpus()
    random = np.random.default_rng(seed)
    hard = np.random.default_rng(99).random(samples)
    pieces: dict[str, list[Scores]] = {metric: [] for metric in METRICS}
    with drafted(storage.state(name)) as writer:
        for start in range(0, samples, CHUNK):
            numbers = range(start, min(start + CHUNK, samples))
            asked = [_sample(questions[n % len(questions)], n) for n in numbers]
            answered = [_output(questions[n % len(questions)], corpus, random, n) for n in numbers]
            batch = Batch(asked, answered)
            scores = {}
            for metric in METRICS:
                values = np.clip(
                    hard[start : start + CHUNK] + random.normal(0.05 * seed, 0.2, len(asked)), 0, 1
                )
                if metric == "contains_answer":
                    values = np.round(values)
                scores[metric] = Scores(batch.sample_ids, values.round(3))
                pieces[metric].append(scores[metric])
            writer.add(batch, scores)
        results = [parse_metric(metric).summarise(Scores.joined(column)) for metric, column in pieces.items()]
        writer.finish(EvaluationRun(name, name, "made up", "f" * 64, results, [], []))


def _sample(question: EvaluationSample, n: int) -> EvaluationSample:
    gold = (question.relevant_docs or [])[:1]
    return EvaluationSample(
        f"q{n:06}", f"{question.query} ({n})", gold, None, question.reference_answer, question.labels
    )


def _output(
    question: EvaluationSample, corpus: Sequence[Document], random: np.random.Generator, n: int
) -> SystemOutputs:
    documents = [corpus[place] for place in random.integers(len(corpus), size=5)]
    hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(documents, start=1)]
    words = documents[0].text.split()
    at = int(random.integers(max(1, len(words) - 25)))
    return SystemOutputs(
        hits, Response(" ".join(words[at : at + 25])), {"end_to_end": float(random.random())}
    )


# Requests, without a network: the time is that of the application alone.


class Requests:
    """Sends requests to the application, and keeps the CPU milliseconds of each."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._loop = asyncio.new_event_loop()
        self.largest = 0  # bytes of a page
        # The first call starts the threads that pages are made in.
        self.get("/style.css")

    def get(self, address: str) -> float:
        """Return the CPU milliseconds of one answer; SystemExit if it is not a page."""
        path, _, query = address.partition("?")
        cookie = f"{self._access.cookie}={self._access.session}"
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", self._access.hosts[0].encode()), (b"cookie", cookie.encode())],
            "server": (self._access.hosts[0].split(":")[0], self._access.port),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        clock = time.process_time()
        self._loop.run_until_complete(self._app(scope, receive, send))
        milliseconds = (time.process_time() - clock) * 1000
        if sent[0]["status"] != 200:
            raise SystemExit(f"{address}: {sent[0]['status']} {sent[1]['body'][:200]!r}")
        if b"http-equiv" in sent[1]["body"]:
            time.sleep(0.2)
            return self.get(address)  # it is being made in the background
        self.largest = max(self.largest, len(sent[1]["body"]))
        return milliseconds

    def p95(self, addresses: Sequence[str]) -> float:
        """Return the 95th percentile over these addresses, after each kind was asked once."""
        return float(np.quantile([self.get(address) for address in addresses], 0.95))


def addresses(samples: int, pages: int) -> Mapping[str, list[str]]:
    """Return what is asked of each kind, with other metrics, slices, words and samples each time."""
    random = np.random.default_rng(5)
    metrics = [METRICS[n % len(METRICS)] for n in range(pages)]
    places = random.integers(samples, size=pages).tolist()
    words = [
        "ferry",
        "station keeper",
        "water charge crowns",
        "the",
        "turbine blade",
        "lamp light",
        "what is the",
    ]
    slices = ["difficulty:hard", "scenario:noise", "query_type:numeric", "answerable:False"]
    base, pair = "/run/base", "run=base&run=new"
    return {
        "list": [f"{base}/samples?sort={quote(m)}&after={p}" for m, p in zip(metrics, places, strict=True)],
        "filter": [
            f"{base}/samples?sort={quote(m)}&slice={quote(slices[n % 4])}&low=0.2&high=0.{5 + n % 5}&gold=1"
            for n, m in enumerate(metrics)
        ],
        "sample": [f"{base}/sample?id=q{p:06}&sort={quote(m)}" for m, p in zip(metrics, places, strict=True)],
        "search": [f"{base}/samples?words={quote(words[n % len(words)])}" for n in range(pages)],
        "compare from the cached pair": [f"/compare?{pair}&metric={quote(m)}" for m in metrics],
        "compared list": [
            f"/run/new/samples?baseline=base&sort={quote(m)}&outcome={'lost' if n % 2 else 'won'}"
            for n, m in enumerate(metrics)
        ],
        "run": [f"{base}?slices={quote(m)}" for m in metrics],
        "runs": ["/"] * pages,
        "trend": [f"/trend?metric={quote(m)}" for m in metrics],
        "gate": ["/gate?run=new&baseline=base"] * pages,
        "compared sample": [
            f"/run/new/sample?baseline=base&id=q{p:06}&sort={quote(m)}"
            for m, p in zip(metrics, places, strict=True)
        ],
    }


def measured_pages(folder: Path, samples: int, pages: int) -> Iterator[tuple[str, float]]:
    spare_the_start()  # pages are made in this process: as in that of `auepora view`
    access = Access(8000)
    workspace = Workspace(folder)
    requests = Requests(view_application(workspace, access), access)
    wait_for_pair(workspace, access)
    for kind, asked in addresses(samples, pages).items():
        for address in asked[: len(METRICS)]:  # once for each metric: its column is read and sorted
            requests.get(address)
        yield f"{kind}, p95 ms", requests.p95(asked)
    yield "largest page, KB", requests.largest / 1e3


# A real server, as a user starts it.


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    words = [sys.executable, "-m", "auepora_eval", "view", "--no-open", "--out", str(folder)]
    server = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    for line in server.stdout or ():
        if match := re.search(r"http://\S+", line):
            return server, match[0]
    raise SystemExit("the server did not start")


def fetched(address: str, path: str, cookie: str) -> tuple[int, str, bytes]:
    host = address.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", path, headers={"cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.getheader("set-cookie", "").partition(";")[0], content


def measured_server(folder: Path, samples: int) -> Iterator[tuple[str, float]]:
    server, address = started(folder)
    try:
        path = "/" + address.partition("//")[2].partition("/")[2]
        cookie = fetched(address, path, "")[1]
        status, _, content = fetched(address, "/run/base", cookie)
        if status != 200 or b"ndcg@10" not in content:
            raise SystemExit(f"the first page is not the run: {status}")
        process = psutil.Process(server.pid)
        times = process.cpu_times()
        yield "start to first page, CPU s", times.user + times.system
        for asked in addresses(samples, 20).values():
            for each in asked:
                # A page says that it loads itself again while a comparison is being made.
                while b"http-equiv" in fetched(address, each, cookie)[2]:
                    time.sleep(0.2)
        yield "memory of the server, MB", process.memory_info().rss / 1e6
    finally:
        server.terminate()
        server.wait(20)


def measured_report(folder: Path) -> Iterator[tuple[str, float]]:
    """Measure the HTML report of 160 samples x 2 runs."""
    with contextlib.redirect_stdout(io.StringIO()):
        command(["demo", "--out", str(folder)])
    names = ["demo-bm25", "demo-hybrid"]
    comparison = compare_runs(*(EvaluationResultsStorage(folder).load_run(name) for name in names))
    workspace = Workspace.named(folder, names)
    start = time.process_time()
    page = one_file(workspace, names, comparison=comparison)
    yield "static report of the demo, CPU s", time.process_time() - start
    yield "static report of the demo, KB", len(page.encode()) / 1e3


def measured_sizes() -> Iterator[tuple[str, float]]:
    package = Path(__file__).parents[1] / "auepora_eval"
    texts = [package / path for path, kind in ASSETS.values() if kind != "image/svg+xml"]
    yield "JS and CSS, KB", sum(path.stat().st_size for path in texts) / 1e3
    names = required({"starlette", "uvicorn"}) - required({"auepora-eval"})
    files = [file for name in names for file in distribution(name).files or ()]
    found = [Path(str(file.locate())) for file in files if "__pycache__" not in str(file)]
    yield "packages of the extra", len(names)
    yield "size of the extra, MB", sum(path.stat().st_size for path in found if path.is_file()) / 1e6


def required(names: set[str]) -> set[str]:
    """Return these packages and all that they need, without extras."""
    closed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in closed:
            continue
        closed.add(name)
        for text in distribution(name).requires or ():
            needed, _, marker = text.partition(";")
            if "extra" not in marker and _applies(marker):
                waiting.append(re.match(r"[A-Za-z0-9._-]+", needed)[0])  # type: ignore[index]
    return closed


def _applies(marker: str) -> bool:
    from packaging.markers import Marker

    return not marker.strip() or Marker(marker.strip()).evaluate()


def measured_pair(folder: Path) -> Iterator[tuple[str, float]]:
    workspace = Workspace(folder)
    access = Access(8000)
    before = sum(os.times()[:4])  # with the process that compares
    wait_for_pair(workspace, access)
    yield "comparison of the pair, once, CPU s", sum(os.times()[:4]) - before


def wait_for_pair(workspace: Workspace, access: Access) -> None:
    from auepora_eval.pages.comparisons import pair_of
    from auepora_eval.pages.workspace import NotReadyError

    while True:
        try:
            pair_of(workspace, "base", "new")
            return
        except NotReadyError:
            time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=100_000, metavar="N")
    parser.add_argument("--pages", type=int, default=200, metavar="N", help="requests of each kind")
    args = parser.parse_args()
    missed = False
    print(f"{args.samples:,} samples, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print("| | measured | bar | |\n|---|--:|--:|---|", flush=True)

    def say(what: str, value: float) -> None:
        nonlocal missed
        bar = BARS.get(what)
        holds = bar is None or value < bar or (what.startswith("packages") and value <= bar)
        missed |= not holds
        verdict = "" if bar is None else "holds" if holds else "MISSED"
        print(f"| {what} | {value:.3g} | {'' if bar is None else f'{bar:g}'} | {verdict} |", flush=True)

    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = str(Path(place) / "cache")
        folder = Path(place) / "runs"
        storage = EvaluationResultsStorage(folder)
        store(storage, "base", args.samples, 1)
        store(storage, "new", args.samples, 2)
        for part in (
            measured_pair(folder),
            measured_server(folder, args.samples),
            measured_pages(folder, args.samples, args.pages),
            measured_sizes(),
            measured_report(folder),
        ):
            for what, value in part:
                say(what, value)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
