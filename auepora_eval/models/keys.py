"""Keys: held by an object that does not show them, and taken out of every text that leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..core.redaction import Redactor
from ..errors import DataError

__all__ = ["Redactor", "Secret", "headers_from_environment", "key_from_environment"]

_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
# Headers that the transport sets; another value would break the request.
_OURS = frozenset(
    "host content-length content-type content-encoding transfer-encoding connection accept accept-encoding"
    " expect te trailer upgrade user-agent keep-alive authorization".split()
)
# The name of an environment variable.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_NO_KEY = re.compile(r"[A-Z][A-Z0-9]{0,11}(_[A-Z0-9]{1,12})*")  # words, as in the names of variables


class Secret:
    """A key that prints as ***, and cannot be copied, pickled or written.

    `source` is the environment variable that it is from; "" if that is not known, or not to be shown.
    """

    __slots__ = ("_value", "source")

    def __init__(self, value: str, source: str = "") -> None:
        # Checked here, since http.client would print the whole header in its complaint.
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise DataError(
                "the API key",
                "is empty, or has a space, a line end or a letter beyond ASCII in it.",
                fix="Copy it again.",
            )
        self._value, self.source = value, source

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> str:
        raise TypeError("a key is not copied or written")


def key_from_environment(name: str, *, header: str = "") -> Secret:
    """The key in the environment variable of that name; errors name the header that it is for.

    A name is repeated in an error only if it cannot be a key: people type the key in its place.
    """
    what = f"the header {header}" if header else "the API key"
    if not _NAME.fullmatch(name):
        raise DataError(
            f"the name of the environment variable for {what}",
            "is not a name: letters, digits and _ were expected.",
            fix="Give the variable's name, such as OPENAI_API_KEY, not the key itself.",
        )
    value = os.environ.get(name, "").strip()
    is_plain = len(name) <= 40 and bool(_NO_KEY.fullmatch(name))
    if not value:
        named = f" {name} for {what}" if is_plain else f" that was named for {what}"
        raise DataError(
            f"the environment variable{named}",
            "is not set, or empty.",
            fix=f"Set it before the command (export {name if is_plain else 'OPENAI_API_KEY'}=...), and give "
            "its name, not the key.",
        )
    return Secret(value, name if is_plain else "")


def headers_from_environment(named: Mapping[str, str]) -> dict[str, Secret]:
    """Return headers whose values are in the environment: {"x-api-key": "env:NAME"}.

    A value is only ever a reference: what is written into a plan is stored with the run.
    """
    headers = {}
    for name, value in named.items():
        where = f"headers: {name!r:.80}"
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            raise DataError(where, "is not the name of a header.", fix="Use letters, digits and -.")
        if name.lower() in _OURS:
            fix = "Leave it out. The variable with an API key is named by --api-key-env."
            raise DataError(where, "is set by auepora.", fix=fix)
        if not isinstance(value, str) or not value.startswith("env:"):
            fix = "Put the value into an environment variable, and write env: and its name."
            raise DataError(where, "is not env:NAME.", fix=fix)
        headers[name] = key_from_environment(value.removeprefix("env:"), header=name)
    return headers
