"""Which values of environment variables are secrets: by the variable's name, or by their own looks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

# Words of a name, between its underscores: DB_PASS, GH_PAT, OPENAI_API_KEY_2.
_SURE = frozenset(
    "KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE BEARER JWT COOKIE"
    " CONNSTR CONNECTIONSTRING".split()
)
# Their values are often files or sockets instead.
_LIKELY = frozenset("PASS PWD PAT AUTH CREDENTIAL CREDENTIALS CRED CREDS DSN".split())
_GLUED = tuple("PASSWORD PASSWD PASSPHRASE SECRET TOKEN APIKEY ACCESSKEY SECRETKEY PRIVATEKEY".split())
# A name that ends so tells something about a secret: AUTH_METHOD, TOKEN_URL, SSL_KEY_FILE.
_ABOUT = frozenset(
    "FILE PATH DIR HOME SOCK SOCKET URL URI ENDPOINT HOST PORT NAME TYPE METHOD MODE USER USERNAME LENGTH"
    " SIZE COUNT LIMIT TTL EXPIRY TIMEOUT HEADER PREFIX VERSION REGION PROVIDER SCOPE SCOPES REALM ISSUER"
    " ALGORITHM ENABLED DISABLED REQUIRED PARALLELISM ENV".split()
)
_BY_LOOKS = ("SK", "SID")  # secret keys and session ids, but also countries and databases
_OUR_FOLDER = ("PWD", "OLDPWD")

_PARTS = r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])"
_PATH = r"~|\.{0,2}/|[A-Za-z]:[\\/]"
_IN_ADDRESS = r"://[^\s/?#@:]*:([^\s/?#]+)@"
_IN_QUERY = r"[?&](?i:(?:api[_-]?)?key|(?:access_)?token|sig|secret|password)=([^&#\s]+)"
_IN_PAIRS = r"(?:^|[;\s])(?i:password|pwd|(?:account|sharedaccess|access|secret)key)\s?=\s?([^;\s]+)"
# Who knows the address of a webhook can post there; most hold a token.
_WEBHOOK_PATH = r"(?<=[^/:])/(?!/).*"
_IN_PATH = r"://[^/]+/(?:.*/)?(?=[\w-]*[0-9])[\w-]{8,}(?:$|[/?])"
_OF_NO_WORDS = r"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=-]{16,}"
_LONG_LINE = 16  # of a key of several lines
_WORDS = r"[^\W\d_]+(?:[-_. ][^\W\d_]+)*"
_LONGEST_WORD = 15


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, when it is first needed: to compile them all takes as long as to import half a command."""
    return re.compile(pattern)


def is_plain_word(text: str) -> bool:
    """Whether it reads as a word or two (`question`, `not-needed`): short, no digit, no capital inside."""
    is_one_case = text.islower() or text.isupper() or text.istitle()
    return len(text) <= _LONGEST_WORD and is_one_case and compiled(_WORDS).fullmatch(text) is not None


def secrets_in_environment() -> Iterator[str]:
    """Every value, or part of one, that is a secret by its looks."""
    for name, value in os.environ.items():
        yield from _secrets_of(name, value)


@lru_cache(maxsize=4096)
def _secrets_of(name: str, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(secret.strip() for secret in _found(name, value.strip())))


def _found(name: str, value: str) -> Iterator[str]:
    if _is_secret(name, value):
        yield value
        if "\n" in value:
            lines = (line.strip() for line in value.splitlines())
            yield from (line for line in lines if len(line) >= _LONG_LINE and not line.startswith("-----"))
        if (path := compiled(_WEBHOOK_PATH).search(value)) is not None and "WEBHOOK" in name.upper():
            yield path[0]  # errors of a connection name the host and the path apart
    if "://" in value:
        for password in compiled(_IN_ADDRESS).findall(value):
            yield password
            yield _decoded(password)
        yield from compiled(_IN_QUERY).findall(value)
    if "=" in value:
        yield from compiled(_IN_PAIRS).findall(value)


def _is_secret(name: str, value: str) -> bool:
    if name.upper() in _OUR_FOLDER:
        return False
    parts = [part.rstrip("0123456789") for part in compiled(_PARTS).split(name)]
    words = [part.upper() for part in parts if part]
    if not words:
        return False
    if words[-1] in _BY_LOOKS:
        return compiled(_OF_NO_WORDS).fullmatch(value) is not None
    if any(word.endswith("WEBHOOK") for word in words):
        return compiled(_IN_PATH).search(value) is not None
    if words[-1] in _ABOUT:
        return False
    is_sure = any(word in _SURE or word.endswith(_GLUED) for word in words)
    is_sure = is_sure or ("CONNECTION" in words and not {"STRING", "STRINGS"}.isdisjoint(words))
    if compiled(_PATH).match(value):  # a key in base64 may begin as a path does
        return is_sure and not _is_there(value)
    if value.isdigit() and "TOKENS" in words:  # how many of them
        return False
    return is_sure or not _LIKELY.isdisjoint(words)


def _is_there(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long for a name, nobody's home, half a character
        return False


def _decoded(text: str) -> str:
    raw = re.sub(
        rb"%([0-9A-Fa-f]{2})",
        lambda match: bytes([int(match[1], 16)]),
        text.encode("utf-8", "surrogateescape"),
    )
    return raw.decode("utf-8", "surrogateescape")
