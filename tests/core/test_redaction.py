"""Keys are masked in texts: by the value of a variable, by what is before them, by their first letters."""

from __future__ import annotations

import json
import os
from urllib.parse import quote, quote_plus

import pytest

from auepora_eval.calls.keys import Redactor, without_secrets
from auepora_eval.core.systems.named import endpoint_system
from auepora_eval.errors import CallError
from tests.builders import a_sample
from tests.servers import chat_server

VALUE = "Zq42-canary-xyzzy"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)


SECRET_NAMES = """
OPENAI_API_KEY OPENAI_API_KEY_2 openai_api_key APIKEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY PGPASSWORD
MYSQL_PWD GH_PAT NPM_TOKEN API_TOKENS DB_PASS DB_PASSWD SMTP_PASSPHRASE MY_SECRET SERVICE_CREDS REDISCLI_AUTH
GOOGLE_CREDENTIALS SENTRY_DSN AZURE_STORAGE_CONNECTION_STRING ConnectionStrings__Main KEY API-KEY
""".split()


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_variables_that_are_named_like_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, VALUE)
    assert without_secrets(f"401: {VALUE} was refused") == "401: *** was refused"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/me/project"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("SSH_AUTH_SOCK", "/run/ssh-XXXX/agent.4711"),
        ("KEYBOARD", "querty-layout"),
        ("GIT_ASKPASS", "/usr/share/code/askpass.sh"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google/service.json"),
        ("SSL_KEY_FILE", "/etc/ssl/private.pem"),
        ("TOKENIZERS_PARALLELISM", "parallel-enough"),
        ("MAX_TOKENS", "1000000000"),
        ("TOKEN_URL", "https://login.example.com/token"),
        ("GITHUB_TOKEN", "true"),
        ("DB_PASSWORD", "secret"),
        ("DATABASE_URL", "postgres://db.example.com:5432/prod"),
    ],
)
def test_plain_values_are_not_masked(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    text = f"KeyError: {value} in {{'{name}': '{value}'}}"
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("name", "value", "text", "expected"),
    [
        ("SERVICE_KEY", "hunter2", "password hunter2 refused", "password *** refused"),
        ("SERVICE_KEY", "/Ab3+canary/9", "no key /Ab3+canary/9", "no key ***"),  # starts like a path
        ("DATABASE_URL", "postgres://me:Pa55%2Fword@db/prod", "Pa55/word is wrong", "*** is wrong"),
        ("DATABASE_URL", "postgres://me:Pa55%2Fword@db/prod", "got Pa55%2Fword", "got ***"),
        ("HTTPS_PROXY", "http://me:proxy-pa55@proxy:3128", "407 for proxy-pa55", "407 for ***"),
        ("SEARCH_URL", "https://h/?api_key=abc-9999-xyz&q=1", "403 abc-9999-xyz", "403 ***"),
        ("AZURE_STORAGE", "AccountName=a;AccountKey=c2Vj9cmV0;X=y", "bad c2Vj9cmV0", "bad ***"),
        ("PG_CONNINFO", "host=h user=u password=Pa55word99", "no Pa55word99", "no ***"),
    ],
)
def test_passwords_within_values(
    name: str, value: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert without_secrets(text) == expected


HARD = "k\"e\\y/9&<ü+ 7'x"


@pytest.mark.parametrize(
    "written",
    [
        HARD,
        json.dumps(HARD),
        json.dumps(HARD, ensure_ascii=False),
        json.dumps(json.dumps(HARD)),
        repr(HARD),
        quote(HARD, safe=""),
        quote(HARD),
        quote_plus(HARD),
    ],
)
def test_key_is_masked_in_every_form(written: str) -> None:
    masked = Redactor([HARD])(f"the server said {written}.")
    assert "***" in masked
    assert "9" not in masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sent Authorization: Bearer abc", "sent Authorization: Bearer ***"),
        ("{'Authorization': 'Bearer a.b-c_d'}", "{'Authorization': 'Bearer ***'}"),
        (r"{\"authorization\": \"Basic QWxhZGRpbg==\"}", r"{\"authorization\": \"Basic ***\"}"),
        ("Authorization: ab12cd34ef56", "Authorization: ***"),
        ("header bearer eyJhbGciOi1.eyJzdWIi.sig", "header bearer ***"),
        ("authorization=Bearer%20abc123", "authorization=Bearer%20***"),
        ("curl -H 'x-api-key: abcd-1234'", "curl -H 'x-api-key: ***'"),
        ('{"api-key": "abcd-1234"}', '{"api-key": "***"}'),
        ("client(api_key='Zq42canary')", "client(api_key='***')"),
        ("OPENAI_API_KEY=Zq42canary python run.py", "OPENAI_API_KEY=*** python run.py"),
        ("Server=db;Pwd=hunter2canary;", "Server=db;Pwd=***;"),
        ("https://u:PW@h/x", "https://u:***@h/x"),
        ("postgres://u:p@ss@h/x", "postgres://u:***@h/x"),
        ("https://h/?api_key=X&q=cats&token=Y", "https://h/?api_key=***&q=cats&token=***"),
        ("GET /v1?key=AIza-0 HTTP/1.1", "GET /v1?key=*** HTTP/1.1"),
        ("?X-Amz-Signature=0af&X-Amz-Date=1", "?X-Amz-Signature=***&X-Amz-Date=1"),
        ("refused (sk-proj-T3BlbkFJ0canary8Q2w)", "refused (***)"),
        ("sk_live_51canaryH8x2Q7w9", "***"),
        ("token ghp_canary1234567890abcdefABCDEF", "token ***"),
        ("xoxb-1234567890-canaryabcdef", "***"),
        ("AKIACANARY1234567890", "***"),
        ("jwt eyJhbGciOiJcanary.eyJzdWIiOiIxcanary.SflKxwRcanary5", "jwt ***"),
    ],
)
def test_text_with_the_form_of_a_secret_is_masked(text: str, expected: str) -> None:
    assert without_secrets(text) == expected
    assert without_secrets(expected) == expected


