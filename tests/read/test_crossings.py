"""Records of one seed reach the metrics of another: nothing that they say is lost on the way."""

from __future__ import annotations

import json
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auepora_eval as ae
from auepora_eval.cli.main import main as auepora
from auepora_eval.core.dataset import InMemoryDataset, as_dataset
from auepora_eval.core.types import Document, EvaluationSample, SystemOutputs
from auepora_eval.io.loader import load_dataset, save_dataset
from auepora_eval.io.outputs import predictions_of

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
SPAN = {"file_name": "d", "start_char": 0, "end_char": 3}


def written(path: Path, *records: Any) -> Path:
    lines = path.suffix == ".jsonl"
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records[0])
    path.write_text(text, encoding="utf-8")
    return path


def outputs_of(path: Path, *ids: str) -> list[SystemOutputs]:
    return list(predictions_of(path).outputs(ids))


ROW = {
    "query_id": "1",
    "query_text": "Which?",
    "latency_ms": 250,
    "retrieval_results": {"retrieved_docs": ["a", "b"], "relevance_scores": [0.9, 0.4]},
    "generated_answer": "abc",
    "citations": [SPAN],
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.json", [ROW]),
        ("rows.jsonl", ROW),
        ("run.results.json", {"evaluation_id": "e", "query_results": [ROW]}),
        ("answers.json", {"evaluation_id": "e", "query_results": [ROW]}),
        ("rows_in_a_key.json", {"query_results": [ROW]}),
    ],
)
def test_answers_of_seed_003_keep_documents_times_and_citations(
    tmp_path: Path, name: str, content: Any
) -> None:
    [output] = outputs_of(written(tmp_path / name, content), "1")
    assert output.response.text == "abc"
    assert output.response.metadata["citations"] == [SPAN]
    assert [(hit.doc.doc_id, hit.score) for hit in output.retrieved] == [("a", 0.9), ("b", 0.4)]
    assert output.timings == {"end_to_end": 0.25}


def test_citations_of_seed_003_are_scored(tmp_path: Path) -> None:
    data = written(tmp_path / "q.jsonl", {"sample_id": "1", "query": "q", "metadata": {"citations": [SPAN]}})
    answer = {"query_id": "1", "generated_answer": "abc", "citations": [SPAN]}
    for file in (
        written(tmp_path / "r.json", [answer]),
        written(tmp_path / "p.jsonl", {"sample_id": "1", "answer": "abc", "citations": [SPAN]}),
    ):
        run = ae.score(data, file, metrics="citation_span_exact")
        assert run.results[0].value == 1.0


@pytest.mark.parametrize("name", ["sample_id", "task_id", "query_id", "id", "qid", "question_id"])
def test_answers_are_found_by_any_name_of_the_id(tmp_path: Path, name: str) -> None:
    [output] = outputs_of(written(tmp_path / "t.jsonl", {name: "1", "answer": "x"}), "1")
    assert output.response.text == "x"


@pytest.mark.parametrize("name", ["answer", "response", "llm_answer", "generated_answer", "actual_output"])
def test_answers_are_found_by_any_of_their_names(tmp_path: Path, name: str) -> None:
    [output] = outputs_of(written(tmp_path / "t.jsonl", {"id": "1", name: "x"}), "1")
    assert output.response.text == "x"


LABELLED = {
    "id": "1",
    "question": "How many cars?",
    "llm_answer": "It carries 22 cars.",
    "retrieved_passages": ["The Annet carries 22 cars."],
    "ground_truth_label": "accurate",
    "fhri_spec": {"scenario_override": "multi_ticker"},
}


