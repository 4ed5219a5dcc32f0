"""Which values are secrets, and the encodings in which they are masked."""

from __future__ import annotations

import base64
import html
import json
import os
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from auepora_eval.core.redaction import Redactor, without_secrets

VALUE = "Zq42-canary-xyzzy"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "OPENAI_API_KEY_2",
            "OPENAI_API_KEY2",
            "openai_api_key",
            "APIKEY",
            "AWS_ACCESS_KEY_ID",
        ),
        *(
            "AWS_SECRET_ACCESS_KEY",
            "AZURE_OPENAI_KEY_PRIMARY",
            "PGPASSWORD",
            "MYSQL_PWD",
            "MYSQL_ROOT_PASSWORD",
        ),
        *(
            "GH_PAT",
            "NPM_TOKEN",
            "NPMTOKEN",
            "API_TOKENS",
            "DB_PASS",
            "DB_PASSWD",
            "SMTP_PASSPHRASE",
            "MY_SECRET",
        ),
        *("SECRETS_JSON", "GOOGLE_CREDENTIALS", "SERVICE_CREDS", "REDISCLI_AUTH", "BASIC_AUTH", "SENTRY_DSN"),
        *("AZURE_STORAGE_CONNECTION_STRING", "ConnectionStrings__Main", "SESSION_COOKIE", "LICENSE_JWT"),
        *("HF_TOKEN_READ", "TOKEN", "KEY", "API-KEY", "service.password"),
    ],
)
def test_variables_that_are_named_like_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, VALUE)
    assert without_secrets(f"401: {VALUE} was refused") == "401: *** was refused"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/me/project"),
        ("OLDPWD", "/home/me/elsewhere"),
        ("PWD", "relative-folder"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("SSH_AUTH_SOCK", "/run/ssh-XXXX/agent.4711"),
        ("KEYBOARD", "querty-layout"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:*.key=01;31"),
        ("XAUTHORITY", "/run/user/1000/.Xauthority"),
        ("GIT_ASKPASS", "/usr/share/code/askpass.sh"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/service.json"),
        ("SSL_KEY_FILE", "/etc/ssl/private.pem"),
        ("SSH_KEY_PATH", "~/.ssh/id_ed25519"),
        ("TOKENIZERS_PARALLELISM", "parallel-enough"),
        ("MAX_TOKENS", "1000000000"),
        ("TOKEN_URL", "https://login.example.com/token"),
        ("AUTH_METHOD", "certificate"),
        ("SECRET_NAME", "production-database"),
        ("PASSWORD_REQUIRED", "required"),
        ("GITHUB_TOKEN", "true"),
        ("GITHUB_TOKEN", "1"),
        ("GITHUB_TOKEN", "short"),
        ("DB_PASSWORD", "secret"),
        ("COMPATIBILITY", "backwards-only"),
        ("PASSENGER_HOME", "first-class-only"),
        ("DATABASE_URL", "postgres://db.example.com:5432/prod"),
    ],
)
def test_plain_values_are_not_masked(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    text = f"KeyError: {value} in {{'{name}': '{value}'}}"
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("hunter2", "password hunter2 refused", "password *** refused"),
        ("hunter2", "the file hunter2020.txt", "the file hunter2020.txt"),
        ("/Ab3+canary/9", "no key /Ab3+canary/9", "no key ***"),  # begins as a path does, and is none
        ("line-of-a-pem-AAAA\nline-of-a-pem-BBBB", "bad: line-of-a-pem-BBBB", "bad: ***"),
    ],
)
def test_ambiguous_values(value: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_KEY", value)
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    ("name", "value", "text", "expected"),
    [
        (
            "DATABASE_URL",
            "postgres://me:Pa55%2Fword@db/prod",
            "FATAL: Pa55/word is wrong",
            "FATAL: *** is wrong",
        ),
        ("DATABASE_URL", "postgres://me:Pa55%2Fword@db/prod", "got Pa55%2Fword", "got ***"),
        ("HTTPS_PROXY", "http://me:proxy-pa55@proxy:3128", "407 for proxy-pa55", "407 for ***"),
        ("SEARCH_URL", "https://h/?api_key=abc-9999-xyz&q=1", "403 abc-9999-xyz", "403 ***"),
        ("AZURE_STORAGE", "AccountName=a;AccountKey=c2Vj9cmV0;X=y", "bad c2Vj9cmV0", "bad ***"),
        ("PG_CONNINFO", "host=h user=u password=Pa55word99", "no Pa55word99", "no ***"),
    ],
)
def test_passwords_within_addresses(
    name: str, value: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert without_secrets(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sent Authorization: Bearer abc", "sent Authorization: Bearer ***"),
        ("{'Authorization': 'Bearer a.b-c_d'}", "{'Authorization': 'Bearer ***'}"),
        (r"{\"authorization\": \"Basic QWxhZGRpbg==\"}", r"{\"authorization\": \"Basic ***\"}"),
        ("Authorization: ab12cd34ef56", "Authorization: ***"),
        ("Proxy-Authorization: Basic abc=", "Proxy-Authorization: Basic ***"),
        ("curl -H 'x-api-key: abcd-1234'", "curl -H 'x-api-key: ***'"),
        ('{"api-key": "abcd-1234"}', '{"api-key": "***"}'),
        ("header bearer eyJhbGciOi.eyJzdWIi.sig", "header bearer ***"),
        ("Basic QWxhZGRpbjpvcGVu", "Basic ***"),
        ("authorization=Bearer%20abc123", "authorization=Bearer%20***"),
        ("https://u:PW@h/x", "https://u:***@h/x"),
        ("postgres://u:p@ss@h/x", "postgres://u:***@h/x"),
        (r"https:\/\/u:PW@h\/x", r"https:\/\/u:***@h\/x"),
        ("https://ghp_0123456789abcdefABCDEF@github.com/x", "https://***@github.com/x"),
        ("https://h/?api_key=X&q=cats&token=Y", "https://h/?api_key=***&q=cats&token=***"),
        ("GET /v1?key=AIza-0 HTTP/1.1", "GET /v1?key=*** HTTP/1.1"),
        ("/x?a=1&amp;access_token=Y&sig=Z'", "/x?a=1&amp;access_token=***&sig=***'"),
        (r"/x?a=1\u0026token=Y", r"/x?a=1\u0026token=***"),
        ("?X-Amz-Signature=0af&X-Amz-Date=1", "?X-Amz-Signature=***&X-Amz-Date=1"),
        # These say nothing that is secret.
        ("Basic authentication failed", None),
        ("Basic Authentication failed", None),
        ('WWW-Authenticate: Bearer realm="api"', None),
        ("Bearer token missing", None),
        ("no Authorization: header missing", None),
        ("http://127.0.0.1:8080/users/me@example.com", None),
        ("https://h/?q=monkey=1&keyword=a&tokens=5", None),
        ("mail me@example.com at 10:30", None),
        ("api-key: missing", None),
    ],
)
def test_secret_like_text_is_masked(text: str, expected: str | None) -> None:
    masked = without_secrets(text)
    assert masked == (text if expected is None else expected)
    assert without_secrets(masked) == masked


