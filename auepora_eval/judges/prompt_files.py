"""Prompts are files: a part for the system's role, a part for the user's, and the places to be filled.

Text from documents or models goes into a prompt only between fences that it cannot hold, as JSON, with
the words before and after it saying that it is material.
"""

from __future__ import annotations

import hashlib
import json
import re
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
    return read_prompt((folder or FOLDER) / f"{name}.md")


def read_prompt(path: Path) -> Prompt:
    """The prompt in a file, whatever it is called."""
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
            fix="Take answer.md of the package (auepora_eval/judges/prompts) as a model.",
        )
    return Prompt(path.stem, parts[2].strip(), parts[4].strip(), hashlib.sha256(content).hexdigest())


def fence_of(material: str) -> str:
    """A line to put around material that does not occur in it; the same material has the same fence.

    So a question that is asked again is the same request, for a model at temperature 0 and for a provider's
    cache. It is a hash of 128 bits over all of the material: whoever writes a part of it would have to find
    a text that holds its own hash.
    """
    content, times = material.encode("utf-8", "surrogatepass"), 0
    while True:
        digest = hashlib.blake2b(content, digest_size=16, salt=times.to_bytes(16, "big")).hexdigest()
        fence = f"=== {digest} ==="
        if fence not in material:
            return fence
        times += 1


def as_material(thing: Any) -> str:
    """Untrusted text as JSON: a line break in it cannot start a line of ours."""
    try:
        return msgspec.json.encode(thing).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as some PDF files yield: written out
        return json.dumps(thing)
