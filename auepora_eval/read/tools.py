"""Documents of other evaluation tools as flat rows, which `read.fields` reads.

Each tool is one row of `TOOLS`: how its files start, and a function that yields flat rows. A row has our
field names, or names of the table in `read.fields`; the rest of it becomes metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DataError, warn_user
from .fields import ReadingNote
from .text import parse_json

Row = dict[str, Any]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> Iterator[Row]:
    return (one for one in _list(value) if isinstance(one, dict))


_CHECKED_CLAIMS = {
    "answer_in_reference": "answer2response",
    "reference_in_answer": "response2answer",
    "answer_in_documents": "retrieved2response",
    "reference_in_documents": "retrieved2answer",
}


def _ragchecker(document: Any, where: str) -> Iterator[Row]:
    """Yield the answers; claims that RAGChecker has checked are those of our claim metrics."""
    for row in _objects(_object(document).get("results")):
        checked = {
            name: [_entailed(verdict) for verdict in _list(row[key])]
            for name, key in _CHECKED_CLAIMS.items()
            if key in row
        }
        yield {**row, "checked_claims": checked} if checked else row


def _entailed(verdict: Any) -> Any:
    """Return whether a claim is entailed, for one text or for each document."""
    if isinstance(verdict, list):
        return [each == "Entailment" for each in verdict]
    return verdict == "Entailment"


_SNAKE = {
    "actualOutput": "actual_output",
    "expectedOutput": "expected_output",
    "retrievalContext": "retrieval_context",
    "toolsCalled": "tools_called",
    "expectedTools": "expected_tools",
}


def _deepeval_run(document: Any, where: str) -> Iterator[Row]:
    """Yield the test cases of a run; a case has no id of its own, only its place."""
    for case in _objects(_object(document).get("testCases")):
        yield {_SNAKE.get(name, name): value for name, value in case.items()}


def _deepeval_conversations(document: Any, where: str) -> Iterator[Row]:
    """Yield the last question of each conversation, and the turns before it."""
    for golden in _objects(document):
        turns = golden.get("turns")
        if isinstance(turns, str):
            turns = parse_json(turns.encode(), f"{where}: turns")
        others = {name: value for name, value in golden.items() if name not in ("turns", "expected_outcome")}
        yield {
            "query": turns or golden.get("scenario"),
            "reference_answer": golden.get("expected_outcome"),
            "metadata": others,
        }


# promptfoo: what an assert says about the right answer, by its type.
_WHOLE_ASSERTS = ("equals", "factuality", "model-graded-closedqa")
_PART_ASSERTS = ("contains", "icontains", "contains-all", "icontains-all")
_ANY_ASSERTS = ("contains-any", "icontains-any")
_TYPED = r"(?s)(?=(?:not-)?is-|.*:)(?P<type>(?:not-)?[a-z]+(?:-[a-z]+)*)(?:\([^)]*\))?(?::(?P<value>.*))?"
_ALIASES = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}


def _promptfoo(document: Any, where: str) -> Iterator[Row]:
    """Yield the tests of a configuration."""
    tests = _object(document).get("tests")
    if isinstance(tests, str):
        raise DataError(where, f"its tests are in {tests!r:.80}.", fix="Name that file instead.")
    default = _object(_object(document).get("defaultTest"))
    for test in _objects(tests):
        asserts = [*_objects(default.get("assert")), *_objects(test.get("assert"))]
        variables = {**_object(default.get("vars")), **_object(test.get("vars"))}
        yield {**_question(variables), **_expected(asserts, test.get("metadata"))}


def _question(variables: Row) -> Row:
    """Return the variables of a prompt: the only one is the question, and `context` holds candidates."""
    row = dict(variables)
    if (context := row.pop("context", None)) is not None:
        row["candidate_docs"] = context if isinstance(context, list) else [context]
    if len(row) - ("candidate_docs" in row) == 1:
        name = next(name for name in row if name != "candidate_docs")
        row["query"] = row.pop(name)
    return row


def promptfoo_table(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the tests of a CSV file: columns are variables, those with __ at the start say what is right."""
    for row in rows:
        cells = {name: text for name, text in row.items() if text not in (None, "")}
        own = {name: text for name, text in cells.items() if name.startswith("__")}
        asserts = [_typed_assert(text) for name, text in own.items() if name.startswith("__expected")]
        metadata = {
            name.removeprefix("__metadata:").removesuffix("[]"): text
            for name, text in own.items()
            if name.startswith("__metadata:")
        }
        variables = _question({name: text for name, text in cells.items() if name not in own})
        yield variables | _expected(asserts, metadata)


