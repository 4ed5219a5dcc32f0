"""Metrics of another package, installed with an entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PACKAGE = '''
from dataclasses import dataclass
from auepora_eval import SampleMetric, metric


@metric("plugged_words@{words}", target="tone")
class PluggedWords(SampleMetric):
    """1 if the answer has at most `words` words, else 0."""

    words: int = 3

    def score(self, sample, output):
        return float(len(output.response.text.split()) <= self.words)


class PluggedPlain(SampleMetric):
    name = "plugged_plain"
    target = "tone"

    def score(self, sample, output):
        return float("a" in output.response.text)


@metric("plugged_share[{letter}]", target="tone")
def plugged_share(sample, output, *, letter: str = "a") -> float:
    """The share of a letter in the answer."""
    return output.response.text.count(letter) / len(output.response.text)


def system(query):
    return "a boat at a pier"
'''
POINTS = """[auepora_eval.metrics]
plugged_words = plugged_package:PluggedWords
plugged_plain = plugged_package:PluggedPlain
plugged_share = plugged_package:plugged_share
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the path with an installed distribution."""
    (tmp_path / "plugged_package.py").write_text(PACKAGE, encoding="utf-8")
    information = tmp_path / "plugged_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-package\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    rows = [{"sample_id": str(n), "query": f"q {n}"} for n in range(3)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def auepora(site: Path, *words: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_installed_metrics_are_run_stored_and_compared(site: Path) -> None:
    names = "plugged_words@4,plugged_plain,plugged_share[o]"
    run = ("run", "--dataset", "d.jsonl", "--system", "plugged_package:system", "--metrics", names)
    for name in ("one", "two"):
        auepora(site, *run, "--id", name)
    stored = json.loads((site / "data/evaluation/results/one.results.json").read_text())
    values = {name: stored["additional_metrics"][name]["value"] for name in names.split(",")}
    assert values == {"plugged_words@4": 0.0, "plugged_plain": 1.0, "plugged_share[o]": 1 / 16}
    out, _ = auepora(site, "compare", "one", "two", "--full")
    assert "plugged_plain" in out


def test_installed_metrics_are_listed_and_described(site: Path) -> None:
    out, _ = auepora(site, "metrics")
    for usage in ("plugged_words[@words]", "plugged_plain", "plugged_share[letter]"):
        assert f"  {usage} " in out
    listed, _ = auepora(site, "metrics", "--target", "tone", "--json")
    assert [one["name"] for one in json.loads(listed)] == [
        "plugged_plain",
        "plugged_share[letter]",
        "plugged_words[@words]",
    ]
    out, _ = auepora(site, "metrics", "plugged_plain")
    assert out.startswith("plugged_plain\n")
    assert "target:  tone" in out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("broken = no_such_package:Broken", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("recall = plugged_package:PluggedPlain", "ValueError: there is a metric 'recall' already"),
        ("number = plugged_package:__name__", "TypeError: it is not a metric class"),
    ],
    ids=["not importable", "a name of ours", "not a metric"],
)
def test_a_broken_plug_in_is_a_warning(site: Path, line: str, reason: str) -> None:
    points = site / "plugged_package-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"{POINTS}{line}\n", encoding="utf-8")
    out, err = auepora(site, "metrics")
    assert "plugged_plain" in out
    assert "  recall@k" in out
    assert reason in err
    assert f"{line.split(maxsplit=1)[0]!r} of plugged-package" in err
    assert "Traceback" not in err
