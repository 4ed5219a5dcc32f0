"""Rows in columns: what goes in comes out, whatever the texts and however the scores are."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.scores import Scores
from auepora_eval.core.types import EvaluationSample, Failure, Response, SampleScore, SystemOutputs
from auepora_eval.errors import DataError
from auepora_eval.io.jsonl import encode
from auepora_eval.io.results.document import JsonRows, query_results
from auepora_eval.io.results.rows_parquet import ParquetRows, QueriesWriter
from tests.builders import a_document, a_sample, an_output

pytest.importorskip("pyarrow")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.floats(-1e150, 1e150)  # a larger score is a failure
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda c: st.lists(c, max_size=3))
World = tuple[list[EvaluationSample], list[SystemOutputs], dict[str, list[SampleScore]]]
METRICS = ("recall@5", "latency@0.5[end_to_end]", "bleu", "a.b")


@st.composite
def worlds(
    draw: st.DrawFn,
) -> tuple[list[EvaluationSample], list[SystemOutputs], dict[str, list[SampleScore]]]:
    ids = draw(st.lists(TEXT.filter(str.strip), max_size=6, unique=True))
    samples, outputs = [], []
    for sample_id in ids:
        sample = EvaluationSample(sample_id, draw(TEXT))
        if draw(st.booleans()):
            sample.metadata["cluster"] = draw(TEXT | st.integers())
        if draw(st.booleans()):
            sample.relevant_docs = [a_document(name) for name in draw(st.lists(TEXT, max_size=2))]
        output = an_output(draw(st.lists(TEXT, max_size=3)), draw(TEXT))
        if draw(st.booleans()):
            output.timings["end_to_end"] = draw(st.floats(0, 1e9))
        if draw(st.booleans()):
            output.response.metadata["citations"] = draw(st.lists(JSON, max_size=2))
        if draw(st.booleans()):
            output = SystemOutputs([], Response(""), error=Failure(draw(TEXT), draw(TEXT)))
        samples.append(sample)
        outputs.append(output)
    width = draw(st.integers(0, 2))
    scores = {
        name: [draw(_score(sample_id, width if name == "bleu" else 0)) for sample_id in ids]
        for name in METRICS[: draw(st.integers(0, 4))]
    }
    return samples, outputs, scores


@st.composite
def _score(draw: st.DrawFn, sample_id: str, width: int) -> SampleScore:
    if draw(st.booleans()):
        return SampleScore(None, draw(TEXT), (), sample_id, draw(st.booleans()))
    return SampleScore(draw(NUMBER), "", tuple(draw(NUMBER) for _ in range(width)), sample_id)


@settings(max_examples=60, deadline=None)
@given(world=worlds(), cut=st.integers(0, 6), as_columns=st.booleans())
def test_rows_come_back(world: Any, cut: int, as_columns: bool) -> None:
    samples, outputs, scores = world
    rows = json.loads(encode(list(query_results(samples, outputs, scores))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.queries.parquet"
        with path.open("wb") as file:
            writer = QueriesWriter(file, list(scores))
            writer.add_rows(rows[:cut])
            columns = {name: Scores.of(column[cut:]) for name, column in scores.items()}
            rest = columns if as_columns else {name: column[cut:] for name, column in scores.items()}
            writer.add(samples[cut:], outputs[cut:], rest)
            digest = writer.finish()
        assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
        stored, plain = ParquetRows(path, sha256=digest), JsonRows(rows, "x")
        assert list(stored.rows()) == rows
        assert stored.ids == plain.ids
        assert len(stored) == len(plain) == writer.rows
        assert stored.tally() == plain.tally()
        for name in (*scores, "none"):
            ours, theirs = stored.scores(name), plain.scores(name)
            assert list(ours) == list(theirs)
            assert ours.clusters == theirs.clusters


def test_not_a_number_is_nothing(tmp_path: Path) -> None:
    output = an_output("ab")
    output.retrieved[0].score = float("nan")
    with (tmp_path / "x").open("wb") as file:
        writer = QueriesWriter(file, ["m"])
        writer.add([a_sample()], [output], {"m": [SampleScore(float("nan"), sample_id="1")]})
        writer.finish()
    [row] = ParquetRows(tmp_path / "x").rows()
    assert row["retrieval_results"]["relevance_scores"] == [None, 0.5]
    assert row["individual_metrics"] == {"m": None}


WRITE = """
import sys
from auepora_eval.io.results.rows_parquet import QueriesWriter
from tests.builders import a_sample, an_output
from auepora_eval.core.types import Failure, Response, SampleScore, SystemOutputs
outputs = [an_output("ab"), SystemOutputs([], Response(""), error=Failure("Timeout", "late"))]
scores = [SampleScore(0.5, "", (1.0, 2.0)), SampleScore(None, "Timeout: late", failed=True)]
with open(sys.argv[1], "wb") as file:
    writer = QueriesWriter(file, ["m"])
    writer.add_rows([])
    writer.add([a_sample("1"), a_sample("2")], outputs, {"m": scores})
    writer.finish()
raise SystemExit("pandas is imported" if "pandas" in sys.modules else 0)
"""


def test_rows_are_written_without_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path / "x")], check=True, cwd=Path(__file__).parents[2]
    )


def test_groups_are_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    import pyarrow.parquet

    from auepora_eval.io.results import rows_parquet as queries_parquet

    monkeypatch.setattr(queries_parquet, "ROWS_IN_A_GROUP", 4)
    with (tmp_path / "x").open("wb") as file:
        writer = QueriesWriter(file, [])
        for start in (0, 3, 5):
            samples = [a_sample(str(n)) for n in range(start, start + 5)]
            writer.add(samples, [an_output()] * 5, {})
        writer.finish()
    metadata = pyarrow.parquet.ParquetFile(tmp_path / "x").metadata
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert sum(sizes) == 15
    assert max(sizes) == 4


def test_a_table_of_something_else(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / "x")
    with pytest.raises(DataError, match="does not hold the rows of a run"):
        _ = ParquetRows(tmp_path / "x").ids