HARD = "k\"e\\y/9&<ü+ 7'x"


@pytest.mark.parametrize(
    "disguise",
    [
        pytest.param(lambda key: key, id="as it is"),
        pytest.param(json.dumps, id="JSON"),
        pytest.param(lambda key: json.dumps(key, ensure_ascii=False), id="JSON with its letters"),
        pytest.param(lambda key: json.dumps(json.dumps(key)), id="JSON in JSON"),
        pytest.param(lambda key: json.dumps({"a": json.dumps([json.dumps(key)])}), id="three deep"),
        pytest.param(lambda key: json.dumps(key).replace("/", "\\/"), id="JSON of PHP"),
        pytest.param(
            lambda key: (
                json.dumps(key).replace("&", "\\u0026").replace("<", "\\u003C").replace("+", "\\u002B")
            ),
            id="JSON of Go and .NET",
        ),
        pytest.param(repr, id="repr"),
        pytest.param(lambda key: repr({"e": repr(key)}), id="repr in repr"),
        pytest.param(lambda key: quote(key, safe=""), id="URL"),
        pytest.param(lambda key: quote(key, safe="/+").lower(), id="URL, small letters"),
        pytest.param(quote_plus, id="form"),
        pytest.param(html.escape, id="HTML"),
        pytest.param(lambda key: base64.b64encode(f"user:{key}".encode()).decode(), id="base64"),
    ],
)
def test_encoded_key_is_masked(disguise: object, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = disguise(HARD)  # type: ignore[operator]
    masked = Redactor([HARD])(f"the server said {shown}.")
    assert "***" in masked
    assert "9" not in masked.replace("***", "") or "base64" in masked or masked.count("***") == 1
    assert shown.strip("\"'")[4:-4] not in masked


@given(st.text(min_size=8, max_size=30).filter(lambda text: text == text.strip()), st.integers(0, 3))
@example('ends in "', 3)
@example("\\\\\\\\\\\\\\\\", 2)
def test_repeatedly_encoded_key_is_masked(key: str, times: int) -> None:
    told = key
    for _ in range(times):
        told = json.dumps(told)[1:-1]
    masked = Redactor([key])(f"\x00 {told} \x00")
    assert masked == "\x00 *** \x00"


def test_masking_time_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    from time import process_time

    monkeypatch.setenv("SERVICE_KEY", VALUE)

    def cost(text: str) -> float:
        start = process_time()
        without_secrets(text)
        return process_time() - start

    for piece in ("a", "://", "://a:", "Bearer ", "?key", "\\", "authorization: ", "://a:a@", "A1"):
        text = piece * (200_000 // len(piece))
        assert cost(text) < 0.5, piece
