"""Verification: what was tampered with is named; what was not, fits."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import Metric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationSample, MetricResult, SystemOutputs, TargetCategory
from auepora_eval.errors import AueporaError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.verify import DOES_NOT_FIT, FITS, ROWS, UNCHECKED, verify_run
from tests.builders import a_document, a_failure, an_output, scored_run, small_world

METRICS = "recall@3,ndcg@3,token_f1,bleu,latency@0.5,failure_rate,rejection_rate,noise_retention"
pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")


class Own(Metric):
    name, target = "mine", TargetCategory.DIVERSITY

    def required_fields(self) -> list[str]:
        return []

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        return MetricResult(self.name, self.target, 0.5)


def stored(folder: Path, *, most_rows: int = 100) -> EvaluationResultsStorage:
    samples, outputs = small_world()
    outputs[2] = a_failure()
    outputs[1].response.metadata["citations"] = [{"file_name": "a.pdf", "start_char": 0, "end_char": 5}]
    samples[0].candidate_docs = []
    plan = EvaluationPlan([*parse_metrics(METRICS), Own()])
    run = scored_run(plan, samples, outputs, system_name="s", dataset_name="d", evaluation_id="run", seed=4)
    storage = EvaluationResultsStorage(folder)
    storage.save_run(run, most_rows=most_rows)
    return storage


def wrong(storage: EvaluationResultsStorage) -> set[str]:
    return {check.what for check in verify_run(storage, "run").having(DOES_NOT_FIT)}


@pytest.mark.parametrize("most_rows", [100, 3])
def test_an_untouched_run_fits(tmp_path: Path, most_rows: int) -> None:
    found = verify_run(stored(tmp_path, most_rows=most_rows), "run")
    assert found.ok, found.having(DOES_NOT_FIT)
    assert [check.what for check in found.having(UNCHECKED)] == ["mine"]
    assert {"dataset_sha256", "outputs_sha256", "plan_sha256", "bleu"} <= {c.what for c in found.having(FITS)}


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def set_in(*keys: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = to

    return change


def detail(name: str, to: Any) -> Callable[[dict[str, Any]], None]:
    return set_in("retrieval_metrics", "recall@3", "details", name, to=to)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(set_in("retrieval_metrics", "recall@3", "value", to=0.99), {"recall@3"}, id="value"),
        pytest.param(
            set_in("answer_quality_metrics", "bleu", "confidence_interval", to=[0, 1]),
            {"bleu"},
            id="interval",
        ),
        pytest.param(
            set_in("retrieval_metrics", "ndcg@3", "details", "bounds_if_failed", to=[0, 1]),
            {"ndcg@3"},
            id="bounds",
        ),
        pytest.param(
            set_in("query_results", 0, "individual_metrics", "token_f1", to=1.0),
            {"rows against samples and outputs"},
            id="a score",
        ),
        pytest.param(
            set_in("summary", "failed_queries", to=0), {"summary.failed_queries"}, id="a failure hidden"
        ),
        pytest.param(set_in("configuration", "retrieval_k", to=50), {"plan_sha256"}, id="the plan"),
        pytest.param(
            set_in("metadata", "evaluation_parameters", "random_seed", to=5), {"plan_sha256"}, id="the seed"
        ),
        pytest.param(set_in("evaluation_id", to="another"), {"evaluation_id"}, id="the id"),
        pytest.param(detail("higher_is_better", False), {"recall@3"}, id="which way is better"),
        pytest.param(
            set_in("metadata", "evaluation_parameters", "concurrency", to=9),
            {"evaluation_parameters"},
            id="how calls were made",
        ),
    ],
)
def test_an_edit_of_the_results_file(tmp_path: Path, change: Any, expected: set[str]) -> None:
    storage = stored(tmp_path)
    edit(tmp_path / "run.results.json", change)
    assert expected <= wrong(storage)
    assert len(wrong(storage)) <= len(expected) + 4  # another seed moves some intervals too


def changed(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "run.run.db", isolation_level=None)) as database:
        assert database.execute(statement).rowcount == 1


def test_a_metric_in_another_section_is_found(tmp_path: Path) -> None:
    def move(document: dict[str, Any]) -> None:
        document["answer_quality_metrics"]["ndcg@3"] = document["retrieval_metrics"].pop("ndcg@3")

    storage = stored(tmp_path)
    edit(tmp_path / "run.results.json", move)
    assert "ndcg@3" in wrong(storage)


@pytest.mark.parametrize("most_rows", [100, 3])
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "UPDATE call SET reply = replace(reply, 'gulls', 'boats') WHERE reply LIKE '%gulls%'",
            "outputs_sha256",
        ),
        (
            'UPDATE sample SET record = replace(record, \'"query":"\', \'"query":"x\') WHERE n = 0',
            "dataset_sha256",
        ),
        ("DELETE FROM call WHERE n = 2", "outputs_sha256"),
        ("DELETE FROM sample WHERE n = 9", "samples and outputs"),
        ("UPDATE sample SET answer = 1 WHERE n = 3", "rows against samples and outputs"),
        ("UPDATE score SET value = zeroblob(80) WHERE metric = 'recall@3'", "recall@3"),
        ("UPDATE call SET reply = '{' WHERE n = 2", "samples and outputs"),
        ("UPDATE call SET outcome = 0 WHERE n = 3", ROWS),
        ("UPDATE text SET words = 'x' WHERE n = 2", ROWS),
        ("UPDATE meta SET value = '[]' WHERE name = 'errors'", ROWS),
        ("UPDATE meta SET value = zeroblob(10) WHERE name = 'column gold_missed'", ROWS),
        ("DELETE FROM meta WHERE name = 'fields'", ROWS),
        ("DELETE FROM meta WHERE name = 'finished'", ROWS),
    ],
)
def test_a_changed_row_is_found(tmp_path: Path, statement: str, expected: str, most_rows: int) -> None:
    storage = stored(tmp_path, most_rows=most_rows)
    changed(tmp_path, statement)
    assert expected in wrong(storage)


@pytest.mark.parametrize("most_rows", [100, 3])
def test_scores_that_two_samples_have_exchanged_are_found(tmp_path: Path, most_rows: int) -> None:
    storage = stored(tmp_path, most_rows=most_rows)
    with closing(sqlite3.connect(tmp_path / "run.run.db")) as db, db:
        ((column,),) = db.execute("SELECT value FROM score WHERE metric = 'ndcg@3'").fetchall()
        column = column[8:16] + column[:8] + column[16:]  # the mean is the same
        db.execute("UPDATE score SET value = ? WHERE metric = 'ndcg@3'", [column])
    assert wrong(storage) == {ROWS}


def test_a_document_alone_cannot_be_checked(tmp_path: Path) -> None:
    storage = stored(tmp_path)
    (tmp_path / "run.run.db").unlink()
    found = verify_run(storage, "run")
    assert found.ok
    assert not found.whole
    assert [check.what for check in found.having(UNCHECKED)] == ["samples and outputs"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path)
    assert main(["show", "run", "--verify", "--out", str(tmp_path)]) == 0
    assert "run: ok (" in capsys.readouterr().out
    edit(tmp_path / "run.results.json", set_in("summary", "total_queries", to=11))
    assert main(["show", "run", "--verify", "--out", str(tmp_path)]) == 1
    assert "does not fit: summary.total_queries: the file says 11, found 10" in capsys.readouterr().out
    assert main(["show", "run", "--verify", "--out", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert main(["show", "other", "--verify", "--out", str(tmp_path)]) == 2


def test_the_command_does_not_say_ok_of_what_it_could_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path)
    (tmp_path / "run.run.db").unlink()
    assert main(["show", "run", "--verify", "--out", str(tmp_path)]) == 3
    assert "run: COULD NOT BE CHECKED (" in capsys.readouterr().out
    assert main(["show", "run", "--verify", "--out", str(tmp_path), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["whole"] is False


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1e308, 2**70, "", "x", [], [1], {}, {"a": {}}, [None], "1.0"]
)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_whatever_was_edited_ends_in_words(data: st.DataObject) -> None:
    """A value anywhere in the file is exchanged: it is found, or refused, or harmless; never a crash."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stored(folder)
        path = folder / "run.results.json"
        document = json.loads(path.read_text())
        place: Any = document
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 5)):
                place = place[key]
                continue
            place[key] = data.draw(JUNK)
            break
        path.write_text(json.dumps(document), encoding="utf-8")
        storage = EvaluationResultsStorage(folder)
        assert len(storage.list_results()) == 1
        for look in (
            lambda: verify_run(storage, "run"),
            lambda: storage.load_run("run"),
            lambda: storage.load_run("run", texts=False),
            lambda: storage.load_tally("run"),
            lambda: storage.compare_results(["run"]),
        ):
            with contextlib.suppress(AueporaError):
                look()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
).filter(lambda value: "\\ud" not in json.dumps(value))
OBJECTS = st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=3)


@settings(max_examples=30, deadline=None)
@given(
    metadata=OBJECTS,
    extra=OBJECTS,
    labels=OBJECTS,
    docs=st.sampled_from([None, [], "ab"]),
    rows=st.booleans(),
)
def test_hashes_survive_the_disk(metadata: Any, extra: Any, labels: Any, docs: Any, rows: bool) -> None:
    """Not-a-number, empty lists, nested values: what is stored has the hash of what was scored."""
    sample = EvaluationSample("1", "q", labels=labels, metadata=metadata, candidate_docs=[] if rows else None)
    sample.relevant_docs = [a_document(name) for name in docs] if docs is not None else None
    output = an_output("ab", "x", extra=extra, timings={"end_to_end": 1})
    output.response.metadata = metadata
    run = scored_run(
        EvaluationPlan([]), [sample], [output], system_name="s", dataset_name="d", evaluation_id="run"
    )
    with tempfile.TemporaryDirectory() as folder:
        storage = EvaluationResultsStorage(folder)
        storage.save_run(run, most_rows=int(rows))
        found = verify_run(storage, "run")
    assert found.ok, found.having(DOES_NOT_FIT)
