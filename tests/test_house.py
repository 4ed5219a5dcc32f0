"""The house rules that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import auepora_eval
from auepora_eval.cli.main import COMMANDS
from auepora_eval.core.metrics_base import METRICS
from auepora_eval.metrics import parse

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "auepora_eval"
MODULES = sorted(PACKAGE.rglob("*.py"))
every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))


class Seen(NamedTuple):
    """What the rules ask of a module; its tree is read once for all of them."""

    lines: int
    docstring: str | None
    statements: dict[str, int]
    """of each function"""
    imports: list[ast.Import | ast.ImportFrom]
    called: set[str]


@cache
def seen(path: Path) -> Seen:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = Seen(len(text.splitlines()), ast.get_docstring(tree), {}, [], set())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = sum(isinstance(child, ast.stmt) for child in ast.walk(node)) - 1
            found.statements[f"{node.name}, line {node.lineno}"] = statements
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.called.add(node.func.id)
    return found


@every_module
def test_files_and_functions_are_small(path: Path) -> None:
    assert seen(path).lines <= 400, "a room is missing"
    assert {name: count for name, count in seen(path).statements.items() if count > 40} == {}


@every_module
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert seen(path).docstring, path


@every_module
def test_nobody_inside_imports_the_front_door(path: Path) -> None:
    for node in seen(path).imports:
        if isinstance(node, ast.ImportFrom):
            assert not (node.module == "auepora_eval" and node.level == 0), path
        else:
            assert all(name.name != "auepora_eval" for name in node.names), path


@every_module
def test_what_has_an_underscore_stays_in_its_module(path: Path) -> None:
    assert private_names_of_others(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        pytest.param("from .numbers import share", [], id="public"),
        pytest.param("from .numbers import _share", ["_share"], id="beside"),
        pytest.param("from ..io.jsonl import (\n    encode,\n    _line as line,\n)", ["_line"], id="renamed"),
        pytest.param(
            "def run():\n    from auepora_eval.io.jsonl import _line", ["_line"], id="absolute, inside"
        ),
        pytest.param("from ._numbers import share", ["_numbers"], id="a private module"),
        pytest.param("import auepora_eval.cli._numbers", ["_numbers"], id="a private module, absolute"),
        pytest.param("from . import echo\necho._write()", ["echo._write"], id="of a module"),
        pytest.param("from ..io import jsonl as j\nj._line", ["j._line"], id="of a renamed module"),
        pytest.param("import auepora_eval.io.jsonl as j\nj._line", ["j._line"], id="of an absolute module"),
        pytest.param("from .. import __version__", [], id="dunder"),
        pytest.param("from ..metrics.citations import WEIGHTS\nWEIGHTS._asdict()", [], id="of a named tuple"),
        pytest.param("import os\nfrom os import _exit\nos._exit(1)", [], id="another package"),
    ],
)
def test_private_names_of_others_are_found(code: str, found: list[str]) -> None:
    assert private_names_of_others(PACKAGE / "cli" / "new_command.py", code) == found


def private_names_of_others(path: Path, code: str) -> list[str]:
    """The names with an underscore in front that a module takes from other modules of the package."""
    found: list[str] = []
    modules: set[str] = set()  # of ours, by the names that they have here
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                parts = name.name.split(".")
                if parts[0] == PACKAGE.name:
                    found += filter(is_private, parts)
                    modules.add(name.asname or name.name)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if not node.level and parts[0] != PACKAGE.name:
                continue
            home = (path.parents[node.level - 1] if node.level else ROOT).joinpath(*parts)
            found += filter(is_private, [*parts, *(name.name for name in node.names)])
            modules |= {
                name.asname or name.name
                for name in node.names
                if (home / name.name).is_dir() or (home / f"{name.name}.py").is_file()
            }
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    return found + [ast.unparse(node) for node in used if ast.unparse(node.value) in modules]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@every_module
def test_no_pickle_no_eval_no_sockets(path: Path) -> None:
    imported = {
        name.split(".")[0]
        for node in seen(path).imports
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else ([] if node.level else [node.module or ""])
        )
    }
    forbidden = {"pickle", "marshal", "shelve", "socket", "requests", "urllib", "http", "pandas"}
    if path.name == "http_calls.py":  # the one door to the network, opened only where the user names a host
        forbidden -= {"socket", "http", "urllib"}
    assert not imported & forbidden
    assert not seen(path).called & {"eval", "exec", "__import__"}


def test_the_front_door_is_sorted_and_opens() -> None:
    assert auepora_eval.__all__ == sorted(auepora_eval.__all__)
    assert set(auepora_eval.__all__) == set(auepora_eval._HOME)
    for name in auepora_eval.__all__:
        assert getattr(auepora_eval, name).__name__ == name
    assert re.fullmatch(r"\d+\.\d+\.\d+", auepora_eval.__version__)
    assert set(dir(auepora_eval)) >= set(auepora_eval.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = auepora_eval.nonsense


def test_import_is_light() -> None:
    heavy = "{'numpy', 'scipy', 'rich', 'msgspec', 'rapidfuzz', 'yaml', 'bm25s', 'matplotlib', 'asyncio'}"
    for module in ("auepora_eval", "auepora_eval.core.types", "auepora_eval.metrics.retrieval_basic"):
        code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
        loaded = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        assert "numpy" not in loaded
        assert "scipy" not in loaded
        assert module != "auepora_eval" or loaded.strip() == "[]"


def test_docs_name_every_metric_and_every_command() -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    )
    assert parse.FAMILIES
    missing = [name for name in METRICS if f"`{name}" not in text]
    missing += [name for name in COMMANDS if f"auepora {name}" not in text]
    assert missing == []


def test_every_decision_is_numbered_once() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers)) > 0
    assert all(number.isdigit() for number in numbers)