def _typed_assert(text: str) -> Row:
    """Return the assert that a cell writes as type:value; a bare text is the answer itself."""
    typed = re.fullmatch(_TYPED, text.strip())
    if typed is None:
        return {"type": "equals", "value": text}
    value = (typed["value"] or "").strip()
    parts = [part.strip() for part in value.split(",")] if typed["type"].endswith(("-all", "-any")) else value
    return {"type": _ALIASES.get(typed["type"], typed["type"]), "value": parts}


def _expected(asserts: list[Row], metadata: Any) -> Row:
    """Return the reference, labels and metadata of asserts; what has no place stays in the metadata."""
    texts: list[str] = []
    required: list[str] = []  # parts that a right answer must all have
    labels: Row = {}
    others: list[Row] = []
    for one in asserts:
        kind, value = one.get("type"), one.get("value")
        values = [str(each) for each in (value if isinstance(value, list) else [value])]
        if kind in (*_WHOLE_ASSERTS, *_ANY_ASSERTS):
            texts += values
        elif kind in _PART_ASSERTS:
            required += values
        elif kind in ("is-refusal", "not-is-refusal"):
            labels["answerable"] = kind != "is-refusal"
        else:
            others.append(one)
    row: Row = {"metadata": {**_object(metadata), **({"promptfoo": others} if others else {})}}
    if texts or required:
        structured = {"required": required} if len(required) > 1 or (required and texts) else None
        alternatives = {"alternatives": texts[1:]} if texts[1:] else {}
        text = texts[0] if texts else "; ".join(required)
        row["reference_answer"] = {"text": text, "structured": structured, "metadata": alternatives}
    return row | ({"labels": labels} if labels else {})


def _promptfoo_results(document: Any, where: str) -> Iterator[Row]:
    """Yield the results of the first system; a system is a provider with a prompt."""
    results = _object(document).get("results")
    listed = results if isinstance(results, list) else _object(results).get("results")
    first: Any = None
    others: set[tuple[str, str]] = set()
    tests: Counter[str] = Counter()
    for result in _objects(listed):
        # Old files have no numbers: their prompts differ.
        prompt = _object(result.get("prompt"))
        prompt_name = result.get("promptIdx", prompt.get("label", prompt.get("display")))
        system = (str(_object(result.get("provider")).get("id")), str(prompt_name))
        first = system if first is None else first
        if system != first:
            others.add(system)
            continue
        number = str(result.get("testIdx", len(tests)))
        tests[number] += 1
        test = _object(result.get("testCase"))
        is_error = result.get("failureReason") == 2 or (result.get("error") and not result.get("response"))
        yield {
            **_question(_object(result.get("vars"))),
            **_expected(list(_objects(test.get("assert"))), test.get("metadata")),
            "sample_id": number if tests[number] == 1 else f"{number}~{tests[number]}",
            "response": _output_text(_object(result.get("response")).get("output")),
            "error": (result.get("error") or _object(result.get("response")).get("error") or "error")
            if is_error
            else None,
        }
    if others:
        provider, label = (" ".join(name.split())[:60] for name in first)
        systems = "1 other system is" if len(others) == 1 else f"{len(others)} other systems are"
        what = f"read the answers of {provider!r} with prompt {label!r}; {systems} left out"
        warn_user(f"{where}: {what}.", ReadingNote)


