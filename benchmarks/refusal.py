"""Print how well the refusal detector agrees with people, source by source.

    python benchmarks/refusal.py [--data ../shared/data] [--errors SOURCE]

The sources on which no phrase was developed come first. Where people labelled refusals, the table has
precision and recall; where a source has only answers (no refusal among them), the false alarms.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from auepora_eval.core.types import Response
from auepora_eval.text.refusal import refusal

Labelled = tuple[str, bool]  # an answer, and whether people call it a refusal


class Source(NamedTuple):
    """Answers with labels; `developed` says whether phrases were written with a look at them."""

    name: str
    developed: bool
    answers: list[Labelled]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--errors", help="print the errors of a source by its name")
    args = parser.parse_args()
    found = sorted(sources(args.data), key=lambda source: source.developed)
    if not found:
        print(f"There is no data in {args.data}.")
        return 2
    print("| source | developed on | answers | refusals | precision | recall | false alarms |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for source in found:
        print(row(source))
    for source in found:
        if source.name == args.errors:
            print(*errors(source), sep="\n")
    return 0


def sources(data: Path) -> Iterator[Source]:
    """Yield every source that is there."""
    for name, developed in (
        ("sharedStore", False),
        ("singleStore", True),
        ("closedBook", True),
        ("oracle", True),
        ("oracle_reverse", True),
    ):
        path = data / "financebench" / "results" / f"gpt-4_{name}.jsonl"
        if path.exists():
            answers = [(str(r["model_answer"]), r["label"] == "Refusal") for r in records(path)]
            yield Source(f"FinanceBench, GPT-4 {name}", developed, answers)
    yield from mtrag(data / "mtrag" / "reference_subset_with_human_evaluations.json")
    for name, developed, file, texts in (
        ("CLAP NQ, gold answers", False, "clapnq/clapnq_dev_answerable.jsonl", clapnq),
        ("AttributionBench dev, claims", False, "attributionbench/dev_all_subset_balanced.jsonl", claims),
        ("SQuAD 1.1 dev, gold answers", True, "squad/squad_v1_dev_qa.jsonl", squad),
        ("PubMedQA, conclusions", True, "pubmedqa/ori_pqal.json", pubmedqa),
    ):
        path = data / file
        if path.exists():
            yield Source(name, developed, [(text, False) for text in texts(path)])


def mtrag(path: Path) -> Iterator[Source]:
    if not path.exists():
        return
    document = json.loads(path.read_text("utf-8"))
    kinds = {task["task_id"]: task["Answerability"] for task in document["tasks"]}
    answers = [
        (e["model_response"], kinds[e["task_id"]] == ["UNANSWERABLE"])
        for e in document["evaluations"]
        if e["model_id"] == "reference" and kinds[e["task_id"]] in (["ANSWERABLE"], ["UNANSWERABLE"])
    ]
    yield Source("MTRAG, answers written by people", True, answers)


def clapnq(path: Path) -> Iterator[str]:
    return (
        output["answer"]
        for record in records(path)
        for output in record["output"]
        if output["answer"] not in ("", "NA")
    )


def claims(path: Path) -> Iterator[str]:
    return (record["claim"] for record in records(path))


def squad(path: Path) -> Iterator[str]:
    return (text for record in records(path) for text in flat(record["answers"]))


def pubmedqa(path: Path) -> Iterator[str]:
    return (record["LONG_ANSWER"] for record in json.loads(path.read_text("utf-8")).values())


def records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def flat(answers: Any) -> Iterator[str]:
    if isinstance(answers, str):
        yield answers
    elif isinstance(answers, dict):
        yield answers["text"]
    else:
        for answer in answers:
            yield from flat(answer)


def row(source: Source) -> str:
    """Return the line of a source in the table."""
    pairs = [(refusal(Response(text)).declined, label) for text, label in source.answers]
    both = sum(declined and label for declined, label in pairs)
    declined_count, refusals = sum(declined for declined, _ in pairs), sum(label for _, label in pairs)
    precision = f"{both / declined_count:.3f}" if refusals and declined_count else "-"
    recall = f"{both / refusals:.3f}" if refusals else "-"
    developed = "yes" if source.developed else "no"
    cells = [source.name, developed, f"{len(pairs):,}", refusals, precision, recall, declined_count - both]
    return f"| {' | '.join(map(str, cells))} |"


def errors(source: Source) -> Iterable[str]:
    """Yield the answers on which people and the detector disagree."""
    for text, label in source.answers:
        check = refusal(Response(text))
        if check.declined != label:
            yield f"{'missed' if label else 'false alarm'} ({check.because}): {' '.join(text.split())[:600]}"


if __name__ == "__main__":
    raise SystemExit(main())
