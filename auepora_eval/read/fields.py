"""Records of files and frames to samples and outputs, by the names of their fields.

A record of another tool may hold a question with its gold, the answer of a system, or both. Its names are
looked up in `names.NAMES`. A name that could mean two things is decided by the other names of the file, or is
an error that lists the readings. Fields without a place go to the sample's metadata.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from ..core.types import (
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from ..errors import DataError, did_you_mean, warn_user
from .messages import HISTORY, conversation_in, turns_in
from .names import (
    ANSWER_NAMES,
    ANSWER_NAMES_IF_NONE,
    COLUMNS,
    CONVERSATIONS,
    IDS,
    IDS_OR_TEXTS,
    MEASURED,
    METADATA,
    NAMES,
    NOT_READ,
    OF_DEEPEVAL,
    OUTPUT_FIELDS,
    check_spelling,
    has_own_names,
    plain_name,
)
from .outputs import (
    as_answer,
    as_failure,
    as_hits,
    as_timings,
    look_like_texts,
    made_output,
    ranked,
    text_id,
)

Record = Mapping[str, Any]
Reading = tuple[EvaluationSample, SystemOutputs | None]

_DEEPEVAL_SOURCE = r"(?s)deepeval_source=(.*?),deepeval_context=(.*)"
_MOST_TEXT = 100_000  # characters of a cell that may be a list of objects in Python's notation
# An item of a list of texts or numbers as Python writes it, or numpy, without commas: ['a' 'b'].
_ITEM = re.compile(
    r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]*)?)(?=[\s,\]])\s*,?""", re.DOTALL
)
# A text may start with [1] or [[link]], but hardly with a quotation mark, an object or a call in brackets.
_LIST_START = r"""\[\s*(?:['"{]|\w+\()"""


class ReadingNote(UserWarning):
    """A record or an output was read under other names than ours, or has fields that are not read."""


class UnreadFields(Counter[str]):
    """Counts the fields of a file that are not read, to report them once."""

    def in_words(self) -> str:
        """Return the fields, each with the number of records that have it."""
        names = [
            f"{' '.join(name.split())[:80]!r} ({count})" for name, count in self.most_common(_MOST_UNREAD)
        ]
        return ", ".join(names) + (", ..." if len(self) > _MOST_UNREAD else "")

    def report(self, where: str) -> None:
        """Warn of the fields, if there are any."""
        if self:
            fix = "If one has what metrics need, name it: --columns FIELD=NAME."
            warn_user(f"{where}: not read, but kept: {self.in_words()}. {fix}", ReadingNote)


_MOST_UNREAD = 12  # names that are reported: a hostile file may have any number


