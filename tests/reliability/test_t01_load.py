"""T-01: memory hardly grows with the number of samples. benchmarks/scale.py runs a million."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of wait4")


def test_t01_memory_per_sample(tmp_path: Path) -> None:
    from benchmarks.scale import Measured, commands, measured_python

    sizes = (22_000, 40_000)  # both beyond the size from which rows go to Parquet
    took: dict[str, list[Measured]] = {"run": [], "score": []}
    for size in sizes:
        (tmp_path / str(size)).mkdir()
        words = commands(tmp_path / str(size), size)
        for command, found in took.items():
            found.append(measured_python(*words[command]))
    for command, (small, large) in took.items():
        growth = (large.peak - small.peak) * 1000 / (sizes[1] - sizes[0])
        print(
            f"\nT-01 {command}: {sizes[1]:,} samples in {large.cpu:.1f} s of CPU, "
            f"{sizes[1] / large.cpu:,.0f} in a second of it, "
            f"peak {large.peak:.0f} MB, {growth:+.3f} kB a sample more"
        )
        assert large.peak < 300
        # At 0.4 kB per sample a million samples stay below the bar of 600 MB.
        assert growth < 0.4
