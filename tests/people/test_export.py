"""What is exported is what the other commands read, and it says what people said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from auepora_eval.io.ground_truth import load_ground_truth
from auepora_eval.io.jsonl import read_records
from auepora_eval.judges.trust.labels import labelled_claims, labels_in
from auepora_eval.people.agreement import annotator_agreement
from auepora_eval.people.annotators import read_annotators
from auepora_eval.people.desk import Desk
from auepora_eval.people.labels import SETTLED, read_labels
from auepora_eval.people.results import export, mean_in_words, task_agreement
from auepora_eval.people.task import Kind, create_task, labels_of
from tests.people.tasks import a_task, an_item, stored_task

YES, NO = "supported", "not supported"
# Who says what about the items 1 to 4; None is "not sure".
ADA = {"1": YES, "2": YES, "3": NO, "4": None}
BEN = {"1": YES, "2": NO, "3": NO, "4": YES}


def labelled(folder: Path, **said: Mapping[str, str | None]) -> None:
    task, _ = stored_task(folder, people=tuple(said))
    for person, labels in said.items():
        for item, label in labels.items():
            read_labels(folder, task, person).label(item, label)
    read_labels(folder, task, "ada").note("2", "half of it")


def test_judge_audit_reads_the_labels_of_each_person(tmp_path: Path) -> None:
    labelled(tmp_path / "t", ada=ADA, ben=BEN)
    path = tmp_path / "labels.jsonl"
    assert export(Desk(tmp_path / "t"), path) == 4
    claims = labelled_claims(read_records(path))
    assert [claim.ratings for claim in claims] == [
        {"ada": 1, "ben": 1},
        {"ada": 1, "ben": 0},
        {"ada": 0, "ben": 0},
        {"ben": 1},
    ]
    assert claims[0].claim == "answer 1"
    assert claims[0].evidence == ("text of document 1",)
    records = [record for _, record in read_records(path)]
    assert [record["sample_id"] for record in records] == ["q1", "q2", "q3", "q4"]
    assert records[1]["notes"] == {"ada": "half of it"}


def test_a_share_of_one_answer_has_no_interval(tmp_path: Path) -> None:
    labelled(tmp_path / "t", ada={"1": YES})
    assert mean_in_words(Desk(tmp_path / "t")) == "Share of 'supported' in the answers: 1.0000."


def test_the_decision_of_the_lead_counts_and_nobody_is_forgotten(tmp_path: Path) -> None:
    labelled(tmp_path / "t", ada=ADA, ben=BEN)
    path = tmp_path / "labels.jsonl"
    for decision in (NO, YES):
        read_labels(tmp_path / "t", a_task(people=("ada", "ben")), SETTLED).label("2", decision)
        export(Desk(tmp_path / "t"), path, force=True)
        claims = labelled_claims(read_records(path))
        assert [claim.is_supported for claim in claims] == [True, decision == YES, False, True]
        assert claims[1].ratings == {"ada": 1, "ben": 0}
        _, labels = labels_in(list(read_records(path)), {"q1", "q2", "q3", "q4"})
        assert labels == {"q1": 1, "q2": float(decision == YES), "q3": 0, "q4": 1}


def test_a_label_set_has_the_majority_or_the_decision_of_the_lead(tmp_path: Path) -> None:
    names = ["hallucination", "accurate"]
    task, _ = stored_task(tmp_path, people=("ada", "ben"), labels=labels_of("answers", names))
    for person, said in (("ada", ADA), ("ben", BEN)):
        for item, label in said.items():
            name = None if label is None else names[label == YES]
            read_labels(tmp_path, task, person).label(item, name)
    assert export(Desk(tmp_path), tmp_path / "before.labels.json") == 3, "q2 is a tie"
    read_labels(tmp_path, task, SETTLED).label("2", "accurate")
    assert export(Desk(tmp_path), tmp_path / "after.labels.json") == 4


def test_agree_reads_the_ground_truth_and_finds_the_same_agreement(tmp_path: Path) -> None:
    labelled(tmp_path / "t", ada=ADA, ben=BEN)
    path = tmp_path / "labels.gt.json"
    assert export(Desk(tmp_path / "t"), path) == 7
    report = annotator_agreement(read_annotators([path]))
    figures = task_agreement(Desk(tmp_path / "t"))
    for statistic in ("cohen_kappa", "krippendorff_alpha_nominal"):
        ours = next(each for each in figures if each.statistic == statistic)
        theirs = report.figure("aspect_ratings.answer", statistic)
        assert ours.value == pytest.approx(theirs.value)
        assert ours.interval == theirs.interval
        assert ours.items == theirs.items == 3
    first = load_ground_truth(path)[0]
    assert first["overall_score"] == 1
    assert first["metadata"] == {"item": "1", "runs": ["run"]}


def test_the_same_answer_of_two_runs_is_one_annotation_of_a_person(tmp_path: Path) -> None:
    items = [an_item(1, runs=("one",)), an_item(2, sample_id="q1", text="answer 1", runs=("two",))]
    task = a_task(runs=("one", "two"), people=("ada", "ben"))
    create_task(tmp_path, task, items)
    for person in task.people:
        for item in "12":
            read_labels(tmp_path, task, person).label(item, YES)
    assert export(Desk(tmp_path), tmp_path / "x.gt.json") == 2
    assert len(read_annotators([tmp_path / "x.gt.json"]).names) == 2
    assert export(Desk(tmp_path), tmp_path / "x.jsonl") == 2
    assert "query_id" in next(read_records(tmp_path / "x.jsonl"))[1], (
        "a sample of two runs has no label of its own"
    )


@pytest.mark.parametrize(
    ("kind", "label", "expected"),
    [
        (
            "claims",
            "supported",
            {"claim": "answer 1", "evidence": ["text of document 1"], "label": {"ada": 1}},
        ),
        (
            "documents",
            "partly relevant",
            {"query": "question 1?", "document": "answer 1", "label": {"ada": 0.5}},
        ),
        ("pairs", "first", {"first": "answer 1", "second": "another answer", "label": {"ada": 1.0}}),
        ("pairs", "equally good", {"label": {"ada": 0.5}}),
    ],
)
def test_every_kind_is_exported(tmp_path: Path, kind: Kind, label: str, expected: dict[str, object]) -> None:
    task, _ = stored_task(tmp_path, 1, kind)
    read_labels(tmp_path, task, "ada").label("1", label)
    export(Desk(tmp_path), tmp_path / "x.jsonl")
    record = next(read_records(tmp_path / "x.jsonl"))[1]
    assert {name: record[name] for name in expected} == expected
    assert export(Desk(tmp_path), tmp_path / "x.gt.json") == 1
