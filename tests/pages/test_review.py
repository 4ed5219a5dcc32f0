"""A review of questions as a user starts it: steps are kept, a new version is written, texts are texts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.io.jsonl import load_jsonl_dataset, save_jsonl_dataset
from tests.pages.serving import served, tags_of

pytestmark = pytest.mark.full

HOSTILE = """</textarea></script><script>alert(1)</script><img src=x onerror=alert(2)>"' \u202etxt"""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    text = f"The boat moors here. {HOSTILE} And there."
    samples = [
        EvaluationSample(
            f"{HOSTILE} {number}",
            f"{HOSTILE} {number}?",
            [Document(HOSTILE, text, {"title": HOSTILE, "spans": [{"start": 0, "end": 8, "text": HOSTILE}]})],
            reference_answer=HOSTILE,
            labels={"kind": HOSTILE},
        )
        for number in range(3)
    ]
    save_jsonl_dataset(InMemoryDataset("hostile", samples), path)
    return path


def test_a_review_from_start_to_the_new_version(questions: Path, tmp_path: Path) -> None:
    before = questions.read_bytes()
    new = tmp_path / "new.jsonl"
    with served("annotate", "--questions", questions, "--out", new) as server:
        assert server.get("/review/task").headers["location"] == "/review/task/1"
        page = server.get("/review/task/1")
        assert tags_of(page.text).count("script") == 1
        assert "img" not in tags_of(page.text)
        assert "\u202e" not in page.text
        reply = server.post("/review/task/1/press", key="reject", reason="ambiguous")
        assert (reply.status, reply.headers["location"]) == (303, "/review/task/2")
        assert server.post("/review/task/2/edit", query="Where?\r\nHere?", reference="there").status == 303
        assert server.post("/review/task/2/mark", doc="0", start="4", end="8", text="boat").status == 303
        server.stop(signal.SIGKILL)
    assert not new.exists()
    with served("annotate", "--questions", questions, "--out", new) as server:
        assert server.get("/review/task").headers["location"] == "/review/task/2", "what was decided is kept"
        server.post("/review/task/2/press", key="accept", reason="")
        assert server.stop() == 0
        assert "1 accepted, 1 rejected, 1 not decided, 1 edited" in server.printed
        assert f"auepora dataset check {new}" in server.printed
    assert questions.read_bytes() == before
    samples = list(load_jsonl_dataset(new))
    assert len(samples) == 2
    assert samples[0].query == "Where?\nHere?"
    spans = (samples[0].relevant_docs or [])[0].metadata["spans"]
    assert spans[1] == {"start": 4, "end": 8, "text": "boat"}
    with served(
        "annotate", "--questions", questions, "--out", new
    ) as server:  # what it wrote, it may write again
        assert server.stop() == 0
    new.write_text("somebody else's")
    command = [
        sys.executable,
        "-m",
        "auepora_eval",
        "annotate",
        "--questions",
        str(questions),
        "--out",
        str(new),
    ]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 4
    assert new.read_text() == "somebody else's"


WRONG: list[tuple[str, dict[str, str]]] = [
    ("/review/task/1/press", {"key": "delete"}),
    ("/review/task/9/press", {"key": "accept"}),
    ("/review/task/x/press", {"key": "accept"}),
    ("/review/task/0/press", {"key": "accept"}),
    ("/review/task/1/edit", {"query": ""}),
    ("/review/task/1/mark", {"doc": "0", "start": "0", "end": "4", "text": "boat"}),
    ("/review/task/1/mark", {"doc": "7", "start": "0", "end": "3", "text": "The"}),
    ("/review/task/1/mark", {}),
    ("/review/task/1/unmark", {"doc": "0", "span": "4"}),
]


def test_wrong_steps_change_nothing(questions: Path, tmp_path: Path) -> None:
    with served("annotate", "--questions", questions, "--out", tmp_path / "new.jsonl") as server:
        assert [server.post(path, **fields).status for path, fields in WRONG] == [400] * len(WRONG)
        assert server.send("POST", "/review/task/1/press", "key=accept", cookie=server.cookie).status == 403
        assert server.stop() == 0
    assert not (tmp_path / "new.jsonl").exists(), "nothing was decided"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["q.jsonl", "--out", "q.jsonl"], 2, "never reviewed in place"),
        (["q.jsonl", "--out", "other.jsonl"], 4, "exists already"),
        (["q.jsonl", "--out", "new.txt"], 2, "does not say which format"),
    ],
)
def test_no_file_is_overwritten(
    questions: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    (tmp_path / "other.jsonl").write_text("{}")
    command = [sys.executable, "-m", "auepora_eval", "annotate", "--questions", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert message in done.stderr
    assert (tmp_path / "other.jsonl").read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.jsonl", "q.jsonl"]


def test_gold_spans_of_a_chunk_are_marked_in_its_text(tmp_path: Path) -> None:
    spans = [{"source": "boats.md", "start": 919, "end": 926, "text": "22 cars"}]
    place = {"source": "boats.md", "start": 900, "end": 939}
    chunk = Document("boats.md#2", "The Annet carries  22 cars every morning.", {**place, "spans": spans})
    save_jsonl_dataset(InMemoryDataset("b", [EvaluationSample("1", "q", [chunk])]), tmp_path / "q.jsonl")
    with served("annotate", "--questions", tmp_path / "q.jsonl", "--out", tmp_path / "n.jsonl") as server:
        assert "<mark>22 cars</mark>" in server.get("/review/task/1").text
