"""Print how heavy the code is: sizes, imports, commands, flags, and the functions that commands call.

    python scripts/architecture_report.py

Sizes and imports are read from the source. Commands are run on the bundled data in a temporary folder, and
every function of the library that they call is recorded.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "auepora_eval"
BM25 = ("--system", "auepora_eval.demo.systems:bm25")
HYBRID = ("--system", "auepora_eval.demo.systems:hybrid")


class Row(NamedTuple):
    """A line of the report: what was measured, its value before the subtraction and now, and its target."""

    name: str
    value: float
    before: float | None = None
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def cells(self) -> tuple[str, str, str, str, str]:
        before = "" if self.before is None else f"{self.before:,g}"
        target = "" if self.limit is None else f"{'>=' if self.at_least else '<='} {self.limit:,g}"
        result = "" if self.limit is None else "ok" if self.holds else "**missed**"
        return self.name, before, f"{self.value:,g}", target, result


def main() -> int:
    if sys.argv[1:2] == ["--trace"]:
        return trace(Path(sys.argv[2]), sys.argv[3:])
    rows = [*size_rows(), *source_rows(), *import_rows(), *flag_rows(), *command_rows()]
    print("| | before | now | target | |\n|---|--:|--:|--:|---|")
    for row in rows:
        print(f"| {' | '.join(row.cells())} |")
    return 0 if all(row.holds for row in rows) else 1


# Sizes


def modules() -> list[Path]:
    """Return every module of the package but the markers of packages."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]


def texts(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]


def line_count(sources: list[str]) -> int:
    return sum(len(text.splitlines()) for text in sources)


def size_rows() -> Iterator[Row]:
    """Count lines, classes and functions of the package, lines of the tests, and pages of the docs."""
    sources = texts(PACKAGE)
    nodes = [node for text in sources for node in ast.walk(ast.parse(text))]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    yield Row("source lines", line_count(sources), 76_231, 48_000)
    yield Row("test lines", line_count(texts(ROOT / "tests")), 65_044, 42_000)
    yield Row("classes", sum(isinstance(node, ast.ClassDef) for node in nodes), 795, 480)
    yield Row("functions and methods", sum(isinstance(node, functions) for node in nodes), 5_056)
    yield Row("how-to pages", len(list((ROOT / "docs" / "how-to").glob("*.md"))), 27, 16)


def source_rows() -> Iterator[Row]:
    """Measure folders, files, comments, and types that say nothing."""
    sources = texts(PACKAGE)
    comment_count = sum(map(comment_lines, sources))
    folders = Counter(path.parent for path in modules())
    command_modules = folders.pop(PACKAGE / "cli")
    yield Row("modules in the largest folder", max(folders.values()), 19, 20)
    yield Row("modules in `cli`", command_modules, 27, 30)
    yield Row("lines of the longest file", max(len(text.splitlines()) for text in sources), 679, 700)
    yield Row("`dict[str, Any]`", sum(text.count("dict[str, Any]") for text in sources), 190, 250)
    comments = round(100 * comment_count / line_count(sources), 1)
    yield Row("comment lines per 100 lines", comments, 2.1, 2, at_least=True)
    sys.path.insert(0, str(ROOT))
    from tests.wording import findings

    yield Row("banned words in help, messages and docs", len(list(findings())), 0, 0)


