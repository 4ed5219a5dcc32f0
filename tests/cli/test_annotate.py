"""`auepora annotate`: a task from runs, its flags and its messages. The pages are in tests/pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.people.desk import Desk
from auepora_eval.people.task import read_task

TASKS = Path("data/evaluation/annotations")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    for name, system in (("one", "bm25"), ("two", "hybrid")):
        words = f"run --dataset demo --system auepora_eval.demo.systems:{system} --limit 30".split()
        metrics = "contains_answer,token_f1,grounding_overlap,recall@5"
        out = str(folder / "data/evaluation/results")
        assert main([*words, "--metrics", metrics, "--id", name, "--out", out]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)


def prepare(*words: str) -> Path:
    """Create a task in a folder of its own and return it."""
    folder = Path(f"task {len(list(Path.cwd().glob('task *')))}")
    assert main(["annotate", *words, "--prepare", "--task", str(folder)]) == 0
    return folder


def label(folder: Path, keys: str, person: str = "me") -> None:
    """Press keys as a person would, over and over until the queue is empty."""
    desk, count = Desk(folder), 0
    while (shown := desk.next_item(person)) is not None:
        desk.press(person, shown.item.item_id, keys[count % len(keys)])
        count += 1


def test_the_same_command_creates_and_continues(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", "one", "--prepare", "--count", "10"]) == 0
    folder = TASKS / "one-answers"
    printed = capsys.readouterr().err
    assert f"created: {folder}: 10 of 28 answers, chosen at random\n2 answers decline: " in printed
    for words in (["one"], ["one", "--count", "10"], [str(folder)], [str(folder), "--people", "me"]):
        assert main(["annotate", *words, "--prepare"]) == 0
    assert "created" not in capsys.readouterr().err
    assert main(["annotate", "one", "--count", "11", "--prepare"]) == 2
    assert "exists, and --count would change it" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["answers", "claims", "documents"])
def test_judge_audit_reads_labels_of_what_documents_support(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = prepare("one", "--items", kind, "--count", "12")
    label(folder, "12")
    assert main(["annotate", str(folder), "--export", f"{kind}.jsonl", "--force"]) == 0
    printed = capsys.readouterr()
    assert "me: 12 of 12 labelled, 0 not sure" in printed.out
    audit = main(["judge-audit", "--labels", f"{kind}.jsonl", "--judge", "support:lexical"])
    if kind == "documents":  # a relevant document does not support the question
        assert audit == 2
        return
    assert audit == 0
    assert "12 labelled claims" in capsys.readouterr().out


def test_pairs_say_which_run_people_prefer_and_agree_reads_them(capsys: pytest.CaptureFixture[str]) -> None:
    folder = prepare("one", "two", "--people", "ada,ben", "--count", "10")
    assert read_task(folder)[0].kind == "pairs"
    for person in ("ada", "ben"):
        desk = Desk(folder)
        while (shown := desk.next_item(person)) is not None:
            is_left = shown.first == shown.item.second  # the answer of the run `two`
            desk.press(person, shown.item.item_id, "1" if is_left else "2")
    for name in ("pairs.jsonl", "pairs.gt.json"):
        assert main(["annotate", str(folder), "--export", name]) == 0
    out = capsys.readouterr().out
    assert "one wins 0.0000 [0.0000," in out
    assert "of the pairs against two; a tie counts one half." in " ".join(out.split())
    assert main(["annotate", "--agree", "pairs.gt.json"]) == 0
    assert "aspect_ratings.preference" in capsys.readouterr().out
    words = ["--score", "token_f1", "--threshold", "0.5", "--min-coverage", "0"]
    assert main(["judge-audit", "--labels", "pairs.jsonl", *words]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "name a run to label its answers, or use --questions FILE or --agree FILES."),
        ("one --agree a.gt.json", "NAME is for runs and tasks, not for --agree. Leave out one or the other."),
        ("--questions demo --as me", "--as is for runs and tasks, not for --questions."),
        ("--questions demo", "--questions needs the file of the new version: add --out NEW.jsonl."),
    ],
)
def test_flags_of_different_uses(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", *words.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one", "--people", "../x"], "cannot be a file name"),
        (["one", "--labels", "only"], "are not from 2 to 9 different labels"),
        (["one", "--items", "pairs"], "Name the two runs to compare"),
        (["one", "--export", "x.jsonl"], "there are no labels to export"),
        (["one", "two", "--as", "eve"], "'eve' is not one of me"),
    ],
)
def test_what_is_wrong_is_said_and_no_task_is_left(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = Path(f"wrong-{'-'.join(words).replace('/', '_')}")
    assert main(["annotate", *words, "--task", str(task)]) == 2
    assert message in capsys.readouterr().err
