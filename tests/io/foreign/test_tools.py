"""Files of other tools: the samples in the shared data, small files written here, and damaged ones."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.core.dataset import EvaluationDataset
from auepora_eval.errors import DataError, MissingDependencyError
from auepora_eval.io.detect import kind_of_file
from auepora_eval.io.ground_truth import load_ground_truth
from auepora_eval.io.outputs import predictions_of
from auepora_eval.read.fields import ReadingNote

SHARED = Path(__file__).parents[4] / "shared" / "data" / "interop"
pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of other tools are not here")
@pytest.mark.parametrize(
    ("name", "kind", "samples", "answers"),
    [
        ("beir", "beir", 40, 0),
        ("deepeval/deepeval_inspect_fixtures_test_run_sample.json", "deepeval-run", 1, 1),
        ("deepeval/examples_community_chatbot_evaluation_dataset.json", "records", 3, 0),
        ("deepeval/examples_community_chatbot_evaluation_outputs.json", "records", 3, 3),
        ("deepeval/tests_test_confident_goldens.json", "records", 4, 4),
        ("deepeval/tests_test_core_test_datasets_convo_goldens.csv", "csv", 15, 15),
        ("deepeval/tests_test_core_test_datasets_convo_goldens.json", "deepeval-conversations", 15, 15),
        ("deepeval/tests_test_core_test_datasets_goldens.csv", "csv", 15, 15),
        ("deepeval/tests_test_core_test_datasets_goldens.json", "records", 15, 15),
        ("deepeval/written_by_4.x/g.csv", "csv", 1, 1),
        ("deepeval/written_by_4.x/g.json", "records", 1, 1),
        ("deepeval/written_by_4.x/g.jsonl", "records", 1, 1),
        ("inspect/2024-11-05T13-31-45-05-00_input-task_8zXjbRzCWrL9GXiXo2vus9.json", "inspect", 1, 1),
        ("inspect/2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval", "inspect", 10, 10),
        ("inspect/2025-05-12T20-28-13-04-00_popularity.json", "inspect", 3, 3),
        ("inspect/log_streaming.eval", "inspect", 4, 4),
        ("label-studio/made_rag_feedback_export.json", "label-studio", 1, 1),
        ("promptfoo/config-csv-metadata_tests.csv", "csv", 3, 0),
        ("promptfoo/config-multishot_output.json", "promptfoo-results", 4, 4),
        ("promptfoo/eval-rag-full_promptfooconfig.with-asserts.yaml", "promptfoo", 9, 0),
        ("promptfoo/eval-rag_promptfooconfig.yaml", "promptfoo", 2, 0),
        ("promptfoo/eval-self-grading_tests.csv", "csv", 10, 0),
        ("promptfoo/simple-test_output.json", "promptfoo-results", 2, 2),
        ("ragas/edited_chain_runs.json", "ragas-annotations", 18, 18),
        ("ragas/hf_doc_qa_eval.csv", "csv", 66, 0),
        ("ragas/made_single_turn.jsonl", "records", 2, 2),
        ("ragas/weather_tool_calls.csv", "csv", 5, 0),
        ("ragchecker/checking_inputs.json", "ragchecker", 2, 2),
        ("ragchecker/checking_outputs.json", "ragchecker", 2, 2),
        ("trec/compat.qrels", "trec", 2, 0),
        ("trec/cwl.qrels", "trec", 3, 0),
    ],
)
def test_sample_files_load_as_they_are(name: str, kind: str, samples: int, answers: int) -> None:
    assert kind_of_file(SHARED / name) == kind
    dataset = ae.load_dataset(SHARED / name)
    assert (len(dataset), len(dataset.outputs)) == (samples, answers)
    assert all(sample.query.strip() for sample in dataset)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of other tools are not here")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("beir/queries.jsonl", "a part of a BEIR dataset, not a dataset. Name its folder"),
        ("inspect/rewritten_by_current_inspect.eval", "zstandard"),
        ("label-studio/ranker_buckets_annotation.json", "without the question"),
        ("label-studio/named_entity_annotation.json", "--columns query=NAME"),
        ("label-studio/ranker_buckets_tasks.json", "--columns query=NAME"),
        (
            "mlflow/trace_written_by_mlflow.json",
            "this is a file of traces, not a dataset. Convert it: auepora import-traces",
        ),
        ("promptfoo/simple-csv_promptfooconfig.yaml", "Name that file instead"),
        ("promptfoo/simple-csv_tests.csv", "--columns query=NAME"),
        ("promptfoo/simple-cli_output.json", "--columns query=NAME"),
        ("promptfoo/simple-cli_output.yaml", "aliases"),
        ("ragas/support_triage.csv", "--columns query=NAME"),
        ("trec/cwl.run", "the run goes to --outputs"),
    ],
)
def test_other_sample_files_say_why_not(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises((DataError, MissingDependencyError), match=message):
        ae.load_dataset(SHARED / name)


def test_zstd_entry_of_an_inspect_log(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    output = {"choices": [{"message": {"role": "assistant", "content": "At noon."}}]}
    sample = json.dumps({"id": 1, "epoch": 1, "input": "When?", "target": "noon", "output": output}).encode()
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1_epoch_1.json", zstandard.compress(sample))
        directory = archive.fp.tell() if archive.fp else 0
    # zipfile writes no ZSTD before Python 3.14: the method and the unpacked size are set in both headers.
    content = bytearray(path.read_bytes())
    for method, size in ((8, 22), (directory + 10, directory + 24)):
        content[method : method + 2] = (93).to_bytes(2, "little")
        content[size : size + 4] = len(sample).to_bytes(4, "little")
    path.write_bytes(content)
    loaded, answer = one(ae.load_dataset(path))
    assert (loaded.query, loaded.reference_answer.text, answer.response.text) == ("When?", "noon", "At noon.")
    content[60:64] = b"\0\0\0\0"
    path.write_bytes(content)
    with pytest.raises(DataError, match="an entry is damaged"):
        ae.load_dataset(path)


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def one(dataset: EvaluationDataset) -> Any:
    (sample,) = dataset
    return sample, dataset.outputs.get(sample.sample_id)


def test_promptfoo_asserts(tmp_path: Path) -> None:
    config = {
        "prompts": ["{{question}}"],
        "providers": ["echo"],
        "defaultTest": {"assert": [{"type": "llm-rubric", "value": "be kind"}]},
        "tests": [
            {"vars": {"question": "a"}, "assert": [{"type": "contains", "value": v} for v in ("x", "y")]},
            {"vars": {"question": "b", "context": ["c1"]}, "assert": [{"type": "is-refusal"}]},
            {"vars": {"question": "c"}, "assert": [{"type": "contains-any", "value": ["x", "y"]}]},
        ],
    }
    path = written(tmp_path / "promptfoo.json", config)
    with pytest.warns(ReadingNote, match="are kept in metadata.promptfoo: 3 llm-rubric"):
        first, second, third = ae.load_dataset(path)
    assert first.reference_answer is not None
    assert first.reference_answer.structured == {"required": ["x", "y"]}
    assert first.metadata["promptfoo"] == [{"type": "llm-rubric", "value": "be kind"}]
    assert second.labels == {"answerable": False}
    assert [doc.doc_id for doc in second.candidate_docs or ()] == ["c1"]
    assert third.reference_answer is not None
    assert (third.reference_answer.text, third.reference_answer.metadata) == ("x", {"alternatives": ["y"]})


def test_promptfoo_cells_may_name_an_assert_without_a_value(tmp_path: Path) -> None:
    cells = "question,__expected\na,is-refusal\nb,not-is-refusal\nc,is-json\nd,noon\n"
    path = written(tmp_path / "tests.csv", cells)
    with pytest.warns(ReadingNote, match=r"metadata.promptfoo: 1 is-json\."):
        first, second, third, fourth = ae.load_dataset(path)
    assert (first.labels, first.reference_answer) == ({"answerable": False}, None)
    assert (second.labels, second.reference_answer) == ({"answerable": True}, None)
    assert third.reference_answer is None
    assert fourth.reference_answer is not None
    assert fourth.reference_answer.text == "noon"


def test_promptfoo_errors_are_failed_calls(tmp_path: Path) -> None:
    result = {"prompt": {"raw": "q"}, "vars": {"question": "q"}, "promptIdx": 0, "provider": {"id": "p"}}
    results = [
        {**result, "testIdx": 0, "response": {"output": "x"}},
        {**result, "testIdx": 1, "failureReason": 2, "error": "429"},
        {**result, "testIdx": 0, "promptIdx": 1, "response": {"output": "another system"}},
    ]
    path = written(tmp_path / "out.json", {"results": {"version": 3, "results": results}})
    with pytest.warns(ReadingNote, match="of 'p' with prompt '0'; 1 other system is left out"):
        dataset = ae.load_dataset(path)
    assert [sample.sample_id for sample in dataset] == ["0", "1"]
    assert dataset.outputs["0"].response.text == "x"
    assert dataset.outputs["1"].error is not None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of other tools are not here")
def test_claims_of_ragchecker_give_its_numbers() -> None:
    path = SHARED / "ragchecker" / "checking_outputs.json"
    metrics = {"precision": 76.4, "recall": 62.5, "f1": 68.3, "faithfulness": 68.2, "hallucination": 4.5}
    run = ae.score(path, metrics=[f"claim_{name}" for name in metrics])
    shown = {name: round(100 * (run[f"claim_{name}"].value or 0), 1) for name in metrics}
    assert shown == metrics


def test_claims_of_ragchecker_belong_to_the_answer(tmp_path: Path) -> None:
    checked = {
        "answer2response": ["Entailment", "Neutral"],
        "retrieved2response": [["Entailment", "Neutral"]],
    }
    row = {"query_id": "1", "query": "When?", "gt_answer": "Noon.", "response": "Noon. Daily.", **checked}
    sample, output = one(ae.load_dataset(written(tmp_path / "checked.json", {"results": [row]})))
    assert output.extra["claims"] == {
        "answer_in_reference": [True, False],
        "answer_in_documents": [[True, False]],
    }
    assert "claims" not in sample.labels


def test_squad_2_says_which_questions_have_an_answer(tmp_path: Path) -> None:
    known = {"id": "1", "question": "When?", "answers": [{"text": "noon"}], "is_impossible": False}
    unknown = {"id": "2", "question": "Who?", "answers": [], "is_impossible": True}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "At noon.", "qas": [known, unknown]}]}]}
    path = written(tmp_path / "squad.json", squad)
    metrics = "conditioned_score[token_f1]"
    # By the official script: 1 for the answer, 1 for an empty text where there is no answer.
    assert ae.score(path, {"1": "noon", "2": ""}, metrics=metrics)[metrics].value == 1
    assert ae.score(path, {"1": "noon", "2": "Bob"}, metrics=metrics)[metrics].value == 0.5


LEAVING, OWNER = "When does the ferry leave?", "Who owns the ferry?"
# What EmbeddingQAFinetuneDataset.save_json writes, and LabelledRagDataset.save_json.
PAIRS = {
    "queries": {"1": LEAVING, "2": OWNER},
    "corpus": {"d1": "It leaves at noon.", "d2": "Ada owns it.", "d3": "It is blue."},
    "relevant_docs": {"1": ["d1"], "2": ["d2"]},
    "mode": "text",
}
BY_PERSON, BY_MODEL = {"model_name": "", "type": "human"}, {"model_name": "some-model", "type": "ai"}
LABELLED = {
    "examples": [
        {
            "query": query,
            "query_by": BY_MODEL,
            "reference_contexts": [context],
            "reference_answer": answer,
            "reference_answer_by": BY_PERSON,
        }
        for query, context, answer in (
            (LEAVING, "It leaves at noon.", "noon"),
            (OWNER, "Ada owns it.", "Ada"),
        )
    ]
}
BEGINS = [{"text": "at noon", "answer_start": 10}, {"text": "noon", "answer_start": 13}]
QUESTIONS = [
    {"question": LEAVING, "id": "1", "answers": BEGINS, "is_impossible": False},
    {"question": OWNER, "id": "2", "answers": [], "is_impossible": True},
]
PARAGRAPHS = [{"context": "It leaves at noon.", "qas": QUESTIONS}]
SQUAD = {"version": "v2.0", "data": [{"title": "Ferry", "paragraphs": PARAGRAPHS}]}
# The first question is answered and its document found, the second is not.
FERRY = """
def answer(query):
    if "leave" in query:
        return {"answer": "noon", "retrieved": [{"doc_id": "d1", "text": "It leaves at noon."}]}
    return {"answer": "", "retrieved": [{"doc_id": "d3", "text": "It is blue."}]}
