"""Every code block in README and docs is run: what a reader copies works."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import logging
import os
import re
import runpy
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from auepora_eval.cli.main import COMMANDS, command_parser, load_command, main
from auepora_eval.core.metrics_base import METRICS
from auepora_eval.metrics.parse import parse_metric
from tests.generate_docs import PAGES, api_examples, public_names
from tests.servers import chat_server

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SKILL.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *sorted((ROOT / "docs" / "explanation").glob("*.md")),
]
# ```LANGUAGE title="FILE", "FILE (needs PACKAGE)" or "Output"
FENCE = re.compile(
    r"^```(?P<language>\w*)"
    r"(?: title=\"(?:(?P<output>Output)|(?P<file>\S+?)(?: \(needs (?P<needs>\w+)\))?)\")?\n"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Run at every change: most people start here, and a change of the API is seen. Ten seconds of CPU time.
FIRST_PAGES = {"README.md", "tutorial.md", "i-have.md", "api.md"}
# What a reader of README has: an answering service, and files of their own.
ENDPOINT = "http://127.0.0.1:9000/ask"
OWN_FILES = {
    "mine.qrels": "q1 0 d1 1\nq2 0 d3 2\n",
    "mine.run": "q1 Q0 d1 1 12.5 mine\nq2 Q0 d1 1 9.75 mine\n",
    "labels.jsonl": '{"id": "a", "question": "Who?", "llm_answer": "A", "ground_truth_label": "accurate"}\n',
    "predicted.jsonl": '{"id": "a", "predicted_label": "accurate"}\n',
}


class Block(NamedTuple):
    language: str
    file: str | None
    body: str
    needs: str | None = None  # a package: the block is run where it is installed, in a process of its own
    is_output: bool = False  # what the block before it prints, or a part of it


def blocks(path: Path) -> Iterator[Block]:
    for match in FENCE.finditer(path.read_text(encoding="utf-8")):
        is_output = match["output"] is not None
        yield Block(match["language"], match["file"], match["body"], match["needs"], is_output)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_fence_is_understood(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(list(blocks(path)))


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
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[] if path.name in FIRST_PAGES else [pytest.mark.full])
        for path in DOCUMENTS
    ],
)
def test_every_block_runs(
    path: Path, here: Path, demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("docs_example")  # a dataclass looks its module up
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("COLUMNS", "120")  # pages show the output of a wide terminal
    names = module.__dict__
    errors = ""
    page = list(blocks(path))
    if path.name == "README.md":
        for name, text in OWN_FILES.items():
            (here / name).write_text(text, encoding="utf-8")
    for block, following in zip_longest(page, page[1:]):
        is_shown = following is not None and following.is_output
        capsys.readouterr()
        if block.needs is None:
            _run(block, here, names, demo, is_shown=is_shown)
        elif is_shown and find_spec(block.needs) is not None:
            print(_run_alone(block, here))
        printed = capsys.readouterr()
        errors += printed.err
        if is_shown and (block.needs is None or find_spec(block.needs) is not None):
            assert _lines(following.body) - _lines(printed.out) == set()
    assert "Traceback" not in errors


def _run(block: Block, here: Path, names: dict[str, Any], demo: Demo, *, is_shown: bool) -> None:
    if block.file is not None:
        (here / block.file).parent.mkdir(parents=True, exist_ok=True)
        (here / block.file).write_text(block.body, encoding="utf-8")
    if block.language == "python":
        _run_python(block, here, names)
    elif block.language == "bash":
        for line in block.body.splitlines():
            _run_line(line, demo, is_shown=is_shown)
    elif block.language == "json":
        records = [block.body] if block.body.startswith("{\n") else block.body.splitlines()
        assert all(isinstance(json.loads(record), dict) for record in records)
    elif block.language == "yaml":
        assert isinstance(yaml.safe_load(block.body), dict)
    else:
        assert block.language == "text", f"a block of language {block.language!r} is run by nobody"


def _run_alone(block: Block, here: Path) -> str:
    """Run a block that imports a framework, whose imports and warnings are not ours."""
    script = here / str(block.file)
    script.write_text(block.body, encoding="utf-8")
    words = [sys.executable, "-W", "ignore", str(script)]
    quiet = {**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "false"}
    done = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
        print(demo.printed)
    elif words[:2] == ["pip", "install"]:
        extras = re.fullmatch(r"(?:\.|auepora-eval)\[([a-z,-]+)\]", words[2])
        assert extras is not None, line
        assert set(extras[1].split(",")) <= EXTRAS.keys(), line
    elif ENDPOINT in words:
        with chat_server(says=lambda _: {"answer": "22", "documents": ["ferry"]}, bare=True) as server:
            url = f"http://127.0.0.1:{server.address[1]}/ask"
            assert main([url if word == ENDPOINT else word for word in words[1:]]) == 0, line
    elif words[0] == "auepora":
        # Fewer resamples are faster, but change the numbers, which only matters if the page shows them.
        is_slow = words[1] in ("compare", "gate") and not is_shown
        few = ["--resamples", "500"] if is_slow else []
        assert main([*words[1:], *few]) == 0, line
    elif words[:2] == ["git", "clone"] and words[3:] == ["&&", "cd", "auepora-eval"]:
        assert (
            words[2]
            in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"].values()
        )
    elif words[0] == "sed":
        subprocess.run(line, shell=True, check=True)  # noqa: S602 - our own documentation
    elif words[0] == "sqlite3":
        with contextlib.closing(sqlite3.connect(words[1])) as database:
            database.execute(words[2]).fetchall()
    else:
        assert words[0] == "make"
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help differently in each version"
)
@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_up_to_date(page: str) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == PAGES[page](), "run make docs"


INLINE = re.compile(r"`(auepora [a-z][^`]*)`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_sentences_and_tables_have_known_flags(path: Path) -> None:
    in_blocks = [
        line for block in blocks(path) if block.language == "text" for line in block.body.splitlines()
    ]
    in_words = INLINE.findall(path.read_text(encoding="utf-8"))
    for line in [*in_words, *(line for line in in_blocks if re.match("auepora [a-z]", line))]:
        words = [word.strip("'\"").partition("=")[0] for word in line.partition(" | ")[0].split()[1:]]
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS), None)
        if name is None:
            assert words[0] in {"help", "completion", "dataset", "labels"}, f"{path.name}: {line}"
            continue
        known = {flag for action in parser_of(name)._actions for flag in action.option_strings}
        assert {word for word in words if re.fullmatch(r"--[a-z-]+", word)} <= known, f"{path.name}: {line}"


@functools.cache
def parser_of(name: str) -> ArgumentParser:
    return command_parser(name, load_command(name))


@pytest.mark.parametrize("name", ["README.md", "docs/which-metric.md"])
def test_metrics_of_the_guides_exist(name: str) -> None:
    rows = re.findall(r"^\|.*\|$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    names = {
        found for row in rows for found in re.findall(r"`([a-zA-Z_0-9]+[@\[][^`]+|[a-z]+_[a-z_0-9]+)`", row)
    }
    samples = {"relevant_docs", "reference_answer"}
    assert len(names) > 15
    for metric in names - samples:
        assert parse_metric(metric.replace("@k", "@5").replace("[FILE]", f"[{ROOT / 'README.md'}]")), metric


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").partition("## Missing")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(messages) > 15
    texts = "\n".join(texts_of(path) for path in (ROOT / "auepora_eval").rglob("*.py"))
    parts = [part.strip() for message in messages for part in message.split("…") if part.strip(" .:()?")]
    assert [part for part in parts if part not in texts] == []


def texts_of(path: Path) -> str:
    """Return the constant parts of all texts in a module, those of one f-string on one line."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            lines.append(
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines.append(node.value)
    return "\n".join(lines)


def test_every_public_name_has_an_example() -> None:
    names = {name for name, home in public_names().items() if home != "errors"}
    assert names - api_examples().keys() == {"Answerer"}  # `answerer_of` makes it


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_record_and_the_manifest_of_the_page_are_what_a_build_makes(here: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "make-a-test-set.md").read_text(encoding="utf-8")
    shown = {block.file: block.body for block in blocks(ROOT / "docs" / "how-to" / "make-a-test-set.md")}
    (here / "tasks.jsonl").write_text(json.dumps(json.loads(shown["task.json"])) + "\n", encoding="utf-8")
    assert main(["dataset", "build", "--offline-dataset", "tasks.jsonl"]) == 0
    record = (here / "evaluation/datasets/qa_pairs.jsonl").read_text(encoding="utf-8")
    table = text.partition("| field of a record |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    fields = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert json.loads(record).keys() | {"instruction", "reference_summary"} == fields
    manifest = json.loads((here / "evaluation/datasets/manifest.json").read_text(encoding="utf-8"))
    table = text.partition("| field of the manifest |")[2]
    assert list(manifest) == re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
