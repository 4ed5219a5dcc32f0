"""auepora compare: what it prints, in every form, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli import echo
from auepora_eval.cli.main import main

Run = Callable[..., tuple[str, str]]
TWO = ("demo-bm25", "demo-hybrid")


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled runs, and a second copy of each under another id."""
    folder = tmp_path_factory.mktemp("runs")
    assert main(["demo", "--out", str(folder), "--json"]) == 0
    for name in TWO:
        shutil.copytree(folder / f"{name}.run", folder / f"again-{name}.run")
        text = (folder / f"{name}.results.json").read_text(encoding="utf-8").replace(name, f"again-{name}")
        (folder / f"again-{name}.results.json").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def compare(demo_runs: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["compare", *words, "--out", str(demo_runs), "--resamples", "500"]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return run


def test_the_tables(compare: Run) -> None:
    out, _ = compare(*TWO, "--margin", "0.02", "--by", "scenario")
    for text in (
        "hybrid against bm25, sample by sample",
        "How large",
        "Won/tied/lost",
        "no worse",
        "Slices, the worst first (15 shown)",
        "scenario=base",
        "stand on fewer than 20 samples",
        "Biggest losers on ",
        " before: ",
    ):
        assert " ".join(text.split()) in " ".join(out.split())  # sentences are wrapped


@pytest.mark.parametrize(("width", "has_p"), [(80, False), (120, True)])
def test_the_meaning_comes_first_and_the_table_fits(
    compare: Run, monkeypatch: pytest.MonkeyPatch, width: int, has_p: bool
) -> None:
    monkeypatch.setattr(echo, "_PIPE_WIDTH", width)
    monkeypatch.setenv("COLUMNS", str(width))
    out, _ = compare(*TWO, "--losers", "0")
    meaning, table = out.partition("How large")[0].split("Metric  ", 1)
    assert "hybrid is better at finding the right documents" in " ".join(meaning.split())
    rows = [line for line in table.splitlines() if line.startswith("ndcg@5 ")]
    assert len(rows) == 1  # a row is a line: nothing is stacked
    assert rows[0].split()[-1] == "better"
    assert ("p Holm" in table) is has_p
    assert all(len(line.rstrip()) <= width for line in (meaning + table).splitlines())


def test_for_machines(compare: Run) -> None:
    out, _ = compare(*TWO, "--margin", "recall@5=0.05", "--by", "scenario", "--losers-of", "mrr")
    assert "Biggest losers on mrr" in out
    document = json.loads(compare(*TWO, "--margin", "recall@5=0.05", "--by", "scenario", "--json")[0])
    first = document["metrics"][0]
    assert (first["name"], first["margin"]) == ("recall@5", 0.05)
    assert {"detectable", "effect_size", "cliffs_delta", "losers", "difference_bounds"} <= set(first)
    assert document["statistical_analysis"]["significance_tests"]["recall@5"]["current_mean"] > 0.7
    assert document["slices"][0]["field"] == "scenario"
    assert document["biggest_losers"][0]["query"]
    assert document["in_plain_words"][0].startswith("hybrid is better at finding the right documents")


def test_markdown_and_latex(compare: Run) -> None:
    assert "### How large" in compare(*TWO, "--markdown")[0]
    assert r"\begin{tabular}" in compare(*TWO, "--latex")[0]


def test_three_runs_are_ranked(compare: Run) -> None:
    three = (*TWO, "again-demo-bm25")
    out, _ = compare(*three)
    assert "3 systems, each pair compared" in out
    assert "#1" in out
    assert len(json.loads(compare(*three, "--json")[0])["pairs"]) == 3
    assert r"\begin{tabular}" in compare(*three, "--latex")[0]
    assert "| Metric | a demo-bm25 |" in compare(*three, "--markdown")[0]
    _, err = compare(*three, "--by", "scenario", code=2)
    assert "slices and repeats are for two systems" in err


def test_repeats(compare: Run) -> None:
    out, _ = compare("demo-bm25,again-demo-bm25", "demo-hybrid,again-demo-hybrid")
    assert "Run to run, over 2 repeats of each" in out
    _, err = compare("demo-bm25,again-demo-bm25", "demo-hybrid", code=2)
    assert "equally many repeats" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--margin", "0.1", "--margin", "mrr=0.1"), "not both"),
        (("--margin", "nonsense=0.1"), "'nonsense', which is not compared"),
        (("--losers-of", "nonsense"), "is not compared. There are recall@5"),
        (("--by", "nonsense"), "no sample has a label or metadata field"),
    ],
)
def test_what_is_not_there_is_refused(compare: Run, words: tuple[str, ...], says: str) -> None:
    assert says in compare(*TWO, *words, code=2)[1]


@pytest.mark.parametrize("margin", ["0", "-1", "nan", "x", "=1", "mrr=x"])
def test_a_margin_that_is_none_is_refused(compare: Run, margin: str) -> None:
    assert "argument --margin" in compare(*TWO, f"--margin={margin}", code=2)[1]
