"""What every test leaves behind: nothing. And what several tests look at."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import METRICS

# A busy machine is not a fault of the code: the time of one example says nothing.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

_LASTING: set[str] = set()  # names of modules seen not to be of a test: looked at once, not after each test


@pytest.fixture(autouse=True)
def _forget_modules_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `my_rag.py` of one test must not be found by the next."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    _LASTING.intersection_update(sys.modules)  # a name that is free again may be of a test next time
    new = sys.modules.keys() - _LASTING
    if not new:
        return
    temporary = str(Path(tmp_path_factory.getbasetemp()).parent)
    for name in new:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(temporary):
            del sys.modules[name]
        else:
            _LASTING.add(name)


@pytest.fixture
def own_metrics() -> Iterator[None]:
    """Forget the metrics that a test registers: other tests expect every name to be documented."""
    before = set(METRICS._things)
    yield
    for name in METRICS._things.keys() - before - METRICS.modules.keys():
        del METRICS._things[name]


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `auepora demo` leaves behind, for tests that only look at it."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["demo", "--out", str(folder)]) == 0
    return folder