def test_the_stored_answers_of_a_label_set_can_be_scored(tmp_path: Path) -> None:
    dataset = load_dataset(
        written(tmp_path / "l.json", {"samples": [LABELLED, {**LABELLED, "id": "2", "llm_answer": ""}]})
    )
    assert list(dataset.outputs) == ["1"]  # an answer that was never filled in is not an empty answer
    assert dataset.outputs["1"].retrieved[0].doc.text == "The Annet carries 22 cars."
    words = ["--dataset", str(tmp_path / "l.json"), "--metrics", "grounding_overlap", "--out", str(tmp_path)]
    assert auepora(["score", *words]) in (0, 3)


def test_a_correct_label_set_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "l.json", {"samples": [LABELLED]})
    assert auepora(["dataset", "check", str(file)]) == 0
    assert "warning" not in capsys.readouterr().out
    [sample] = load_dataset(file)
    assert (sample.labels["fhri_scenario"], "scenario" in sample.labels) == ("multi_ticker", False)


CHUNK = {"id": "d#0", "text": "It is 3.", "document": "d", "source_path": "d", "start": 10, "end": 18}
TASK = {
    "task_id": "t",
    "task_type": "citations",
    "question": "How many?",
    "reference_answer": "It is 3. [1]",
    "rag_prompt": "p",
    "contexts": ["[1] It is 3."],
    "sources": ["d"],
    "retrieved": [CHUNK],
    "citations": [],
    "answer_citations": [{"id": "d#0", "source_path": "d"}],
    "metadata": {"selected_chunk_ids": ["d#0"], "answer_span": {"document": "d", "start": 16, "end": 17}},
}


def test_gold_citations_and_spans_of_seed_000_reach_the_metrics(tmp_path: Path) -> None:
    data = written(tmp_path / "citations.jsonl", TASK)
    [sample] = load_dataset(data)
    assert sample.metadata["citations"] == [{"file_name": "d#0"}]
    assert sample.relevant_docs is not None
    assert sample.relevant_docs[0].metadata["spans"] == [{"source": "d", "start": 16, "end": 17, "text": "3"}]
    answer = {"id": "t", "answer": "It is 3. [1]", "retrieved": [{"doc_id": "d#0", "text": "It is 3."}]}
    run = ae.score(data, [answer], metrics="citation_recall,citation_precision")
    assert [result.value for result in run.results] == [1.0, 1.0]
    other = {**answer, "retrieved": [{"doc_id": "e#0", "text": "It is 4."}]}
    assert ae.score(data, [other], metrics="citation_recall").results[0].value == 0.0
    chunk = {"doc_id": "new", "text": "It is 3.", "metadata": {"source": "d", "start": 10, "end": 18}}
    run = ae.score(data, [{**answer, "retrieved": [chunk]}], metrics="span_recall@5")
    assert run.results[0].value == 1.0


def test_gold_chunks_are_found_without_their_places(tmp_path: Path) -> None:
    data = written(tmp_path / "citations.jsonl", TASK)
    metrics = "citation_recall,citation_precision,span_recall@5,span_precision@5"
    for hit in (
        {"doc_id": "d#0", "text": "It is 3."},
        {"doc_id": "d#0", "text": "It is 3.", "metadata": {"source": "d"}},
        {"doc_id": "d#0", "text": "It is 3.", "metadata": {"source": "/srv/docs/d.txt"}},
    ):
        run = ae.score(data, [{"id": "t", "answer": "3 [1]", "retrieved": [hit]}], metrics=metrics)
        assert [result.value for result in run.results] == [1.0, 1.0, 1.0, 1 / 8], hit
    other = {"doc_id": "d#7", "text": "It is not 3.", "metadata": {"source": "d"}}
    run = ae.score(data, [{"id": "t", "answer": "3 [1]", "retrieved": [other]}], metrics="citation_recall")
    assert run.results[0].value == 0.0


