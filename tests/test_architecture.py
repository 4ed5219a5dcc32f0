"""The rules of the architecture that no linter checks. docs/explanation/architecture.md explains them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import auepora_eval
from scripts.architecture_report import import_cycles, import_graph
from tests.wording import findings

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "auepora_eval"
MODULES = sorted(PACKAGE.rglob("*.py"))


class Source(NamedTuple):
    """What the rules need to know of a module. Each module is parsed once."""

    lines: int
    docstring: str | None
    statements: dict[str, int]
    """of each function"""
    imports: list[ast.Import | ast.ImportFrom]
    called: set[str]


@cache
def source_of(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    source = Source(len(text.splitlines()), ast.get_docstring(tree), {}, [], set())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = sum(isinstance(child, ast.stmt) for child in ast.walk(node)) - 1
            source.statements[f"{node.name}, line {node.lineno}"] = statements
        elif isinstance(node, ast.Import | ast.ImportFrom):
            source.imports.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            source.called.add(node.func.id)
    return source


def test_files_are_about_one_subject() -> None:
    assert {str(path): source_of(path).lines for path in MODULES if source_of(path).lines > 700} == {}


def test_functions_are_small() -> None:
    statements = [(path, *row) for path in MODULES for row in source_of(path).statements.items()]
    assert [f"{path}: {name}" for path, name, count in statements if count > 40] == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=lambda path: path.name)
def test_folders_are_small(folder: Path) -> None:
    most = 30 if folder.name == "cli" else 20  # the command line has a module for each command
    assert sum(path.name != "__init__.py" for path in folder.glob("*.py")) <= most


def test_core_names_no_module_above_it() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (PACKAGE / "core").rglob("*.py")}
    assert [path for path, text in texts.items() if re.search(r"[\"']auepora_eval\.[a-z]", text)] == []


def test_imports_go_to_lower_layers_only() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    height = {name.strip(): -number for number, layer in enumerate(layers) for name in layer.split("|")}
    upward = [
        f"{module} imports {imported}"
        for module, targets in import_graph().items()
        for imported in targets
        if top(module) != top(imported)
        and height.get(top(module), 1) <= height.get(top(imported), 1)
        # `read` makes the types of the core from records and objects.
        and not (top(module) == "read" and imported.endswith("core.types"))
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    """Imports inside functions count too: a cycle that is hidden in a function is still a cycle."""
    assert import_cycles(import_graph()) == []
    assert import_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def top(module: str) -> str:
    """Return the package directly below auepora_eval; the public API has none and is above all."""
    return [*module.split("."), ""][1]


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path in MODULES if not source_of(path).docstring] == []


def test_no_module_imports_the_public_api() -> None:
    def imports_it(node: ast.Import | ast.ImportFrom) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module == "auepora_eval" and node.level == 0
        return any(name.name == "auepora_eval" for name in node.names)

    assert [path for path in MODULES if any(map(imports_it, source_of(path).imports))] == []


def test_private_names_stay_in_their_module() -> None:
    found = {path: private_names_of_others(path, path.read_text(encoding="utf-8")) for path in MODULES}
    assert {str(path): names for path, names in found.items() if names} == {}


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


def test_no_pickle_no_eval_no_sockets() -> None:
    assert {str(path): names for path in MODULES if (names := forbidden_names(path))} == {}


def forbidden_names(path: Path) -> set[str]:
    """Return the packages and functions that a module uses and may not."""
    imported = {
        name.split(".")[0]
        for node in source_of(path).imports
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else ([] if node.level else [node.module or ""])
        )
        if name != "urllib.parse"  # it quotes and splits addresses, and opens nothing
    }
    forbidden = {"pickle", "marshal", "shelve", "socket", "requests", "urllib", "urllib3", "http", "pandas"}
    # The one module that opens network connections, and the one that reads URLs and the proxy variables.
    if path == PACKAGE / "calls" / "transport.py":
        forbidden -= {"socket", "http", "urllib", "urllib3"}
    if path == PACKAGE / "calls" / "http.py":
        forbidden -= {"urllib"}
    # The one module that listens, on this machine only, and checks who asks.
    if path == PACKAGE / "pages" / "security.py":
        forbidden -= {"socket", "http"}
    return imported & forbidden | source_of(path).called & {"eval", "exec", "__import__"}


def test_every_public_name_is_importable() -> None:
    names = vars(auepora_eval)["__all__"]
    stub = re.findall(r"^from (\S+) import (\w+) as \2$", (PACKAGE / "__init__.pyi").read_text(), re.M)
    assert {name: module for module, name in stub} == vars(auepora_eval)["_HOME"]
    for name in names:
        assert getattr(getattr(auepora_eval, name), "__name__", name) == name
    assert re.fullmatch(r"\d+\.\d+\.\d+", auepora_eval.__version__)
    assert set(dir(auepora_eval)) - {"__version__"} < set(names)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = auepora_eval.nonsense  # type: ignore[attr-defined]


def test_import_is_light() -> None:
    heavy = "{'numpy', 'scipy', 'rich', 'msgspec', 'rapidfuzz', 'yaml', 'bm25s', 'matplotlib', 'asyncio'}"
    for module in ("auepora_eval", "auepora_eval.core.types", "auepora_eval.cli.main"):
        code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
        loaded = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        assert "numpy" not in loaded
        assert "scipy" not in loaded
        assert module != "auepora_eval" or loaded.strip() == "[]"


def test_a_named_metric_imports_its_own_module_only() -> None:
    code = (
        "import sys; from auepora_eval.metrics.parse import parse_metrics; parse_metrics('recall@5,mrr'); "
        "late = ('auepora_eval.judges', 'auepora_eval.text'); "
        "print([name for name in sys.modules if name.startswith(late)])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_words_are_plain() -> None:
    """tests/wording.py says for each pattern what to write instead."""
    assert [str(finding) for finding in findings()] == []


def test_every_decision_is_numbered_once() -> None:
    page = (ROOT / "docs" / "explanation" / "decisions.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^## (\d+)\. ", page, re.MULTILINE)]
    assert len(set(numbers)) == len(re.findall(r"^## ", page, re.MULTILINE)) > 0
    assert numbers == sorted(numbers)
