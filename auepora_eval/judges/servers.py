"""What is known of servers: which are this machine, how they write texts, what to do when one refuses."""

from __future__ import annotations

import codecs
import ipaddress
from collections.abc import Mapping
from email.message import Message

# What to do about a status, and about an address that is neither encrypted nor on this machine.
Hints = Mapping[int | str, str]
OF_A_MODEL: Hints = {
    400: "Does the server know this model, and these parameters?",
    401: "Is the API key right? Name the environment variable that holds it.",
    403: "Is the API key right, and is it allowed to use this model?",
    404: "Check the URL (it usually ends in /v1) and the model's name.",
    "plain_http": "Use https, or allow plain HTTP if this network is yours (plain_http).",
}
# Besides UTF-8, encodings of Python's own: of names and of source code, and some of them slow.
_AS_IT_IS = frozenset("utf-8 ascii idna punycode unicode-escape raw-unicode-escape undefined".split())


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def in_utf8(content: bytes, content_type: str | None) -> bytes:
    """A reply's text in UTF-8, from the charset that its Content-Type names; one that nobody knows stays.

    >>> in_utf8(b"caf\\xe9", "text/plain; charset=iso-8859-1").decode()
    'café'
    """
    if "charset" not in (content_type or "").lower():
        return content
    head = Message()
    head["Content-Type"] = content_type or ""
    try:
        name = codecs.lookup(head.get_content_charset("utf-8")).name
        return content if name in _AS_IT_IS else content.decode(name).encode("utf-8")
    except (LookupError, ValueError):  # also of what is no encoding of text, such as rot13
        return content
