"""Print how easy the code is to find one's way in: sizes, imports, and the files that a command runs through.

    python scripts/architecture_report.py

Sizes and imports are read from the source. Four commands are run on the bundled data in a temporary folder,
and every function of the library that they call is recorded.
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
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "auepora_eval"
BM25 = ("--system", "auepora_eval.demo.systems:bm25")
HYBRID = ("--system", "auepora_eval.demo.systems:hybrid")
# Subjects that came after the targets for lines and modules were set: files and folders of the package.
ADDED_SINCE = {
    "judges": (
        "judges",
        "cli/judge.py",
        "comparison/judged.py",
        "demo/judged.py",
        "runs/judging.py",
        "runs/verdicts.py",
    ),
    "files and objects of other tools": (
        "io/foreign",
        "core/fields.py",
        "core/frameworks.py",
        "core/matching.py",
        "core/shapes.py",
        "metrics/retrieval/rankings.py",
        "runs/spans/sampled.py",
    ),
    "web pages": (
        "web",
        "cli/pages.py",
        "cli/view.py",
        "comparison/markdown.py",
        "reporting/html",
        "runs/index",
    ),
    "annotation": (
        "people/annotation",
        "quality/review.py",
        "cli/annotate.py",
        "cli/dataset/review.py",
        "stats/sampling.py",
    ),
    "new projects, pilots and cards": (
        "cli/init.py",
        "io/config/new_project.py",
        "quality/card.py",
        "runs/pilot.py",
    ),
}


class Row(NamedTuple):
    """A line of the report: what was measured, its value now, and its target if it has one."""

    name: str
    value: float
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        value = f"{self.value:,g}"
        if self.limit is None:
            return self.name, value, "", ""
        target = f"{'>=' if self.at_least else '<='} {self.limit:,g}"
        return self.name, value, target, "ok" if self.holds else "**missed**"


def main() -> int:
    if sys.argv[1:2] == ["--trace"]:
        return trace(Path(sys.argv[2]), sys.argv[3:])
    rows = [*source_rows(), *import_rows(), *command_rows()]
    print("| | value | target | |\n|---|--:|--:|---|")
    for row in rows:
        print(f"| {' | '.join(row.cells())} |")
    return 0 if all(row.holds for row in rows) else 1


# Sizes


def modules() -> list[Path]:
    """Return every module of the package but the markers of packages."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]


def size_rows(sources: Mapping[Path, str]) -> Iterator[Row]:
    """Count modules and lines: of the subjects that the targets were set for, of later ones, and of all."""
    by_subject: dict[str, dict[Path, str]] = {subject: {} for subject in ("", *ADDED_SINCE)}
    for path, text in sources.items():
        by_subject[added_subject(path)][path] = text
    redesigned = by_subject.pop("")
    yield Row("modules of the subjects that the redesign covered", module_count(redesigned), 245)
    yield Row("source lines of the subjects that the redesign covered", line_count(redesigned), 54_000)
    for subject, files in by_subject.items():
        yield Row(f"source lines of {subject}, added since", line_count(files))
    yield Row("modules of the whole package", module_count(sources))
    yield Row("source lines of the whole package", line_count(sources))


def added_subject(path: Path) -> str:
    """Return the subject of a file that came after the targets were set, or "" for any other file."""
    for subject, places in ADDED_SINCE.items():
        if {PACKAGE / place for place in places} & {path, *path.parents}:
            return subject
    return ""


def module_count(sources: Mapping[Path, str]) -> int:
    return sum(path.name != "__init__.py" for path in sources)


def line_count(sources: Mapping[Path, str]) -> int:
    return sum(len(text.splitlines()) for text in sources.values())


def source_rows() -> Iterator[Row]:
    """Count lines, folders, comments and types that say nothing."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    comment_count = sum(map(comment_lines, sources.values()))
    folders = Counter(path.parent for path in modules())
    command_modules = folders.pop(PACKAGE / "cli")
    yield from size_rows(sources)
    yield Row("modules in the largest folder", max(folders.values()), 20)
    yield Row("modules in `cli`", command_modules, 30)
    yield Row("lines of the longest file", max(len(text.splitlines()) for text in sources.values()), 700)
    yield Row("function-level `import numpy`", sum(map(numpy_inside, sources.values())), 20)
    yield Row("`dict[str, Any]`", sum(text.count("dict[str, Any]") for text in sources.values()), 250)
    yield Row(
        "comment lines per 100 lines", round(100 * comment_count / line_count(sources), 1), 2, at_least=True
    )
    sys.path.insert(0, str(ROOT))
    from tests.wording import findings

    yield Row("banned words in help, messages and docs", len(list(findings())), 0)


def comment_lines(source: str) -> int:
    """Count the lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    return sum(token.line.lstrip().startswith("#") for token in comments)


def numpy_inside(source: str) -> int:
    """Count imports of numpy that are not at the top of the module."""
    inner = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) and node.col_offset)
    return sum(any(name.name == "numpy" for name in node.names) for node in inner)


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
    """Count modules with one importer, and groups that import each other."""
    graph = import_graph()
    importers = Counter(target for targets in graph.values() for target in targets)
    single = [path for path in modules() if importers[module_name(path)] == 1]
    redesigned = [path for path in single if not added_subject(path)]
    yield Row(
        "modules with exactly one importer, of the subjects that the redesign covered", len(redesigned), 50
    )
    yield Row("modules with exactly one importer, of the whole package", len(single))
    yield Row("import cycles, counting imports inside functions", len(import_cycles(graph)), 0)


# Commands


def command_rows() -> Iterator[Row]:
    """Run four commands and count the files whose functions they call and the modules they import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        limits = ("--limit", "20", "--metrics", "recall@5")
        run = traced(folder, "run", "--dataset", "demo", *BM25, *limits, "--id", "a")
        traced(folder, "run", "--dataset", "demo", *HYBRID, *limits, "--id", "b")
        compare = traced(folder, "compare", "a", "b")
        generate = traced(folder, "dataset", "generate", "demo", "--out", "raw/tasks.jsonl")
        places = [
            word
            for split, file in (("qa", "qa.jsonl"), ("summary", "summaries.jsonl"), ("manifest", "m.json"))
            for word in (f"--{split}-output", f"built/{file}")
        ]
        build = traced(folder, "dataset", "build", "--offline-dataset", "raw/tasks.jsonl", *places)
    yield Row("files whose functions run in `run`", len(run["files"]), 48)
    yield Row("files whose functions run in `compare`", len(compare["files"]), 30)
    yield Row("files whose functions run in `dataset build`", len(build["files"]), 15)
    yield Row("files whose functions run in `dataset generate`", len(generate["files"]), 28)
    yield Row("modules imported by `run`", len(run["modules"]), 120)
    yield Row("modules imported by `compare`", len(compare["modules"]), 90)


def traced(folder: Path, *words: str) -> dict[str, list[str]]:
    """Run a command in a process of its own and return the files and modules that it used."""
    report = folder / "trace.json"
    command = [sys.executable, __file__, "--trace", str(report), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise SystemExit(f"auepora {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return dict(json.loads(report.read_text(encoding="utf-8")))


def trace(report: Path, words: list[str]) -> int:
    """Run a command in this process and record the files whose functions were called."""
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
    files = {one.co_filename for one in functions if Path(one.co_filename).is_relative_to(PACKAGE)}
    ours = [name for name in sys.modules if name.startswith(f"{PACKAGE.name}.")]
    used = [name for name in ours if not hasattr(sys.modules[name], "__path__")]
    document = {"files": sorted(files), "modules": sorted(used)}
    report.write_text(json.dumps(document), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
