"""Memory hardly grows with the number of samples. benchmarks/scale.py runs a million."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="peak memory is asked of wait4")
# Both beyond the point where garbage is collected for the first time.
SIZES = (12_000, 30_000)


def test_memory_per_sample(tmp_path: Path) -> None:
    from benchmarks.scale import Measured, commands, measured_python

    measurements: dict[str, list[Measured]] = {"run": [], "score": []}
    for size in SIZES:
        folder = tmp_path / str(size)
        folder.mkdir()
        words = commands(folder, size)
        for command, measured in measurements.items():
            measured.append(measured_python("-m", "auepora_eval", *words[command][2:]))
        assert (folder / "a.run.db").is_file()
    for command, (small, large) in measurements.items():
        growth = (large.peak - small.peak) * 1000 / (SIZES[1] - SIZES[0])
        print(
            f"\n{command}: {SIZES[1]:,} samples in {large.cpu:.1f} s of CPU, "
            f"{SIZES[1] / large.cpu:,.0f} per second of it, "
            f"peak {large.peak:.0f} MB, {growth:+.3f} kB per sample more"
        )
        assert large.peak < 300
        # At 0.4 kB per sample a million samples stay below the bar of 600 MB. Tables of ids double their size
        # now and then, which is 10 MB at once.
        most = small.peak + 0.4 * (SIZES[1] - SIZES[0]) / 1000 + 10
        if large.peak >= most:  # the peak of a process varies by a few MB: growth would be there again
            large = measured_python("-m", "auepora_eval", *words[command][2:], "--force")
        assert large.peak < most
