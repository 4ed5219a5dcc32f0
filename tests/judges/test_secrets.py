"""A key never leaves the memory, whatever the server says, and texts of any script survive the whole way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.errors import DataError
from auepora_eval.judges.jury import judge_named
from tests.builders import plan
from tests.judges.functions import book_of
from tests.judges.killed_judge import RUN, judge_words, prepare
from tests.judges.scripted import Material, judge_server, material_of
from tests.servers import chat_server, completion

KEY = "sk-" + "q7Zp" * 8


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("mode", ["label", "logprob"])
@pytest.mark.parametrize("server_mode", ["echo", "401", "echoed verdict"])
def test_a_key_is_written_nowhere(
    mode: str,
    server_mode: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The servers repeat the key: as the reply, in an error, or as quote, model and fingerprint."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", KEY)
    prepare(limit=3)

    def repeats(body: dict[str, Any]) -> dict[str, Any]:
        said = {"number": 1, "quote": f"your key is {KEY}", "verdict": "unmentioned"}
        reply = completion(json.dumps({"verdicts": [{**said, "number": number} for number in range(1, 9)]}))
        top = [{"token": "no", "logprob": -0.01}]
        token = {"token": "no", "logprob": -0.01, "top_logprobs": top}
        reply["choices"][0]["logprobs"] = {"content": [token]} if body.get("logprobs") else None
        return {**reply, "model": f"m-{KEY}", "system_fingerprint": KEY}

    modes = ["ok" if server_mode == "echoed verdict" else server_mode]
    with chat_server(modes, says=repeats, bare=True) as server:
        words = judge_words(server.url)
        words[words.index("label")] = mode
        code = main([*words, "--api-key-env", "JUDGE_KEY", *plan(tmp_path, judge_retries=0)])
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    printed = capsys.readouterr()
    assert (code == 0) == (server_mode == "echoed verdict"), printed.err
    assert KEY not in printed.out + printed.err
    assert KEY.encode() not in everything_in(tmp_path)


@pytest.mark.parametrize(
    "name", ["http://127.0.0.1:1/v1?api_key=K#m", "jury:[http://127.0.0.1:1/v1?api_key=K#m]"]
)
def test_a_key_in_the_url_of_a_judge_is_refused_since_its_name_is_stored(name: str) -> None:
    with pytest.raises(DataError, match="seems to hold a key"):
        judge_named(name)


def test_texts_of_other_scripts_are_judged_and_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    passages = {
        "ja": "渡船は正午に出発します。所要時間は四十分です。",
        "ar": "تغادر العبّارة عند الظهر. تستغرق الرحلة أربعين دقيقة.",
        "hi": "नौका दोपहर को निकलती है। यात्रा में चालीस मिनट लगते हैं।",
        "ru": "Паром отходит в полдень. Дорога занимает сорок минут.",
    }
    claims = {
        "ja": "渡船は正午に出発します。",
        "ar": "تغادر العبّارة عند الظهر.",
        "hi": "नौका दोपहर को निकलती है।",
        "ru": "Паром отходит в полночь.",
    }
    lines = [{"sample_id": name, "query": passage} for name, passage in passages.items()]
    outputs = [
        {"sample_id": name, "retrieved": [{"doc_id": f"{name}-1", "text": passages[name]}], "answer": claim}
        for name, claim in claims.items()
    ]
    for file, records in (("samples.jsonl", lines), ("outputs.jsonl", outputs)):
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        Path(file).write_text(text, encoding="utf-8")

    def said(material: Material) -> str:
        return "yes" if material["claim"].rstrip("。.।") in material["passage"] else "no"

    files = ["--dataset", "samples.jsonl", "--outputs", "outputs.jsonl", "--metrics", "non_answer_rate"]
    assert main(["score", *files, "--id", RUN, "--out", "runs"]) == 0
    with judge_server(said) as server:
        assert main(judge_words(server.url)) == 0
        asked = [material_of(body) for body in server.requests]
    assert {material["passage 1"] for material in asked} == set(passages.values())
    verdicts = book_of(Path(f"runs/{RUN}.run.db")).values()
    by_sample = {verdict.about["sample_id"]: verdict for verdict in verdicts}
    assert {name: one.score for name, one in by_sample.items()} == {"ja": 1, "ar": 1, "hi": 1, "ru": 0}
    assert by_sample["ja"].parts[0].quote == passages["ja"]
    capsys.readouterr()
    assert main(["show", RUN, "--sample", "ja", "--out", "runs"]) == 0
    assert "渡船は正午に出発します" in capsys.readouterr().out
