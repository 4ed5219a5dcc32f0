"""Secrets taken out of every text that leaves."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from .secret_texts import without_told_secrets
from .secret_values import compiled, is_plain_word, secrets_in_environment

_SHORTEST = 8  # a shorter one would be found in ordinary words
_SHORTEST_ALONE = 6  # if it has a digit or a sign in it, and nothing beside it
_MASK = "***"

# How tools write a sign that is not to be taken for one of theirs; JSON in JSON has many backslashes.
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_SLASHES = r"\\{0,8}"


class Redactor:
    """Takes secrets out of texts: as they are, and as URLs, JSON (of JSON), HTML and base64 write them."""

    def __init__(self, secrets: Iterable[str], *, alone: bool = False) -> None:
        """`alone` looks for shorter ones too, where they stand by themselves."""
        found = set(secrets)
        known = {secret: list(_forms(secret)) for secret in found if len(secret) >= _SHORTEST}
        if alone:
            known |= {secret: [_apart(secret)] for secret in found if _can_stand_alone(secret)}
        self._pattern = _any_of(known)
        tokens = {secret: forms for secret, forms in known.items() if not is_plain_word(secret)}
        self._tokens = self._pattern if len(tokens) == len(known) else _any_of(tokens)

    def __call__(self, text: str) -> str:
        """A text about a call: an error, a header."""
        return self._pattern.sub(_MASK, text) if self._pattern else text

    def within(self, document: Any) -> Any:
        """What a system answers, with every text in it; read from JSON before, since escapes hide a secret.

        Keys that are plain words stay there: who gives a local server the key `question` asks questions.
        """
        if isinstance(document, str):
            return self._tokens.sub(_MASK, document) if self._tokens else document
        if isinstance(document, list):
            return [self.within(each) for each in document]
        if isinstance(document, dict):
            return {self.within(name): self.within(value) for name, value in document.items()}
        return document

    def __repr__(self) -> str:
        return "Redactor(***)"

    def __reduce__(self) -> str:
        raise TypeError("secrets are not copied or written")


def without_secrets(text: str) -> str:
    """A text without the values of environment variables that are named like keys, and without what else
    looks like a secret: `Authorization: Bearer ...`, passwords and keys in URLs, `api_key='...'`.

    For what other people's code says when it fails: clients like to print the request that went wrong.
    """
    text = _redactor(tuple(secrets_in_environment()))(text)
    if "@" in text:
        text = compiled(_PASSWORD_IN_URL).sub(rf"\1{_MASK}@", text)
        text = compiled(_TOKEN_IN_URL).sub(rf"\1{_MASK}@", text)
    if "=" in text:
        text = compiled(_IN_QUERY).sub(rf"\1{_MASK}", text)
    lowered = text.lower()  # looking for words takes a tenth of looking for the pattern
    if any(word in lowered for word in _BEFORE_CREDENTIALS):
        text = compiled(_CREDENTIAL).sub(rf"\1{_MASK}", text)
    return without_told_secrets(text)


@lru_cache(maxsize=32)
def _redactor(values: tuple[str, ...]) -> Redactor:
    return Redactor(values, alone=True)


# Everything is of bounded length: a long text is not to take longer than it is long.
_END = r"""\s\0"'<>\\"""  # of a word, also where it is quoted; NUL stands between the facts of an event
_HOST = r"(:(?:\\{0,8}/){2}"
_PASSWORD_IN_URL = rf"{_HOST}[^{_END}/?#@:]{{0,256}}:)[^{_END}/?#]{{1,512}}@"
_TOKEN_IN_URL = _HOST + r")(?=[^\s@]{0,60}[0-9])[\w~.+-]{20,256}@"
_IN_QUERY = (
    r"((?:[?&;]|\\{1,8}u0026)"
    r"(?i:(?:api|subscription)?[_-]?key|(?:access|refresh|id|auth)?[_-]?token|auth|sig|(?:client_)?secret"
    r"|password|passwd|pwd|x-(?:amz|goog)-(?:signature|credential|security-token)|signature)"
    rf"=)[^{_END}&;#,(){{}}\[\]|*]+"
)
_SIGNS = r"[A-Za-z0-9._~+/=-]"
# Not a word of a sentence ("Basic authentication failed"): it has a digit, a capital inside, or is long.
_NO_WORD = rf"(?={_SIGNS}{{0,63}}[0-9]|{_SIGNS}{{1,63}}[A-Z]|{_SIGNS}{{24}}){_SIGNS}{{6,}}"
_VALUE = rf"[^{_END},;(){{}}\[\]*]"
_BETWEEN = r"""\\{0,8}["']?\s{0,8}[:=,]\s{0,8}b?\\{0,8}["']?"""
_BEFORE_CREDENTIALS = ("authorization", "bearer", "basic", "api-key", "-token", "-key")
_CREDENTIAL = (
    rf"((?i:authorization{_BETWEEN}(?:bearer|basic|digest|token|apikey)(?:\s{{1,8}}|%20))"
    rf"(?={_VALUE})|"
    rf"(?i:\b(?:authorization|(?:x-)?(?:goog-)?api-key|x-auth-token|private-token|subscription-key){_BETWEEN})"
    rf"(?={_NO_WORD})|"
    rf"(?i:\b(?:bearer|basic)(?:\s{{1,8}}|%20))(?={_NO_WORD}))"
    rf"{_VALUE}+"
)


