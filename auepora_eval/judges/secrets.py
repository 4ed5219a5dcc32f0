"""Keys: held by an object that does not show them, and taken out of every text that leaves."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable

from ..errors import DataError

_SHORTEST = 8  # a shorter one would be found in ordinary words
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class Secret:
    """A key that prints as ***, and cannot be copied, pickled or written."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        # Checked here, since http.client would print the whole header in its complaint.
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise DataError(
                "the API key",
                "is empty, or has a space, a line end or a letter beyond ASCII in it.",
                fix="Copy it again.",
            )
        self._value = value

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> str:
        raise TypeError("a key is not copied or written")


def key_from_environment(name: str) -> Secret:
    """The key in the environment variable of that name.

    The name is never repeated in an error: people type the key in its place.
    """
    if not _NAME.fullmatch(name):
        raise DataError(
            "the name of the API key's environment variable",
            "is not a name: letters, digits and _ were expected.",
            fix="Give the variable's name, such as OPENAI_API_KEY, not the key itself.",
        )
    value = os.environ.get(name, "").strip()
    if not value:
        raise DataError(
            "the environment variable that was named for the API key",
            "is not set, or empty.",
            fix="Set it before the command (export OPENAI_API_KEY=...), and give its name, not the key.",
        )
    return Secret(value)


class Redactor:
    """Takes secrets out of texts: as they are, as URLs, JSON and base64 write them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
        # The longest first: a form may hold another.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub("***", text) if self._pattern else text

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __reduce__(self) -> str:
        raise TypeError("secrets are not copied or written")


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield "".join(sign if sign.isalnum() or sign in "-._~" else f"%{ord(sign):02X}" for sign in secret)
    yield json.dumps(secret)[1:-1]
    for before in range(3):  # where it begins within a group of three bytes decides how base64 writes it
        encoded = base64.b64encode(b"\0" * before + secret.encode()).decode()
        # The first and the last group also depend on what stands beside it.
        inner = encoded[4 if before else 0 :].rstrip("=")
        yield inner[: len(inner) // 4 * 4] if len(inner) % 4 else inner
