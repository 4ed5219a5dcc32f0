"""Text of models and files: no command prints what a CI runner or a terminal would act on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

# Commands of CI runners, an escape sequence of one C1 character, and a change of the reading direction.
HOSTILE = "\n::add-mask::a\n##[group]b ##vso[task.setvariable]c ##teamcity[d] \x9b31m \x85 \u202e\u2066 e\x7f"
ACTED_ON = re.compile(r"^\s*::|##\w*\[|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", re.MULTILINE)
SYSTEM = f"""
from auepora_eval.core.types import Response, SystemOutputs

class System:
    name = {HOSTILE!r}

    def run(self, sample, top_k=5):
        if sample.sample_id.endswith("4"):
            raise RuntimeError({HOSTILE!r})
        return SystemOutputs([("d" + {HOSTILE!r}, {HOSTILE!r})], Response({HOSTILE!r}))

system = System()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset and two runs whose texts are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    samples = [
        {
            "sample_id": f"s{HOSTILE}{n}",
            "query": f"{n} {HOSTILE}",
            "reference_answer": HOSTILE,
            "relevant_docs": [f"gold{HOSTILE}{n}"],
            "labels": {"kind": HOSTILE},
            "metadata": {"note": HOSTILE},
        }
        for n in range(6)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
    (folder / "hostile_system.py").write_text(SYSTEM, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("a", "b"):
            words = ["--dataset", "d.jsonl", "--system", "hostile_system.py:system", "--id", name]
            assert main(["run", *words, "--metrics", "recall@5,token_f1"]) == 3
    return folder


SAMPLE = f"s{HOSTILE}1"
COMMANDS = [
    ("run", "--dataset", "d.jsonl", "--system", "hostile_system.py:system", "--id", "c", "--force"),
    ("run", "--dataset", "d.jsonl", "--system", "hostile_system.py:system", "--id", "c", "--force", "--json"),
    ("run", "--dataset", HOSTILE, "--system", HOSTILE),
    ("score", "--dataset", "d.jsonl", "--outputs", "a.run.db"),
    ("show", "a"),
    ("show", "a", "--json"),
    ("show", "a", "--sample", SAMPLE),
    ("show", "a", "--sample", HOSTILE),
    ("show", "a", "--worst", "token_f1"),
    ("compare", "a", "b", "--by", "kind", "--regressions-of", "token_f1"),
    ("compare", "a", "b", "--json", "--by", "kind"),
    ("compare", "a", "b", "--markdown", "-", "--by", "kind"),
    ("gate", "a", "--baseline", "b"),
    ("gate", "a", "--min", f"{HOSTILE}=1"),
    ("gate", "a", "--json", "--min", "recall@5=0.5"),
    ("power", "a", "b"),
    ("show", "b", "--markdown", "-"),
    ("score", "--run", "a", "--metrics", "exact_match", "--id", "r", "--force"),
    ("list",),
    ("list", "--json"),
    ("show", "a", "--verify"),
    ("dataset", "check", "d.jsonl"),
    ("dataset", "check", "d.jsonl", "--sample", "2"),
    ("dataset", "check", "d.jsonl", "--sample", "2", "--json"),
    (HOSTILE,),
    ("show", HOSTILE),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:40].replace("\n", " "))
def test_hostile_text_is_only_shown(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    main(list(words))
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        match = ACTED_ON.search(text)
        assert match is None, text[max(0, match.start() - 60) : match.end() + 60]
    assert "Traceback" not in printed.err


def test_json_has_the_same_content(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    capsys.readouterr()
    assert main(["show", "a", "--json"]) == 0
    stored = (folder / "data/evaluation/results/a.results.json").read_text(encoding="utf-8")
    assert json.loads(capsys.readouterr().out) == json.loads(stored)
