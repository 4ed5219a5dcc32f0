"""The malformed files of `tests/golden/malformed/`, and what is said of each.

To add one: put it into a folder there, and with `python -m tests.malformed` write expected.json from what is
said of the files now; read the diff. What is large, needs a library to be made, or is not a plain file is
made by `tests/malformed_places.py`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from auepora_eval.cli.main import main as auepora
from auepora_eval.errors import DataError
from auepora_eval.io.builds import load_split

FOLDER = Path(__file__).parent / "golden" / "malformed"
EXPECTED = FOLDER / "expected.json"


def stored_files() -> list[str]:
    """Every file of the corpus by its place in the folder."""
    files = (path for path in FOLDER.rglob("*") if path.is_file() and path != EXPECTED)
    return sorted(path.relative_to(FOLDER).as_posix() for path in files)


def outcome(path: Path) -> tuple[dict[str, Any], str]:
    """What `auepora dataset check FILE` says of a file, or of a split its own reader, and the first error."""
    if path.parent.name == "splits" or path.name in ("qa_pairs.jsonl", "offline_dataset.jsonl"):
        try:
            load_split(path)
        except DataError as error:
            return {"exit": 2, "format": "splits", "place": _place(str(error))}, str(error)
        return {"exit": 0, "format": "splits", "place": ""}, ""
    shown, noted = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(noted):
        code = auepora(["dataset", "check", str(path), "--json"])
    if not shown.getvalue():
        message = noted.getvalue().strip()
        return {"exit": code, "format": "", "place": _place(message)}, message
    report = json.loads(shown.getvalue())["files"][0]["form"]
    message = (report["errors"] or [""])[0]
    return {"exit": code, "format": report["format"], "place": _place(message)}, message


def _place(message: str) -> str:
    """Return the file, the line and the JSON path that a message starts with."""
    found = re.match(r"\S+?(?::\d+)?(?=: )(?:: (?:row \d+|\$|samples\[)[^:]*(?=: ))?", message)
    return found[0] if found else ""


if __name__ == "__main__":
    expected = {name: outcome(FOLDER / name)[0] for name in stored_files()}
    EXPECTED.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
