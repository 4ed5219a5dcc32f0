"""T-01: many samples; memory hardly grows with them. The million is run by benchmarks/scale.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of wait4")


@pytest.mark.parametrize("command", ["run", "score"])
def test_t01_memory_per_sample(tmp_path: Path, command: str) -> None:
    from benchmarks.scale import commands, measured_python

    sizes = (11_000, 22_000)  # both beyond the size from which rows go to Parquet
    took = []
    for size in sizes:
        (tmp_path / str(size)).mkdir()
        words = commands(tmp_path / str(size), size)
        if command == "score":
            measured_python(*words["run"])  # whose journal is scored
        took.append(measured_python(*words[command]))
    growth = (took[1].peak - took[0].peak) * 1000 / (sizes[1] - sizes[0])
    print(
        f"\nT-01 {command}: {sizes[1]:,} samples in {took[1].seconds:.1f} s, {took[1].cpu:.1f} s of CPU "
        f"({sizes[1] / took[1].cpu:,.0f}/s), peak {took[1].peak:.0f} MB, {growth:+.2f} kB a sample more"
    )
    assert took[1].peak < 300
    assert growth < 0.7  # a million would be 630 MB more: what is left is the noise of the allocator
