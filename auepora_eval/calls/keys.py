"""Keys: held by an object that does not show them, and masked in every text that is stored or shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from ..errors import DataError

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


# Secrets in texts: known values, and texts with a known form.

_MASK = "***"
_SHORTEST = 8  # a shorter secret would match ordinary words
_SHORTEST_MIXED = 6  # if it has letters and digits or signs


class Redactor:
    """Masks secrets in texts: plain, and as JSON and URLs write them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        unique = {secret for secret in secrets if len(secret) >= _SHORTEST_MIXED}
        self._pattern = _any_of(unique)
        self._tokens = _any_of({secret for secret in unique if not _is_plain_word(secret)})

    def __call__(self, text: str) -> str:
        """Return a text about a call, such as an error or a header, without the secrets."""
        return self._pattern.sub(_MASK, text) if self._pattern else text

    def within(self, document: Any) -> Any:
        """Return the decoded reply of a system without the secrets: in JSON, escapes could hide one.

        A secret that is a plain word stays: with the key `question`, a reply may contain that word.
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


def _any_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for these secrets in every form; the longest first, since one may contain another."""
    forms = {form for secret in secrets if _is_long_enough(secret) for form in _forms(secret)}
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as JSON, JSON within JSON, `repr` and URLs write it."""
    escaped = [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]]
    yield from (secret, *escaped, *(json.dumps(form)[1:-1] for form in escaped))
    for form in (quote(secret, safe="", errors="surrogateescape"), quote(secret, errors="surrogateescape")):
        yield from (form, re.sub("%..", lambda match: match[0].lower(), form))
    yield quote_plus(secret, errors="surrogateescape")


def _is_long_enough(secret: str) -> bool:
    return len(secret) >= _SHORTEST or not (secret.isalpha() or secret.isdigit())


def _is_plain_word(text: str) -> bool:
    """Return whether a text is a word or two (`question`, `not-needed`): short, no digit, one case."""
    is_one_case = text.islower() or text.isupper() or text.istitle()
    return len(text) < 16 and is_one_case and re.fullmatch(r"[^\W\d_]+([-_. ][^\W\d_]+)*", text) is not None


# Names of environment variables with secrets: OPENAI_API_KEY_2, PGPASSWORD, GH_PAT; the second group's values
# are often files. Other names are about secrets: TOKEN_URL, SSL_KEY_FILE, MAX_TOKENS.
_NAMES = (
    r"(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CONNECTION_?STRING)"
    r"|(CREDENTIAL|(?:^|_)(?:PASS|PWD|PAT|AUTH|DSN|JWT|COOKIE|CREDS?)(?:_|\d|$))"
)
_OTHER_NAMES = (
    r"(?i)_(FILE|PATH|DIR|SOCK|URL|HOST|NAME|TYPE|METHOD|MODE|USER|REQUIRED)$"
    r"|^(OLD)?PWD$|KEYBOARD|TOKENIZER|MAX_\w*TOKENS"
)
_START_OF_A_PATH = r"~|\.{0,2}/|[A-Za-z]:[\\/]"
_IN_URL = r"://[^\s/?#@:]*:([^\s/?#]+)@"
_IN_PAIRS = r"(?:^|[;?&\s])(?i:password|pwd|\w*key|\w*token|sig|\w*secret)\s?=\s?([^;&#\s]+)"

# Secrets by what is before them, or by their own first letters. Every repetition is bounded, so that the time
# stays linear, and none passes a NUL, which separates the facts of an event. A word of a sentence
# has no digit: "Basic authentication failed", "password: incorrect".
_SIGN = r"""[^\s\0"'<>\\,;&(){}\[\]*]"""
_NAMED = (
    r"(?i:(?:api|access|account|secret|private|subscription)[ _-]?key"
    r"|(?:access|refresh|auth|id|session)[_-]token|passw(?:or)?d|passphrase|pwd|(?:client_)?secret"
    r"|x-(?:amz|goog)-(?:signature|credential|security-token))"
)
_FORMS = (
    (r"(://[^\s\0/?#@:\"']{0,256}:)[^\s\0\"'<>/?#]{1,512}@", r"\1***@"),
    (rf"([?&](?:{_NAMED}|(?i:key|token|sig|signature|auth))=){_SIGN}{{1,1024}}", r"\1***"),
    (
        rf"((?i:authorization)[^\w\0]{{1,8}}(?i:bearer|basic|token)(?:\s{{1,8}}|%20)){_SIGN}{{1,4096}}",
        r"\1***",
    ),
    (
        rf"((?i:\b(?:bearer|basic)(?:\s{{1,8}}|%20)|\bauthorization[^\w\0]{{1,8}}(?!bearer|basic|token)))"
        rf"(?={_SIGN}{{0,63}}[0-9]){_SIGN}{{6,4096}}",
        r"\1***",
    ),
    (
        rf"({_NAMED}\\?[\"']?\s{{0,4}}[:=]\s{{0,4}}\\?[\"']?)(?={_SIGN}{{0,63}}[0-9]){_SIGN}{{8,1024}}",
        r"\1***",
    ),
    (
        r"(?<![A-Za-z0-9_-])(?:sk-(?=[\w-]{0,200}[0-9])[\w-]{16,256}|[srp]k_(?:live|test)_\w{8,256}"
        r"|gh[pousr]_[A-Za-z0-9]{20,256}|github_pat_\w{20,256}|glpat-[\w-]{16,256}|xox[abeoprs]-[\w-]{10,256}"
        r"|hf_[A-Za-z0-9]{20,256}|A(?:KI|SI)A[0-9A-Z]{16}(?![0-9A-Z])|AIza[\w-]{30,64}"
        r"|eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}\.[\w-]{8,2048})",
        _MASK,
    ),
)


def without_secrets(text: str) -> str:
    """Return a text without the values of environment variables that are named like keys, and without other
    texts that look like secrets: `Authorization: Bearer ...`, passwords and keys in URLs, `api_key='...'`.

    For error messages of other code: many clients print the request that failed.
    """
    secrets = (secret for name, value in os.environ.items() for secret in _secrets_of(name, value))
    text = _redactor(tuple(secrets))(text)
    for form, mask in _FORMS:
        text = _compiled(form).sub(mask, text)
    return text


# By the values: a key that is set while the program runs is masked from the next message on.
@lru_cache(maxsize=32)
def _redactor(values: tuple[str, ...]) -> Redactor:
    return Redactor(values)


@lru_cache(maxsize=4096)
def _secrets_of(name: str, value: str) -> tuple[str, ...]:
    """Return the value of a variable that is named like a secret, and the passwords within any other."""
    named, value = _compiled(_NAMES).search(name), value.strip()
    passwords = [*_compiled(_IN_URL).findall(value), *_compiled(_IN_PAIRS).findall(value)]
    secrets = [*passwords, *map(unquote, passwords)]
    is_path = _compiled(_START_OF_A_PATH).match(value)
    if named and (named[1] or not is_path) and not _compiled(_OTHER_NAMES).search(name):
        secrets.append(value)
    return tuple(dict.fromkeys(secrets))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: all of them would lengthen the start of every command."""
    return re.compile(pattern)
