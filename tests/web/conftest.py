"""Runs that several tests of the web view look at."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from auepora_eval.cli.main import main


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `auepora demo` leaves behind."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["demo", "--out", str(folder)]) == 0
    return folder
