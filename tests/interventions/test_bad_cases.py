"""What cannot be said is said in one line, with what would help; it is never a cause."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval import Diagnosis, Document, EvaluationSample
from auepora_eval.errors import AueporaError
from auepora_eval.interventions.documents import Corpus
from auepora_eval.interventions.probe import Prober, right_metric
from tests.servers import chat_server

DOCUMENTS = [Document(f"d{n}", f"The value of item {n} is v{n}7.") for n in range(40)]


def samples(count: int = 40, *, gold: str = "text", labels: Any = None) -> list[EvaluationSample]:
    forms: dict[str, Any] = {
        "text": lambda n: [DOCUMENTS[n]],
        "id": lambda n: [f"d{n}"],
        "none": lambda n: None,
    }
    return [
        EvaluationSample(
            str(n),
            f"What is the value of item {n}?",
            relevant_docs=forms[gold](n),
            reference_answer=f"v{n}7",
            labels=dict(labels or {}),
        )
        for n in range(count)
    ]


def retrieve(query: str, top_k: int = 5) -> list[Document]:
    return DOCUMENTS[:top_k]


def read(query: str, documents: list[Document]) -> str:
    number = query.rsplit(maxsplit=1)[-1].strip("?")
    found = [doc for doc in documents if f" item {number} " in doc.text]
    return found[0].text if found else "I don't know."


def diagnosed(system: Any, asked: list[EvaluationSample], corpus: Any = DOCUMENTS) -> Diagnosis:
    found = ae.diagnose(ae.probe(system, asked, corpus))
    assert max(map(len, str(found).splitlines())) <= 80
    return found


def test_no_gold_documents() -> None:
    found = diagnosed((retrieve, read), samples(gold="none"))
    assert found.first is None
    assert {one.name for one in found.stages} == {"untraced"}
    assert "No question has gold documents" in str(found)


def without_texts(query: str, top_k: int = 5) -> list[str]:
    return [doc.doc_id for doc in DOCUMENTS[:top_k]]


def test_gold_ids_without_texts() -> None:
    found = diagnosed((without_texts, read), samples(gold="id"), None)
    assert found.first is None
    assert "neither the dataset nor the corpus" in " ".join(str(found).split())


def test_the_deep_list_gives_gold_ids_their_texts() -> None:
    assert diagnosed((retrieve, read), samples(gold="id"), None).first == "rerank"


@pytest.mark.parametrize("gold", ["none", "id"])
def test_where_nothing_was_tried_no_fix_is_judged(gold: str) -> None:
    text = str(diagnosed((without_texts, read), samples(gold=gold), None))
    for wrong in ("Nothing stands out", "can be handed documents", "calls of the generator"):
        assert wrong not in text


def asks(query: str, documents: list[Document] | None = None) -> str:
    """A system whose outputs are answers alone; on its own it finds five documents."""
    return read(query, DOCUMENTS[:5] if documents is None else documents)


def test_outputs_that_name_no_documents() -> None:
    found = diagnosed(asks, samples())
    assert {one.name: one.count for one in found.stages} == {"unused": 35}
    assert found.first == "documents"
    assert found.unsupported == []
    assert "what was retrieved is not known" in str(found)
    assert "lost among others" not in str(found)


def test_what_is_wrong_on_gold_is_known_without_a_list_of_documents() -> None:
    def poor(query: str, documents: list[Document] | None = None) -> str:
        return "I don't know." if "1" in query else asks(query, documents)

    stages = {one.name: one.count for one in diagnosed(poor, samples()).stages}
    assert stages == {"unused": 23, "declined": 13}


def test_outputs_of_a_black_box_that_name_no_documents() -> None:
    found = diagnosed(lambda query: read(query, DOCUMENTS[:5]), samples())
    assert {one.name for one in found.stages} == {"untraced"}
    assert "what was retrieved is not known" in str(found)


def test_a_generator_that_ignores_what_it_is_handed_is_no_cause() -> None:
    def deaf(query: str, documents: list[Document] | None = None) -> Any:
        return (DOCUMENTS[:5], "right away" if documents is None else "I don't know.")

    found = diagnosed(deaf, samples())
    assert found.first is None
    assert {one.name for one in found.stages} == {"untraced"}
    assert "No cause can be named." in " ".join(str(found).split())


def test_one_line_of_each_in_a_session() -> None:
    probe = ae.probe(asks, samples())
    assert repr(ae.diagnose(probe)) == "Diagnosis(35 of 40 wrong: unused 35; first: documents)"
    assert repr(probe) == "Probe(40 samples; runs: retrieved, gold, merged, again)"
    stressed = ae.robustness(ae.probe(asks, samples(), names="stress"))
    assert "\n" not in repr(stressed)
    assert len(repr(stressed)) < 200


@pytest.mark.filterwarnings("ignore::auepora_eval.core.plan.PartialCoverageWarning")
def test_metrics_that_only_other_samples_support_are_left_out() -> None:
    own = EvaluationSample(
        "own", "What is it?", candidate_docs=DOCUMENTS[:1], reference_answer="v07",
        labels={"scenario": "counterfactual", "true_answer": "v07", "fake_answer": "v99"},
        metadata={"closed_context": True},
    )  # fmt: skip
    metrics = ["contains_answer", "fake_adoption_rate"]
    run = ae.evaluate((retrieve, read), [*samples(), own], metrics=metrics)
    assert ae.diagnose(ae.probe((retrieve, read), run)).first == "rerank"


def test_questions_without_references() -> None:
    asked = [replace(one, reference_answer=None) for one in samples()]
    found = diagnosed((retrieve, read), asked)
    text = " ".join(str(found).split())
    assert text.startswith("40 of 40 questions have no reference answer")
    assert "nan" not in text
    assert "intervention that failed" not in text
    assert found.calls == {"generate": 0, "retrieve": 0}
    assert found.first is None


def test_what_cannot_be_traced_is_not_called_sound() -> None:
    asked = [replace(one, relevant_docs=None) for one in samples()[:35]] + samples()[35:]
    text = " ".join(str(diagnosed((retrieve, read), asked)).split())
    assert "What to fix first cannot be said: 30 of 35 wrong answers cannot be traced." in text
    assert "35 of 40 questions have no gold documents" in text
    assert "Nothing stands out" not in text


def test_a_retriever_that_does_not_repeat_itself_is_said() -> None:
    turn = itertools.count()

    def unsteady(query: str, top_k: int = 5) -> list[Document]:
        first = next(turn) % 2
        return DOCUMENTS[first : first + top_k]

    found = diagnosed((unsteady, read), samples(41 - 2))
    assert "does not repeat itself" in " ".join(str(found).split())


def test_the_whole_system_is_priced_where_it_has_no_retriever_of_its_own() -> None:
    def whole(query: str, top_k: int = 5, documents: list[Document] | None = None) -> Any:
        documents = DOCUMENTS[:top_k] if documents is None else documents
        return documents, read(query, documents)

    run = ae.evaluate(whole, samples(), metrics="right")
    prober = Prober(run, ae.answerer_of(whole), Corpus(DOCUMENTS, run.samples), right_metric(samples(), None))
    planned = prober.planned()
    made = prober.probe().calls
    assert made["retrieve"] == planned["retrieve"] == 0
    assert made["generate"] <= planned["generate"]


def test_a_corpus_gives_gold_ids_their_texts() -> None:
    assert diagnosed((retrieve, read), samples(gold="id")).first == "rerank"


def test_a_retriever_without_top_k() -> None:
    found = diagnosed((lambda query: DOCUMENTS[:5], read), samples())
    assert found.first == "retrieval"
    assert found.stages[0].name == "missed"
    assert "takes no top_k" in str(found)


def test_a_generator_that_always_fails_on_handed_documents() -> None:
    def broken(query: str, documents: list[Document]) -> str:
        if len(documents) == 5:
            return "I don't know."
        raise ValueError("no such prompt")

    with pytest.raises(AueporaError, match="no such prompt"):
        diagnosed((retrieve, broken), samples())


@pytest.mark.filterwarnings("ignore:.*calls failed")
def test_a_fix_that_failed_on_half_of_the_questions_is_not_the_first() -> None:
    def fails_on_gold(query: str, documents: list[Document]) -> str:
        answer = read(query, documents)
        if "v" in answer and int(query.rsplit(maxsplit=1)[-1].strip("?")) % 2:
            raise ValueError("the context is too long")
        return answer

    found = diagnosed((lambda query, top_k=5: DOCUMENTS[40 - top_k :], fails_on_gold), samples())
    assert found.first is None
    assert "have an intervention that failed" in str(found)


@pytest.mark.filterwarnings("ignore:.*calls failed")
def test_a_run_whose_calls_failed_on_half_of_the_questions_names_no_cause() -> None:
    def fails(query: str, documents: list[Document]) -> str:
        if int(query.rsplit(maxsplit=1)[-1].strip("?")) % 2:
            raise TimeoutError("busy")
        return read(query, documents)

    run = ae.evaluate((retrieve, fails), samples(), metrics="right", policy=ae.CallPolicy(retries=0))
    found = ae.diagnose(ae.probe((retrieve, read), run, DOCUMENTS))
    assert found.first is None
    assert "20 answered questions are too few to name a cause" in str(found)
    assert "Nothing stands out" not in str(found)


@pytest.mark.parametrize("answer", ["", "42"])
def test_a_generator_that_returns_nothing_or_the_same_for_everything(answer: str) -> None:
    found = diagnosed((retrieve, lambda query, documents: answer), samples())
    assert found.first is None
    assert found.fixes == []
    assert "Documents do not reach the generator: 0 of 40" in str(found)
    assert f"Each of them is {answer!r}. Check that the generator" in found.unreached


def test_a_set_of_unanswerable_questions() -> None:
    found = diagnosed((retrieve, lambda query, documents: "42"), samples(labels={"answerable": False}))
    assert {one.name for one in found.stages} == {"answered"}
    assert found.first is None
    assert "cannot be handed documents" not in str(found)
    assert "No question has an answer" in str(found)


@pytest.mark.parametrize("count", [10, 29])
def test_few_questions_name_no_cause(count: int) -> None:
    found = diagnosed((retrieve, read), samples(count))
    assert f"{count} questions are too few to name a cause" in str(found)
    assert found.first is None
    assert "First:" not in str(found)
    assert "Nothing stands out" not in str(found)


@pytest.mark.parametrize("fails_at", ["depth", "known items"])
@pytest.mark.filterwarnings("ignore:.*calls failed")
def test_a_retriever_that_fails_when_asked_again_is_no_cause(fails_at: str) -> None:
    def fragile(query: str, top_k: int = 5) -> list[Document]:
        is_hit = "What" not in query if fails_at == "known items" else top_k > 5 and "3" in query
        if is_hit:
            raise TimeoutError("busy")
        return DOCUMENTS[:5]

    found = diagnosed((fragile, read), samples())
    lost = {one.name for one in found.stages}
    assert "missed" in lost
    assert not lost & {"cutoff", "index" if fails_at == "known items" else ""}
    assert "rerank" not in (found.first, *found.rivals)


def test_a_corpus_that_lacks_the_gold() -> None:
    found = diagnosed((without_texts, read), samples(gold="id"), [Document("other", "Something else.")])
    assert found.first is None
    assert "neither the dataset nor the corpus" in " ".join(str(found).split())


def test_a_judged_metric_is_not_accepted() -> None:
    with pytest.raises(AueporaError, match="must score an answer by itself"):
        ae.probe((retrieve, read), samples(3), metric="judged_correctness")


def test_an_endpoint_with_a_field_for_documents() -> None:
    from auepora_eval.core.systems.named import load_system

    def reply(body: Any) -> Any:
        return {"answer": " ".join(one["text"] for one in body.get("evidence", []))}

    with chat_server(says=reply, bare=True) as server:
        system = load_system(f"http:{server.url}", {"fields": {"given": "evidence"}})
        answerer = ae.answerer_of(system)
        assert answerer is not None
        assert answerer.answer("?", DOCUMENTS[:1]).response.text == DOCUMENTS[0].text
    assert server.requests[0]["evidence"] == [{"id": "d0", "text": DOCUMENTS[0].text}]


def test_a_call_that_failed_is_made_once_for_all_interventions_with_the_same_documents() -> None:
    asked: list[str] = []

    def breaks(query: str, documents: list[Document]) -> str:
        if len(documents) == 1 and query.endswith("3?"):
            asked.append(query)
            raise OSError("the model is down")
        return read(query, documents)

    diagnosed((retrieve, breaks), samples())
    assert len(asked) == len(set(asked)) == 4