def _any_of(known: Mapping[str, list[str]]) -> re.Pattern[str] | None:
    """A pattern for all forms of these secrets."""
    # The longest first: one may hold another.
    ordered = sorted(known, key=lambda secret: (-len(secret), secret))
    forms = [form for secret in ordered for form in known[secret]]
    return re.compile("|".join(forms)) if forms else None


def _forms(secret: str) -> Iterable[str]:
    """Patterns that find it."""
    yield _written(secret)
    for before in range(3):  # where it begins within a group of three bytes decides how base64 writes it
        encoded = base64.b64encode(b"\0" * before + secret.encode("utf-8", "surrogateescape")).decode()
        # The first and the last group also depend on what stands beside it.
        inner = encoded[4 if before else 0 :].rstrip("=")
        yield re.escape(inner[: len(inner) // 4 * 4] if len(inner) % 4 else inner)


def _can_stand_alone(secret: str) -> bool:
    return _SHORTEST_ALONE <= len(secret) < _SHORTEST and not secret.isalpha() and not secret.isdigit()


def _apart(secret: str) -> str:
    return rf"(?<![A-Za-z0-9]){_written(secret)}(?![A-Za-z0-9])"


def _written(secret: str) -> str:
    """A text, however often it was put into JSON, or once into a URL or HTML."""
    parts = re.findall(r"\\+|[^\\]", secret, re.DOTALL)
    return "".join(_sign(part) for part in parts)


def _sign(sign: str) -> str:
    if sign.isascii() and sign.isalnum():
        return sign
    if sign[0] == "\\":  # each of them becomes two, whenever it is put into JSON
        return rf"(?:(?:%5[Cc]){{{len(sign)}}}|\\{{{len(sign)},{8 * len(sign)}}})"
    data = sign.encode("utf-8", "surrogateescape")
    ways = ["".join(f"%{_hex(f'{byte:02x}')}" for byte in data)]
    if ord(sign) < 0xDC80 or ord(sign) > 0xDCFF:  # else a byte that is no text
        units = sign.encode("utf-16-be")
        pairs = [units[place : place + 2].hex() for place in range(0, len(units), 2)]
        ways.append("".join(rf"\\{{1,8}}u{_hex(pair)}" for pair in pairs))
    if len(data) == 1:
        ways.append(rf"\\{{1,8}}x{_hex(data.hex())}")
        ways.append(rf"&#(?:{ord(sign)}|[xX]{_hex(data.hex())});")
    if sign in _ENTITIES:
        ways.append(f"&{_ENTITIES[sign]};")
    if sign in _LETTERS:
        ways.append(rf"\\{{1,8}}{_LETTERS[sign]}")
    if sign == " ":
        ways.append(r"\+")
    return f"(?:{'|'.join([*ways, _SLASHES + re.escape(sign)])})"


def _hex(digits: str) -> str:
    """Hexadecimal digits in capitals or not."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
