"""Remove secrets from every text that is stored, logged or printed."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

_SHORTEST = 8  # a shorter secret would match ordinary words
_SHORTEST_ALONE = 6  # if it has a digit or a punctuation mark, and is a word of its own
_MASK = "***"

# How formats escape characters. JSON within JSON has many backslashes.
_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_SLASHES = r"\\{0,8}"


class Redactor:
    """Masks secrets in texts: plain, and as URLs, JSON (also nested), HTML and base64 write them."""

    def __init__(self, secrets: Iterable[str], *, alone: bool = False) -> None:
        """Compile the secrets. `alone` includes shorter ones, where they are words of their own."""
        unique = set(secrets)
        forms_of = {secret: list(_forms(secret)) for secret in unique if len(secret) >= _SHORTEST}
        for secret in unique if alone else ():
            is_short = _SHORTEST_ALONE <= len(secret) < _SHORTEST
            if is_short and not secret.isalpha() and not secret.isdigit():
                forms_of[secret] = [rf"(?<![A-Za-z0-9]){_written(secret)}(?![A-Za-z0-9])"]
        self._pattern = _any_of(forms_of)
        tokens = {secret: forms for secret, forms in forms_of.items() if not is_plain_word(secret)}
        self._tokens = self._pattern if len(tokens) == len(forms_of) else _any_of(tokens)

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


def without_secrets(text: str) -> str:
    """Return a text without the values of environment variables that are named like keys, and without other
    texts that look like secrets: `Authorization: Bearer ...`, passwords and keys in URLs, `api_key='...'`.

    For error messages of other code: many clients print the request that failed.
    """
    text = _redactor(tuple(secrets_in_environment()))(text)
    if "@" in text:
        text = compiled(_PASSWORD_IN_URL).sub(rf"\1{_MASK}@", text)
        text = compiled(_TOKEN_IN_URL).sub(rf"\1{_MASK}@", text)
    if "=" in text:
        text = compiled(_IN_QUERY).sub(rf"\1{_MASK}", text)
    lowered = text.lower()  # a search for words takes a tenth of the time of the pattern
    if any(word in lowered for word in _BEFORE_CREDENTIALS):
        text = compiled(_CREDENTIAL).sub(rf"\1{_MASK}", text)
    return _without_named_secrets(text)


# By the values: a key that is set while the program runs is masked from the next message on.
@lru_cache(maxsize=32)
def _redactor(values: tuple[str, ...]) -> Redactor:
    return Redactor(values, alone=True)


# Every repetition is bounded, so that the time stays linear in the length of the text.
_END = r"""\s\0"'<>\\"""  # of a word, also where it is quoted; NUL separates the facts of an event
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


def _any_of(forms_of: Mapping[str, list[str]]) -> re.Pattern[str] | None:
    """Return a pattern for all forms of these secrets."""
    # The longest first: one may contain another.
    ordered = sorted(forms_of, key=lambda secret: (-len(secret), secret))
    forms = [form for secret in ordered for form in forms_of[secret]]
    return re.compile("|".join(forms)) if forms else None


