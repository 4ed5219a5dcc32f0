"""TREC files: order and ties, queries that one side lacks, and values as ir_measures has them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.errors import DataError
from auepora_eval.io.detect import kind_of_file
from auepora_eval.io.outputs import load_predictions
from auepora_eval.io.trec import load_qrels, read_run
from tests.builders import plan

SHARED = Path(__file__).parents[4] / "shared" / "data" / "interop" / "trec"


def files(folder: Path, qrels: str, run: str) -> tuple[Path, Path]:
    paths = folder / "a.qrels", folder / "a.run"
    for path, text in zip(paths, (qrels, run), strict=True):
        path.write_text(text)
    return paths


def test_order_is_by_score_then_by_id_descending(tmp_path: Path) -> None:
    _, run = files(tmp_path, "", "1 E2 a 1 0.5 t\n1 Q0 c 2 0.9 t\n1 Q0 b 3 0.5 t\n")
    assert kind_of_file(run) == "trec-run"
    assert [hit.doc.doc_id for hit in read_run(run)["1"].retrieved] == ["c", "b", "a"]


def test_queries_that_one_side_lacks(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "1 0 a 1\n2 0 a 1\n", "1 Q0 a 1 1.0 t\n3 Q0 a 1 1.0 t\n")
    scored = ae.score(qrels, run, metrics="recall@5")
    assert scored["recall@5"].value == 0.5  # query 2 counts as 0, as with trec_eval -c; 3 is left out
    assert scored["recall@5"].coverage.failed == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 a 1 t", "5 columns"),
        ("1 Q0 a 1 t\n1 Q0 a 1 1.0 t more", "5 columns"),
        ("1 Q0 a 1 high t", "'high' is not a number"),
    ],
)
def test_bad_lines_of_a_run(tmp_path: Path, line: str, message: str) -> None:
    _, run = files(tmp_path, "", f"1 Q0 a 1 1.0 t\n{line}\n")
    with pytest.raises(DataError, match=rf"a.run:2: .*{message}"):
        read_run(run)


@pytest.mark.parametrize("flags", [[], ["--format", "trec"]], ids=" ".join)
def test_on_the_command_line(tmp_path: Path, flags: list[str]) -> None:
    qrels, run = files(tmp_path, "1 0 a 1\n2 0 a 1\n", "1 Q0 a 1 1.0 t\n")
    out = ["--out", str(tmp_path / "runs"), "--id", "a"]
    scored = ["score", *flags, "--dataset", str(qrels), "--outputs", str(run), "--metrics", "mrr"]
    assert main([*scored, *out]) == 0
    assert ae.load_run(tmp_path / "runs" / "a")["mrr"].value == 0.5


MEASURES = {
    "ndcg@10": "nDCG@10",
    "map": "AP",
    "mrr": "RR",
    "bpref": "Bpref",
    "r_precision": "Rprec",
    "precision@10": "P@10",
}


def assert_same(qrels: Path, run: Path) -> None:
    measures: Any = pytest.importorskip("ir_measures")
    parsed = {name: measures.parse_measure(theirs) for name, theirs in MEASURES.items()}
    expected = measures.calc_aggregate(
        list(parsed.values()), measures.read_trec_qrels(str(qrels)), measures.read_trec_run(str(run))
    )
    scored = ae.score(qrels, run, metrics=list(MEASURES))
    for name, measure in parsed.items():
        assert scored[name].value == pytest.approx(expected[measure], abs=1e-9), name


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of TREC are not here")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_are_those_of_ir_measures() -> None:
    assert_same(SHARED / "cwl.qrels", SHARED / "cwl.run")
    assert_same(SHARED / "compat.qrels", SHARED / "compat.head400.run")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_of_random_runs_with_ties_are_those_of_ir_measures(tmp_path: Path) -> None:
    rng = random.Random(0)
    judged = [
        f"{q} 0 d{d} {rng.choice([-1, 0, 0, 1, 2])}\n" for q in range(40) for d in rng.sample(range(60), 20)
    ]
    hits = [f"{q} Q0 d{d} 1 {rng.randint(1, 8)} t\n" for q in range(38) for d in rng.sample(range(60), 30)]
    assert_same(*files(tmp_path, "".join(judged), "".join(hits)))


def test_topics_and_runs_are_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run = files(tmp_path, "1 0 a 1\n2 0 a 1\n", "1 Q0 a 1 1.5 t\n")
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tHow many cars?\n2\tWhen is water tested?\n3\tNobody asks\n")
    out = tmp_path / "q.jsonl"
    assert main(["dataset", "convert", "--from", "trec", str(qrels), str(out), "--topics", str(topics)]) == 0
    assert [sample.query for sample in ae.load_dataset(out)] == ["How many cars?", "When is water tested?"]
    predictions = tmp_path / "p.jsonl"
    assert main(["dataset", "convert", "--from", "trec", str(run), str(predictions)]) == 0
    assert ae.score(out, predictions, metrics="mrr")["mrr"].coverage.failed == 1  # a file, not a run of TREC
    assert load_predictions(predictions) == read_run(run)
    topics.write_text("1\tHow many cars?\n")
    assert main(["dataset", "convert", str(qrels), str(tmp_path / "r.jsonl"), "--topics", str(topics)]) == 2
    assert "1 of 2 queries have no topic, first '2'" in capsys.readouterr().err


def test_hits_with_the_id_of_the_query_are_left_out(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "1 0 a 1\n", "1 Q0 1 1 3.0 t\n1 Q0 a 2 2.0 t\n")
    scored = ["score", "--dataset", str(qrels), "--outputs", str(run), "--metrics", "mrr"]
    for name, flag, value in (("a", (), 0.5), ("b", plan(tmp_path, ignore_identical_ids=True), 1.0)):
        assert main([*scored, *flag, "--out", str(tmp_path / "runs"), "--id", name]) == 0
        assert ae.load_run(tmp_path / "runs" / name)["mrr"].value == value


def test_a_stored_run_is_the_run(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, "1 0 a 1\n", "1 Q0 a 1 0.5 t\n1 Q0 c 2 0.9 t\n")
    scored = ["score", "--dataset", str(qrels), "--outputs", str(run), "--metrics", "mrr"]
    assert main([*scored, "--out", str(tmp_path / "runs"), "--id", "a"]) == 0
    stored = ae.load_run(tmp_path / "runs" / "a")
    assert stored.outputs[0].retrieved == read_run(run)["1"].retrieved
    assert [hit.doc.doc_id for hit in stored.outputs[0].retrieved] == ["c", "a"]
    assert main(["show", "a", "--verify", "--out", str(tmp_path / "runs")]) == 0
    for command in (["show", "a", "--sample", "1"], ["score", "--run", "a", "--metrics", "map", "--id", "b"]):
        assert main([*command, "--out", str(tmp_path / "runs")]) == 0
    assert main([*scored, "--out", str(tmp_path / "runs"), "--id", "c"]) == 0
    assert main(["compare", "a", "c", "--out", str(tmp_path / "runs")]) == 0


@pytest.mark.parametrize(
    "score",
    ["12.5", "0.1", "-3", "1e-3", "1.", ".5", "+1", "007", "-0", "-0.0", "0.30000000000000004", "9" * 40],
)
def test_scores_are_those_of_python_to_the_last_bit(tmp_path: Path, score: str) -> None:
    path = tmp_path / "a.run"
    path.write_text(f"q Q0 a 1 {score} t\nq Q0 b 2 2.25 t\n", encoding="utf-8")
    (output,) = read_run(path).values()
    scores = {hit.doc.doc_id: hit.score.hex() for hit in output.retrieved}
    assert scores == {"a": float(score).hex(), "b": (2.25).hex()}


@pytest.mark.parametrize("ends_with_a_line", [True, False])
def test_lines_that_even_out_are_refused(tmp_path: Path, ends_with_a_line: bool) -> None:
    """Five and three columns are eight words, as two lines of four have."""
    end = "\n" if ends_with_a_line else ""
    qrels, run = files(tmp_path, f"1 0 5 7 1\n2 0 1{end}", f"1 Q0 a 1 2.0 t 7\n2 Q0 b 1 1.0{end}")
    with pytest.raises(DataError, match=r":1: there are 5 columns, not 4"):
        load_qrels(qrels)
    with pytest.raises(DataError, match=r":1: there are 7 columns, not 6"):
        read_run(run)
    qrels, run = files(tmp_path, f"1 0 a 1\n2 0 b 1{end}", f"1 Q0 a 1 2.0 t\n2\tQ0  b 1 1.0 t{end}")
    assert [sample.sample_id for sample in load_qrels(qrels)] == ["1", "2"]
    assert list(read_run(run)) == ["1", "2"]
