"""Bad input on the command line: one line on stderr, the exit code, and nothing half-written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

GOOD = '{"sample_id":"1","query":"q","relevant_docs":["a"],"reference_answer":"x"}\n'
PREDICTION = '{"sample_id":"1","retrieved":["a"],"answer":"x"}\n'
SYSTEM = """
def answer(query):
    return "x"

class Needy:
    def __init__(self, key):
        self.key = key

class Broken:
    def __init__(self):
        raise KeyError("no key")

number = 5
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a good dataset, predictions and a system; what loading one changes is put back."""
    (tmp_path / "good.jsonl").write_text(GOOD, encoding="utf-8")
    (tmp_path / "predictions.jsonl").write_text(PREDICTION, encoding="utf-8")
    (tmp_path / "bad_input_system.py").write_text(SYSTEM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


Refuse = Callable[..., str]


@pytest.fixture
def refused(work: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Run a command that must fail, check what always holds, and return the line."""

    def run(*words: str, code: int = 2) -> str:
        assert main([*words, "--out", "out"] if "--out" not in words else words) == code
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("auepora: ")
        assert shown.err.count("\n") == 1
        assert len(shown.err) < 1100
        assert not [path for path in (work / "out").rglob("*") if path.is_file()]
        return shown.err

    return run


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--run r --metrics mrr --limit 3 --name x", "--run does not take --limit, --name: the run has its"),
        ("--run r", "--run needs the metrics to compute: add --metrics, such as recall@1,rouge2."),
        ("--dataset good.jsonl --only", "--only is for --run RUN. Leave it out."),
    ],
)
def test_flags_of_score_that_do_not_fit_together(flags: str, message: str, refused: Refuse) -> None:
    assert message in refused("score", *flags.split())


@pytest.mark.parametrize(
    ("dataset", "prediction"),
    [
        pytest.param('{"sample_id":"1","query":"q"}', PREDICTION, id="no gold"),
        pytest.param(GOOD, '{"sample_id":"1","retrieved":[],"answer":"x"}', id="empty retrieval"),
        pytest.param(GOOD, '{"sample_id":"1","retrieved":["a"],"answer":""}', id="empty answer"),
        pytest.param(GOOD, '{"sample_id":"1","retrieved":[],"answer":""}', id="nothing at all"),
        pytest.param(GOOD, "", id="no predictions"),
        pytest.param(GOOD, '{"sample_id":"1","error":"boom"}', id="a failure"),
    ],
)
def test_sparse_data_are_scored(
    work: Path, capsys: pytest.CaptureFixture[str], dataset: str, prediction: str
) -> None:
    (work / "d.jsonl").write_text(dataset, encoding="utf-8")
    (work / "p.jsonl").write_text(prediction, encoding="utf-8")
    # Where not one sample has an output, finished is not good.
    failed = "answer" not in prediction
    words = ["score", "--dataset", "d.jsonl", "--outputs", "p.jsonl", "--out", "out", "--id", "sparse"]
    assert main(words) == (3 if failed else 0)
    assert "Traceback" not in capsys.readouterr().err
    assert main(["show", "sparse", "--out", "out"]) == 0
    assert "1 sample," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("system", "message"),
    [
        pytest.param("no_such_module_here:x", "there is no module 'no_such_module_here'", id="no module"),
        pytest.param("no_such_file.py:x", "there is no such file", id="no file"),
        pytest.param(
            "bad_input_system.py:zzz", "has no 'zzz'. It has answer, Needy, Broken, number", id="no attribute"
        ),
        pytest.param("bad_input_syntax.py:x", "(bad_input_syntax.py, line 2).", id="syntax error"),
        pytest.param("bad_input_raises.py:x", "RuntimeError: no luck (bad_input_raises.py:1)", id="raises"),
        pytest.param(
            "bad_input_system.py:Needy", "missing 1 required positional argument: 'key'", id="arguments"
        ),
        pytest.param(
            "bad_input_system.py:Broken", "KeyError: 'no key' (bad_input_system.py:", id="raises when made"
        ),
        pytest.param(
            "bad_input_system.py:number",
            "number: system must be an object with run(sample, top_k=...)",
            id="a number",
        ),
        pytest.param("bad_input_system.py", "is not module:attribute", id="no colon"),
    ],
)
def test_unloadable_systems(work: Path, refused: Refuse, system: str, message: str) -> None:
    (work / "bad_input_syntax.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    (work / "bad_input_raises.py").write_text("raise RuntimeError('no\\nluck')\n", encoding="utf-8")
    line = refused("run", "--dataset", "good.jsonl", "--system", system)
    assert f"--system {system}: " in line
    assert message in line
    assert "rag_interface" not in line, "where this package raised it helps nobody"


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        pytest.param("datset: x", "Did you mean dataset?", id="misspelt"),
        pytest.param("executor: nosuch", "there is no executor 'nosuch'", id="executor"),
        pytest.param("format: nosuch", "there is no format 'nosuch'", id="format"),
        pytest.param("metrics: nosuch", "there is no metric 'nosuch'", id="metric"),
        pytest.param("id: ../x", "evaluation id '../x': cannot be a file name", id="id"),
    ],
)
def test_bad_plans(work: Path, refused: Refuse, plan: str, message: str) -> None:
    (work / "plan.yaml").write_text(plan, encoding="utf-8")
    words = ("--dataset", "good.jsonl", "--system", "bad_input_system.py:answer", "--config", "plan.yaml")
    assert message in refused("run", *words)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        pytest.param('dataset: "a\\0b"\nsystem: s:x', "there is no such file", id="NUL in the dataset"),
        pytest.param("system: s:x", "--dataset is missing", id="no dataset"),
        pytest.param("dataset: demo", "--system is missing", id="no system"),
    ],
)
def test_incomplete_plans(work: Path, refused: Refuse, plan: str, message: str) -> None:
    (work / "plan.yaml").write_text(plan, encoding="utf-8")
    assert message in refused("run", "--config", "plan.yaml")


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc/x", "..", "x" * 5000, ".a", "a.", "a\0b"])
def test_ids_that_are_not_file_names(refused: Refuse, name: str) -> None:
    what = "cannot be a file name"
    for flags in ((), ("--verify",)):
        assert ("there is no such file" if "/" in name else what) in refused("show", name, *flags)
    good = ("--dataset", "good.jsonl", f"--id={name}")
    assert what in refused("run", *good, "--system", "bad_input_system.py:answer")
    assert what in refused("score", *good, "--outputs", "predictions.jsonl")


