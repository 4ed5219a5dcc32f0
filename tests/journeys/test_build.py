"""The journey of a team with raw tasks: build, check, build again, notice a loss, evaluate on a split."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from tests.raw_tasks import a_raw_task, records, write_tasks

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
DATA = Path("evaluation/datasets")


def tasks(count: int, **fields: Any) -> list[dict[str, Any] | str]:
    return [
        a_raw_task(
            f"t{n}", "summaries" if n % 3 == 2 else "qa", metadata={"document": f"d{n % 4}.txt"}, **fields
        )
        for n in range(count)
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone's scripts and configs, with raw tasks in the place where they are expected."""
    for name in ("scripts", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    write_tasks(tmp_path / DATA / "offline_dataset.jsonl", tasks(24))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"scripts/{name}.py", *words], capture_output=True, text=True, check=False
    )


def test_steps_of_seed_000(project: Path) -> None:
    done = script("build_evaluation_dataset", "--config", "configs/default.yaml")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((DATA / "manifest.json").read_text())
    assert manifest["splits"]["qa"]["count"] == 16 == len(records(DATA / "qa_pairs.jsonl"))
    assert manifest["splits"]["summaries"]["count"] == 8
    assert re.search(r"^qa +16 +evaluation/datasets/qa_pairs.jsonl", done.stdout, re.MULTILINE)
    checked = script("check_processed_corpus", "--config", "configs/default.yaml")
    assert checked.returncode == 0, checked.stderr
    assert "manifest.json: valid (manifest)" in checked.stdout
    assert f"auepora dataset check {DATA / 'qa_pairs.jsonl'} --suspicious" in checked.stdout


def test_first_step_of_seed_000(project: Path) -> None:
    (DATA / "offline_dataset.jsonl").unlink()
    missing = script("generate_offline_dataset", "--config", "configs/default.yaml")
    assert missing.returncode == 2
    assert "data/processed" in missing.stderr
    shutil.copytree(ROOT / "docs" / "explanation", "data/processed")
    for words in ((), ("--config", "configs/default.yaml", "--force")):
        done = script("generate_offline_dataset", *words)
        assert done.returncode == 0, done.stderr
        assert records(DATA / "offline_dataset.jsonl")
    os.chdir("configs")  # the paths are the project's, wherever one is
    assert main(["dataset", "generate", "--config", "default.yaml", "--force"]) == 0
    assert [path.name for path in Path.cwd().iterdir()] == ["default.yaml"]
    os.chdir("..")
    built = script("build_evaluation_dataset", "--config", "configs/default.yaml")
    assert built.returncode == 0, built.stderr


def test_every_flag_of_seed_000(project: Path) -> None:
    words = ["--config", "configs/default.yaml", "--offline-dataset", str(DATA / "offline_dataset.jsonl")]
    words += [
        "--qa-output",
        "out/q.jsonl",
        "--summary-output",
        "out/s.jsonl",
        "--manifest-output",
        "out/m.json",
    ]
    words += ["--version", "v7", "--limit", "4"]
    assert script("build_evaluation_dataset", *words).returncode == 0
    assert script("build_evaluation_dataset", *words, "--force").returncode == 0
    manifest = json.loads(Path("out/m.json").read_text())
    assert (manifest["version"], manifest["filters"]) == ("v7", {"limit": 4})
    assert main(["dataset", "build", "--summary-output", "s.jsonl", "--limit", "1"]) == 0
    assert Path("s.jsonl").exists()


