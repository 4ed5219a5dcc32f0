"""Prompts are files: a part for the system's role, a part for the user's, and the places to be filled.

Text from documents or models goes into a prompt only between fences that nobody can guess, as JSON, with
the words before and after it saying that it is material.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError

FOLDER = Path(__file__).parent / "prompts"
_PART = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
_MAX_BYTES = 100_000


@dataclass(frozen=True)
class Prompt:
    """A prompt file: its name, its two parts, and the sha256 of its bytes, which decides what it asks."""

    name: str
    system: str
    user: str
    sha256: str

    def filled(self, **values: str) -> list[dict[str, str]]:
        """The messages, with a value in every place; a value's own braces are only text."""

        def value(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise DataError(
                    f"the prompt {self.name}",
                    f"there is nothing to put in place of {match[0]}.",
                    fix="Remove it.",
                )
            return values[match[1]]

        return [
            {"role": "system", "content": _PLACE.sub(value, self.system)},
            {"role": "user", "content": _PLACE.sub(value, self.user)},
        ]


def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """The prompt in `name.md`, of ours or of a folder of yours."""
    path = (folder or FOLDER) / f"{name}.md"
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise DataError(str(path), f"the prompt cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise DataError(str(path), "the prompt is not UTF-8.", fix="Save it as UTF-8.") from None
    parts = _PART.split(text.replace("\r\n", "\n"))
    if len(content) > _MAX_BYTES or parts[0].strip() or parts[1::2] != ["system", "user"]:
        raise DataError(
            str(path),
            "a prompt has a line '# system', its text, a line '# user' and its text.",
            fix=f"Take {name}.md of the package as a model.",
        )
    return Prompt(name, parts[2].strip(), parts[4].strip(), hashlib.sha256(content).hexdigest())


def new_fence(material: str) -> str:
    """A line to put around material: 128 random bits, so that no text can hold it but by looking here."""
    while True:
        fence = f"=== {secrets.token_hex(16)} ==="
        if fence not in material:
            return fence


def as_material(thing: Any) -> str:
    """Untrusted text as JSON: a line break in it cannot start a line of ours."""
    try:
        return msgspec.json.encode(thing).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as some PDF files yield: written out
        return json.dumps(thing)
