"""Record what a real small model says about 100 claims: `python -m tests.judges.record_cassette`.

The claims are sentences of the bundled demo documents (ours), half as they are, half with another number. The
model is that of `benchmarks/local_model`: it has to be installed. Recording takes about ten minutes. It is
needed again when a prompt of the judge changes, since the identity of the judge changes with it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

from auepora_eval.cli.main import main
from auepora_eval.demo.world import demo_corpus
from auepora_eval.store.database import Database
from auepora_eval.text.sentences import sentences
from benchmarks.local_model import local_model
from tests.builders import plan

CASSETTE = Path(__file__).parents[1] / "golden/judge_cassette"
SAMPLES, PREDICTIONS, LABELS = "samples.jsonl", "predictions.jsonl", "labels.jsonl"
COUNT = 100
_NUMBER = re.compile(r"\b\d{1,4}\b")
_LONGEST = 18  # words of a sentence


def altered_claims() -> Iterator[tuple[str, str, bool]]:
    """Yield (passage, claim, whether the passage supports it): every other claim has a wrong number.

    Passage and claim are short, so that a small model on one processor can judge some in a minute.
    """
    is_supported = True
    for document in demo_corpus():
        for sentence, following in pairwise(sentences(document.text)):
            if not _NUMBER.search(sentence) or len(sentence.split()) < 5:
                continue
            if max(len(sentence.split()), len(following.split())) > _LONGEST:
                continue
            wrong = _NUMBER.sub(lambda match: str(int(match[0]) + 3), sentence, count=1)
            yield f"{sentence} {following}", sentence if is_supported else wrong, is_supported
            is_supported = not is_supported


def write_material(folder: Path) -> None:
    """Write the samples, the answers with one claim each, and the labels."""
    lines: dict[str, list[str]] = {SAMPLES: [], PREDICTIONS: [], LABELS: []}
    for number, (passage, claim, is_supported) in enumerate(islice(altered_claims(), COUNT)):
        retrieved = [{"doc_id": f"d{number:03}", "text": passage}]
        of_sample = {"sample_id": f"c{number:03}"}
        for name, record in (
            (SAMPLES, {**of_sample, "query": "What do the documents say?"}),
            (PREDICTIONS, {**of_sample, "retrieved": retrieved, "answer": claim}),
            (LABELS, {"evidence": passage, "claim": claim, "label": int(is_supported)}),
        ):
            lines[name].append(json.dumps(record, ensure_ascii=False) + "\n")
    for name, written in lines.items():
        (folder / name).write_text("".join(written), encoding="utf-8")


def score(folder: Path, out: Path) -> int:
    """Store the answers as the run `cassette`."""
    files = ("--dataset", str(folder / SAMPLES), "--outputs", str(folder / PREDICTIONS))
    metrics = ("--metrics", "non_answer_rate", "--name", "sentences")
    return main(["score", *files, *metrics, "--id", "cassette", "--out", str(out)])


def record() -> None:
    CASSETTE.mkdir(exist_ok=True)
    write_material(CASSETTE)
    with tempfile.TemporaryDirectory() as name, local_model() as model:
        out = Path(name)
        score(CASSETTE, out)
        judge = ("--judge", model, "--mode", "label", "--concurrency", "1", *plan(out, judge_timeout=600))
        measure = ("--probe", "--calibrate", str(CASSETTE / LABELS))
        main(["judge", "cassette", *judge, *measure, "--out", str(out)])
        with Database.read(out / "cassette.run.db") as database:
            replies = database.select("SELECT reply FROM call WHERE kind = 'judge' ORDER BY n")
            lines = "".join(f"{reply}\n" for (reply,) in replies)
            (CASSETTE / "verdicts.jsonl").write_text(lines, encoding="utf-8")
            (CASSETTE / "judge.json").write_text(json.dumps(database.meta("judge")), encoding="utf-8")


if __name__ == "__main__":
    record()
