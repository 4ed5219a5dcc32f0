"""Tasks of a language model as raw records of `offline_dataset.jsonl`, in the shape of the tasks by rule."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from .candidates import Candidate
from .chunks import CutDocument
from .english import DATE, NUMBER
from .llm_plan import Call
from .llm_replies import find_quote
from .llm_tasks import Made
from .passage_search import PassageSearch
from .question_checks import key_terms
from .tasks import Shown, Task, raw_record
from .variants import Base, twins
from .vocabulary import Vocabulary, vocabulary_of

SHOWN = 4
_NEAR = 0.8
_QUERY_TYPES = {"qa": "factual", "summaries": "summary", "citations": "citation"}


class ModelRecords:
    """The records of a generation; counts what it leaves out and how easily the questions are found.

    A question that was there already in other words is left out. What a question shows is what BM25 finds for
    it, with the passage that holds the answer; a summary and an answer with marks [n] show what it saw. Of
    the questions whose answer stands in the text letter by letter a share get twins, as those by rule do.
    """

    def __init__(
        self,
        made: Made,
        documents: Sequence[CutDocument],
        *,
        variants: Sequence[str] = (),
        variant_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._made, self._documents, self._seed = made, documents, seed
        self._documents_by_name = {document.source.name: document for document in documents}
        self._variants, self._variant_share = variants, variant_share
        self._search = PassageSearch([chunk for document in documents for chunk in document.chunks])
        self._vocabulary = vocabulary_of(documents) if variants else Vocabulary()
        self._people = sorted(self._vocabulary.people)
        self._start()

    def _start(self) -> None:
        self.tasks: Counter[str] = Counter()
        self.scenarios: Counter[str] = Counter()
        self.not_made: Counter[str] = Counter()
        self.questions = self.near_duplicates = self.found_first = self.never_found = 0
        self._facts = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._start()
        asked: dict[str, list[set[str]]] = defaultdict(list)
        everywhere: set[tuple[str, str]] = set()
        for call, answer, task in self._made.accepted():
            document = self._documents[call.document_index]
            terms, near = key_terms(task["instruction"]), asked[document.source.name]
            flat = (call.task_type, " ".join(task["instruction"].lower().split()))
            if flat in everywhere or (call.task_type == "qa" and _is_near(terms, near)):
                self.near_duplicates += 1
                continue
            everywhere.add(flat)
            if call.task_type == "qa":
                near.append(terms)
            for each in self._tasks(call, document, task):
                place = {"document_index": call.document_index, "task_index": self.tasks.total()}
                record = raw_record(each, run_id=answer["run_id"], **place)
                record["metadata"].update(_about(answer, task, document.source.name))
                self.tasks[each.task_type] += 1
                self.scenarios[each.labels["scenario"]] += 1
                yield record

    def _tasks(self, call: Call, document: CutDocument, task: dict[str, Any]) -> Iterator[Task]:
        """A task, and its twins if it is a question that gets some."""
        base = self._task(call, document, task)
        yield base
        self.questions += call.task_type == "qa"
        if base.span is None or not self._variants:
            return
        self._facts += 1
        if math.ceil(self._facts * self._variant_share) == math.ceil((self._facts - 1) * self._variant_share):
            return
        made_from = Base(
            base, self._candidate(base, task), document, self._search, self._vocabulary, self._people
        )
        for twin in twins(made_from, self._variants, self._seed):
            if isinstance(twin, str):
                self.not_made[twin] += 1
            else:
                yield twin

    def _candidate(self, base: Task, task: dict[str, Any]) -> Candidate:
        """The question as the makers of twins know it."""
        start, end = base.span or (0, 0)
        text = self._documents_by_name[base.document].source.text[start:end]
        evidence = task["evidence"][0]
        kind = "text"
        if DATE.search(text):
            kind = "date"
        elif re.search(rf"\b{NUMBER}\b", text, re.IGNORECASE):
            kind = "number"
        elif text in self._vocabulary.people:
            kind = "name"
        span = (evidence["start"], evidence["end"])
        return Candidate("model", base.instruction, text, base.document, start, end, span, kind)

    def _task(self, call: Call, document: CutDocument, task: dict[str, Any]) -> Task:
        gold = list(dict.fromkeys(evidence["chunk"] for evidence in task["evidence"]))
        evidence = task["evidence"][0]
        if call.task_type == "qa":
            held = document.chunks_with(evidence["start"], evidence["end"])
            gold = [chunk.id for chunk in held]
            shown = self._found(task["instruction"], gold, Shown(held[0]))
        else:
            shown = [Shown(chunk) for chunk in call.chunks]
        return Task(
            call.task_type,
            "model",
            task["instruction"],
            task["response"],
            document.source.name,
            document.source.source_path,
            tuple(shown),
            tuple(gold),
            {"scenario": "base", "answerable": True, "query_type": _QUERY_TYPES[call.task_type]},
            span=_answer_span(document, evidence, task["response"]) if call.task_type == "qa" else None,
            checks={"evidence_exact": True, "support": task["support"]},
            closed=_is_closed(call, document),
        )

    def _found(self, question: str, gold: Sequence[str], needed: Shown) -> list[Shown]:
        ranked = self._search.ranked(question)
        rank = next((place for place, (chunk, _) in enumerate(ranked, start=1) if chunk.id in gold), None)
        self.found_first += rank == 1
        self.never_found += rank is None
        shown = [Shown(chunk, score) for chunk, score in ranked[:SHOWN]]
        return shown if rank and rank <= SHOWN else [*shown[: SHOWN - 1], needed]


def _is_closed(call: Call, document: CutDocument) -> bool:
    """Whether a task is about the passages shown, not about the corpus: marks, and a part of a document."""
    if call.task_type == "summaries":
        return len(call.chunks) < len(document.chunks)
    return call.task_type == "citations"


def _is_near(terms: set[str], others: Sequence[set[str]]) -> bool:
    return any(len(terms & other) >= _NEAR * max(1, len(terms | other)) for other in others)


def _answer_span(document: CutDocument, evidence: dict[str, Any], answer: str) -> tuple[int, int] | None:
    """Where the answer itself stands, if it stands there letter by letter."""
    span = find_quote(answer, document.source.text[evidence["start"] : evidence["end"]])
    return (evidence["start"] + span[0], evidence["start"] + span[1]) if span else None


def _about(answer: dict[str, Any], task: dict[str, Any], document: str) -> dict[str, Any]:
    """Which model said it, and what it took."""
    return {
        "generator_model": answer["model"],
        "evidence_spans": [
            {"document": document, "start": evidence["start"], "end": evidence["end"]}
            for evidence in task["evidence"]
        ],
        "generator_metadata": {
            **{name: answer[name] for name in ("prompt_sha256", "calls", "attempts", "tokens", "cost")},
            "warnings": task["warnings"],
        },
    }
