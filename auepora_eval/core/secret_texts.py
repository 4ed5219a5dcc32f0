"""Secrets by the words before them, or by their own looks: `api_key='...'`, `Cookie: ...`, `sk-...`.

Words that everybody uses must stay as they are: `password: incorrect`, `api_key=self.key`, `max_tokens=100`.
So a value is masked only where it is quoted, glued to its name, or has a digit in it, and is no plain word.
Everything is of bounded length: a long text is not to take longer than it is long.
"""

from __future__ import annotations

import re

from .secret_values import compiled, is_plain_word

_MASK = "***"

_QUOTE = r"""\\{0,8}["']"""
_SET_TO = rf"(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,8}}[bru]?"
# Where a key is, and not the key: base64 has no dots, and is never all in small letters.
_PATH = r"(?:~|\.{1,2})?/(?-i:[a-z0-9_./-]{1,256}(?![\w+=-])|[\w./-]{1,256}\.[a-z]{2,5}(?![\w+=-]))"
_COLUMN = r"(?-i:[a-z]{2,20}(?:_[a-z]{1,20}){0,4}_[0-9]{1,3}(?![\w-]))"
_NO_KEY = rf"(?!{_SET_TO}(?:(?:{_QUOTE})?(?:[a-z][a-z0-9+.-]{{1,10}}://|{_PATH})|{_COLUMN}))"
_KEYS = rf"(?:api[ _-]?key|(?:access|secret|private|signing|account)[_-]?key){_NO_KEY}"
_TOKENS = r"(?:access|refresh|auth|session|bearer|api)[_-]token|(?<![A-Za-z_])id_token"
# The shell's PWD is a folder, that of a connection string is not.
_PWD = rf"(?-i:(?<![A-Za-z])[pP]wd|(?<=[;_])PWD)(?!{_SET_TO}(?:{_QUOTE})?(?:[~.]{{0,2}}/|[A-Za-z]:))"
_PASSWORDS = rf"password|passwd|passphrase|secret|{_PWD}"
_NAME = rf"(?i:{_KEYS}|{_TOKENS}|{_PASSWORDS})"
_SIGN = r"""[^\s\0"'<>\\,;&(){}\[\]*$]"""  # of a value that is not quoted
_QUOTED_SIGN = r"""(?:[^\s\0"'\\*$<{]|\\{1,8}[^\s"'])"""
# Said of a secret, or in its place. A name in capitals is that of a variable.
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
    # api_key=...; a word without digits only as a password, and where no code goes on behind it
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

# Keys whose makers gave them a beginning by which they are known.
_BEGINNINGS = ("sk-", "sk_", "rk_", "pk_", "gh", "glpat-", "xox", "hf_", "akia", "asia", "aiza", "eyj")
_PACKAGE = r"(?:[a-z]{2,12}[0-9]{0,2}|v?[0-9]{1,8})(?:-(?:[a-z]{2,12}[0-9]{0,2}|v?[0-9]{1,8})){0,8}(?![\w-])"
_KNOWN_KEY = (
    rf"(?<![A-Za-z0-9_-])(?:sk-(?!{_PACKAGE})(?=[\w-]{{0,200}}[0-9])[\w-]{{16,256}}"
    r"|[srp]k_(?:live|test)_\w{8,256}"
    r"|gh[pousr]_[A-Za-z0-9]{20,256}|github_pat_\w{20,256}|glpat-[\w-]{16,256}|xox[abeoprs]-[\w-]{10,256}"
    r"|hf_[A-Za-z0-9]{20,256}|A(?:KI|SI)A[0-9A-Z]{16}(?![0-9A-Z])|AIza[\w-]{30,64}"
    r"|eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}\.[\w-]{8,2048})"
)


def without_told_secrets(text: str) -> str:
    """A text without what is named as a secret in it, and without keys of well-known makers."""
    lowered = text.lower()  # looking for words takes a tenth of looking for a pattern
    if any(word in lowered for word in _BEFORE_PAIRS):
        for pattern in _PAIRS:
            text = compiled(pattern).sub(rf"\1{_MASK}", text)
    if "cookie" in lowered:
        text = compiled(_COOKIE).sub(_without_cookies, text)
    if any(word in lowered for word in _BEGINNINGS):
        text = compiled(_KNOWN_KEY).sub(_MASK, text)
    return text


def _without_cookies(found: re.Match[str]) -> str:
    pairs = found[0][len(found[1]) :].split(";")
    are_words = all(is_plain_word(pair.partition("=")[2].strip()) for pair in pairs)
    return found[0] if are_words else f"{found[1]}{_MASK}"
