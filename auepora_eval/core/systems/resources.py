"""The resources of a run: memory and CPU of the process, tokens and requests of an API, and their cost."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.usage import CALLS, COUNTS, Usage, reported_count
from ..types import SystemOutputs

if TYPE_CHECKING:
    import psutil

    from ...calls.asking import AttemptRecord

_LOOKS_BETWEEN_CHILDREN = 10  # finding them walks through all processes of the machine
_SHORTEST_CPU_SECONDS = 0.05  # systems count CPU time in ticks of 10 ms: fewer than five are too coarse
_COUNTED = frozenset(COUNTS)
PRICES = ("price_input", "price_output")
ATTEMPTS, CACHED = "attempts", "cached"  # in `extra` of an output: what a run records of its call


class ResourceMonitor:
    """Measures this process and its children while a block runs, five times per second.

    Memory is the resident set in MB; at 100 percent CPU one core is busy. The figures are of the whole
    process: other work in it counts too, the work of a server elsewhere does not.

    >>> with ResourceMonitor() as monitor:
    ...     answer = sum(range(1000))
    >>> sorted(monitor.usage())
    ['cpu_percent', 'memory_mb']
    """

    def __init__(self, *, interval: float = 0.2) -> None:
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="auepora-resources", daemon=True)
        self._memory: list[float] = []
        self._cpu: list[float] = []
        self._processes: list[psutil.Process] = []
        self._looks = 0
        self._cpu_before = (0.0, 0.0)  # the time of the last look, and the CPU seconds

    def __enter__(self) -> ResourceMonitor:
        self._cpu_before = perf_counter(), process_time()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def usage(self) -> dict[str, dict[str, float | None]]:
        """Return {"memory_mb": {mean, peak, std}, "cpu_percent": {...}}; None without a measurement."""
        return {"memory_mb": _summary(self._memory), "cpu_percent": _summary(self._cpu)}

    def _watch(self) -> None:
        self._look()  # here: to import psutil and to find the children takes longer than the first call may
        while not self._stop.wait(self._interval):
            self._look()

    def _look(self) -> None:
        import psutil

        if self._looks % _LOOKS_BETWEEN_CHILDREN == 0:
            this = psutil.Process()
            self._processes = [this]
            with suppress(psutil.Error, OSError):  # where processes may not be listed, this one is measured
                self._processes += this.children(recursive=True)
        self._looks += 1
        memory, spent, now = 0, [], perf_counter()
        for process in self._processes:
            with suppress(psutil.Error):  # it has ended, or may not be read
                memory += process.memory_info().rss
                times = process.cpu_times()
                spent.append(times.user + times.system)
        if self._looks == 1:  # children may have worked before the block
            self._cpu_before = self._cpu_before[0], self._cpu_before[1] + sum(spent[1:])
        seconds = sum(spent)
        if memory:
            self._memory.append(memory / 1e6)
        elapsed = now - self._cpu_before[0]
        if elapsed < _SHORTEST_CPU_SECONDS:
            return
        # The time of a child that has ended is missing now: no process was busy for less than nothing.
        self._cpu.append(100 * max(0.0, seconds - self._cpu_before[1]) / elapsed)
        self._cpu_before = now, seconds


def _summary(values: list[float]) -> dict[str, float | None]:
    if not values:
        return {"mean": None, "peak": None, "std": None}
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "peak": max(values), "std": std}


@dataclass
class ApiUsage:
    """Tokens and requests by the system's own count: `input_tokens`, `output_tokens` or `total_tokens`, and
    `requests` in an output's `extra` or its response's metadata.

    An output that reports its tokens and not its requests counts as one request.
    """

    sums: Counter[str] = field(default_factory=Counter)
    reporting: Counter[str] = field(default_factory=Counter)  # outputs that report each count

    def add(self, usage: Usage) -> None:
        """Add the counts that one output reports (`usage_of`)."""
        if not usage:
            return
        counts = {name: count for name in COUNTS if (count := reported_count(usage, name)) is not None}
        if counts:
            counts.setdefault("requests", 1)
            if "input_tokens" in counts and "output_tokens" in counts:
                parts = counts["input_tokens"] + counts["output_tokens"]
                # Some servers count reasoning tokens only in the total.
                counts["total_tokens"] = max(parts, counts.get("total_tokens", 0))
            self.sums.update(counts)
            self.reporting.update(counts.keys())

    def as_dict(self, prices: Mapping[str, Any]) -> dict[str, float | None] | None:
        """Return the sums, and the cost at these prices per 1,000 tokens; None if no output reports any.

        Nothing is guessed: a sum that no output reports is None, and so is a cost without a count or a price.
        """
        if not self.reporting:
            return None
        sums = {name: self.sums[name] if self.reporting[name] else None for name in COUNTS}
        parts = [
            None if sums[name] is None or prices.get(price) is None else sums[name] * prices[price] / 1000
            for name, price in zip(COUNTS, PRICES, strict=False)
        ]
        each, other = (prices.get(price) for price in PRICES)
        if sums["input_tokens"] is sums["output_tokens"] is None and each is not None and each == other:
            parts = [None if sums["total_tokens"] is None else sums["total_tokens"] * each / 1000]
        return {
            "total_tokens": sums["total_tokens"],
            "total_requests": sums["requests"],
            "estimated_cost_usd": None if None in parts else sum(part for part in parts if part is not None),
            "input_tokens": sums["input_tokens"],
            "output_tokens": sums["output_tokens"],
            "queries_reporting": max(self.reporting.values()),
        }


def checked_prices(price_input: float | None, price_output: float | None) -> dict[str, float]:
    """Return the prices that are not None, by the names under which a run stores them."""
    prices = {"price_input": price_input, "price_output": price_output}
    for name, price in prices.items():
        if price is not None and not 0 <= price < math.inf:
            raise ValueError(f"{name} must be a price of 1,000 tokens, not {price}")
    return {name: float(price) for name, price in prices.items() if price is not None}


def usage_of(output: SystemOutputs) -> dict[str, float]:
    """Return the tokens and requests that an output reports, in its `extra` or its response's metadata."""
    places = (output.response.metadata, output.extra)
    reported = [place for place in places if place and not _COUNTED.isdisjoint(place)]
    return {
        name: count
        for place in reported
        for name in COUNTS
        if (count := reported_count(place, name)) is not None
    }


def failed_attempts(extra: Mapping[str, Any]) -> list[AttemptRecord]:
    """Return the records of failed attempts."""
    records: list[AttemptRecord] = extra.get(ATTEMPTS, [])
    return records


def attempts_of(output: SystemOutputs) -> int:
    """Return how many calls an output took, by its own records."""
    return max(1, len(failed_attempts(output.extra)) + (output.error is None))


def counted_usage(output: SystemOutputs) -> Usage:
    """Return what an output took, with its calls, as budgets count it."""
    return {**usage_of(output), CALLS: attempts_of(output)}


def is_from_cache(output: SystemOutputs) -> bool:
    """Return whether an answer was made by another run."""
    return output.extra.get(CACHED) is True
