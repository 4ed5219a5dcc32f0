"""The package as others get it: version, extras, site, workflows, and what messages say about installing."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import auepora_eval
from auepora_eval.errors import install_command
from auepora_eval.io.config.new_project import WORKFLOW, project_files

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SITE = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHON = "Programming Language :: Python :: 3."

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = {"url": "https://git.example/rag.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
FROM_GIT = f" @ git+https://git.example/rag.git@{COMMIT}"
LOCAL = "pip install -r requirements.txt"

CASES = [
    pytest.param(None, "'auepora-eval[view]'", "pip install auepora-eval", id="an index of packages"),
    pytest.param(
        GIT, f"'auepora-eval[view]{FROM_GIT}'", f"pip install 'auepora-eval{FROM_GIT}'", id="a Git address"
    ),
    pytest.param(
        {"url": "https://x.example/a.whl", "archive_info": {}},
        "'auepora-eval[view] @ https://x.example/a.whl'",
        "pip install 'auepora-eval @ https://x.example/a.whl'",
        id="an address",
    ),
    pytest.param({"url": "file:///my/clone", "dir_info": {}}, "'/my/clone[view]'", LOCAL, id="a clone"),
    pytest.param(
        {"url": "file:///my%20clone", "dir_info": {"editable": True}},
        "-e '/my clone[view]'",
        LOCAL,
        id="an editable clone",
    ),
    pytest.param(
        {"url": "file:///my/a.whl", "archive_info": {}},
        "'/my/a.whl[view]'",
        LOCAL,
        id="a wheel of this machine",
    ),
]


@pytest.mark.parametrize(("direct_url", "command", "workflow"), CASES)
def test_lines_name_where_the_package_is_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    direct_url: dict[str, Any] | None,
    command: str,
    workflow: str,
) -> None:
    installed = tmp_path / "auepora_eval-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: auepora-eval\nVersion: 0.1.0\n")
    if direct_url is not None:
        (installed / "direct_url.json").write_text(json.dumps(direct_url))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert install_command("view") == f"pip install {command}"
    steps = yaml.safe_load(project_files({}, [])[WORKFLOW])["jobs"]["evaluate"]["steps"]
    assert [step["run"] for step in steps if "pip" in step.get("run", "")] == [workflow]


def test_the_version_is_everywhere_the_same() -> None:
    version = PROJECT["version"]
    assert auepora_eval.__version__ == version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == version
    assert version in SITE["site_name"].split()
    assert re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", text_of("CHANGELOG.md"), re.MULTILINE
    )


def test_addresses_are_those_of_one_project() -> None:
    assert SITE["extra"]["social"][0]["link"] == PROJECT["urls"]["Source"]
    assert SITE["site_url"] == PROJECT["urls"]["Documentation"]


def test_the_extra_all_has_every_optional_part() -> None:
    parts = PROJECT["optional-dependencies"].keys() - {"all", "site", "test", "check"}
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == parts


def test_every_supported_python_is_tested() -> None:
    jobs = yaml.safe_load(text_of(".github/workflows/check.yml"))["jobs"]
    tested = {"3.11", *jobs["test"]["strategy"]["matrix"]["python"]}
    named = {f"3.{line.removeprefix(PYTHON)}" for line in PROJECT["classifiers"] if line.startswith(PYTHON)}
    assert tested == named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    runs = "\n".join(step.get("run", "") for job in jobs for step in job["steps"])
    assert {f"{target}:" for target in re.findall(r"^make (\w+)", runs, re.MULTILINE)} <= set(
        text_of("Makefile").split()
    )


def test_the_site_has_every_page() -> None:
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(pages_of(SITE["nav"])) == sorted(pages)


def pages_of(entries: list[dict[str, Any]]) -> list[str]:
    """Return the pages of a menu, whatever its depth."""
    found: list[str] = []
    for [entry] in (menu.values() for menu in entries):
        found += [entry] if isinstance(entry, str) else pages_of(entry)
    return found


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_guides_stay_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 130
    assert len(text_of("SKILL.md").splitlines()) <= 150
    assert len(list((ROOT / "docs" / "how-to").glob("*.md"))) <= 16
