"""What every test leaves behind: nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _forget_modules_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A `my_rag.py` of one test must not be found by the next."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    temporary = str(Path(tmp_path_factory.getbasetemp()).parent)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(temporary):
            del sys.modules[name]