def test_a_generated_span_is_the_gold_of_the_span_metrics_of_citations(tmp_path: Path) -> None:
    data = written(tmp_path / "citations.jsonl", TASK)
    answer = {"id": "t", "answer": "It is 3.", "retrieved": [{"doc_id": "d#0", "text": "It is 3."}]}
    exact = {**answer, "citations": [{"file_name": "d", "start_char": 16, "end_char": 17}]}
    metrics = "citation_span_exact,citation_recall"
    assert [result.value for result in ae.score(data, [exact], metrics=metrics).results] == [1.0, 1.0]
    marked = {**answer, "answer": "It is 3 [1]."}
    assert [result.value for result in ae.score(data, [marked], metrics=metrics).results] == [1 / 8, 1.0]


@pytest.mark.parametrize(
    "hit",
    [
        {"doc_id": "ml_guide.pdf", "text": "Learning."},
        {"doc_id": "docs/ml_guide.pdf", "text": "Learning from data."},
        {"doc_id": "ml_guide", "text": ""},
        {"doc_id": "x1", "text": "Learning from data."},
        {"doc_id": "x1", "text": "Learning", "metadata": {"source": "/srv/ml_guide.pdf"}},
    ],
)
def test_a_document_of_the_gold_is_recognised_under_its_file_name(tmp_path: Path, hit: Any) -> None:
    guide = {
        "doc_id": "doc_ml",
        "text": "Learning from data.",
        "metadata": {"file_path": "docs/ml_guide.pdf"},
    }
    gold = {"citations": [{"file_name": "ml_guide.pdf"}]}
    sample = {"sample_id": "1", "query": "q", "relevant_docs": [guide], "metadata": gold}
    data = written(tmp_path / "q.jsonl", sample)
    answer = {"sample_id": "1", "answer": "It learns [1].", "retrieved": [hit]}
    metrics = "citation_recall,citation_precision,citation_relevance"
    values = [result.value for result in ae.score(data, [answer], metrics=metrics).results]
    assert values == [1.0, 1.0, 1.0]


ODD: list[dict[str, Any]] = [
    {"frage": {"text": "How many?"}, "soll": "22", "ist": "22 cars", "nr": 7},
    {"frage": None},
]


def from_odd(record: dict[str, Any]) -> Any:
    if record["frage"] is None:
        return None
    sample = {
        "sample_id": str(record["nr"]),
        "query": record["frage"]["text"],
        "reference_answer": record["soll"],
    }
    return sample, record["ist"]


@pytest.mark.parametrize("name", ["odd.jsonl", "odd.json", "a list"])
def test_a_function_of_the_user_reads_any_shape(tmp_path: Path, name: str) -> None:
    records = ODD if name.endswith(".jsonl") else [ODD]
    source: Any = ODD if name == "a list" else written(tmp_path / name, *records)
    with pytest.warns(UserWarning, match="1 of 2 records"):
        run = ae.score(source, metrics="contains_answer", convert=from_odd)
    assert run.results[0].value == 1.0
    with pytest.warns(UserWarning, match="1 of 2 records"):
        assert [sample.sample_id for sample in load_dataset(source, convert=from_odd)] == ["7"]


