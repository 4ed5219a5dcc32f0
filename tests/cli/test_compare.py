"""auepora compare: every form of output, and errors."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from auepora_eval.cli import echo
from auepora_eval.cli.main import main
from auepora_eval.read.records import prediction_record
from auepora_eval.store.storage import EvaluationResultsStorage

Run = Callable[..., tuple[str, str]]
TWO = ("demo-bm25", "demo-hybrid")


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled runs, of a few metrics, and a second copy of each under another id."""
    folder = tmp_path_factory.mktemp("runs")
    metrics = "recall@5,mrr,ndcg@5,token_f1,rejection_rate,mean_latency"
    few = ["--metrics", metrics, "--out", str(folder), "--json"]
    for name in TWO:
        system = f"auepora_eval.demo.systems:{name.removeprefix('demo-')}"
        assert main(["run", "--dataset", "demo", "--system", system, "--id", name, *few]) == 0
        shutil.copy(folder / f"{name}.run.db", folder / f"again-{name}.run.db")
        text = (folder / f"{name}.results.json").read_text(encoding="utf-8").replace(name, f"again-{name}")
        (folder / f"again-{name}.results.json").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def whole_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled runs with all the metrics of `auepora demo`."""
    folder = tmp_path_factory.mktemp("whole")
    assert main(["demo", "--out", str(folder), "--json"]) == 0
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


@pytest.mark.parametrize(("width", "has_p"), [(80, False), (120, True)])
def test_the_verdict_comes_last_and_the_table_fits(
    whole_demo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
    has_p: bool,
) -> None:
    monkeypatch.setattr(echo, "_PIPE_WIDTH", width)
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    words = ["--full", "--regressions", "0", "--out", str(whole_demo), "--resamples", "500"]
    assert main(["compare", *TWO, *words]) == 0
    out = capsys.readouterr().out
    table, meaning = out.split("\n\nhybrid is", 1)
    table, meaning = table.partition("Effect sizes")[0], f"hybrid is{meaning}".partition("Next: ")[0]
    assert "Verdict: " in meaning
    assert "hybrid is better at finding the right documents" in " ".join(meaning.split())
    rows = [line for line in table.splitlines() if line.startswith("ndcg@5 ")]
    assert len(rows) == 1  # a row is a line: nothing is stacked
    assert rows[0].split()[-1] == "better"
    assert ("p (Holm)" in table) is has_p
    assert all(len(line.rstrip()) <= width for line in (meaning + table).splitlines())


def test_no_worse_within_a_margin(demo_runs: Path, compare: Run) -> None:
    """Of 160 questions, two find their documents in another order: enough to rule out a loss of 0.2."""
    run = EvaluationResultsStorage(demo_runs).load_run("demo-bm25")
    records = [
        prediction_record(one.sample_id, output) for one, output in zip(run.samples, run.outputs, strict=True)
    ]
    for record in [one for one in records if len(one["retrieved"]) > 1][:2]:
        record["retrieved"] = [{"doc_id": hit.doc_id} for hit in reversed(record["retrieved"])]
    outputs = demo_runs / "nearly.jsonl"
    outputs.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    data = ("--dataset", "demo", "--outputs", str(outputs), "--metrics", "mrr,ndcg@5")
    assert main(["score", *data, "--id", "nearly", "--out", str(demo_runs), "--force"]) == 0
    out, _ = compare("demo-bm25", "nearly", "--margin", "0.2", "--json")
    verdicts = {one["name"]: one["verdict"] for one in json.loads(out)["metrics"]}
    assert (verdicts["mrr"], verdicts["ndcg@5"]) == ("no worse", "no worse")
    out, _ = compare("demo-bm25", "nearly", "--margin", "mrr=0.2", "--full")
    assert re.search(r"^mrr .* no worse", out, re.MULTILINE)
    assert "A loss as large as the margin is ruled out for mrr (0.2000)." in out
    out, _ = compare("demo-bm25", "nearly", "--margin", "0.001", "--json")  # too few questions for that
    assert "no worse" not in {one["verdict"] for one in json.loads(out)["metrics"]}


def test_a_page_and_a_comment_are_files(compare: Run, tmp_path: Path) -> None:
    files = ("--html", str(tmp_path / "page.html"), "--markdown", str(tmp_path / "comment.md"))
    out, err = compare(*TWO, *files)
    assert (out, err.count("stored: ")) == ("", 2)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>hybrid against bm25</h1>" in page
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith("### hybrid compared with bm25: ")
    assert "exists" in compare(*TWO, *files, code=4)[1]
    compare(*TWO, *files, "--force")
    repeats = ("demo-bm25,again-demo-bm25", "demo-hybrid,again-demo-hybrid")
    for words in ((*TWO, "--allow-mismatch"), repeats):
        assert "Leave out --allow-mismatch and repeats" in compare(*words, *files, code=2)[1]


@pytest.mark.parametrize("form", [(), ("--markdown", "-")])
def test_run_name_starts_no_ci_command(demo_runs: Path, compare: Run, form: tuple[str, ...]) -> None:
    text = (demo_runs / "demo-hybrid.results.json").read_text(encoding="utf-8")
    document = json.loads(text)
    document["system_version"] = "x\n::error::y\r::warning::z"
    hostile = demo_runs / "hostile.results.json"
    hostile.write_text(json.dumps(document).replace("demo-hybrid", "hostile"), encoding="utf-8")
    shutil.copy(demo_runs / "demo-hybrid.run.db", demo_runs / "hostile.run.db")
    for runs in (("demo-bm25", "hostile"), ("demo-bm25", "demo-hybrid", "hostile")):
        out, err = compare(*runs, *form)
        for line in (out + err).splitlines():
            assert not line.lstrip().startswith("::")


def test_repeats(compare: Run) -> None:
    out, _ = compare("demo-bm25,again-demo-bm25", "demo-hybrid,again-demo-hybrid", "--full")
    assert "Run to run, over 2 repeats of each" in out
    _, err = compare("demo-bm25,again-demo-bm25", "demo-hybrid", code=2)
    assert "equally many repeats" in err


@pytest.mark.parametrize(
    "names",
    [
        ("demo-bm25", "demo-bm25"),
        ("demo-bm25", "demo-hybrid", "demo-bm25"),
        ("demo-bm25,demo-hybrid", "again-demo-bm25,demo-hybrid"),
    ],
)
def test_a_run_is_not_compared_with_itself(compare: Run, names: tuple[str, ...]) -> None:
    _, err = compare(*names, code=2)
    assert "is named twice" in err
    assert "Name different runs." in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--margin", "0.1", "--margin", "mrr=0.1"), "not both"),
        (("--margin", "nonsense=0.1"), "'nonsense', which is not compared"),
        (("--regressions-of", "nonsense"), "is not compared. There are recall@5"),
        (("--by", "nonsense"), "no sample has a label or metadata field"),
    ],
)
def test_unknown_names_are_errors(compare: Run, words: tuple[str, ...], says: str) -> None:
    assert says in compare(*TWO, *words, code=2)[1]
