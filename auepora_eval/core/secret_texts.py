"""Secrets by the words before them, or by their own looks: `api_key='...'`, `Cookie: ...`, `sk-...`.

Words that everybody uses must stay as they are: `password: incorrect`, `api_key=self.key`, `max_tokens=100`.
So a value is masked only where it is quoted, glued to its name, or has a digit in it, and is no plain word.
Everything is of bounded length: a long text is not to take longer than it is long.
"""

from __future__ import annotations

from .secret_values import compiled

_MASK = "***"

_KEYS = r"api[ _-]?key|(?:access|secret|private|signing|account)[_-]?key"
_TOKENS = r"(?:access|refresh|auth|session|bearer|api)[_-]token|(?<![A-Za-z_])id_token"
_PASSWORDS = r"password|passwd|passphrase|secret"
_NAME = rf"(?i:{_KEYS}|{_TOKENS}|{_PASSWORDS})"
_QUOTE = r"""\\{0,8}["']"""
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
    *("_token", "-token"),
)

_COOKIE_PAIR = r"""[\w!#$%&+.^|~-]{1,64}=[^\s\0;"',\\]{1,4096}"""
_COOKIE = (
    rf"""((?i:\b(?:set-)?cookie)(?:{_QUOTE})?\s{{0,4}}:\s{{0,4}}(?:{_QUOTE})?)(?!{_WORD})"""
    rf"{_COOKIE_PAIR}(?:;\s{{0,4}}{_COOKIE_PAIR}){{0,50}}"
)

# Keys whose makers gave them a beginning by which they are known.
_BEGINNINGS = ("sk-", "sk_", "rk_", "pk_", "gh", "glpat-", "xox", "hf_", "akia", "asia", "aiza", "eyj")
_KNOWN_KEY = (
    r"(?<![A-Za-z0-9_-])(?:sk-(?=[\w-]{0,200}[0-9])[\w-]{16,256}|[srp]k_(?:live|test)_\w{8,256}"
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
        text = compiled(_COOKIE).sub(rf"\1{_MASK}", text)
    if any(word in lowered for word in _BEGINNINGS):
        text = compiled(_KNOWN_KEY).sub(_MASK, text)
    return text