def test_stdout_the_manifest_and_the_files_agree(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd: list[dict[str, Any] | str] = [
        "{",
        a_raw_task("c1", "citations"),
        a_raw_task("x", expected_response=""),
    ]
    write_tasks(DATA / "offline_dataset.jsonl", [*tasks(6), *odd])
    assert main(["dataset", "build", "--json", "--rejects", "rejects.jsonl"]) == 0
    shown = capsys.readouterr()
    said, manifest = json.loads(shown.out), json.loads((DATA / "manifest.json").read_text())
    assert said["records"] == 9
    assert said["qa_count"] == manifest["splits"]["qa"]["count"] == len(records(DATA / "qa_pairs.jsonl")) == 4
    assert said["summaries_count"] == len(records(DATA / "summaries.jsonl")) == 2
    assert said["unsupported_task_types"] == manifest["excluded_task_types"] == {"citations": 1}
    assert said["skipped"] == manifest["skipped"] == {"invalid_json": 1, "missing_reference": 1}
    assert len(records(Path("rejects.jsonl"))) == 2
    assert "note: offline_dataset.jsonl:7: " in shown.err
    assert "task types without a split stay in the source: citations (1)" in shown.err


def test_smaller_build_of_a_version_is_noted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "build"]) == 0
    shutil.copy(DATA / "manifest.json", "v1.json")
    kept = [task for task in tasks(24) if isinstance(task, dict) and task["metadata"]["document"] != "d3.txt"]
    write_tasks(DATA / "offline_dataset.jsonl", kept)
    assert main(["dataset", "build"]) == 4
    assert "is of v1 already, with other content" in capsys.readouterr().err
    assert main(["dataset", "build", "--version", "v2", "--force"]) == 0
    capsys.readouterr()
    manifest = str(DATA / "manifest.json")
    assert main(["dataset", "check", manifest, "--previous", "v1.json"]) == 1
    out = capsys.readouterr().out
    assert "document d3.txt: gone, 0 records after 6." in out
    assert main(["dataset", "check", manifest, "--previous", "v1.json", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["files"]
    assert report["build"]["drops"][0] == {
        "kind": "document",
        "name": "d3.txt",
        "before": 6,
        "after": 0,
        "said": "document d3.txt: gone, 0 records after 6.",
    }
    assert main(["dataset", "check", manifest, "--previous", manifest]) == 0
    capsys.readouterr()
    split = str(DATA / "qa_pairs.jsonl")
    assert main(["dataset", "check", split]) == 0
    assert "the rag_prompt is empty" not in capsys.readouterr().out
    text = Path(split).read_text(encoding="utf-8")
    Path("empty.jsonl").write_text(
        re.sub(r'"rag_prompt":"[^"]*"', '"rag_prompt":" "', text), encoding="utf-8"
    )
    assert main(["dataset", "check", "empty.jsonl", "--fail-on", "warning"]) == 1
    assert "the rag_prompt is empty. Add it" in capsys.readouterr().out
    assert main(["dataset", "check", split, "--suspicious", "--sample", "1"]) == 0
    assert "How many boats?" in capsys.readouterr().out


def hashes() -> list[str]:
    names = ("qa_pairs.jsonl", "summaries.jsonl", "manifest.json")
    return [hashlib.sha256((DATA / name).read_bytes()).hexdigest() for name in names]


def test_killed_build_leaves_whole_files_and_a_mixture_is_found(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kills at random moments, of the whole process group.

    Files get their names one after the other, the manifest last: a kill between two names leaves a mixture of
    two builds, each file whole, which the check finds by the hashes of the manifest.
    """
    chance = random.Random(3)
    sources = [write_tasks(project / f"raw{n}.jsonl", tasks(300 + n)) for n in (0, 1)]
    assert main(["dataset", "build", "--offline-dataset", str(sources[0])]) == 0
    states = [hashes()]
    start = time.monotonic()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    for number in range(8):
        words = [
            "--offline-dataset",
            str(sources[(number + 1) % 2]),
            "--force",
            "--version",
            f"v{number + 2}",
        ]
        build = subprocess.Popen(
            [sys.executable, "-m", "auepora_eval", "dataset", "build", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        with build:
            time.sleep(chance.uniform(0.05, 0.6))
            if build.poll() is None:
                os.killpg(build.pid, signal.SIGKILL)
        states.append(hashes())
        manifest = json.loads((DATA / "manifest.json").read_text())
        is_mixture = [split["sha256"] for split in manifest["splits"].values()] != states[-1][:2]
        assert main(["dataset", "check", str(DATA / "manifest.json")]) == int(is_mixture), capsys.readouterr()
    assert time.monotonic() - start < 60
