"""What messages and the workflow of `init` say about installing works for how the package was installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from auepora_eval.errors import install_command
from auepora_eval.io.config.new_project import WORKFLOW, project_files

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