def columns_of_samples(columns: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the columns that concern a file of questions whose answers are in another file."""
    return {field: name for field, name in (columns or {}).items() if field not in OUTPUT_FIELDS} or None


class FieldReader:
    """Reads the records of one file; which name has which meaning is decided once, from all names in it."""

    def __init__(
        self,
        examples: Record,
        where: str,
        columns: Mapping[str, str] | None = None,
        *,
        for_outputs: bool = False,
        is_answered: bool = False,
        unread: UnreadFields | None = None,
    ) -> None:
        self._for_outputs = for_outputs  # the records are answers: they need no question, only an id
        self._is_answered = is_answered  # the records are questions with the answers of a system
        self._names = list(examples)
        # "Ground Truth" is ground_truth, unless there is a column of that very name.
        self._spelt = {plain_name(name): name for name in reversed(self._names)}
        self._spelt |= {name: name for name in self._names}
        self._where = where
        self._ids: dict[str, int] = {}
        self._conversations = 0
        self._unread = UnreadFields() if unread is None else unread
        self.has_own_ids = True
        self.fields = self._named_by_user(columns or {})
        self._look_up(NAMES)
        if for_outputs or (has_own_names(self._names) and not self.fields.keys().isdisjoint(OUTPUT_FIELDS)):
            self._look_up(ANSWER_NAMES)
        if "sample_id" not in self.fields and self._is_free("name") and self._spelt.keys() >= OF_DEEPEVAL:
            self.fields["sample_id"] = self._spelt["name"]
        self._place_of_conversation()
        self._place_of_answer()
        self._place_of_context()
        if for_outputs or "answer" in self.fields or "retrieved" in self.fields:
            self._look_up(ANSWER_NAMES_IF_NONE, is_first_enough=True)
        check_spelling({name: examples[name] for name in self._free()}, self._missing(), where)

    def _look_up(self, table: Mapping[str, Sequence[str]], *, is_first_enough: bool = False) -> None:
        """Find the name of each field; two of them are ambiguous, unless the first is enough."""
        for field, known in table.items():
            if is_first_enough and self._for_outputs and self.fields.get("reference_answer") in known:
                del self.fields["reference_answer"]  # `answers` of a system, not of the gold
            present = [name for name in known if self._is_free(name)]
            if field in self.fields or not present:
                continue
            is_clear = is_first_enough or present[0] == field or field.endswith("id")
            if len(present) > 1 and not is_clear:
                raise self._ambiguous([(field, name) for name in present])
            self.fields[field] = self._spelt[present[0]]

    def _is_free(self, name: str) -> bool:
        """Return whether there is a column of that name, in any spelling, without a meaning so far."""
        column = self._spelt.get(name)
        return column is not None and column not in self.fields.values()

    def _missing(self) -> list[str]:
        """Return the fields that metrics need and that no column holds."""
        found = {*self.fields}
        found |= {"relevant_docs"} if "relevant_ids" in self.fields else set()
        found |= {"retrieved"} if "retrieved_ids" in self.fields else set()
        # Beside a question, a "citation" is that of its source.
        found |= set() if self._for_outputs else {"citations"}
        return [field for field in MEASURED if field not in found]

    def _free(self) -> list[str]:
        return [name for name in self._names if name not in self.fields.values()]

    def _named_by_user(self, columns: Mapping[str, str]) -> dict[str, str]:
        for field, name in columns.items():
            if field not in COLUMNS:
                fix = did_you_mean(field, COLUMNS, f"The fields are {', '.join(COLUMNS)}.")
                raise DataError(self._where, f"columns: there is no field {field!r:.60}.", fix=fix)
            if name not in self._names:
                fix = did_you_mean(name, self._names, f"There are {self._listed_names()}.")
                raise DataError(self._where, f"there is no column {name!r:.60}.", fix=fix)
        return dict(columns)

    def _listed_names(self) -> str:
        return ", ".join(" ".join(name.split())[:60] for name in self._names[:12])

    def _place_of_conversation(self) -> None:
        for name in CONVERSATIONS:
            if self._is_free(name):
                field = "history" if "query" in self.fields else "query"
                self.fields.setdefault(field, self._spelt[name])

    def _place_of_answer(self) -> None:
        """Decide whose answer `answer` is: the reference, unless there is another one."""
        if not self._is_free("answer"):
            return
        name = self._spelt["answer"]
        if (self._for_outputs or self._is_answered) and "answer" not in self.fields:
            self.fields["answer"] = name
            return
        is_reference_known, is_answer_known = ("reference_answer" in self.fields, "answer" in self.fields)
        if is_answer_known and is_reference_known:
            return  # kept as metadata
        if not is_reference_known and not is_answer_known and "retrieved" in self.fields:
            raise self._ambiguous([("reference_answer", "answer"), ("answer", "answer")])
        self.fields["answer" if is_reference_known else "reference_answer"] = name

    def _place_of_context(self) -> None:
        """Decide what `context` is: the gold beside retrieved contexts (DeepEval) or as one text (SQuAD)."""
        if not self._is_free("context") or "relevant_docs" in self.fields:
            return
        name = self._spelt["context"]
        if self._for_outputs and "retrieved" not in self.fields:
            self.fields["retrieved"] = name
            return
        is_gold = "retrieved" in self.fields or self.fields.get("reference_answer") == "answers"
        if not is_gold and "answer" not in self.fields:
            raise self._ambiguous([("relevant_docs", "context"), ("retrieved", "context")])
        self.fields["relevant_docs" if is_gold else "retrieved"] = name

    def _ambiguous(self, readings: Sequence[tuple[str, str]]) -> DataError:
        readings = [(field, self._spelt[name]) for field, name in readings]
        options = " or ".join(f"{field}={name}" for field, name in readings)
        names = ", ".join(dict.fromkeys(repr(name) for _, name in readings))
        what = f"{names} can be read in {len(readings)} ways."
        return DataError(
            self._where, what, fix=f"Choose one: --columns {options} (in Python columns={{...}})."
        )

    def check_has_queries(self) -> None:
        """Raise DataError unless the records have questions, or ids if they are answers."""
        if "query" in self.fields or (self._for_outputs and "sample_id" in self.fields):
            return
        what = f"no column is known to hold the question, among {self._listed_names()}."
        fix = "Name it: --columns query=NAME (in Python columns={'query': 'NAME'})."
        raise DataError(self._where, what, fix=fix)

    def report(self, *, made_ids: bool, renamed: bool) -> None:
        """Report, once for a file, what was read under another name, and what was not read."""
        others = {field: name for field, name in self.fields.items() if name not in (field, "response")}
        names = [f"{name!r} as {field}" for field, name in others.items()]
        parts = [f"read {', '.join(names)}"] if names and renamed else []
        parts += self._answer_in_words() if renamed else []
        parts += ["sample ids are made from the queries"] if made_ids else []
        if self._conversations:
            records = "1 record has" if self._conversations == 1 else f"{self._conversations} records have"
            parts.append(f"{records} earlier turns, which are in metadata.{HISTORY}")
        parts += self._unread_in_words() if renamed else []
        if parts:
            warn_user(f"{self._where}: {'; '.join(parts)}.", ReadingNote)

    def _answer_in_words(self) -> list[str]:
        """Return whose answer `answer` is, where another command would read it as the reference."""
        name = self.fields.get("answer", "")
        if not self._is_answered or plain_name(name) != "answer" or "reference_answer" in self.fields:
            return []
        without = "without a reference, in a column such as ground_truth, correctness is not measured"
        return [f"{name!r} is the system's answer; {without}"]

    def _unread_in_words(self) -> list[str]:
        """Return the columns without a place, and what to do if one of them has what metrics need."""
        if not self._unread:
            return []
        place = "extra" if self._for_outputs else "metadata"
        of_samples = ("reference_answer", "relevant_docs", "relevant_ids")
        needed: tuple[str, ...] = ("retrieved", "retrieved_ids") if self._for_outputs else of_samples
        needed = needed if not self._is_answered or "answer" in self.fields else ("answer",)
        fix = f"; if one is {needed[0]}, name it: --columns {needed[0]}=NAME"
        fix = "" if any(field in self.fields for field in needed) else fix
        return [f"not read, but kept in {place}: {self._unread.in_words()}{fix}"]

    def read(self, record: Record, where: str) -> Reading:
        """Return the sample of a record, and the output if the record has one."""
        parts = {field: _value(record.get(name)) for field, name in self.fields.items()}
        parts = {field: value for field, value in parts.items() if value is not None}
        if record.get(self.fields.get("answer", "")) == "":
            parts["answer"] = ""  # an empty answer is an answer; tables leave empty cells out
        query, history = parts.get("query"), turns_in(parts.get("history"))
        if isinstance(query, list):
            before, query, answer = conversation_in(query)
            history += before
            if answer is not None:
                parts.setdefault("answer", answer)
        elif not isinstance(query, str):
            query = str(query) if isinstance(query, int | float) else None
        if query is None and self._for_outputs and parts.get("sample_id") is not None:
            query = ""
        if query is None:
            what = f"there is no text under {self.fields.get('query', 'query')!r}."
            raise DataError(where, what, fix="Write the question there, or remove the record.")
        self._conversations += bool(history)
        known = set(self.fields.values())
        if "history" in parts and not turns_in(parts["history"]):
            known.remove(self.fields["history"])  # kept as it is, and named
        others = {
            str(name): value
            for name, raw in record.items()
            if name not in known and (value := _value(raw)) is not None
        }
        unread = [name for name in others if self._for_outputs or name not in METADATA]
        self._unread.update(unread)
        sample = EvaluationSample(
            self._id(parts.get("sample_id"), query),
            query,
            relevant_docs=self._documents(parts, "relevant_docs", "relevant_ids", where),
            candidate_docs=self._documents(parts, "candidate_docs", "", where),
            reference_answer=_reference(parts.get("reference_answer"), where),
            labels=_object(parts.get("labels"), f"{where}: labels"),
            metadata={
                **({HISTORY: history} if history else {}),
                **others,
                **({NOT_READ: unread} if unread else {}),
                **_object(parts.get("metadata"), f"{where}: metadata"),
            },
        )
        if parts.get("reference_answer") in ([], {"text": [], "answer_start": []}):  # SQuAD 2
            sample.labels.setdefault("answerable", False)
        return sample, self._output(parts, others if self._for_outputs else {}, where)

    def _id(self, value: Any, query: str) -> str:
        if value is not None and not isinstance(value, list | dict | bool):
            return as_id(value)
        self.has_own_ids = False
        made = query_id(query)
        self._ids[made] = count = self._ids.get(made, 0) + 1
        return made if count == 1 else f"{made}~{count}"

    def _documents(self, parts: Record, field: str, ids_field: str, where: str) -> list[Document] | None:
        hits = self._hits(parts, field, ids_field, where)
        for hit in hits:
            hit.doc.metadata.pop("score_missing", None)  # it is not a hit of a system
        return [hit.doc for hit in hits] or None

    def _hits(self, parts: Record, field: str, ids_field: str, where: str) -> list[RetrievedDocument]:
        """Return the documents of a field; ids and texts in two fields of one length belong together."""
        hits = _hits(parts.get(field), plain_name(self.fields.get(field, "")), where)
        ids = _hits(parts.get(ids_field), plain_name(self.fields.get(ids_field, "")), where)
        if not ids or len(ids) != len(hits):
            return ids or hits
        pairs = zip(ids, hits, strict=True)
        return [replace(hit, doc=replace(hit.doc, doc_id=one.doc.doc_id)) for one, hit in pairs]

    def _output(self, parts: Record, others: Record, where: str) -> SystemOutputs | None:
        error = parts.get("error")
        if error is None and not any(field in parts for field in OUTPUT_FIELDS[:3]):
            return None
        extra = {**_object(parts.get("extra"), f"{where}: extra"), **others}
        extra |= {name: parts[name] for name in ("tool_calls", "claims") if parts.get(name)}
        times = _object(parts.get("timings"), f"{where}: timings")
        if isinstance(parts.get("latency_ms"), int | float):
            times.setdefault("end_to_end", parts["latency_ms"] / 1000)
        timings, implausible = as_timings(times, f"{where}: timings")
        hits = None
        if "retrieved" in parts or "retrieved_ids" in parts:
            hits = self._hits(parts, "retrieved", "retrieved_ids", where)
        answer = None if parts.get("answer") is None else _answer(parts["answer"], f"{where}: the answer")
        cited = None
        if "citations" in parts:
            cited = _listed(parts["citations"], f"{where}: {self.fields['citations']}")
        failure = None if error is None else as_failure(error)
        return made_output(hits, answer, timings, extra | implausible, failure, cited)


def as_id(value: Any) -> str:
    """Return the text of an id: a spreadsheet turns 1 into 1.0 where a cell of the column is empty."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def query_id(query: str) -> str:
    """Return the id of a sample that came without one; equal questions have equal ids."""
    return f"q-{blake2b(query.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def is_query_id(name: str) -> bool:
    """Return whether an id is one that was made from a query."""
    return re.match(r"q-[0-9a-f]{16}(?:~|$)", name) is not None


def read_foreign(
    records: Iterable[Record],
    where: str,
    columns: Mapping[str, str] | None = None,
    *,
    place: Callable[[int], str] | None = None,
    is_table: bool = True,
    for_outputs: bool = False,
    is_answered: bool = False,
) -> list[Reading]:
    """Return the sample and the output of each record.

    `answer` may be the reference or the system's answer. With `is_answered` it is the system's.

    The names that were read are reported, unless they are those of a known tool (`is_table` is False).
    """
    rows = list(map(_flat, records))
    if not rows:
        return []
    examples: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            known = examples.get(str(name))
            if known is None or (isinstance(known, list) and not known):
                examples[str(name)] = value
    if for_outputs:  # columns of the questions may be missing in a file of answers
        columns = {f: name for f, name in (columns or {}).items() if f in OUTPUT_FIELDS or name in examples}
    reader = FieldReader(examples, where, columns, for_outputs=for_outputs, is_answered=is_answered)
    reader.check_has_queries()
    place = place or (lambda number: f"{where}[{number}]")
    readings = [reader.read(row, place(number)) for number, row in enumerate(rows)]
    reader.report(made_ids=not reader.has_own_ids, renamed=is_table)
    return readings


def _flat(record: Record) -> Record:
    """Return a record with the question, the answer and the documents at the top."""
    inputs, outputs, expected = (record.get(name) for name in ("inputs", "outputs", "expectations"))
    if isinstance(inputs, Mapping):  # MLflow
        rest = {name: value for name, value in record.items() if name not in ("inputs", "expectations")}
        given = _expected_by_mlflow(expected) if isinstance(expected, Mapping) else {}
        if isinstance(outputs, Mapping):
            rest = {**{name: value for name, value in rest.items() if name != "outputs"}, **outputs}
        return {**inputs, **given, **rest}
    results = record.get("retrieval_results")
    if not isinstance(results, Mapping) or not isinstance(results.get("retrieved_docs"), list):
        return record
    # Seed 003: ids and scores are two lists.
    ids, scores = results["retrieved_docs"], results.get("relevance_scores")
    if isinstance(scores, list) and len(scores) == len(ids) and all(isinstance(one, str) for one in ids):
        ids = [{"doc_id": one, "score": score} for one, score in zip(ids, scores, strict=True)]
    others = {name: value for name, value in record.items() if name != "retrieval_results"}
    return {**others, "retrieved": ids}


def _expected_by_mlflow(expected: Record) -> Record:
    others = dict(expected)
    facts, context = others.pop("expected_facts", None), others.pop("expected_retrieved_context", None)
    facts = facts if isinstance(facts, list) else []
    text = others.pop("expected_response", None) or " ".join(map(str, facts))
    structured = {"required": facts} if facts else None
    answer = {"reference_answer": {"text": text, "structured": structured}} if text else {}
    return {**others, **answer, **({} if context is None else {"relevant_docs": context})}


def _value(raw: Any) -> Any:
    """Return a value without the forms of frames; None if the cell is empty."""
    if hasattr(raw, "tolist"):  # arrays and scalars of numpy
        raw = raw.tolist()
    if raw is None or raw == "" or (isinstance(raw, float) and math.isnan(raw)):
        return None
    return raw


def _listed(value: Any, where: str, *, separators: str = "") -> list[Any]:
    """Return a list from one, from JSON or Python notation in a cell, or from texts with separators."""
    if value is None:
        return []
    if isinstance(value, str):
        written = written_list(value, where)
        value = _split(value, separators) if written is None else written
    return list(value) if isinstance(value, list | tuple) else [value]


def written_list(cell: str, where: str) -> Any:
    """Return the list that a cell holds as JSON or as Python writes it; None if the cell is a text."""
    text = cell.strip()
    if not text.startswith("["):
        return None
    for parse in (json.loads, _plain_list, _python_list):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    if re.match(_LIST_START, text):
        # Read as one text, it would change every value that counts documents.
        what = f"{text[:60]!r} is not a list that can be read."
        raise DataError(where, what, fix="Is it cut off? Write the list as JSON.")
    return None


def _plain_list(text: str) -> list[str | float]:
    """Return the texts or numbers of a list; ValueError if there is anything else in it."""
    items, place = [], 1
    while item := _ITEM.match(text, place):
        items.append(ast.literal_eval(item[1]))
        place = item.end()
    if text[place:].strip() != "]":
        raise ValueError("not a list of texts or numbers")
    return items


def _python_list(text: str) -> Any:
    if len(text) > _MOST_TEXT:
        raise ValueError("too long")
    return ast.literal_eval(text)


def _split(cell: str, separators: str) -> list[str]:
    """Return the parts of a cell, by the first of the separators that is in it."""
    for separator in separators:
        parts = [part.strip() for part in cell.split(separator) if part.strip()]
        # A title may have a comma: only single words are ids with commas between them.
        if len(parts) > 1 and (separator != "," or _are_words(parts)):
            return parts
    return [cell]


def _are_words(parts: Iterable[str]) -> bool:
    return all(len(part.split()) == 1 for part in parts)


def _hits(value: Any, name: str, where: str) -> list[RetrievedDocument]:
    """Return the documents under a name, in the order of their ranks."""
    where = f"{where}: {name}"
    separators = "|" if name in ("context", "retrieval_context") else ""
    if name in IDS:
        separators = ";,"
    elif name in IDS_OR_TEXTS and isinstance(value, str) and _are_words(value.split(";")):
        separators = ";"
    items = _listed(value, where, separators=separators)
    if name in IDS:
        items = [_without_text(str(one)) if isinstance(one, str | int) else one for one in items]
    elif name not in IDS_OR_TEXTS:
        items = [_text_document(item) if isinstance(item, str) else item for item in items]
    elif not look_like_texts([item for item in items if isinstance(item, str)]):
        items = [_without_text(str(item)) if isinstance(item, str | int) else item for item in items]
    try:
        hits = as_hits(items)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(where, f"{error}.") from error
    found = zip(hits, items, strict=True)
    scored = ((hit.doc, hit.score if _has_score(item) else None, hit.rank) for hit, item in found)
    return ranked(scored, where, marked=True)


def _has_score(item: Any) -> bool:
    if isinstance(item, Mapping):
        return isinstance(item.get("score"), int | float)
    return not isinstance(item, Document | str)


def _without_text(doc_id: str) -> Document:
    return Document(doc_id, "", {"text_missing": True})


def _text_document(text: str) -> Document:
    sourced = re.fullmatch(_DEEPEVAL_SOURCE, text)
    return Document(sourced[1], sourced[2]) if sourced else Document(text_id(text), text)


def _reference(value: Any, where: str) -> Response | None:
    """Return the reference answer; further ones of a list are alternatives."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        value = value["text"]
    if isinstance(value, str) and value.strip().startswith("["):
        written = written_list(value, f"{where}: the reference answer")
        value = value if written is None else written
    if isinstance(value, Set):
        value = sorted(value, key=str)
    values = value if isinstance(value, list | tuple) else [value]
    answers = [_one_reference(one, where) for one in values if _value(one) is not None]
    if not answers:
        return None
    first, *more = answers
    if more:
        first.metadata = {**first.metadata, "alternatives": list(dict.fromkeys(one.text for one in more))}
    return first


def _one_reference(value: Any, where: str) -> Response:
    where = f"{where}: the reference answer"
    if isinstance(value, list | tuple):
        raise DataError(where, f"a text was expected, not a list: {value!r:.60}.")
    return _answer(value if isinstance(value, str | Mapping | Response) else str(value), where)


def _answer(value: Any, where: str) -> Response:
    try:
        return as_answer(str(value) if isinstance(value, int | float) else value)
    except TypeError as error:
        raise DataError(where, f"a text was expected, not {value!r:.60}.") from error


def _object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(where, "the cell is not JSON.", fix="Write an object as JSON.") from error
    if isinstance(value, Mapping):
        return {str(name): one for name, one in value.items()}
    return {} if value is None else {"value": value}
