"""Print how well the refusal detector agrees with people, source by source.

    python benchmarks/refusal.py [--data ../shared/data] [--errors SOURCE]

The rules were chosen on one half of the sources. The other half, which comes first, was measured once they
were fixed: its total is the figure to report. Where refusals are labelled, the table has precision and
recall; where a source has only answers (no refusal among them), the false alarms.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from auepora_eval.core.types import Response
from auepora_eval.text.refusal import declines

Labelled = tuple[str, bool]  # an answer, and whether people call it a refusal


class Source(NamedTuple):
    """Answers with labels; `chosen_on` says whether the rules were chosen with a look at them."""

    name: str
    chosen_on: bool
    answers: list[Labelled]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--errors", help="print the errors of a source by its name")
    args = parser.parse_args()
    found = sorted(sources(args.data), key=lambda source: source.chosen_on)
    if not found:
        print(f"There is no data in {args.data}.")
        return 2
    print("| source | half | answers | refusals | precision | recall | false alarms |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for chosen_on in (False, True):
        half = [source for source in found if source.chosen_on == chosen_on]
        whole = Source("**all of this half**", chosen_on, [one for source in half for one in source.answers])
        print(*map(row, [*half, whole]), sep="\n")
    for source in found:
        if source.name == args.errors:
            print(*errors(source), sep="\n")
    return 0


def sources(data: Path) -> Iterator[Source]:
    """Yield every source that is there."""
    for name, chosen_on in (
        ("sharedStore", False),
        ("singleStore", False),
        ("closedBook", True),
        ("oracle", True),
        ("oracle_reverse", True),
    ):
        path = data / "financebench" / "results" / f"gpt-4_{name}.jsonl"
        if path.exists():
            answers = [(str(r["model_answer"]), r["label"] == "Refusal") for r in records(path)]
            yield Source(f"FinanceBench, GPT-4 {name}", chosen_on, answers)
    yield from mtrag(data / "mtrag" / "reference_subset_with_human_evaluations.json")
    for name, chosen_on, file, texts in (
        ("CLAP NQ, gold answers", False, "clapnq/clapnq_dev_answerable.jsonl", clapnq),
        ("AttributionBench dev, claims", False, "attributionbench/dev_all_subset_balanced.jsonl", claims),
        ("SQuAD 1.1 dev, gold answers", True, "squad/squad_v1_dev_qa.jsonl", squad),
        ("PubMedQA, conclusions", True, "pubmedqa/ori_pqal.json", pubmedqa),
    ):
        path = data / file
        if path.exists():
            yield Source(name, chosen_on, [(text, False) for text in texts(path)])


def mtrag(path: Path) -> Iterator[Source]:
    if not path.exists():
        return
    document = json.loads(path.read_text("utf-8"))
    kinds = {task["task_id"]: task["Answerability"] for task in document["tasks"]}
    people: list[Labelled] = []
    models: list[Labelled] = []
    for each in document["evaluations"]:
        kind = kinds[each["task_id"]]
        if kind not in (["ANSWERABLE"], ["UNANSWERABLE"]):
            continue
        unanswerable = kind == ["UNANSWERABLE"]
        if each["model_id"] == "reference":
            people.append((each["model_response"], unanswerable))
            continue
        # 1 if a model of the authors found that the answer declines where it should, and only there.
        is_right = each["annotations"]["conditional_idk"]["composite"]["value"] == 1
        models.append((each["model_response"], is_right == unanswerable))
    yield Source("MTRAG, answers written by people", False, people)
    yield Source("MTRAG, two models, labelled by its authors' model", False, models)


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
    pairs = [(declines(Response(text)), label) for text, label in source.answers]
    both = sum(declined and label for declined, label in pairs)
    declined_count, refusals = sum(declined for declined, _ in pairs), sum(label for _, label in pairs)
    precision = f"{both / declined_count:.3f}" if refusals and declined_count else "-"
    recall = f"{both / refusals:.3f}" if refusals else "-"
    half = "chosen on" if source.chosen_on else "held out"
    cells = [source.name, half, f"{len(pairs):,}", refusals, precision, recall, declined_count - both]
    return f"| {' | '.join(map(str, cells))} |"


def errors(source: Source) -> Iterable[str]:
    """Yield the answers on which people and the detector disagree."""
    for text, label in source.answers:
        if declines(Response(text)) != label:
            yield f"{'missed' if label else 'false alarm'}: {' '.join(text.split())[:600]}"


if __name__ == "__main__":
    raise SystemExit(main())
