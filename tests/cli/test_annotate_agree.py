"""auepora annotate --agree: output, written files and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.io.documents import write_document
from auepora_eval.io.ground_truth import load_ground_truth
from tests.people.annotations import judged, marked

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a folder with the files of two people."""
    monkeypatch.chdir(tmp_path)
    for name, end, good_from in (("ada", 10, 4), ("ben", 8, 3)):
        tones = ["good" if n >= good_from else "poor" for n in range(6)]
        rated = [
            judged(name, f"q{n}", {"clarity": 0.1 * n}, aspect_ratings={"tone": tone})
            for n, tone in enumerate(tones)
        ]
        annotations = [marked(name, "q0", (0, end)), *rated]
        write_document({"dataset_id": "d", "annotations": annotations}, Path(f"{name}.gt.json"))

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        assert main(["annotate", "--agree", *words]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return run


TWO = ("ada.gt.json", "ben.gt.json")


def test_the_settled_spans_are_written(agree: Run) -> None:
    _, err = agree(*TWO, "--export", "s.gt.json")
    assert "written: s.gt.json, spans of 1 queries, 1 of them need a decision" in err
    (settled,) = load_ground_truth("s.gt.json")
    assert settled["metadata"]["needs_decision"]
    assert json.loads(Path("s.gt.json").read_text("utf-8"))["dataset_id"] == "d"
    out, err = agree(*TWO, "--export", "s.gt.json", code=4)
    assert "exists already" in err
    assert out == ""
    agree(*TWO, "--export", "s.gt.json", "--force")
    agree(*TWO, "s.gt.json")  # the settled one is one more annotator


def test_the_order_of_ratings_is_that_of_the_labels(agree: Run) -> None:
    assert "alpha, ordinal" in agree(*TWO, "--labels", "good,fair,poor")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["ada.gt.json"], "all annotations are by 'ada'", id="one person"),
        pytest.param(
            ["ada.gt.json", "ada.gt.json"], "'ada' annotated it already", id="the same person twice"
        ),
        pytest.param(
            [*TWO, "other.gt.json"], "its dataset_id is 'e', that of the files before is", id="other data"
        ),
    ],
)
def test_bad_arguments(agree: Run, words: list[str], message: str) -> None:
    write_document({"dataset_id": "e", "annotations": [marked("c", "q0", (0, 1))]}, Path("other.gt.json"))
    out, err = agree(*words, code=2)
    assert message in err
    assert out == ""
