"""Every code block in README and docs is run: what a reader copies works."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import runpy
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import METRICS
from tests.generate_docs import PAGES

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *sorted((ROOT / "docs" / "explanation").glob("*.md")),
]
FENCE = re.compile(
    r"^```(?P<language>\w*)(?P<output> output)?(?: file=(?P<file>\S+))?(?: needs=(?P<needs>\S+))?\n"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    language: str
    file: str | None
    body: str
    needs: str | None = None  # a package: another test runs the block where the package is installed
    is_output: bool = False  # "```text output": what the block of commands before it prints, or a part of it


def blocks(path: Path) -> Iterator[Block]:
    for match in FENCE.finditer(path.read_text(encoding="utf-8")):
        is_output = match["output"] is not None
        yield Block(match["language"], match["file"], match["body"], match["needs"], is_output)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    metrics = set(METRICS)
    logger = logging.getLogger("auepora_eval")
    handlers = list(logger.handlers)
    yield tmp_path
    logger.handlers[:] = handlers  # a page adds one that writes to the captured stderr
    for name in METRICS._things.keys() - metrics:
        del METRICS._things[name]


class Demo(NamedTuple):
    folder: Path
    printed: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """What `auepora demo` leaves and prints: several pages begin with it."""
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        assert main(["demo"]) == 0
    return Demo(folder, printed.getvalue())


@pytest.mark.filterwarnings("ignore::UserWarning")  # partial coverage is part of the stories told
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_runs(
    path: Path, here: Path, demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("docs_example")  # a dataclass looks its module up
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("COLUMNS", "120")  # pages show the output of a wide terminal
    names = module.__dict__
    errors = ""
    page = list(blocks(path))
    for block, following in zip_longest(page, page[1:]):
        if block.needs is not None:
            continue
        if block.file is not None:
            (here / block.file).parent.mkdir(parents=True, exist_ok=True)
            (here / block.file).write_text(block.body, encoding="utf-8")
        if block.language == "python":
            _run_python(block, here, names)
        elif block.language == "bash":
            is_shown = following is not None and following.is_output
            capsys.readouterr()
            for line in block.body.splitlines():
                _run_line(line, demo, is_shown=is_shown)
            printed = capsys.readouterr()
            errors += printed.err
            if is_shown:
                assert _lines(following.body) - _lines(printed.out) == set()
        elif block.language == "json":
            records = [block.body] if block.body.startswith("{\n") else block.body.splitlines()
            assert all(isinstance(json.loads(record), dict) for record in records)
        elif block.language == "yaml":
            assert isinstance(yaml.safe_load(block.body), dict)
        else:
            assert block.language == "text", f"a block of language {block.language!r} is run by nobody"
    assert "Traceback" not in errors + capsys.readouterr().err


def _lines(text: str) -> set[str]:
    """Return the lines of an output that are the same on every machine, whatever their spaces."""
    lines = {" ".join(line.split()) for line in text.splitlines()} - {"..."}
    # A rule is as wide as its table, which may have a column of times.
    return {line for line in lines if line.strip("─") and not re.search(r"\d (ms|s)\b", line)}


def _run_python(block: Block, here: Path, names: dict[str, Any]) -> None:
    if block.file is None:
        exec(compile(block.body, "docs", "exec", dont_inherit=True), names)  # noqa: S102 - our own documentation
    else:
        runpy.run_path(str(here / block.file), run_name="__main__")


def _run_line(line: str, demo: Demo, *, is_shown: bool) -> None:
    words = shlex.split(line, comments=True)
    if words == ["auepora", "demo"]:
        shutil.copytree(demo.folder, Path.cwd(), dirs_exist_ok=True)
    elif words[0] == "auepora":
        # Fewer resamples are faster, but change the numbers, which only matters if the page shows them.
        is_slow = words[1] in ("compare", "gate") and not is_shown
        few = ["--resamples", "500"] if is_slow else []
        assert main([*words[1:], *few]) == 0, line
    elif words[0] == "sqlite3":
        with contextlib.closing(sqlite3.connect(words[1])) as database:
            database.execute(words[2]).fetchall()
    else:
        assert words[0] == "make"
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line


def test_the_readme_shows_what_the_demo_prints(demo: Demo) -> None:
    shown = next(block.body for block in blocks(ROOT / "README.md") if block.language == "text")
    printed = sentences(demo.printed)
    # Times differ between machines.
    compared = [sentence for sentence in sentences(shown) if not re.search(r"\d (ms|s)\b", sentence)]
    assert len(compared) >= 6
    assert [sentence for sentence in compared if sentence not in printed] == []


def sentences(text: str) -> list[str]:
    """Split a text at full stops, whatever its line breaks."""
    return re.split(r"(?<=[.?:]) ", " ".join(text.split()))


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help differently in each version"
)
@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_up_to_date(page: str) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == PAGES[page](), "run make docs"


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
