"""Print which LLM-free signal sees which failure: AUROC of faithful answers against edited ones.

    python benchmarks/grounding.py [--data ../shared/data]

The faithful answers are CLAP NQ's gold answers with their passages, and MTRAG's answers that about three
people rated faithful (a mean of at least 3.5 of 4). Each edit changes one thing. 0.5 is chance, 1 sees every
edit, below 0.5 the edited answers score higher. The numbers in brackets are the answers that an edit applies
to and that the metric scores before and after.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from scipy.stats import rankdata

from auepora_eval.core.metrics_base import SampleMetric, parse_metric
from auepora_eval.core.scores import Batch
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.text.sentences import sentences

SIGNALS = (
    "grounding_overlap",
    "grounding_bigrams",
    "best_sentence_overlap",
    "lexical_consistency",
    "number_support",
    "name_support",
)
FAITHFUL = 3.5
FEWEST = 20  # answers for a figure
_VERB = re.compile(r"\b(is|are|was|were|can|will|would|has|have|had|does|did|may|could)\b(?! not|n't)")
_NUMBER = re.compile(r"(?<![\[\d])\d[\d,.]*(?<=\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_TURNED = {
    **{"increase": "decrease", "increased": "decreased", "increases": "decreases", "rise": "fall"},
    **{"rose": "fell", "higher": "lower", "more": "less", "before": "after", "high": "low", "first": "last"},
    **{"up": "down", "positive": "negative", "largest": "smallest", "most": "least", "north": "south"},
}
_DIRECTION = re.compile(rf"\b({'|'.join([*_TURNED, *_TURNED.values()])})\b")


class Answer(NamedTuple):
    """A faithful answer and its documents."""

    text: str
    documents: list[str]


Edit = Callable[[Answer, Answer], str | None]  # an answer and another one; None where it does not apply


def negated(answer: Answer, other: Answer) -> str | None:
    return _VERB.sub(r"\1 not", answer.text, count=1) if _VERB.search(answer.text) else None


def turned(answer: Answer, other: Answer) -> str | None:
    back = {new: old for old, new in _TURNED.items()}
    match = _DIRECTION.search(answer.text)
    if match is None:
        return None
    word = match[0]
    return answer.text[: match.start()] + (_TURNED.get(word) or back[word]) + answer.text[match.end() :]


def other_number(answer: Answer, other: Answer) -> str | None:
    match = _NUMBER.search(answer.text)
    if match is None:
        return None
    changed = match[0][:-1] + str((int(match[0][-1]) + 3) % 10)
    return answer.text[: match.start()] + changed + answer.text[match.end() :]


def other_name(answer: Answer, other: Answer) -> str | None:
    name, replacement = _NAME.search(answer.text), _NAME.search(other.text)
    if name is None or replacement is None or name[0] == replacement[0]:
        return None
    return answer.text.replace(name[0], replacement[0])


def swapped_names(answer: Answer, other: Answer) -> str | None:
    names = list(dict.fromkeys(_NAME.findall(answer.text)))
    if len(names) < 2:
        return None
    first, last = names[0], names[-1]
    return re.sub(rf"\b({first}|{last})\b", lambda m: last if m[0] == first else first, answer.text)


def with_an_invention(answer: Answer, other: Answer) -> str | None:
    return f"{answer.text} {sentences(other.text)[0]}"


def another_answer(answer: Answer, other: Answer) -> str | None:
    return other.text


EDITS: dict[str, Edit] = {
    "negated": negated,
    "direction turned (rose, fell)": turned,
    "another number": other_number,
    "another name": other_name,
    "two names swapped": swapped_names,
    "an invented sentence added": with_an_invention,
    "an answer to another question": another_answer,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    data = parser.parse_args().data
    metrics = [parse_metric(name) for name in SIGNALS]
    for name, answers in (("CLAP NQ", list(clapnq(data))), ("MTRAG", list(mtrag(data)))):
        if not answers:
            print(f"{name}: no data in {data}")
            continue
        print(f"\n{name}, {len(answers)} faithful answers\n")
        print(f"| failure | {' | '.join(SIGNALS)} |")
        print(f"|---|{'---:|' * len(SIGNALS)}")
        others = answers[:]
        random.Random(0).shuffle(others)
        for failure, edit in EDITS.items():
            print(f"| {failure} | {' | '.join(cell(m, answers, others, edit) for m in metrics)} |")
    return 0


def clapnq(data: Path) -> Iterator[Answer]:
    path = data / "clapnq" / "clapnq_dev_answerable.jsonl"
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        record = json.loads(line)
        text = record["output"][0]["answer"]
        if text not in ("", "NA"):
            yield Answer(text, [passage["text"] for passage in record["passages"]])


def mtrag(data: Path) -> Iterator[Answer]:
    path = data / "mtrag" / "reference_subset_with_human_evaluations.json"
    if not path.exists():
        return
    document: Any = json.loads(path.read_text("utf-8"))
    texts = {each["document_id"]: each["text"] for each in document["documents"]}
    contexts = {
        task["task_id"]: [texts[context["document_id"]] for context in task["contexts"]]
        for task in document["tasks"]
    }
    for each in document["evaluations"]:
        ratings = [float(rating["value"]) for rating in each["annotations"]["faithfulness"].values()]
        if ratings and fmean(ratings) >= FAITHFUL and contexts[each["task_id"]]:
            yield Answer(each["model_response"], contexts[each["task_id"]])


def cell(metric: SampleMetric, answers: Sequence[Answer], others: Sequence[Answer], edit: Edit) -> str:
    """Return the AUROC of a metric for an edit, and how many answers it is based on."""
    pairs = [
        (answer, Answer(edited, answer.documents))
        for answer, other in zip(answers, others, strict=True)
        if answer is not other and (edited := edit(answer, other)) is not None
    ]
    faithful, edited_scores = (scores(metric, [pair[place] for pair in pairs]) for place in (0, 1))
    measured = [
        (before, after)
        for before, after in zip(faithful, edited_scores, strict=True)
        if before is not None and after is not None
    ]
    count = len(measured)
    if count < FEWEST:
        return f"- ({count})"
    ranks = rankdata([before for before, _ in measured] + [after for _, after in measured])
    auroc = (ranks[:count].sum() - count * (count + 1) / 2) / count**2
    return f"{auroc:.2f} ({count})"


def scores(metric: SampleMetric, answers: Sequence[Answer]) -> list[float | None]:
    outputs = [
        SystemOutputs(
            [RetrievedDocument(Document(str(n), text), 1.0, n) for n, text in enumerate(documents, start=1)],
            Response(text),
        )
        for text, documents in answers
    ]
    samples = [EvaluationSample(str(n), "q") for n in range(len(answers))]
    return [score.value for score in metric.score_batch(Batch(samples, outputs))]


if __name__ == "__main__":
    raise SystemExit(main())
