"""A review of questions in a browser: decide and edit by keys, and set a gold span by selecting text."""

from __future__ import annotations

from pathlib import Path

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.io.jsonl import load_jsonl_dataset, save_jsonl_dataset
from tests.pages.serving import served

from .conftest import Visitor
from .test_annotate import opened

TEXT = "The 🙂 Annet moors at the north pier. " + "She carries 22 cars on every trip to the islands. " * 40


def test_decide_edit_and_mark_by_keyboard(visit: Visitor, tmp_path: Path) -> None:
    docs = [Document("d1", TEXT, {"title": "Boats"})]
    samples = [
        EvaluationSample(
            str(number), f"Where does the boat {number} moor?", docs, reference_answer="the north pier"
        )
        for number in range(1, 4)
    ]
    save_jsonl_dataset(InMemoryDataset("boats", samples), tmp_path / "q.jsonl")
    new = tmp_path / "new.jsonl"
    with served("annotate", "--questions", tmp_path / "q.jsonl", "--out", new) as server:
        seen = opened(visit, server, "/review/task/1")
        page, keys = seen.page, seen.page.keyboard
        for _ in seen.every_look():
            box = seen.boxes("form.bar-form")[0][1]
            assert 0 <= box["top"] < box["bottom"] <= 901
        seen.press("a")
        page.get_by_role("heading", name="Question 2 of 3").wait_for()
        assert page.url.endswith("/review/task/2")
        seen.press("r")
        page.get_by_role("heading", name="Question 3 of 3").wait_for()
        seen.press("u")
        page.get_by_role("heading", name="Question 2 of 3").wait_for()
        seen.press("e")
        seen.press("ControlOrMeta+a")
        keys.type("Where does she moor?")
        seen.press("Tab")
        seen.press("Tab")
        seen.press("Enter")
        page.get_by_text("before: Where does the boat 2 moor?").wait_for()
        # A double click selects a word, and g makes it a gold span.
        page.locator("[data-doc]").dblclick(position={"x": 66, "y": 10})
        chosen = str(page.evaluate("() => getSelection().toString()")).strip()
        assert chosen == "Annet"
        seen.press("g")
        page.locator("mark", has_text="Annet").wait_for()
        seen.press("g")
        page.get_by_role("alert").get_by_text("Select words in one gold document first.").wait_for()
        seen.press("a")
        page.get_by_role("heading", name="Question 3 of 3").wait_for()
        assert seen.violations() == []
        assert server.stop() == 0
    second = list(load_jsonl_dataset(new))[1]
    assert second.query == "Where does she moor?"
    assert (second.relevant_docs or [])[0].metadata["spans"] == [{"start": 6, "end": 11, "text": "Annet"}]
