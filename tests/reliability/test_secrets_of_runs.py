"""Keys in the environment, headers and exceptions are never written or printed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan
from tests.servers import chat_server

CANARY = "sk-Canary+/7Zq42=xyzzy"
FORMS = {CANARY, quote(CANARY, safe=""), json.dumps(CANARY)[1:-1], "canary-"}

SYSTEM = """
import os

def talkative(query):
    raise RuntimeError(f"401 for key {os.environ['PROVIDER_API_KEY']} in {dict(os.environ)}, sent "
        "Authorization: Bearer canary-bearer-8 to https://u:canary-user-9@h/?api_key=canary-query-10")

def chained(query):
    try:
        talkative(query)
    except RuntimeError as error:
        raise ConnectionError(f"retrying failed: {error!r}") from error
"""


def hits(folder: Path, *texts: str) -> list[str]:
    """Where a form of the key stands: files under the folder, and texts."""
    found = [f"text {n}" for n, text in enumerate(texts) if any(form in text for form in FORMS)]
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content += gzip.decompress(content) if content[:2] == b"\x1f\x8b" else b""
            found += [str(path) for form in FORMS if form.encode() in content]
    return found


def test_search_finds_a_written_key(tmp_path: Path) -> None:
    (tmp_path / "zipped").write_bytes(gzip.compress(CANARY.encode()))
    assert len(hits(tmp_path, f"url?key={quote(CANARY, safe='')}", "nothing")) == 2


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    lines = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(6)]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", CANARY)


@pytest.mark.parametrize("mode", ["ok", "echo", "401", "redirect", "garbage"])
@pytest.mark.parametrize("kind", ["openai", "http"])
def test_sent_key_is_not_stored(
    mode: str, kind: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with chat_server(
        [mode], says=lambda body: {"answer": "a"} if kind == "http" else "a", bare=kind == "http"
    ) as server:
        name = f"openai:{server.url}#m" if kind == "openai" else f"http:{server.url}/ask"
        asked = ["run", "--dataset", dataset, "--system", name, "--api-key-env", "PROVIDER_API_KEY"]
        main([*asked, "--out", str(out), "--metrics", "exact_match", *plan(tmp_path, retries=1), "--id", "r"])
        assert server.headers[0]["Authorization"] == f"Bearer {CANARY}"
    said = capsys.readouterr()
    assert list(out.iterdir())
    assert hits(out, said.out, said.err) == []


@pytest.mark.parametrize("mode", ["ok", "401", "redirect"])
def test_key_in_a_custom_header_is_not_stored(
    mode: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = tmp_path / "out", tmp_path / "plan.config.yaml"
    with chat_server([mode], says=lambda body: {"answer": "a"}, bare=True) as server:
        lines = [f"dataset: {dataset}", f"system: http:{server.url}/ask", "metrics: [exact_match]"]
        lines += ["headers: {x-api-key: 'env:PROVIDER_API_KEY'}", "retries: 1"]
        plan.write_text("\n".join(lines), encoding="utf-8")
        main(["run", "--config", str(plan), "--out", str(out), "--id", "r"])
        assert server.headers[0]["x-api-key"] == CANARY
    said = capsys.readouterr()
    assert hits(out, said.out, said.err) == []


@pytest.mark.parametrize("attribute", ["talkative", "chained"])
@pytest.mark.parametrize("executor", ["serial", "threads", "processes"])
def test_keys_in_exceptions_of_a_system_are_not_stored(
    attribute: str,
    executor: str,
    dataset: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "leaky.py").write_text(SYSTEM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    asked = ["run", "--dataset", dataset, "--system", f"leaky.py:{attribute}", "--executor", executor]
    code = main([*asked, "--out", str(out), "--metrics", "exact_match", "--id", "r"])
    said = capsys.readouterr()
    assert code == 3  # every call failed
    assert "***" in said.out
    assert hits(out, said.out, said.err) == []


def test_key_instead_of_its_variable_name_is_not_printed(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--dataset", dataset, "--system", "http:http://127.0.0.1:9/ask"]
    asked += ["--out", str(tmp_path / "o")]
    assert main([*asked, "--api-key-env", CANARY]) == 2
    said = capsys.readouterr()
    assert hits(tmp_path / "o", said.out, said.err) == []


def test_spans_contain_no_key(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaky.py").write_text(SYSTEM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    asked = ["run", "--dataset", dataset, "--system", "leaky.py:chained", "--out", str(out)]
    asked += plan(retries=1)
    asked += ["--metrics", "exact_match", "--id", "r"]
    main(asked)
    main(["show", "r", "--out", str(out), "--spans", str(out / "spans.jsonl")])
    said = capsys.readouterr()
    assert "resourceSpans" in (out / "spans.jsonl").read_text(encoding="utf-8")
    assert hits(out, said.out, said.err) == []


def test_load_error_shows_no_secret(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text(
        'import os\nraise ValueError(os.environ["PROVIDER_API_KEY"])\n', encoding="utf-8"
    )
    assert main(["run", "--dataset", dataset, "--system", "broken.py:f", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "***" in said.err
    assert CANARY not in said.err


def test_traceback_shows_no_secret(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.py").write_text(
        "import os\nfrom auepora_eval.core.metrics_base import Metric\n"
        "class Odd:\n"
        "    def run(self, sample, *, top_k=5):\n        return 'a'\n"
        "    @property\n"
        "    def name(self):\n        raise LookupError(os.environ['PROVIDER_API_KEY'])\n",
        encoding="utf-8",
    )
    assert main(["run", "--dataset", dataset, "--system", "odd.py:Odd", "--out", "out"]) == 2
    said = capsys.readouterr()
    assert "LookupError: ***" in said.err
    assert CANARY not in said.err


def test_answers_are_stored_unchanged(dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "Send Authorization: Bearer abc123def to https://u:pw@h/?key=1"
    monkeypatch.chdir(tmp_path)
    Path("calm.py").write_text(f"def says(query):\n    return {answer!r}\n", encoding="utf-8")
    flags = ["--metrics", "exact_match", "--id", "r", "--out", "out"]
    assert main(["run", "--dataset", dataset, "--system", "calm.py:says", *flags]) == 0
    assert answer.encode() in Path("out/r.run.db").read_bytes()
