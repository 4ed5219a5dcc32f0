"""An endpoint that misbehaves for some samples for ever. They fail on record, the others are scored.

Each push has the faults at a quarter of the samples, and some at none and at all of them. AUEPORA_FAULTS=all
(`make soak`) has every fault at 0, 25 and 100%, with retries where calls hang too, on both kinds of endpoint.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.systems.resources import attempts_of
from auepora_eval.core.types import EvaluationRun
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import ChatServer, chat_server, untrusted_certificate

FULL = os.environ.get("AUEPORA_FAULTS") == "all"
CONCURRENCY = 8
PATIENT = 20.0  # where nothing hangs: a busy machine must not be taken for a slow server


@dataclass(frozen=True)
class Fault:
    """What the server does, what it is called in the records, and whether it is tried again."""

    mode: str
    kind: str
    again: bool = True
    longest_wait: float = 0.5  # seconds; the server may ask for more
    least_seconds: float = 0.0  # where a pause that was asked for is kept to

    @property
    def hangs(self) -> bool:
        return self.kind == "timeout"

    @property
    def size(self) -> int:
        return 40 if FULL or not self.hangs else 8

    @property
    def retries(self) -> int:
        return 1 if FULL or not self.hangs else 0

    @property
    def timeout(self) -> float:
        return 3.0 if self.hangs else PATIENT

    @property
    def attempts(self) -> int:
        return 1 + self.retries if self.again else 1


FAULTS = [
    Fault("429", "rate_limited", longest_wait=5, least_seconds=1),
    Fault("429 bare", "rate_limited"),
    Fault("429 date", "rate_limited", longest_wait=5, least_seconds=1),
    Fault("429 huge", "rate_limited"),
    Fault("429 quota", "rate_limited", again=False),
    Fault("500", "http_5xx"),
    Fault("502", "http_5xx"),
    Fault("garbage", "bad_output"),
    Fault("cut JSON", "bad_output"),
    Fault("wrong shape", "bad_output"),
    Fault("100 MB", "too_large", again=False),
    Fault("too large", "too_large", again=False),
    Fault("drip", "timeout"),
    Fault("slow", "timeout"),
    Fault("slow head", "timeout"),
    Fault("half closed", "connection"),
    Fault("reset", "connection"),
    Fault("closed", "connection"),
    Fault("hung", "timeout"),
    Fault("untrusted", "tls", again=False),
    Fault("not TLS", "tls", again=False),
    Fault("redirect", "redirect", again=False),
    Fault("404", "http_4xx", again=False),
    Fault("no text", "refused", again=False),
]
CHAT_ONLY = ("no text",)  # a refusal is a part of that protocol
BY_NAME = {fault.mode: fault for fault in FAULTS}
SHORT = [
    *((fault, 25, "openai") for fault in FAULTS if fault.mode != "slow"),
    *((BY_NAME[mode], 25, "http") for mode in ("429 bare", "wrong shape", "reset")),
    *((BY_NAME[mode], share, "openai") for mode in ("500", "hung") for share in (0, 100)),
]
ALL = [
    (fault, share, protocol)
    for protocol in ("openai", "http")
    for fault in FAULTS
    for share in (0, 25, 100)
    if protocol == "openai" or fault.mode not in CHAT_ONLY
]


def number_in(body: dict[str, Any]) -> int:
    said = body["query"] if "query" in body else json.dumps(body["messages"])
    return int(said.partition("query number ")[2].partition("\\")[0].partition('"')[0])


def is_bad(number: int, share: int) -> bool:
    return share == 100 or (share == 25 and number % 4 == 0)


def dataset_file(folder: Path, size: int) -> Path:
    lines = [
        {"sample_id": f"s{n}", "query": f"query number {n}", "reference_answer": {"text": "right"}}
        for n in range(size)
    ]
    path = folder / "d.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@contextmanager
def faulty_server(protocol: str, mode_of: Any, **fields: Any) -> Iterator[ChatServer]:
    bare = protocol == "http"

    def says(body: dict[str, Any]) -> Any:
        return {"answer": "right"} if bare else "right"

    with chat_server(says=says, bare=bare, mode_of=mode_of, retry_after="1", **fields) as server:
        yield server


def name_of(protocol: str, url: str) -> str:
    return f"openai:{url}#m" if protocol == "openai" else f"http:{url}/ask"


TWO_SERVERS = """
from auepora_eval.core.systems.named import load_system

good, bad = (load_system(name, {{"timeout": 20.0}}) for name in ({good!r}, {bad!r}))


class Mixed:
    def run(self, sample, *, top_k=5):
        number = int(sample.query.rpartition(" ")[2])
        is_bad = {share} == 100 or ({share} == 25 and number % 4 == 0)
        return (bad if is_bad else good).run(sample, top_k=top_k)