def _output_text(output: Any) -> Any:
    return output if isinstance(output, str | None) else str(output)


def _inspect(document: Any, where: str) -> Iterator[Row]:
    samples = list(_objects(_object(document).get("samples")))
    has_epochs = any(sample.get("epoch", 1) != 1 for sample in samples)
    for sample in samples:
        yield _inspect_sample(sample, has_epochs=has_epochs)


def _inspect_sample(sample: Row, *, has_epochs: bool) -> Row:
    attachments = _object(sample.get("attachments"))

    def whole(text: Any) -> Any:
        is_link = isinstance(text, str) and text.startswith("attachment://")
        return attachments.get(text.removeprefix("attachment://"), text) if is_link else text

    identity, error = str(sample.get("id")), sample.get("error")
    question = sample.get("input")
    if isinstance(question, list):
        question = [{**message, "content": whole(message.get("content"))} for message in _objects(question)]
    choices = list(_objects(_object(sample.get("output")).get("choices")))
    message = _object(choices[0].get("message")) if choices else {}
    metadata = {**_object(sample.get("metadata")), "scores": sample.get("scores")}
    target = sample.get("target")
    return {
        "sample_id": f"{identity}~{sample.get('epoch')}" if has_epochs else identity,
        "query": whole(question),
        "reference_answer": target.strip() if isinstance(target, str) else target,
        "response": message.get("content"),
        "error": _object(error).get("message") if error else None,
        "metadata": metadata | ({"cluster": identity} if has_epochs else {}),
    }


def _label_studio(document: Any, where: str) -> Iterator[Row]:
    """Yield the questions of an export; a document is relevant if most annotators ranked it so."""
    tasks = document if isinstance(document, list) else [document]
    for task in _objects(tasks):
        data = _object(task.get("data"))
        if not data:
            what = (
                "a task has no 'data': this is an annotation, or the JSON-MIN export, without the question."
            )
            raise DataError(where, what, fix="Export as JSON.")
        documents = [
            {"doc_id": str(doc.get("id")), "text": doc.get("body") or doc.get("text") or ""}
            for doc in _objects(data.get("similar_docs"))
        ]
        votes = _relevance_votes(task)
        gold = [doc for doc in documents if votes[doc["doc_id"]] > 0]
        row = {name: value for name, value in data.items() if name not in ("similar_docs", "answer")}
        row.setdefault("sample_id", str(task.get("id")))
        yield row | {
            "response": data.get("answer"),
            "retrieved": documents or None,
            "relevant_docs": gold or None,
            "metadata": {"annotations": task.get("annotations")},
        }


def _relevance_votes(task: Row) -> Counter[str]:
    """Return how many more annotators found each document relevant than not."""
    votes: Counter[str] = Counter()
    for annotation in _objects(task.get("annotations")):
        if annotation.get("was_cancelled"):
            continue
        for result in _objects(annotation.get("result")):
            buckets = _object(_object(result.get("value")).get("ranker"))
            votes.update(map(str, _list(buckets.get("relevant"))))
            votes.subtract(map(str, _list(buckets.get("non_relevant"))))
    return votes


def _ragas_annotations(document: Any, where: str) -> Iterator[Row]:
    """Yield the answers whose scores people have reviewed; score and verdict are in the metadata."""
    for metric, reviews in _object(document).items():
        for one in _objects(reviews):
            verdict = {
                "metric": metric,
                "score": one.get("metric_output"),
                "accepted": one.get("is_accepted"),
            }
            yield {**_object(one.get("metric_input")), "metadata": verdict}


def _squad(document: Any, where: str) -> Iterator[Row]:
    for article in _objects(_object(document).get("data")):
        for paragraph in _objects(article.get("paragraphs")):
            for question in _objects(paragraph.get("qas")):
                answers = [answer.get("text") for answer in _objects(question.get("answers"))]
                impossible = question.get("is_impossible")  # of SQuAD 2.0 only
                yield {
                    "labels": {"answerable": not impossible} if isinstance(impossible, bool) else None,
                    "id": question.get("id"),
                    "question": question.get("question"),
                    "answers": answers,
                    "context": [paragraph.get("context")],
                    "metadata": {"title": article.get("title")},
                }