def _forms(secret: str) -> Iterable[str]:
    """Yield patterns for a secret: as it is written, and in base64."""
    yield _written(secret)
    for before in range(3):  # base64 depends on where it starts within a group of three bytes
        encoded = base64.b64encode(b"\0" * before + secret.encode("utf-8", "surrogateescape")).decode()
        # The first and the last group also depend on the bytes beside it.
        inner = encoded[4 if before else 0 :].rstrip("=")
        yield re.escape(inner[: len(inner) // 4 * 4] if len(inner) % 4 else inner)


def _written(secret: str) -> str:
    """Return a pattern for a text that was escaped several times for JSON, or once for a URL or HTML."""
    parts = re.findall(r"\\+|[^\\]", secret, re.DOTALL)
    return "".join(_sign(part) for part in parts)


def _sign(sign: str) -> str:
    if sign.isascii() and sign.isalnum():
        return sign
    if sign[0] == "\\":  # each becomes two whenever it is escaped for JSON
        return rf"(?:(?:%5[Cc]){{{len(sign)}}}|\\{{{len(sign)},{8 * len(sign)}}})"
    data = sign.encode("utf-8", "surrogateescape")
    ways = ["".join(f"%{_hex(f'{byte:02x}')}" for byte in data)]
    if ord(sign) < 0xDC80 or ord(sign) > 0xDCFF:  # otherwise a byte that is not text
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
    """Return a pattern for hexadecimal digits in either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


# Secrets by the name before them, or by their own form: `api_key='...'`, `Cookie: ...`, `sk-...`.
#
# Ordinary texts must stay as they are: `password: incorrect`, `api_key=self.key`, `max_tokens=100`. So a
# value is masked only if it is quoted, directly after its name, or has a digit, and is not a plain word.

_QUOTE = r"""\\{0,8}["']"""
_SET_TO = rf"(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,8}}[bru]?"
_KEYS = rf"(?:api[ _-]?key|(?:access|secret|private|signing|account)[_-]?key)(?!{_SET_TO}[a-z]{{3,6}}://)"
_TOKENS = r"(?:access|refresh|auth|session|bearer|api)[_-]token|(?<![A-Za-z_])id_token"
# The shell's PWD is a folder, that of a connection string is not.
_PASSWORDS = r"password|passwd|passphrase|secret|(?-i:(?<![A-Za-z])[pP]wd|(?<=[;_])PWD)"
_NAME = rf"(?i:{_KEYS}|{_TOKENS}|{_PASSWORDS})"
_SIGN = r"""[^\s\0"'<>\\,;&(){}\[\]*$]"""  # of a value that is not quoted
_QUOTED_SIGN = r"""(?:[^\s\0"'\\*$<{]|\\{1,8}[^\s"'])"""
# Words about a secret, or in its place. A name in capitals is that of a variable.
_WORD = (
    r"(?:(?i:none|null|nil|true|false|undefined|unknown|missing|required|optional|invalid|incorrect|wrong|expired"
    r"|revoked|empty|blank|unset|not[_-]?set|string|str|text|bytes|redacted|hidden|masked|removed|default|example"
    r"|placeholder|password|passwd|secret|token|(?:api[_-]?)?key|value|your[\w-]*|env:\w+|x+)"
    r"|[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,8})(?![\w-])"
)
_DIGIT = rf"(?={_SIGN}{{0,63}}[0-9])"
_PAIRS = (
    # api_key='...', "api_key": "..."
    rf"({_NAME}(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,8}}[bru]?{_QUOTE})(?!{_WORD})"
    rf"{_QUOTED_SIGN}{{4,1024}}(?={_QUOTE}|\Z)",
    # api_key=...; a word without digits only as a password, and if no code follows
    rf"({_NAME}=)(?!{_WORD})(?!\d{{1,7}}\b){_DIGIT}{_SIGN}{{6,1024}}+(?![(\[])",
    rf"((?i:{_PASSWORDS})=)(?!{_WORD})[A-Za-z]{{6,64}}(?=[\s;&]|\Z)",
    # api key: ...
    rf"((?i:{_KEYS}|{_TOKENS}|(?:client|app)[_-]secret|passw(?:or)?d|passphrase)\s{{0,4}}[:=]\s{{1,4}})"
    rf"(?!{_WORD}){_DIGIT}{_SIGN}{{8,1024}}+(?![(\[])",
    rf"((?i:api key provided:\s{{1,4}}))(?!{_WORD}){_SIGN}{{4,1024}}",
)
_BEFORE_PAIRS = (
    *("api_key", "apikey", "api-key", "api key", "accesskey", "access_key", "access-key", "secret"),
    *("private_key", "private-key", "signing_key", "account_key", "accountkey", "passw", "passphrase"),
    *("_token", "-token", "pwd"),
)

_COOKIE_PAIR = r"""[\w!#$%&+.^|~-]{1,64}=[^\s\0;"',\\]{1,4096}"""
_COOKIE = (
    rf"""((?i:\b(?:set-)?cookie)(?:{_QUOTE})?\s{{0,4}}:\s{{0,4}}(?:{_QUOTE})?)(?!{_WORD})"""
    rf"{_COOKIE_PAIR}(?:;\s{{0,4}}{_COOKIE_PAIR}){{0,50}}"
)

# Keys with a well-known prefix.
_BEGINNINGS = ("sk-", "sk_", "rk_", "pk_", "gh", "glpat-", "xox", "hf_", "akia", "asia", "aiza", "eyj")
_KNOWN_KEY = (
    r"(?<![A-Za-z0-9_-])(?:sk-(?=[\w-]{0,200}[0-9])[\w-]{16,256}"
    r"|[srp]k_(?:live|test)_\w{8,256}"
    r"|gh[pousr]_[A-Za-z0-9]{20,256}|github_pat_\w{20,256}|glpat-[\w-]{16,256}|xox[abeoprs]-[\w-]{10,256}"
    r"|hf_[A-Za-z0-9]{20,256}|A(?:KI|SI)A[0-9A-Z]{16}(?![0-9A-Z])|AIza[\w-]{30,64}"
    r"|eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}\.[\w-]{8,2048})"
)


def _without_named_secrets(text: str) -> str:
    """Return a text without the values of names such as `api_key`, and without keys of known providers."""
    lowered = text.lower()
    if any(word in lowered for word in _BEFORE_PAIRS):
        for pattern in _PAIRS:
            text = compiled(pattern).sub(rf"\1{_MASK}", text)
    if "cookie" in lowered:
        text = compiled(_COOKIE).sub(_without_cookies, text)
    if any(word in lowered for word in _BEGINNINGS):
        text = compiled(_KNOWN_KEY).sub(_MASK, text)
    return text


def _without_cookies(match: re.Match[str]) -> str:
    pairs = match[0][len(match[1]) :].split(";")
    are_words = all(is_plain_word(pair.partition("=")[2].strip()) for pair in pairs)
    return match[0] if are_words else f"{match[1]}{_MASK}"


# Which values of environment variables are secrets: by the name of the variable, or by their own form.

# Words of a name, between its underscores: DB_PASS, GH_PAT, OPENAI_API_KEY_2.
_SURE = frozenset(
    "KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE BEARER JWT COOKIE"
    " CONNSTR CONNECTIONSTRING".split()
)
# Their values are often files or sockets instead.
_LIKELY = frozenset("PASS PWD PAT AUTH CREDENTIAL CREDENTIALS CRED CREDS DSN".split())
_GLUED = tuple("PASSWORD PASSWD PASSPHRASE SECRET TOKEN APIKEY ACCESSKEY SECRETKEY PRIVATEKEY".split())
# A name that ends with one of these is about a secret: AUTH_METHOD, TOKEN_URL, SSL_KEY_FILE.
_ABOUT = frozenset(
    "FILE PATH DIR HOME SOCK SOCKET URL URI ENDPOINT HOST PORT NAME TYPE METHOD MODE USER USERNAME LENGTH"
    " SIZE COUNT LIMIT TTL EXPIRY TIMEOUT HEADER PREFIX VERSION REGION PROVIDER SCOPE SCOPES REALM ISSUER"
    " ALGORITHM ENABLED DISABLED REQUIRED PARALLELISM ENV".split()
)
_BY_LOOKS = ("SK", "SID")  # secret keys and session ids, but also countries and databases

_PARTS = r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])"
_START_OF_A_PATH = r"~|\.{0,2}/|[A-Za-z]:[\\/]"
_IN_ADDRESS = r"://[^\s/?#@:]*:([^\s/?#]+)@"
_VALUE_IN_QUERY = r"[?&](?i:(?:api[_-]?)?key|(?:access_)?token|sig|secret|password)=([^&#\s]+)"
_IN_PAIRS = r"(?:^|[;\s])(?i:password|pwd|(?:account|sharedaccess|access|secret)key)\s?=\s?([^;\s]+)"
# Anybody with the address of a webhook can post to it: a token is in its path.
_WEBHOOK_PATH = r"://[^/\s]+(/[^\s]*)"
_WEBHOOK_PART = r"(?=[\w-]*[0-9])[\w-]{8,}"
_NOT_WORDS = r"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=-]{16,}"
_LONG_LINE = 16  # of a key of several lines
_WORDS = r"[^\W\d_]+(?:[-_. ][^\W\d_]+)*"
_LONGEST_WORD = 15


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when it is first needed: all of them would double the start time of a command."""
    return re.compile(pattern)


def is_plain_word(text: str) -> bool:
    """Return whether a text is a word or two (`question`, `not-needed`): short, no digit, one case."""
    is_one_case = text.islower() or text.isupper() or text.istitle()
    return len(text) <= _LONGEST_WORD and is_one_case and compiled(_WORDS).fullmatch(text) is not None


def secrets_in_environment() -> Iterator[str]:
    """Yield every value in the environment, or part of one, that looks like a secret."""
    for name, value in os.environ.items():
        yield from _secrets_of(name, value)


@lru_cache(maxsize=4096)
def _secrets_of(name: str, value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(secret.strip() for secret in _candidates(name, value.strip())))


def _candidates(name: str, value: str) -> Iterator[str]:
    if _is_secret(name, value):
        yield value
        # A message may quote one line of a key in PEM format.
        if "\n" in value:
            lines = (line.strip() for line in value.splitlines())
            yield from (line for line in lines if len(line) >= _LONG_LINE and not line.startswith("-----"))
        if "WEBHOOK" in name.upper():  # connection errors have the host and the path separately
            yield from compiled(_WEBHOOK_PATH).findall(value)
    if "://" in value:
        for password in compiled(_IN_ADDRESS).findall(value):
            yield password
            yield percent_decoded(password)
        yield from compiled(_VALUE_IN_QUERY).findall(value)
    if "=" in value:
        yield from compiled(_IN_PAIRS).findall(value)


def _is_secret(name: str, value: str) -> bool:
    parts = [part.rstrip("0123456789") for part in compiled(_PARTS).split(name)]
    words = [part.upper() for part in parts if part]
    if words and words[-1] in _BY_LOOKS:
        return compiled(_NOT_WORDS).fullmatch(value) is not None
    if any(word.endswith("WEBHOOK") for word in words):
        parts = [part for path in compiled(_WEBHOOK_PATH).findall(value) for part in re.split("[/?]", path)]
        return any(compiled(_WEBHOOK_PART).fullmatch(part) for part in parts)
    # The shell's PWD is a folder.
    if not words or words[-1] in _ABOUT or words in (["PWD"], ["OLDPWD"]):
        return False
    is_sure = any(word in _SURE or word.endswith(_GLUED) for word in words)
    is_sure = is_sure or ("CONNECTION" in words and not {"STRING", "STRINGS"}.isdisjoint(words))
    if compiled(_START_OF_A_PATH).match(value):  # a key in base64 may start like a path
        return is_sure
    if value.isdigit() and "TOKENS" in words:  # their number
        return False
    return is_sure or not _LIKELY.isdisjoint(words)


def percent_decoded(text: str, errors: str = "surrogateescape") -> str:
    """Return a text with `%41` as `A`."""
    raw = text.encode("utf-8", errors)
    raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), raw)
    return raw.decode("utf-8", errors)