"""


@contextmanager
def faulty_system(
    fault: Fault, share: int, protocol: str, folder: Path
) -> Iterator[tuple[str, list[ChatServer]]]:
    """The name of a system that has this fault at that share of the samples, and the servers behind it."""
    if fault.kind != "tls":

        def mode_of(body: dict[str, Any]) -> str:
            return fault.mode if is_bad(number_in(body), share) else "ok"

        with faulty_server(protocol, mode_of) as server:
            yield name_of(protocol, server.url), [server]
        return
    # Encryption is a matter of the connection, not of the request: there are two servers.
    certificate = None
    if fault.mode == "untrusted" and (certificate := untrusted_certificate(folder)) is None:
        pytest.skip("there is no openssl to make a certificate with")
    with (
        faulty_server(protocol, lambda body: "ok") as good,
        faulty_server(protocol, lambda body: "ok", certificate=certificate) as bad,
    ):
        wrong = bad.url.replace("http:", "https:")
        names = {"good": name_of(protocol, good.url), "bad": name_of(protocol, wrong)}
        (folder / "mixed.py").write_text(TWO_SERVERS.format(**names, share=share), encoding="utf-8")
        yield f"{folder / 'mixed.py'}:Mixed", [good, bad]


# A hook cannot be taken away again: it looks only while there is a list.
_connected: list[Any] | None = None


def _note(event: str, arguments: Any) -> None:
    if _connected is not None and event == "socket.connect":
        _connected.append(arguments[1])


@pytest.fixture(scope="module", autouse=True)
def _watched() -> Iterator[None]:
    global _connected  # noqa: PLW0603
    sys.addaudithook(_note)
    _connected = []
    yield
    _connected = None


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    run: EvaluationRun
    seconds: float


def outcome_of(
    folder: Path, system: str, fault: Fault, capsys: pytest.CaptureFixture[str], *flags: str
) -> Outcome:
    """`auepora run` from beginning to end, and what is stored of it."""
    words = ["run", "--dataset", str(dataset_file(folder, fault.size)), "--system", system, "--id", "r"]
    words += ["--metrics", "exact_match", "--concurrency", str(CONCURRENCY), "--out", str(folder / "runs")]
    words += ["--timeout", str(fault.timeout)]
    words += plan(folder, retries=fault.retries, longest_wait=fault.longest_wait, keep_going=True)
    start = time.perf_counter()
    code = main([*words, *flags])
    seconds = time.perf_counter() - start
    said = capsys.readouterr()
    return Outcome(code, said.out, said.err, EvaluationResultsStorage(folder / "runs").load_run("r"), seconds)


@pytest.mark.parametrize(
    ("fault", "share", "protocol"),
    ALL if FULL else SHORT,
    ids=lambda value: value.mode if isinstance(value, Fault) else str(value),
)
def test_bad_samples_fail_and_the_others_are_scored(
    fault: Fault, share: int, protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _connected is not None
    _connected.clear()
    with faulty_system(fault, share, protocol, tmp_path) as (system, servers):
        ended = outcome_of(tmp_path, system, fault, capsys)
    run = ended.run
    expected = [f"s{n}" for n in range(fault.size) if is_bad(n, share)]
    bad = [output for output in run.outputs if output.error is not None]
    failed = [s.sample_id for s, o in zip(run.samples, run.outputs, strict=True) if o.error is not None]
    kinds = Counter(record["kind"] for output in bad for record in output.extra["attempts"])
    assert failed == expected
    assert kinds == Counter({fault.kind: len(bad) * fault.attempts} if bad else {})
    assert all(len(output.extra["attempts"]) == fault.attempts for output in bad)
    if fault.kind != "tls":  # no request comes so far there
        # What the server was asked is what is on record: no call is made that nobody counts.
        assert sum(len(server.requests) for server in servers) == sum(attempts_of(o) for o in run.outputs)
    _check_figures(ended, fault.size, len(bad))
    bound = fault.size * fault.attempts * min(fault.timeout, 3.0) / CONCURRENCY + 10
    assert (fault.least_seconds if bad else 0) <= ended.seconds < bound
    # Nobody was asked but the servers that were named: no redirect was followed, no other address tried.
    assert {tuple(address) for address in _connected} <= {server.address for server in servers}


def _check_figures(ended: Outcome, size: int, failed: int) -> None:
    """The printed mean shows what it stands on, and the exit code says whether that is enough."""
    result = ended.run.result("exact_match")
    assert (result.details["num_samples"], result.details["num_failed"]) == (size - failed, failed)
    assert f"{size - failed} of {size} samples answered" in ended.out
    assert ended.code == (3 if failed else 0)
    if failed == size:
        assert math.isnan(result.value)
        assert "every call failed; nothing was measured" in ended.err
        return
    assert result.value == 1.0
    if failed:
        assert result.details["bounds_if_failed"] == [1 - failed / size, 1.0]
        assert f"{1 - failed / size:.4f} to 1.0000" in ended.out
        assert "× CallError: http" in ended.out
        assert f"coverage {1 - failed / size:.1%}, less than the 99.0% asked for" in ended.err


@pytest.mark.parametrize(("minimum", "code"), [("0.75", 0), ("0.76", 3), ("0", 0), ("1", 3)])
def test_min_coverage_decides_the_exit_code(
    minimum: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with faulty_system(BY_NAME["404"], 25, "openai", tmp_path) as (system, _):
        ended = outcome_of(tmp_path, system, BY_NAME["404"], capsys, "--min-coverage", minimum)
    assert ended.code == code
    assert ("--min-coverage" in ended.err) is (code == 3)