def test_a_function_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "odd.jsonl", ODD[0])
    code = tmp_path / "mine.py"
    code.write_text(
        'def read(r):\n    return {"sample_id": str(r["nr"]), "query": r["frage"]["text"]}, r["ist"]\n'
    )
    command = ["score", str(file), "--convert", f"{code}:read", "--metrics", "answer_rate"]
    command += ["--out", str(tmp_path)]
    assert auepora(command) == 0
    assert "answer_rate" in capsys.readouterr().out
    target = tmp_path / "odd_as_ours.jsonl"
    assert auepora(["dataset", "convert", str(file), str(target), "--convert", f"{code}:read"]) == 0
    assert json.loads(target.read_text())["query"] == "How many?"


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        pytest.param(lambda record: record["missing"], "KeyError", id="it raises"),
        pytest.param(lambda record: 5, "a sample", id="it returns something else"),
        pytest.param(lambda record: {"id": "1"}, "question", id="no question"),
    ],
)
def test_a_function_that_fails_is_named_with_the_record(tmp_path: Path, function: Any, cause: str) -> None:
    file = written(tmp_path / "odd.jsonl", *ODD)
    with pytest.raises(ae.AueporaError, match=rf"odd.jsonl:1.*{cause}"):
        load_dataset(file, convert=function)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what a command prints, on both channels."""
    assert auepora(list(words)) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text('def s(query):\n    return "It carries 22 cars."\n', encoding="utf-8")
    return tmp_path


def test_a_manifest_of_any_name_is_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = {key: value for key, value in TASK.items() if key != "reference_answer"}
    written(here / "o.jsonl", {**raw, "task_type": "qa", "answer": "It is 3. [1]"})
    outputs = ("--qa-output", "r/qa.jsonl", "--summary-output", "r/s.jsonl", "--manifest-output")
    printed = said(capsys, "dataset", "build", "--offline-dataset", "o.jsonl", *outputs, "r/build.json")
    assert "will not know the version" not in printed
    assert load_dataset("r/qa.jsonl").info["version"] == "v1"


def test_the_citations_of_a_build_are_beside_its_manifest(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = {key: value for key, value in TASK.items() if key != "reference_answer"}
    written(here / "o.jsonl", {**raw, "answer": "It is 3. [1]"})
    splits = ("--splits", "qa,summaries,citations", "--qa-output", "r/qa.jsonl")
    rest = ("--summary-output", "r/s.jsonl", "--manifest-output", "r/manifest.json")
    said(capsys, "dataset", "build", "--offline-dataset", "o.jsonl", *splits, *rest)
    assert (here / "r/citations.jsonl").is_file()
    assert not (here / "evaluation").exists()


def test_results_as_yaml_are_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(here / "q.jsonl", {"sample_id": "1", "query": "q", "reference_answer": "x"})
    written(here / "a.jsonl", {"sample_id": "1", "answer": "x"})
    said(capsys, "score", "--dataset", "q.jsonl", "--outputs", "a.jsonl", "--id", "r")
    said(capsys, "dataset", "convert", "data/evaluation/results/r.results.json", "h.results.yaml")
    assert "contains_answer" in said(capsys, "show", "./h.results.yaml")
    (here / "plain.json").write_bytes((here / "data/evaluation/results/r.results.json").read_bytes())
    for name in ("./plain.json", "plain.json"):
        assert auepora(["show", name]) == 2
        assert "the name of a results file ends in .results.json. Rename" in capsys.readouterr().err


def test_results_of_another_tool_say_how_to_make_a_run_of_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(here / "theirs.results.json", {"evaluation_id": "e", "query_results": [ROW]})
    printed = said(capsys, "compare", "theirs.results.json", "theirs.results.json", code=2)
    assert "Make a run of them: auepora score --dataset FILE --outputs theirs.results.json" in printed


def test_a_label_set_is_written_and_read_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {
        "scenario_override": "news",
        "risk_tier": "low",
        "hallucination_check": {"ground_truth_hint": "h"},
    }
    turns = [{"question": "a?", "answer": "b"}, {"question": "c?", "answer": "d"}]
    second = {"id": "2", "question_sequence": turns, "ground_truth_label": "contradiction", "ours": [1]}
    first = {**LABELLED, "fhri_spec": {**spec, "own": 1}, "notes": "n"}
    written(here / "l.json", {"metadata": {"version": "2"}, "samples": [first, second]})
    said(capsys, "dataset", "convert", "l.json", "l.labels.json")
    before, after = load_dataset("l.json"), load_dataset("l.labels.json")
    assert (list(before), before.outputs) == (list(after), after.outputs)
    assert before.info["metadata"] == after.info["metadata"]
    assert list(before)[1].metadata["history"] == [
        {"role": "user", "content": "a?"},
        {"role": "assistant", "content": "b"},
    ]


def test_a_dataset_without_labels_cannot_become_a_label_set(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(here / "q.jsonl", {"sample_id": "1", "query": "q"})
    printed = said(capsys, "dataset", "convert", "q.jsonl", "x.labels.json", code=2)
    assert "there is no label 'ground_truth_label'" in printed
    assert "--export FILE.labels.json" in printed


def test_what_a_label_set_has_no_place_for_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"kind": "x", "ground_truth_label": "accurate"}
    own = {"cluster": "k", "history": [{"role": "user", "content": "hi"}]}
    sample = {"sample_id": "1", "query": "q", "reference_answer": "a", "labels": labels, "metadata": own}
    written(here / "q.jsonl", sample)
    printed = said(capsys, "dataset", "convert", "q.jsonl", "x.labels.json")
    assert (
        "a label set has no place for reference_answer (1), labels.kind (1), metadata.cluster (1)" in printed
    )
    assert "metadata.history (1)" in printed


def test_a_system_that_answers_can_be_run_on_a_label_set(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(here / "l.json", {"samples": [LABELLED]})
    printed = said(capsys, "run", "--dataset", "l.json", "--system", "s.py:s", "--id", "r")
    assert "Not measured (no output has a label, as detectors return): label_accuracy" in printed
    assert "It carries 22 cars." in said(capsys, "show", "r", "--sample", "1")


def test_a_lone_half_of_a_pair_and_a_misspelt_scenario_are_found(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"scenario_override": "multiticker", "contradiction_pair_id": "p"}
    written(here / "l.json", {"samples": [{**LABELLED, "fhri_spec": spec}]})
    printed = said(capsys, "dataset", "check", "l.json")
    assert "no other sample has the pair 'p'" in printed
    assert "Did you mean multi_ticker?" in printed


def test_gold_citations_bring_their_metrics_and_a_preset_fills_the_blocks(tmp_path: Path) -> None:
    gold = [{"file_name": "d", "start_char": 0, "end_char": 8}]
    sample: dict[str, Any] = {"sample_id": "1", "query": "How many?", "reference_answer": "It is 3."}
    sample |= {"relevant_docs": ["d"], "metadata": {"citations": gold}}
    answer = {"id": "1", "answer": "It is 3. [1]", "retrieved": [{"doc_id": "d", "text": "It is 3."}]}
    names = [result.name for result in ae.score([sample], [answer]).results]
    assert {"citation_recall", "citation_precision"} <= set(names)
    run = ae.score([sample], [answer], metrics="seed003")
    assert {"hit@1", "citation_span_accuracy", "citation_hallucination_rate"} <= {
        result.name for result in run.results
    }


def test_a_configuration_is_converted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.config.yaml").write_text("metrics: [recall@5]\n", encoding="utf-8")
    said(capsys, "dataset", "convert", "a.config.yaml", "a.config.json")
    assert json.loads((here / "a.config.json").read_text()) == {"metrics": ["recall@5"]}


def test_a_dataset_is_found_by_its_id(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = {"query_id": "1", "query_text": "q", "relevant_documents": [], "ground_truth_answer": "22"}
    document = {"dataset_id": "x", "name": "X", "version": "1.0.0", "queries": [query]}
    (here / "data/evaluation/datasets").mkdir(parents=True)
    written(here / "data/evaluation/datasets/x_v1.0.0.eval.json", document)
    assert "contains_answer" in said(capsys, "run", "--dataset", "x", "--system", "s.py:s")
    assert "there is no such file" in said(capsys, "run", "--dataset", "y", "--system", "s.py:s", code=2)


def test_the_hooks_and_names_of_the_seeds() -> None:
    from auepora_eval.labels import SCENARIO_FHRI_THRESHOLDS

    class Mine(ae.DataFormatValidator):
        def _custom_validations(self, data: Any) -> list[str]:
            return ["no owner"]

    document = {"dataset_id": "d", "name": "D", "version": "1", "queries": []}
    assert SCENARIO_FHRI_THRESHOLDS["multi_ticker"] == 0.70
    assert Mine().validate_evaluation_dataset(document) == ["no owner"]
    with pytest.raises(TypeError, match="results must be a dict"):
        ae.EvaluationResultsStorage("r").save_results([1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Its fields are"):
        ae.CitationEvaluator({"tolerance": 5})


def test_answers_are_scored_on_a_split_by_its_type(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = {key: value for key, value in TASK.items() if key != "reference_answer"}
    written(here / "o.jsonl", {**raw, "task_type": "qa", "answer": "It is 3. [1]"})
    said(capsys, "dataset", "build", "--offline-dataset", "o.jsonl")
    written(here / "a.jsonl", {"task_id": "t", "answer": "It is 3."})
    (here / "plan.yaml").write_text("dataset_type: qa\n", encoding="utf-8")
    assert "contains_answer" in said(capsys, "score", "--config", "plan.yaml", "--outputs", "a.jsonl")


WILD = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
RESERVED = ["stored_output", "other_fields", "history", "notes", "rubric", "cluster", "x"]


@settings(max_examples=100, deadline=None)
@given(
    labels=st.dictionaries(st.sampled_from(["fhri_scenario", "risk_tier", "y"]), WILD, max_size=2),
    metadata=st.dictionaries(st.sampled_from(RESERVED), WILD, max_size=3),
    info=st.dictionaries(st.sampled_from(["metadata", "name"]), WILD, max_size=2),
)
def test_any_labelled_dataset_becomes_a_label_set_or_an_error(
    labels: dict[str, Any], metadata: dict[str, Any], info: dict[str, Any]
) -> None:
    sample = EvaluationSample(
        "1", "q", labels={**labels, "ground_truth_label": "accurate"}, metadata=metadata
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "x.labels.json"
        with suppress(ae.AueporaError):
            save_dataset(InMemoryDataset("d", [sample], info=info), path)
            assert [one.query for one in load_dataset(path)] == ["q"]


HIT = {"id": "n1", "text": "It is."}


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
@pytest.mark.parametrize(
    "record",
    [
        {"response": "ab", "source_nodes": [{"node": {"id_": "n1", "text": "It is."}, "score": 0.5}]},
        {"answers": [{"data": "ab"}], "documents": [{"id": "n1", "content": "It is.", "score": 0.5}]},
        {"result": "ab", "source_documents": [{"page_content": "It is.", "id": "n1"}]},
        {"answer": "ab", "retrieved": [{**HIT, "document": "file.txt"}]},
        {
            "inputs": {"question": "q?"},
            "outputs": {"response": "ab", "contexts": [{"id": "n1", "text": "It is."}]},
        },
    ],
    ids=["LlamaIndex", "Haystack", "LangChain", "seed 000", "MLflow"],
)
def test_answers_of_frameworks_are_read_from_files(tmp_path: Path, record: Any, suffix: str) -> None:
    row = {"id": "1", **record}
    [output] = outputs_of(written(tmp_path / f"r.{suffix}", row if suffix == "jsonl" else [row]), "1")
    assert output.response.text == "ab"
    assert [(hit.doc.doc_id, hit.doc.text) for hit in output.retrieved] == [("n1", "It is.")]


def test_rows_of_mlflow_in_lines_have_the_question_and_the_reference(tmp_path: Path) -> None:
    row = {"inputs": {"question": "q?"}, "outputs": "a", "expectations": {"expected_response": "b"}}
    dataset = load_dataset(written(tmp_path / "m.jsonl", row))
    [sample] = dataset
    assert (sample.query, sample.reference_answer and sample.reference_answer.text) == ("q?", "b")
    assert dataset.outputs[sample.sample_id].response.text == "a"


def test_a_retrieved_chunk_keeps_its_source_and_its_place() -> None:
    chunk = {"id": 3, "text": "x", "source_path": "f", "document": "file.txt", "start": 1, "end": 2}
    [hit] = (
        ae.evaluate(lambda query: {"answer": "a", "retrieved": [chunk]}, [{"query": "q"}])
        .outputs[0]
        .retrieved
    )
    assert hit.doc.doc_id == "3"
    assert hit.doc.metadata | {"source_path": "f", "document": "file.txt", "start": 1} == hit.doc.metadata


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
@pytest.mark.parametrize("own", [True, False])
def test_citations_under_another_name_are_read_or_an_error(tmp_path: Path, *, own: bool) -> None:
    data = written(tmp_path / "q.jsonl", {"sample_id": "1", "query": "q", "metadata": {"citations": [SPAN]}})
    record = {"sample_id" if own else "id": "1", "answer": "abc"}
    for name in ("citation_list", "cited_spans", "answer_citations"):
        file = written(tmp_path / f"{name}.jsonl", {**record, name: [SPAN]})
        assert ae.score(data, file, metrics="citation_recall").results[0].value == 1.0
    for name in ("my_citations", "spans_cited"):
        file = written(tmp_path / f"{name}.jsonl", {**record, name: [SPAN]})
        with pytest.raises(ae.AueporaError, match=f"{name}.*--columns citations={name}"):
            ae.score(data, file, metrics="citation_recall")
        run = ae.score(data, file, metrics="citation_recall", columns={"citations": name})
        assert run.results[0].value == 1.0
    count = written(tmp_path / "count.jsonl", {**record, "citation_count": 3, "citations": [SPAN]})
    assert ae.score(data, count, metrics="citation_recall").results[0].value == 1.0


def test_a_results_document_with_answers_alone_is_shown(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = here / "data/evaluation/results"
    folder.mkdir(parents=True)
    written(folder / "theirs.results.json", {"evaluation_id": "theirs", "query_results": [ROW]})
    printed = said(capsys, "show", "theirs")
    assert "query_results      1" in printed
    assert "auepora score --dataset FILE --outputs theirs.results.json" in printed


def test_score_names_the_default_depth_as_run_does(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(here / "q.jsonl", {"sample_id": "1", "query": "q", "relevant_docs": ["a"]})
    written(here / "a.jsonl", {"sample_id": "1", "retrieved": ["a", "b"]})
    assert "recall@5" in said(capsys, "score", "--dataset", "q.jsonl", "--outputs", "a.jsonl")


def test_what_was_not_measured_is_named_with_its_reason(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(here / "l.json", {"samples": [LABELLED]})
    said(capsys, "run", "--dataset", "l.json", "--system", "s.py:s", "--id", "r")
    printed = said(capsys, "show", "r")
    assert "n/a" not in printed
    assert "Not measured (no output has a label, as detectors return): label_accuracy" in printed


def test_records_of_any_shape_are_checked_by_a_function(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(here / "odd.jsonl", {"frage": "How many?", "nr": 7})
    (here / "mine.py").write_text(
        'def read(r):\n    return {"sample_id": str(r["nr"]), "query": r["frage"]}\n'
    )
    assert "1 sample" in said(capsys, "dataset", "check", "odd.jsonl", "--convert", "mine.py:read")


def test_quality_scores_of_people_are_correlated_with_metrics(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["22", "22 cars", "22 cars at most", "22 cars, as far as anybody knows", "some cars"]
    questions = [{"sample_id": str(n), "query": "q", "reference_answer": "22"} for n in range(5)]
    written(here / "q.jsonl", *questions)
    answers = [{"sample_id": str(n), "answer": text} for n, text in enumerate(texts)]
    written(here / "a.jsonl", *answers)
    said(
        capsys, "score", "--dataset", "q.jsonl", "--outputs", "a.jsonl", "--metrics", "token_f1", "--id", "r"
    )
    for person, shift in (("ann", 0.0), ("ben", 0.1)):
        judged = [
            {
                "annotation_id": f"{person}{n}",
                "query_id": str(n),
                "annotator_id": person,
                "answer_text": text,
                "quality_scores": {"conciseness": 0.9 - 0.1 * n - shift, "clarity": 0.5},
            }
            for n, text in enumerate(texts)
        ]
        written(here / f"{person}.gt.json", {"annotations": judged})
    lines = said(capsys, "show", "r", "--quality", "ann.gt.json", "ben.gt.json").splitlines()
    row = next(line.split() for line in lines if line.startswith("conciseness"))
    assert (row[1], row[2], row[-1]) == ("token_f1", "1.0000", "5")
    assert "n/a" in next(line for line in lines if line.startswith("clarity"))
    written(here / "other.gt.json", {"annotations": [{**judged[0], "answer_text": "of another run"}]})
    assert "no quality scores" in said(capsys, "show", "r", "--quality", "other.gt.json", code=2)


def test_expectations_of_mlflow_are_the_gold_and_the_rest_is_kept() -> None:
    expected = {"expected_response": "b", "expected_retrieved_context": [{"doc_uri": "d1"}], "tone": "kind"}
    [sample] = as_dataset([{"inputs": {"question": "q?"}, "expectations": expected}])
    assert [doc.doc_id for doc in sample.relevant_docs or ()] == ["d1"]
    assert sample.metadata == {"tone": "kind", "columns_not_read": ["tone"]}


def test_documents_under_the_name_of_ids_are_documents() -> None:
    document = {"document_id": "d1", "content": "22 cars", "relevance": 2}
    [sample] = as_dataset([{"id": "1", "question": "q", "relevant_documents": [document]}])
    assert sample.relevant_docs == [Document("d1", "22 cars", {"relevance": 2})]


Q = {"sample_id": "1", "query": "How many?", "reference_answer": "22", "relevant_docs": ["d1"]}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            {"sample_id": 1, "answer": "22", "retrieved": ["d1"], "citations": ["d1"]}, id="number as id"
        ),
        pytest.param({"sample_id": "1", "answer": 22, "retrieved": "d1", "citations": "d1"}, id="no lists"),
        pytest.param(
            {"sample_id": "1", "answer": "22", "retrieved": [["d1", 0.9]], "citations": [{"id": "d1"}]},
            id="pairs",
        ),
        pytest.param(
            {"sample_id": "1", "answer": "22", "chunks": [{"id": "d1"}], "citations": [{"source": "d1"}]},
            id="chunks",
        ),
        pytest.param(
            {"sample_id": "1", "answer": {"text": "22", "citations": ["d1"]}, "sources": ["d1"]},
            id="in the answer",
        ),
        pytest.param(
            {"sample_id": "1", "response": ["22"], "retrieved": [{"document_id": "d1"}], "cited_ids": ["d1"]},
            id="a list",
        ),
    ],
)
def test_an_answer_in_another_form_is_scored_the_same(tmp_path: Path, answer: dict[str, Any]) -> None:
    data, outputs = tmp_path / "d.jsonl", tmp_path / "o.jsonl"
    data.write_text(json.dumps({**Q, "metadata": {"citations": [{"file_name": "d1"}]}}))
    outputs.write_text(json.dumps({**answer, "latency_ms": 250}))
    metrics = ["recall@5", "exact_match", "citation_recall", "latency@0.95"]
    run = ae.score(data, outputs, metrics=metrics)
    assert [result.value for result in run.results] == [1, 1, 1, 0.25]


def test_answers_for_deepeval_are_found_by_their_ids(tmp_path: Path) -> None:
    rows = [{"name": "1", "input": "How many?", "actual_output": "22"}]
    assert ae.score([Q], rows, metrics="exact_match")["exact_match"].value == 1


def test_one_object_of_answers_by_id_is_read_from_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"1": {"answer": "22", "retrieved": ["d1"]}}))
    assert ae.score([Q], path, metrics="recall@5")["recall@5"].value == 1