def test_show_reads_no_other_files(refused: Refuse) -> None:
    assert "root" not in refused("show", "../../etc/passwd")
    assert "root" not in refused("show", "/etc/passwd", "--json")


@pytest.mark.parametrize(
    "out",
    [pytest.param("good.jsonl", id="a file"), pytest.param("good.jsonl/x", id="below a file"), "x" * 5000],
)
def test_unwritable_outputs(refused: Refuse, out: str) -> None:
    data = ("--dataset", "good.jsonl", "--out", out)
    assert "cannot be" in refused("run", *data, "--system", "bad_input_system.py:answer", code=4)
    assert "cannot be" in refused("score", *data, "--outputs", "predictions.jsonl", code=4)


ODD_VALUES = [
    (("_metadata", "evaluation_type"), {}),
    (("metadata", "evaluation_environment", "packages"), [None, None]),
    (("performance_metrics", "resource_usage"), -1),
    (("query_results", 0, "individual_metrics"), {}),
    (("query_results", 0, "individual_metrics", "recall@1"), 1e308),
    (("retrieval_metrics", "recall@1", "confidence_interval"), ["low", None, 3]),
]


@pytest.mark.parametrize(("place", "value"), ODD_VALUES, ids=[str(place[-1]) for place, _ in ODD_VALUES])
def test_odd_values_in_a_results_file(
    work: Path, capsys: pytest.CaptureFixture[str], place: tuple[str | int, ...], value: object
) -> None:
    """Somebody edited the file: the value is not used, or one line says what is wrong with it."""
    score = ["score", "--dataset", "good.jsonl", "--outputs", "predictions.jsonl", "--out", "out"]
    for name in ("odd", "good"):
        assert main([*score, "--metrics", "recall@1", "--id", name]) == 0
    path = work / "out" / "odd.results.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    part = document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(document), encoding="utf-8")
    capsys.readouterr()
    for words in (
        ["show", "odd"],
        ["show", "odd", "--worst", "recall@1"],
        ["list"],
        ["list", "--trend", "recall@1"],
        ["compare", "good", "odd"],
        ["gate", "odd", "--min", "recall@1=0.5"],
        ["gate", "odd", "--baseline", "good"],
        ["power", "odd"],
        ["compare", "odd", "good", "--html", "page.html", "--force"],
        ["score", "--run", "odd", "--metrics", "mrr", "--id", "again", "--force"],
        ["show", "odd", "--verify"],
    ):
        code = main([*words, "--out", "out"])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err, words
        if code == 2:
            assert len([line for line in printed.err.splitlines() if line.startswith("auepora: ")]) == 1


LIST_IN_AN_OBJECT = '{"version": 2, "data": [{"id": "1", "question": "q"}, {"id": "2", "question": "r"}]}'


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (LIST_IN_AN_OBJECT, "'data' is a list of 2 records: write this list alone to a file."),
        ('{"data": {}, "version": 2}', "on each line."),
    ],
    ids=["with a list", "without a list"],
)
@pytest.mark.parametrize("flag", ["--dataset", "--outputs"])
def test_an_object_of_unknown_form_is_described(
    work: Path, refused: Refuse, flag: str, text: str, fix: str
) -> None:
    (work / "other.json").write_text(text, encoding="utf-8")
    files = {"--dataset": "good.jsonl", "--outputs": "predictions.jsonl"} | {flag: "other.json"}
    said = refused("score", "--metrics", "mrr", *(word for pair in files.items() for word in pair))
    assert "other.json" in said
    assert "the object has the keys 'version', 'data' and no field of a" in said.replace(
        "'data', 'version'", "'version', 'data'"
    )
    assert fix in said
