"""The support function `trained`: order, identity, weights, and its use by name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.judges import support
from auepora_eval.judges.support import WeightsFile, trained_support
from auepora_eval.metrics.entailment import support_function, support_identity
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "auepora_eval" / "judges" / "support_weights.json"
PIER = "The Annet moors at the north pier. It carries 22 cars. Tickets rose in May."


@pytest.fixture
def trained() -> support.TrainedSupport:
    return trained_support()


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The Annet carries 22 cars.", "The Annet carries 40 cars."),
        ("The Annet moors at the north pier.", "The Annet does not moor at the north pier."),
        ("The Annet moors at the north pier.", "The Olga moors at the north pier."),
        ("Tickets rose in May.", "Tickets fell in May."),
        ("The Annet moors at the pier.", "Gulls lay three eggs in spring."),
        ("It carries 22 cars.", "It carries 22 cars. Gulls lay three eggs in spring."),
    ],
)
def test_a_supported_claim_scores_higher(trained: support.TrainedSupport, better: str, worse: str) -> None:
    assert trained(PIER, better) > trained(PIER, worse)


@pytest.mark.parametrize(
    ("premise", "claim"), [("", "Gulls nest."), (PIER, "It is."), (PIER, ""), ("...", "x")]
)
def test_nothing_to_compare_is_not_supported(
    trained: support.TrainedSupport, premise: str, claim: str
) -> None:
    assert trained(premise, claim) == 0.0


def test_the_identity_is_the_hash_of_the_weights() -> None:
    weights = msgspec.json.encode(msgspec.json.decode(WEIGHTS.read_bytes(), type=WeightsFile).weights)
    assert support_identity("trained") == f"trained/{hashlib.sha256(weights).hexdigest()[:8]}"
    assert support_identity("lexical") == "lexical"


def test_the_weights_name_their_sources_and_their_script() -> None:
    content = json.loads(WEIGHTS.read_bytes())
    script = (ROOT / content["trained_by"]["script"]).read_bytes()
    assert content["trained_by"]["sha256"] == hashlib.sha256(script).hexdigest()
    assert all(source["licence"] and source["repository"] for source in content["sources"])
    tests_only = {"AttributionBench", "FaithBench", "FinanceBench"}
    assert not tests_only & {source["name"] for source in content["sources"]}


def test_the_metric_is_the_function_on_the_retrieved_documents() -> None:
    answers = ("It carries 22 cars.", "Gulls nest.", "It is.", "I cannot answer that.")
    hits = [
        RetrievedDocument(Document(str(rank), text), 1 / rank, rank)
        for rank, text in enumerate((PIER, "x"), 1)
    ]
    outputs = [SystemOutputs(hits, Response(answer)) for answer in answers]
    result = parse_metric("support_model").compute([a_sample(str(n)) for n in range(4)], outputs)
    function = support_function("trained")
    assert [score.value for score in result.scores] == [
        pytest.approx(function(f"{PIER}\nx", answers[0])),
        pytest.approx(function(f"{PIER}\nx", answers[1])),
        None,
        None,
    ]
    assert result.details["signature"]["support"] == support_identity("trained")


def test_score_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    retrieved = [{"doc_id": "ferries", "text": PIER}]
    answers = ("The Annet moors at the north pier [1].", "Gulls lay three eggs in spring [1].")
    questions = [{"sample_id": str(n), "query": "Where does it moor?"} for n in range(2)]
    outputs = [
        {"sample_id": str(n), "retrieved": retrieved, "response": {"text": text}}
        for n, text in enumerate(answers)
    ]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, outputs)))
    files = ["--dataset", "questions.jsonl", "--outputs", "answers.jsonl"]
    names = "citation_correctness[trained],citation_accuracy[support=trained],support_model"
    assert main(["score", *files, "--metrics", names, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["citation_metrics"]
    correctness = metrics["citation_correctness[trained]"]
    assert correctness["value"] == 0.5
    assert correctness["details"]["signature"]["support"] == support_identity("trained")
