"""Asking and replaying are fast: a small form of benchmarks/judge_speed.py, with room for a busy machine."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.judge_speed import CONCURRENCY, SECONDS, asking, replaying

pytestmark = pytest.mark.full


def test_asking_takes_little_more_than_the_judge(tmp_path: Path) -> None:
    count = 640
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    ideal = count * SECONDS / CONCURRENCY
    assert min(asking(count, folder) for folder in folders) < 4 * ideal


def test_a_replay_computes_thousands_of_verdicts_per_second(tmp_path: Path) -> None:
    assert replaying(2_000, tmp_path, clock=time.process_time) < 1.0