PLAIN = """
KeyError: 'api_key'
The api_key client option must be set either by passing api_key to the client or by setting OPENAI_API_KEY
api_key=None, organization=None
OpenAI(api_key=self._api_key)
{"password": "This field may not be blank."}
password: incorrect
Incorrect API key provided. Check it.
unexpected token '}' at position 17
max_tokens=4096 total_tokens: 128000 input_tokens=12 eos_token_id=128009 pad_token='<pad>'
task-1234567890abcdefgh risk-2024-11-16-assessment-report disk-0123456789abcdef
sk-learn, sk-estimator and sk-lego-models are names of packages and of nobody's key
Basic authentication failed; bearer authentication is needed
WWW-Authenticate: Bearer realm="api"
http://127.0.0.1:8080/users/me@example.com
https://h/?q=monkey=1&keyword=a&tokens=5
mail me@example.com at 10:30
""".strip().splitlines()


@pytest.mark.parametrize("text", PLAIN, ids=range(len(PLAIN)))  # pytest puts ids into the environment
def test_ordinary_words_are_not_masked(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("key", ["question1", "queStion", "p@ss!word", "abcdefghijklmnop", "12345678"])
def test_token_like_key_is_masked_in_answers(key: str) -> None:
    assert Redactor([key, "question"]).within({key: f"a question of {key}."}) == {"***": "a question of ***."}


def test_plain_word_key_does_not_change_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL", "documents")
    reply = {"answer": "two documents", "documents": [{"id": "documents", "text": "of documents"}]}
    with chat_server(says=lambda body: reply, bare=True) as server:
        system = endpoint_system(f"http:{server.url}", {"api_key_env": "LOCAL"})
        output = system.run(a_sample())
        system.close()
    assert server.headers[0]["Authorization"] == "Bearer documents"
    (hit,) = output.retrieved
    assert (output.response.text, hit.doc.doc_id) == ("two documents", "documents")


def test_errors_do_not_show_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL", "documents")
    with chat_server(says=lambda body: {"documents": 3, "answer": "x"}, bare=True) as server:
        system = endpoint_system(f"http:{server.url}", {"api_key_env": "LOCAL"})
        with pytest.raises(CallError, match=r"what is under '\*\*\*' is not a list"):
            system.run(a_sample())
        system.close()