def comment_lines(source: str) -> int:
    """Count the lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    return sum(token.line.lstrip().startswith("#") for token in comments)


# Imports


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, names: set[str]) -> set[str]:
    """Return the modules of the package that a file imports, at its top or inside functions."""
    here = module_name(path).split(".")
    package = here if path.name == "__init__.py" else here[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names} & names
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for name in node.names:
                inner = f"{source}.{name.name}"
                found |= {inner if inner in names else source} & names
    return found - {".".join(here)}


def import_graph() -> dict[str, set[str]]:
    """Return for each module the modules of the package that it imports, wherever the import is."""
    paths = sorted(PACKAGE.rglob("*.py"))
    names = {module_name(path) for path in paths}
    return {module_name(path): imported_modules(path, names) for path in paths}


def import_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm without recursion limits."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            start = stack.index(name)
            groups.append(stack[start:])
            del stack[start:]

    for name in graph:
        if name not in order:
            visit(name)
    return [sorted(group) for group in groups if len(group) > 1]


def import_rows() -> Iterator[Row]:
    """Count the groups of modules that import each other."""
    yield Row("import cycles, counting imports inside functions", len(import_cycles(import_graph())), 0, 0)


# Commands


def flag_counts() -> dict[str, int]:
    """Return the number of flags of each command, `--help` not counted."""
    from auepora_eval.cli.main import COMMANDS, command_parser, load_command

    parsers = {name: command_parser(name, load_command(name)) for name in COMMANDS}
    return {
        name: sum(bool(action.option_strings) and action.dest != "help" for action in parser._actions)
        for name, parser in parsers.items()
    }


def flag_rows() -> Iterator[Row]:
    counts = flag_counts()
    yield Row("commands", len(counts), 32, 24)
    yield Row("flags of all commands", sum(counts.values()), 516, 300)
    yield Row("flags of `run`", counts["run"], 64, 30)
    for name, count in counts.items():
        if name != "run":
            yield Row(f"flags of `{name}`", count)


def command_rows() -> Iterator[Row]:
    """Run commands on the bundled data and count the functions that they call."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        limits = ("--limit", "20", "--metrics", "recall@5")
        run = traced(folder, "run", "--dataset", "demo", *BM25, *limits, "--id", "a")
        traced(folder, "run", "--dataset", "demo", *HYBRID, *limits, "--id", "b")
        compare = traced(folder, "compare", "a", "b")
        records = [
            {"sample_id": f"q{n}", "query": "Who?", "reference_answer": "Ada", "relevant_docs": ["d1"],
             "retrieved": ["d1", "d2"], "answer": "Ada"}
            for n in range(5)
        ]  # fmt: skip
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
        score = traced(
            folder, "score", "--dataset", "rows.jsonl", "--metrics", "recall@5,exact_match", "--id", "c"
        )
    yield Row("functions that `run` calls (recall@5, 20 samples)", run["functions"], 683, 400)
    yield Row("functions that `score` calls (2 metrics, 5 samples)", score["functions"], 493, 320)
    yield Row("functions that `compare` calls", compare["functions"], 384, 280)
    for command, used in (("run", run), ("score", score), ("compare", compare)):
        # Python 3.11 counts every comprehension as a function of its own, later versions do not.
        yield Row(f"of those of `{command}`, written with `def`", used["named"])
        yield Row(f"files whose functions run in `{command}`", used["files"])


def traced(folder: Path, *words: str) -> dict[str, int]:
    """Run a command in a process of its own and return how many functions and files it used."""
    report = folder / "trace.json"
    command = [sys.executable, __file__, "--trace", str(report), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise SystemExit(f"auepora {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return dict(json.loads(report.read_text(encoding="utf-8")))


def trace(report: Path, words: list[str]) -> int:
    """Run a command in this process and record the functions that were called."""
    sys.path.insert(0, str(ROOT))
    called: set[CodeType] = set()
    importing = 0  # modules whose top level is running; what they call then is not part of the command

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal importing
        if frame.f_code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing:
            called.add(frame.f_code)

    from auepora_eval.cli.main import main as auepora

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        code = auepora(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    # Bodies of modules and classes run when they are imported; only functions have CO_OPTIMIZED.
    functions = [one for one in called if one.co_flags & inspect.CO_OPTIMIZED]
    ours = [one for one in functions if Path(one.co_filename).is_relative_to(PACKAGE)]
    document = {
        "functions": len(ours),
        "named": sum(not one.co_name.startswith("<") for one in ours),
        "files": len({one.co_filename for one in ours}),
    }
    report.write_text(json.dumps(document), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
