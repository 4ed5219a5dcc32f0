"""A dataset card: the YAML block is what Hugging Face reads, and no name in it acts."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePath
from typing import Any

import pytest
import yaml

from auepora_eval.cli.main import main
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.display import terminal_line
from auepora_eval.quality.card import Split, dataset_card
from auepora_eval.quality.description import describe
from tests.builders import a_sample
from tests.decide.test_gate_reports import HOSTILE
from tests.reporting.markdown_reading import read


def parts(card: str) -> tuple[dict[str, Any], str]:
    """Return the YAML block and the page of a card."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", card, re.DOTALL)
    assert match is not None
    return yaml.safe_load(match[1]), match[2]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset", "generate", "demo", "--out", "raw.jsonl"]) == 0
    assert main(["dataset", "build", "--offline-dataset", "raw.jsonl", "--version", "v2"]) == 0
    return tmp_path / "evaluation" / "datasets"


def test_card_of_a_build(built: Path) -> None:
    words = ["dataset", "check", str(built / "manifest.json"), "--card", str(built / "README.md")]
    assert main(words) == 0
    matter, page = parts((built / "README.md").read_text(encoding="utf-8"))
    assert matter["pretty_name"] == "datasets v2"
    assert matter["task_categories"] == ["question-answering", "summarization"]
    assert matter["size_categories"] == ["n<1K"]
    assert [one["config_name"] for one in matter["configs"]] == ["qa", "summaries"]
    manifest = json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    for config in matter["configs"]:
        [file] = config["data_files"]
        lines = (built / file["path"]).read_text(encoding="utf-8").splitlines()
        count = manifest["splits"][config["config_name"]]["count"]
        assert len(lines) == count
        assert f"| {config['config_name']} | {file['path']} | {count:,} |" in page
    assert f"| no split for citations | {manifest['excluded_task_types']['citations']} |" in page
    assert manifest["source"]["sha256"] in page

    assert main(words) == 4, "a card that exists is not overwritten"
    assert main([*words, "--force"]) == 0
    assert main(["dataset", "check", str(built), "--card", str(built / "other.md")]) == 0
    assert (built / "other.md").read_bytes() == (built / "README.md").read_bytes()


def test_hugging_face_reads_the_card(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["dataset", "check", str(built), "--card", str(built / "README.md")]) == 0
    loaded = datasets.load_dataset(str(built), "qa", split="test", cache_dir=str(built / "cache"))
    assert loaded.num_rows == len((built / "qa_pairs.jsonl").read_text(encoding="utf-8").splitlines())


def test_card_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = {"sample_id": "1", "query": "q", "reference_answer": "a"}
    Path("data").mkdir()
    Path("data/my questions [1].jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert main(["dataset", "check", "data/my questions [1].jsonl", "--card", "README.md"]) == 0
    matter, page = parts(Path("README.md").read_text(encoding="utf-8"))
    # The path is a pattern for Hugging Face: a bracket in it is escaped.
    assert matter["configs"][0]["data_files"][0]["path"] == "data/my questions [[]1].jsonl"
    assert "How it was made" not in page
    assert main(["dataset", "check", "demo", "--card", "demo.md"]) == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_only_names(text: str) -> None:
    sample = a_sample("s", text, reference=text)
    sample.labels[text] = text
    about = describe(InMemoryDataset(text, [sample]))
    splits = [Split(text, PurePath(f"{text}.jsonl".replace("\0", "")), about)] * 2
    matter, page = parts(dataset_card(text, splits))
    assert matter["configs"][0]["config_name"] == terminal_line(text)
    body, _, command = page.partition("```bash\n")
    read(body)
    assert re.fullmatch(r"auepora run --dataset [\w./-]+ --system my_rag.py:my_rag\n```\n", command)