"""


@pytest.mark.parametrize("flags", [[], ["--format"]], ids=["recognised", "named"])
@pytest.mark.parametrize(
    ("tool", "document", "expected"),
    [
        ("llama-index", PAIRS, {"recall@1": 0.5, "mrr": 0.5}),
        ("llama-index", LABELLED, {"recall@1": 0.5, "exact_match": 0.5}),
        ("squad", SQUAD, {"recall@1": 0.5, "exact_match": 1.0, "conditioned_score": 1.0}),
    ],
    ids=["pairs", "labelled", "squad"],
)
def test_datasets_of_llama_index_and_squad_are_run_and_scored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    document: object,
    expected: dict[str, float],
    flags: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "data.json", document)
    Path("ferry.py").write_text(FERRY)
    words = ["--dataset", "data.json", *flags, *([tool] if flags else []), "--match", "text", "--out", "out"]
    words += ["--metrics", ",".join(expected)]
    assert main(["run", *words, "--system", "ferry.py:answer", "--id", "run"]) == 0
    journal = str(next(Path("out").glob("run.run.db")))
    assert main(["score", *words, "--outputs", journal, "--id", "score"]) == 0
    for name in ("run", "score"):
        run = ae.load_run(f"out/{name}.results.json")
        assert {result.name: result.value for result in run.results} == expected


def test_mlflow(tmp_path: Path) -> None:
    rows = [{"inputs": {"question": "q?"}, "outputs": "22", "expectations": {"expected_response": "22"}}]
    sample, output = one(ae.load_dataset(written(tmp_path / "mlflow.json", rows)))
    assert (sample.query, sample.reference_answer.text, output.response.text) == ("q?", "22", "22")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,question,gold\n1,How many?,22\n"),
        ("b.csv", "id;question;gold\n1;How many?;22\n"),
        ("c.tsv", "id\tquestion\tgold\n1\tHow many?\t22\n"),
        ("d.csv", "\ufeffid,question,gold,\r\n1,How many?,22,\r\n"),
        ("e.json", '[{"id": 1, "question": "How many?", "gold": "22"}]'),
        ("f.jsonl", '{"id": 1, "question": "How many?", "gold": "22"}\n'),
    ],
)
def test_tables_with_any_names(tmp_path: Path, name: str, content: str) -> None:
    path = written(tmp_path / name, content)
    sample, _ = one(ae.load_dataset(path, columns={"reference_answer": "gold"}))
    assert (sample.sample_id, sample.query, sample.reference_answer.text) == ("1", "How many?", "22")


def test_convert_writes_the_answers_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": "How many?", "answer": "23", "ground_truth": "22", "contexts": ["a text of it"]}]
    source = written(tmp_path / "ragas.json", rows)
    assert main(["dataset", "convert", str(source), str(tmp_path / "q.jsonl")]) == 0
    assert "the file holds 1 answer too" in capsys.readouterr().err
    files = [str(tmp_path / name) for name in ("q2.jsonl", "a.jsonl")]
    assert main(["dataset", "convert", "--from", "ragas", str(source), files[0], "--outputs", files[1]]) == 0
    assert predictions_of(files[1]).longest == 1


@pytest.mark.parametrize("form", ["ragas", "deepeval", "label-studio", "beir", "trec"])
def test_what_is_written_for_a_tool_is_read_back(tmp_path: Path, form: str) -> None:
    rows = [
        {
            "sample_id": "7",
            "query": "How many?",
            "reference_answer": "22",
            "relevant_docs": [{"doc_id": "d1", "text": "It carries 22 cars."}],
        }
    ]
    source = written(tmp_path / "q.jsonl", "\n".join(map(json.dumps, rows)))
    hits = [{"doc_id": "d1", "text": "It carries 22 cars."}, {"doc_id": "d2", "text": "no"}]
    answers = written(tmp_path / "a.jsonl", {"sample_id": "7", "answer": "23", "retrieved": hits})
    target = tmp_path / {"ragas": "r.jsonl", "beir": "folder", "trec": "t.run"}.get(form, "d.json")
    assert (
        main(["dataset", "convert", str(source), str(target), "--to", form, "--outputs", str(answers)]) == 0
    )
    if form == "trec":
        assert kind_of_file(target) == "trec-run"
        (output,) = predictions_of(target).outputs(["7"])
        assert [hit.doc.doc_id for hit in output.retrieved] == ["d1", "d2"]
        return
    if form == "label-studio":  # tasks have no annotations yet
        task = json.loads(target.read_text())[0]["data"]
        assert task["similar_docs"][0] == {"id": "d1", "body": hits[0]["text"]}
        sample, output = one(ae.load_dataset(target))
        assert (sample.sample_id, output.response.text) == ("7", "23")
        return
    sample, output = one(ae.load_dataset(target))
    assert sample.query == "How many?"
    assert [(doc.doc_id, doc.text) for doc in sample.relevant_docs] == [("d1", "It carries 22 cars.")]
    if form != "beir":
        assert sample.reference_answer.text == "22"
        assert (output.response.text, [hit.doc.doc_id for hit in output.retrieved]) == ("23", ["d1", "d2"])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of other tools are not here")
@pytest.mark.parametrize(
    ("tool", "name", "samples"),
    [
        ("beir", "beir", 40),
        ("deepeval", "deepeval/written_by_4.x/g.csv", 1),
        ("inspect", "inspect/log_streaming.eval", 4),
        ("label-studio", "label-studio/made_rag_feedback_export.json", 1),
        ("promptfoo", "promptfoo/config-multishot_output.json", 4),
        ("ragas", "ragas/edited_chain_runs.json", 18),
        ("ragchecker", "ragchecker/checking_outputs.json", 2),
        ("trec", "trec/cwl.qrels", 3),
    ],
)
def test_every_file_of_a_tool_is_read_by_its_name(tool: str, name: str, samples: int, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["dataset", "convert", "--from", tool, str(SHARED / name), str(out)]) == 0
    assert len(ae.load_dataset(out)) == samples


def test_label_studio_has_a_file_per_annotator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def annotation(number: int, by: Any, *results: Any) -> Any:
        return {
            "id": number,
            "completed_by": by,
            "result": [{"from_name": n, "type": t, "value": v} for n, t, v in results],
        }

    ranked = ("rank", "ranker", {"ranker": {"relevant": ["f"], "non_relevant": ["w"]}})
    docs = [{"id": "f", "body": "It carries 22 cars."}, {"id": "w", "body": "Water."}]
    task = {
        "id": 7,
        "data": {"question": "How many?", "answer": "22", "similar_docs": docs},
        "annotations": [
            annotation(1, 3, ranked, ("clarity", "rating", {"rating": 4}), ("x", "video", {"frames": []})),
            annotation(
                2, {"id": 4, "email": "b@example.org"}, ranked, ("kind", "choices", {"choices": ["good"]})
            ),
            {**annotation(5, 9, ranked), "was_cancelled": True},
        ],
    }
    source = written(tmp_path / "export.json", [task])
    target = tmp_path / "people.gt.json"
    assert main(["dataset", "convert", "--from", "label-studio", str(source), str(target)]) == 0
    said = capsys.readouterr()
    assert "2 annotators, 4 annotations" in said.out
    assert "1 results have no place here (1 video)" in said.err
    assert sorted(path.name for path in tmp_path.glob("people*")) == ["people-3.gt.json", "people-4.gt.json"]
    documents, answer = load_ground_truth(tmp_path / "people-3.gt.json")
    assert documents["citations"] == [{"file_name": "f", "start_char": 0, "end_char": 19}]
    assert (documents["query_id"], answer["quality_scores"]) == ("7", {"clarity": 0.8})
    people = [str(tmp_path / f"people-{number}.gt.json") for number in (3, 4)]
    assert main(["annotate", "--agree", *people]) == 0
