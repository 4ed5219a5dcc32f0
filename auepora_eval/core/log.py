"""What happens during the work, told to whoever listens to the logger `auepora_eval`.

    logging.getLogger("auepora_eval").setLevel(logging.INFO)

An event has a name and facts: `record.event`, `record.facts`. Nothing is printed unless a program that uses
the library adds a handler of its own.
"""

from __future__ import annotations

import logging
from typing import Any

from .redaction import without_secrets

LOGGER = logging.getLogger("auepora_eval")
LOGGER.addHandler(logging.NullHandler())
_LONGEST = 500


def tell(level: int, event: str, **facts: Any) -> None:
    """Tell of an event, if anybody listens at that level."""
    if LOGGER.isEnabledFor(level):
        tell_clean(level, event, clean_facts(facts))


def tell_clean(level: int, event: str, facts: dict[str, Any]) -> None:
    """The same, of facts that `clean_facts` has seen."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", in_words(event, facts), extra={"event": event, "facts": facts})


def clean_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as they may be written down: without keys, without what is unknown, of bounded length."""
    known = {name: _plain(value) for name, value in facts.items() if value is not None}
    texts = {name: value.replace("\0", "\ufffd") for name, value in known.items() if isinstance(value, str)}
    # All at once, since the environment is looked through for keys each time. No key has a NUL in it.
    # Redacted before it is cut: half a key is no longer found.
    redacted = without_secrets("\0".join(texts.values())).split("\0")
    return (
        known | {name: text[:_LONGEST] for name, text in zip(texts, redacted, strict=True)}
        if texts
        else known
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return round(value, 6)
    # Half a character cannot be written.
    return str(value).encode("utf-8", "replace").decode("utf-8")


def in_words(event: str, facts: dict[str, Any]) -> str:
    """An event on one line.

    >>> in_words("sample.failed", {"sample_id": "q 7", "attempts": 3})
    "sample.failed sample_id='q 7' attempts=3"
    """
    told = (
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in facts.items()
    )
    return " ".join([event, *told])
