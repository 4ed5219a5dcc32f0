"""Secrets taken out of every text that leaves."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from functools import cache

_SHORTEST = 8  # a shorter one would be found in ordinary words
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH)$", re.IGNORECASE
)


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


def without_secrets(text: str) -> str:
    """A text without the values of environment variables that are named like keys.

    For what other people's code says when it fails: clients like to print the request that went wrong.
    """
    values = [value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    return _redactor(tuple(sorted(values)))(text)


@cache
def _redactor(values: tuple[str, ...]) -> Redactor:
    return Redactor(values)


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield "".join(sign if sign.isalnum() or sign in "-._~" else f"%{ord(sign):02X}" for sign in secret)
    yield json.dumps(secret)[1:-1]
    for before in range(3):  # where it begins within a group of three bytes decides how base64 writes it
        encoded = base64.b64encode(b"\0" * before + secret.encode("utf-8", "surrogateescape")).decode()
        # The first and the last group also depend on what stands beside it.
        inner = encoded[4 if before else 0 :].rstrip("=")
        yield inner[: len(inner) // 4 * 4] if len(inner) % 4 else inner