def _llama_index(document: Any, where: str) -> Iterator[Row]:
    """Yield the examples of a LabelledRagDataset, or the queries of an EmbeddingQAFinetuneDataset."""
    yield from _objects(_object(document).get("examples"))
    corpus = _object(_object(document).get("corpus"))
    relevant = _object(_object(document).get("relevant_docs"))
    for name, query in _object(_object(document).get("queries")).items():
        ids = [str(one) for one in _list(relevant.get(name)) if isinstance(one, str | int)]
        documents = [{"doc_id": one, "text": corpus.get(one, "")} for one in ids]
        yield {"sample_id": name, "query": query, "relevant_docs": documents}


def _mtrag(document: Any, where: str) -> Iterator[Row]:
    """Yield the tasks of a file of MTRAG, which has the texts of their contexts in another list."""
    documents = _objects(_object(document).get("documents"))
    texts = {str(doc.get("document_id")): doc.get("text") for doc in documents}
    for task in _objects(_object(document).get("tasks")):
        ids = [str(one.get("document_id")) for one in _objects(task.get("contexts"))]
        row = {name: value for name, value in task.items() if name not in ("contexts", "annotations")}
        yield row | {
            # Those that the reference was written from.
            "relevant_docs": [{"doc_id": one, "text": texts.get(one) or ""} for one in ids],
            "labels": {"answerable": "UNANSWERABLE" not in _list(task.get("Answerability"))},
            # The turns of one conversation are not independent.
            "metadata": {"cluster": str(task.get("task_id")).partition("<::>")[0]},
        }


@dataclass(frozen=True)
class Tool:
    """A tool whose files are one document: its rows, and keys that all are in the start of its files."""

    rows: Callable[[Any, str], Iterator[Row]]
    keys: tuple[str, ...]
    or_keys: tuple[str, ...] = ()  # other keys that show it too

    def looks_like(self, start: bytes, *, is_yaml: bool = False) -> bool:
        form = rb"(?m)^[\s-]*%s\s*:" if is_yaml else rb'"%s"\s*:'
        return any(
            keys and all(re.search(form % key.encode(), start) for key in keys)
            for keys in (self.keys, self.or_keys)
        )


def tool_of(start: bytes, *, is_yaml: bool = False) -> str | None:
    """Return the name of the tool whose files start like this; None if there is none."""
    fitting = (name for name, tool in TOOLS.items() if tool.looks_like(start, is_yaml=is_yaml))
    return next(fitting, None)


# In this order: the first that fits decides.
TOOLS: Mapping[str, Tool] = {
    "ragchecker": Tool(_ragchecker, ("results", "query_id", "gt_answer")),
    "deepeval-run": Tool(_deepeval_run, ("testCases", "input")),
    "deepeval-conversations": Tool(_deepeval_conversations, ("scenario", "turns")),
    "promptfoo-results": Tool(_promptfoo_results, ("results", "prompt", "vars"), ("evalId", "results")),
    "promptfoo": Tool(_promptfoo, ("prompts", "providers", "tests")),
    "inspect": Tool(_inspect, ("status", "eval", "plan")),
    "label-studio": Tool(_label_studio, ("annotations", "result"), ("data", "similar_docs")),
    "ragas-annotations": Tool(_ragas_annotations, ("metric_input", "metric_output")),
    "squad": Tool(_squad, ("paragraphs", "qas")),
    "llama-index": Tool(
        _llama_index, ("queries", "corpus", "relevant_docs"), ("examples", "reference_answer_by")
    ),
    "mtrag": Tool(_mtrag, ("tasks", "documents", "models"), ("models", "filters", "documents")),
}
