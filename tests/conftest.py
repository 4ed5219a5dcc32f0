"""What every test leaves behind: nothing. And what several tests look at."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import METRICS

# A busy machine is not a fault of the code: the time of one example says nothing. CI tries more examples.
settings.register_profile("any machine", deadline=None, max_examples=100 if os.environ.get("CI") else 25)
settings.load_profile("any machine")

# Folders whose tests run in `make check` only. Elsewhere a test says so itself: `pytest.mark.full`.
_FULL = [Path(__file__).parent / name for name in ("browser", "reliability")]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import them for `make test`: their packages need not be installed."""
    return True if config.option.markexpr == "not full" and collection_path in _FULL else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _FULL):
            item.add_marker(pytest.mark.full)


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
    before = set(METRICS)
    yield
    for name in METRICS._things.keys() - before:
        del METRICS._things[name]


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `auepora demo` leaves behind, for tests that only look at it."""
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["demo", "--out", str(folder)]) == 0
    return folder
