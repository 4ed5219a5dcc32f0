"""T-01: many samples; memory hardly grows with them. The million is run by benchmarks/scale.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of wait4")


def test_t01_memory_per_sample(tmp_path: Path) -> None:
    from benchmarks.scale import METRICS, SYSTEM, measured, write_data

    peaks, seconds = [], 0.0
    sizes = (11_000, 22_000)  # both beyond the size from which rows go to Parquet
    (tmp_path / "system.py").write_text(SYSTEM, encoding="utf-8")
    for size in sizes:
        data = tmp_path / f"{size}.jsonl"
        write_data(data, size)
        words = ("--dataset", str(data), "--metrics", METRICS, "--out", str(tmp_path), "--id", f"n{size}")
        seconds, peak = measured("run", "--system", f"{tmp_path / 'system.py'}:system", *words)
        peaks.append(peak)
    growth = (peaks[1] - peaks[0]) * 1000 / (sizes[1] - sizes[0])
    print(
        f"\nT-01: {sizes[1]:,} samples in {seconds:.1f} s ({sizes[1] / seconds:,.0f}/s), "
        f"peak {peaks[1]:.0f} MB, {growth:.2f} kB more a sample"
    )
    assert peaks[1] < 400
    assert growth < 1.0
