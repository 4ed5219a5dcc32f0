"""Secrets in texts without a variable: what is masked and what is not."""

from __future__ import annotations

import json
import os
import time

import pytest

from auepora_eval.core.redaction import Redactor, without_secrets

KEY = "Zq42canaryXyzzy7"
OPENAI = "sk-proj-T3BlbkFJ0canary8Q2w"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "text",
    [
        f"client(api_key='{KEY}') refused",
        f'OpenAI(api_key="{KEY}", timeout=3)',
        f"api_key={KEY}",
        f"bad request: apikey={KEY}, model=x",
        f"openai_api_key = '{KEY}'",
        f"OPENAI_API_KEY={KEY} python run.py",
        f"Error code: 401 - Incorrect API key provided: {KEY}. You can find your key at https://x.org",
        "Incorrect API key provided: letterscanary.",
        f"API key: {KEY} is disabled",
        "password=hunter2canary",
        "host=db user=me password=swordfishcanary dbname=x",
        'connect(password="correcthorsecanary")',
        f"password: {KEY}",
        f"db_password='{KEY}'",
        f"PGPASSWORD={KEY}",
        f"passphrase={KEY}",
        "pwd=hunter2canary",
        "Server=db;Pwd=swordfishcanary;",
        "UID=sa;PWD=hunter2canary;",
        f"MYSQL_PWD={KEY}",
        f"connect(pwd='{KEY}')",
        f"private_key=/{KEY}/x",  # in base64, not a path
        f"Cookie: theme=dark; session={KEY}",
        json.dumps({"api_key": KEY, "client_secret": f"{KEY}x", "model": "m"}),
        json.dumps(json.dumps({"client_secret": KEY})),
        str({"client_secret": KEY, "n": 1}),
        f"client_secret={KEY}&grant_type=x",
        f"aws_secret_access_key={KEY}/canary+1",
        f"refresh_token={KEY}",
        f"'access_token': '{KEY}'",
        f"x-goog-api-key: {KEY}",
        f"model refused {OPENAI}",
        f"({OPENAI})",
        "sk_live_51canaryH8x2Q7w9",
        "token ghp_canary1234567890abcdefABCDEF",
        "xoxb-1234567890-canaryabcdef",
        "AKIACANARY1234567890",
        "jwt eyJhbGciOiJcanary.eyJzdWIiOiIxcanary.SflKxwRcanary5",
        f"GET / HTTP/1.1 Cookie: session={KEY}; theme=canarydark",
        str({"Cookie": f"session={KEY}; id=canary2", "Host": "x.org"}),
        f"Set-Cookie: sid={KEY}; Path=/",
    ],
)
def test_secret_is_masked(text: str) -> None:
    clean = without_secrets(text)
    assert "canary" not in clean
    assert "***" in clean
    assert without_secrets(clean) == clean


PLAIN = """
KeyError: 'api_key'
The api_key client option must be set either by passing api_key to the client or by setting OPENAI_API_KEY
api_key=None, organization=None
api_key=os.environ["OPENAI_API_KEY"], timeout=30
OpenAI(api_key=api_key, base_url=url)
OpenAI(api_key=self._api_key)
client = Client(password=password, secret=settings.secret_key)
{"detail": [{"loc": ["body", "password"], "msg": "field required"}]}
{"password": "This field may not be blank."}
{"password": "required", "api_key": "missing", "client_secret": null}
{"api_key": "OPENAI_API_KEY"}
password: incorrect
password = base64.b16encode(random_bytes[8:])
password: must have at least 8 characters
password authentication failed for user "me"
Incorrect API key provided. Check it.
API key: missing
api_key: AuthenticationError, invalid_request_error
client_secret: InvalidParameterException
secret: version2
The secret = of a good answer
unexpected token '}' at position 17
max_tokens=4096 total_tokens: 128000 input_tokens=12 eos_token_id=128009 pad_token='<pad>'
token: 'the' token=EOS next_token=1234567
session token: expired
secretary=JohnSmith1985 keyboard=qwerty1 monkey: banana12345 primary_key=order_12345678
sort_key='created_at2024'
KeyError: 'key_2024_11_16_report'
the key is 12345678 and the token count is 987654
task-1234567890abcdefgh risk-2024-11-16-assessment-report disk-0123456789abcdef
sk-learn, sk-estimator and sk-lego-models are names of packages and of nobody's key
cookie: baked at 180 degrees for 12 minutes
Cookie: required header is missing
cookies={'max_age': 3}
password_hash_rounds=12000 password_min_length=12 api_key_env='OPENAI_API_KEY' secret_name=prod-1-database
Max retries exceeded with url: /v1/ask?query=Where+is+pier+42&top_k=5
Cookie policy: session=required
cookie: chocolate=good
api_key: https://example.com/page2
api_key=https://example.com/page2
{'PWD': 'relative-folder2'}
api key rotation: 2024-05-01
Basic authentication failed; bearer authentication is needed
""".strip().splitlines()


@pytest.mark.parametrize("text", PLAIN, ids=range(len(PLAIN)))  # pytest puts ids into the environment
def test_ordinary_words_are_not_masked(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("STRIPE_SK", "sk51canaryH8x2Q7w9zz", "no charge with sk51canaryH8x2Q7w9zz"),
        ("TWILIO_SID", "AC0123456789canaryabcdef", "account AC0123456789canaryabcdef"),
        (
            *("SLACK_WEBHOOK", "https://hooks.slack.com/services/T0AB/B0CD/canary12345"),
            "Max retries exceeded with url: /services/T0AB/B0CD/canary12345 (Caused by",
        ),
        (
            *("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0AB/B0CD/canary12345"),
            "POST https://hooks.slack.com/services/T0AB/B0CD/canary12345 failed",
        ),
    ],
)
def test_variables_whose_values_look_like_secrets(
    name: str, value: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert "canary" not in without_secrets(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ORACLE_SID", "ORCL"),
        ("LOCALE_SK", "slovenčina-slovensko"),
        ("COUNTRY_SK", "Slovakia"),
        ("WEBHOOK", "enabled"),
        ("RAG_WEBHOOK_URL", "http://127.0.0.1:9000/ask/question"),
    ],
)
def test_variables_whose_values_do_not(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert without_secrets(f"it says {value} here") == f"it says {value} here"


def test_parsed_document_is_masked() -> None:
    told = json.loads(f'{{"a": ["\\u005a{KEY[1:]}", {{"{KEY}": 1}}], "n": 3, "b": null}}')
    assert Redactor([KEY]).within(told) == {"a": ["***", {"***": 1}], "n": 3, "b": None}


@pytest.mark.parametrize(
    "piece", ["api_key=", "password: '", "Cookie: a=b; ", "sk-0", "secret" * 9, '"api_key": "a']
)
def test_masking_time_is_linear(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 2
