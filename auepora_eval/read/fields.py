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
from operator import itemgetter
from typing import Any

from ..core.types import (
    ANSWER_MISSING,
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    split_timings,
    unscored,
)
from ..errors import DataError, did_you_mean, warn_user
from .messages import HISTORY, conversation_in, turns_in
from .names import (
    ANSWER_NAMES,
    COLUMNS,
    CONVERSATIONS,
    ID,
    IDS,
    IDS_OR_TEXTS,
    KNOWN,
    MEASURED,
    NAMES,
    OUTPUT_FIELDS,
    OUTPUT_NAMES,
    SAMPLE_NAMES,
    check_spelling,
    has_only,
    plain_name,
)
from .outputs import as_answer, as_hits, text_id

Record = Mapping[str, Any]
Reading = tuple[EvaluationSample, SystemOutputs | None]

_DEEPEVAL_SOURCE = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)
_MOST_UNREAD = 12  # names in a note
_MOST_TEXT = 100_000  # characters of a cell that may be a list of objects in Python's notation
# An item of a list of texts or numbers as Python writes it, or numpy, without commas: ['a' 'b'].
_ITEM = re.compile(
    r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]*)?)(?=[\s,\]])\s*,?""", re.DOTALL
)
# A text may start with [1] or [[link]], but hardly with a quotation mark, an object or a call in brackets.
_LIST_START = re.compile(r"""\[\s*(?:['"{]|\w+\()""")


class ReadingNote(UserWarning):
    """A record or an output was read under other names than ours."""


def columns_of_samples(columns: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the columns that concern a file of questions whose answers are in another file."""
    return {field: name for field, name in (columns or {}).items() if field not in OUTPUT_FIELDS} or None


def columns_of_answers(columns: Mapping[str, str] | None, rows: Iterable[Record]) -> Mapping[str, str] | None:
    """Return the columns that concern a file of answers: columns of the questions may be missing in it."""
    if not columns:
        return None
    names = {str(name) for row in rows for name in row}
    return {f: name for f, name in columns.items() if f in OUTPUT_FIELDS or name in names} or None


class FieldReader:
    """Reads the records of one file; which name has which meaning is decided once, from all names in it."""

    def __init__(
        self,
        names: Iterable[str],
        where: str,
        columns: Mapping[str, str] | None = None,
        *,
        for_outputs: bool = False,
        originals: Mapping[str, str] | None = None,
    ) -> None:
        self._for_outputs = for_outputs  # the records are answers: they need no question, only an id
        self._names = list(dict.fromkeys(str(name) for name in names))
        self._where = where
        self._ids: dict[str, int] = {}
        self._conversations = 0
        self._unread: Counter[str] = Counter()
        self.has_own_ids = True
        self._originals = originals or {}  # the spelling in the file of a known name
        self.fields = self._named_by_user(columns or {})
        for field, known in (NAMES | ANSWER_NAMES if for_outputs else NAMES).items():
            if field not in self.fields:
                present = [name for name in known if name in self._free()]
                if present:
                    self.fields[field] = self._one_of(field, present)
        self._place_of_conversation()
        self._place_of_answer()
        self._place_of_context()
        check_spelling(self._free(), self._missing(), where)

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
        """Return the first columns, without those that a reader of ours has named."""
        names = [name for name in self._names if name not in (*NAMES, "response")] or self._names
        names = [self._originals.get(name, name) for name in names]
        return ", ".join(" ".join(name.split())[:60] for name in names[:12])

    def _one_of(self, field: str, present: Sequence[str]) -> str:
        if len(present) > 1 and present[0] != field and not field.endswith("id"):
            raise self._ambiguous([(field, name) for name in present])
        return present[0]

    def _place_of_conversation(self) -> None:
        for name in CONVERSATIONS:
            if name in self._free():
                self.fields.setdefault("history" if "query" in self.fields else "query", name)

    def _place_of_answer(self) -> None:
        """Decide whose answer `answer` is: the reference, unless there is another one."""
        if "answer" not in self._free():
            return
        if self._for_outputs and "answer" not in self.fields:
            self.fields["answer"] = "answer"
            return
        is_reference_known, is_answer_known = ("reference_answer" in self.fields, "answer" in self.fields)
        if is_answer_known and is_reference_known:
            return  # kept as metadata
        if not is_reference_known and not is_answer_known and "retrieved" in self.fields:
            raise self._ambiguous([("reference_answer", "answer"), ("answer", "answer")])
        self.fields["answer" if is_reference_known else "reference_answer"] = "answer"

    def _place_of_context(self) -> None:
        """Decide what `context` is: the gold beside retrieved contexts (DeepEval) or as one text (SQuAD)."""
        if "context" not in self._free() or "relevant_docs" in self.fields:
            return
        if self._for_outputs and "retrieved" not in self.fields:
            self.fields["retrieved"] = "context"
            return
        is_gold = "retrieved" in self.fields or self.fields.get("reference_answer") == "answers"
        if not is_gold and "answer" not in self.fields:
            raise self._ambiguous([("relevant_docs", "context"), ("retrieved", "context")])
        self.fields["relevant_docs" if is_gold else "retrieved"] = "context"

    def _ambiguous(self, readings: Sequence[tuple[str, str]]) -> DataError:
        readings = [(field, self._originals.get(name, name)) for field, name in readings]
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
        read = {field: self._originals.get(name, name) for field, name in self.fields.items()}
        names = [f"{name!r} as {field}" for field, name in read.items() if name != field]
        parts = [f"read {', '.join(names)}"] if names and renamed else []
        parts += ["sample ids are made from the queries"] if made_ids else []
        if self._conversations:
            records = "1 record has" if self._conversations == 1 else f"{self._conversations} records have"
            parts.append(f"{records} earlier turns, which are in metadata.{HISTORY}")
        parts += self._unread_in_words() if renamed else []
        if parts:
            warn_user(f"{self._where}: {'; '.join(parts)}.", ReadingNote)

    def _unread_in_words(self) -> list[str]:
        """Return the columns without a place, and what to do if one of them has the gold."""
        if not self._unread:
            return []
        listed = [
            f"{' '.join(self._originals.get(name, name).split())[:60]!r} ({count})"
            for name, count in self._unread.most_common(_MOST_UNREAD)
        ]
        more = ", ..." if len(self._unread) > _MOST_UNREAD else ""
        place = "extra" if self._for_outputs else "metadata"
        words = f"not read, but kept in {place}: {', '.join(listed)}{more}"
        # Correctness needs the reference, and retrieval the documents: these may well be among them.
        if self._for_outputs:
            field, what = "retrieved", "the list of retrieved documents"
            known = {"retrieved", "retrieved_ids"}
        else:
            field, what = "reference_answer", "the reference answer"
            known = {"reference_answer", "relevant_docs", "relevant_ids"}
        if any(name in self.fields for name in known):
            return [words]
        fix = f"--columns {field}=NAME (in Python columns={{{field!r}: 'NAME'}})"
        return [f"{words}; if one is {what}, name it: {fix}"]

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
        others = {
            str(name): value
            for name, raw in record.items()
            if name not in known and (value := _value(raw)) is not None
        }
        self._unread.update(others.keys())
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
        """Return the documents of a field; ids and texts in two fields of one length belong together."""
        ids = _listed(parts.get(ids_field), f"{where}: {self.fields.get(ids_field)}", separators=";,")
        texts = _documents(parts.get(field), self.fields.get(field, ""), where)
        if not ids:
            return texts or None
        named = [str(one) for one in ids]
        if texts and len(texts) == len(named):
            return [Document(name, doc.text, doc.metadata) for name, doc in zip(named, texts, strict=True)]
        return [Document(name, "", {"text_missing": True}) for name in named]

    def _output(self, parts: Record, others: Record, where: str) -> SystemOutputs | None:
        error = parts.get("error")
        if error is None and not any(field in parts for field in OUTPUT_FIELDS[:3]):
            return None
        if error is not None:
            return SystemOutputs([], Response(""), error=_failure(error))
        documents = self._documents(parts, "retrieved", "retrieved_ids", where)
        is_named = "retrieved" in parts or "retrieved_ids" in parts
        extra: dict[str, Any] = {**others, **({} if is_named else {DOCUMENTS_MISSING: True})}
        if "answer" not in parts:
            extra[ANSWER_MISSING] = True
        extra |= {name: parts[name] for name in ("tool_calls", "claims") if parts.get(name)}
        hits = _ranked(documents or [], parts.get("retrieved"), f"{where}: {self.fields.get('retrieved')}")
        answer = parts.get("answer", "")
        response = Response(str(answer)) if isinstance(answer, int | float) else as_answer(answer)
        if "citations" in parts:
            cited = _listed(parts["citations"], f"{where}: {self.fields['citations']}")
            response = replace(response, metadata={**response.metadata, "citations": cited})
        timings, implausible = split_timings(_times(parts, where))
        return SystemOutputs(hits, response, timings, {**extra, **implausible})


def _failure(error: Any) -> Failure:
    if isinstance(error, Mapping):
        return Failure(str(error.get("type") or "error"), str(error.get("message") or "")[:2000])
    return Failure("error", str(error)[:2000])


def _times(parts: Record, where: str) -> dict[str, float]:
    """Return the seconds of each step that a record has."""
    times = _object(parts.get("timings"), f"{where}: timings")
    if isinstance(parts.get("latency_ms"), int | float):
        times.setdefault("end_to_end", parts["latency_ms"] / 1000)
    for step, seconds in times.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise DataError(f"{where}: timings.{step}", f"{seconds!r:.40} is not a time in seconds.")
    return times


def as_id(value: Any) -> str:
    """Return the text of an id: a spreadsheet turns 1 into 1.0 where a cell of the column is empty."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def are_samples(rows: Sequence[Record]) -> bool:
    """Return whether records are samples under our own names: no known name of another tool is in them."""
    are_complete = all(row.get("sample_id") is not None and row.get("query") is not None for row in rows)
    return are_complete and has_only(SAMPLE_NAMES, {name for row in rows for name in row})


def are_predictions(rows: Sequence[Record]) -> bool:
    """Return whether records hold answers under our own names: no known name of another tool is in them."""
    names = {name for row in rows for name in row}
    is_answered = not OUTPUT_NAMES.isdisjoint(names)
    return (
        all(row.get(ID) is not None for row in rows)
        and is_answered
        and has_only(SAMPLE_NAMES | OUTPUT_NAMES, names)
    )


def are_answered_samples(rows: Sequence[Record]) -> bool:
    """Return whether records are samples of ours that hold answers too.

    An answer without a reference beside it may be the reference, as in tables of other tools.
    """
    names = {name for row in rows for name in row}
    is_clear = "answer" not in names or "reference_answer" in names
    return is_clear and are_predictions(rows) and all(row.get("query") is not None for row in rows)


def sample_part(record: Record) -> dict[str, Any]:
    """Return what a record of ours says about the sample."""
    return {name: value for name, value in record.items() if name not in OUTPUT_NAMES}


def prediction_part(record: Record) -> dict[str, Any]:
    """Return what a record of ours says about the output."""
    return {name: value for name, value in record.items() if name == ID or name not in SAMPLE_NAMES}


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
) -> list[Reading]:
    """Return the sample and the output of each record.

    The names that were read are reported, unless they are those of a known tool (`is_table` is False).
    """
    rows = list(map(_with_ranking, records))
    if not rows:
        return []
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    spellings = _spellings(names, columns or {})
    if spellings:
        rows = [{spellings.get(name, name): value for name, value in row.items()} for row in rows]
        names = [spellings.get(name, name) for name in names]
    originals = {known: name for name, known in spellings.items()}
    reader = FieldReader(names, where, columns, for_outputs=for_outputs, originals=originals)
    reader.check_has_queries()
    place = place or (lambda number: f"{where}[{number}]")
    readings = [reader.read(row, place(number)) for number, row in enumerate(rows)]
    reader.report(made_ids=not reader.has_own_ids, renamed=is_table)
    return readings


def _with_ranking(record: Record) -> Record:
    """Return a record of seed 003 with its documents at the top: ids and scores are two lists in it."""
    results = record.get("retrieval_results")
    if not isinstance(results, Mapping) or not isinstance(results.get("retrieved_docs"), list):
        return record
    ids, scores = results["retrieved_docs"], results.get("relevance_scores")
    if isinstance(scores, list) and len(scores) == len(ids) and all(isinstance(one, str) for one in ids):
        ids = [{"doc_id": one, "score": score} for one, score in zip(ids, scores, strict=True)]
    others = {name: value for name, value in record.items() if name != "retrieval_results"}
    return {**others, "retrieved": ids}


def _spellings(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the known name of each column that is another spelling of it, unless both are there."""
    taken = {*names, *columns.values()}
    spellings: dict[str, str] = {}
    for name in names:
        known = plain_name(name)
        if known in KNOWN and known not in taken and name not in columns.values():
            spellings[name] = known
            taken.add(known)
    return spellings


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
    if _LIST_START.match(text):
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


def _documents(value: Any, name: str, where: str) -> list[Document]:
    if name in IDS:
        ids = [str(one) for one in _listed(value, f"{where}: {name}", separators=";,")]
        return [Document(one, "", {"text_missing": True}) for one in ids]
    separators = "|" if name in ("context", "retrieval_context") else ""
    if name in IDS_OR_TEXTS and isinstance(value, str) and _are_words(value.split(";")):
        separators = ";"
    items = _listed(value, f"{where}: {name}", separators=separators)
    if name in IDS_OR_TEXTS:
        try:
            return [hit.doc for hit in as_hits(items)]
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: {name}", f"{error}.") from error
    return [_text_document(item, f"{where}: {name}") for item in items]


def _ranked(documents: Sequence[Document], items: Any, where: str) -> list[RetrievedDocument]:
    """Return hits with the scores and ranks that the items have, in the order of their ranks."""
    if isinstance(items, str):
        items = written_list(items, where)
    facts = items if isinstance(items, list) and len(items) == len(documents) else [None] * len(documents)
    numbers: list[Record] = [item if isinstance(item, Mapping) else {} for item in facts]
    ranks = [_rank(record.get("rank"), place) for place, record in enumerate(numbers, start=1)]
    if len(set(ranks)) < len(ranks):
        what = f"two documents have the same rank: {ranks[:10]}."
        raise DataError(where, what, fix="Number them 1, 2, 3, ...")
    hits = []
    ordered = sorted(zip(ranks, documents, numbers, strict=True), key=itemgetter(0))
    for place, (rank, doc, record) in enumerate(ordered, start=1):
        score = record.get("score")
        if isinstance(score, int | float) and not isinstance(score, bool):
            hits.append(RetrievedDocument(doc, float(score), rank))
        else:
            # 1 / place falls along the list; ranks may start at 0.
            hits.append(replace(unscored(doc, place), rank=rank))
    return hits


def _rank(value: Any, place: int) -> int:
    """Return the rank that an item names, or else its place; a table may write 1 as 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else place


def _text_document(item: Any, where: str) -> Document:
    if not isinstance(item, str):
        try:
            return as_hits([item])[0].doc
        except (TypeError, ValueError) as error:
            raise DataError(where, f"{error}.") from error
    sourced = _DEEPEVAL_SOURCE.fullmatch(item)
    return Document(sourced[1], sourced[2]) if sourced else Document(text_id(item), item)


def _reference(value: Any, where: str) -> Response | None:
    """Return the reference answer; further ones of a list are alternatives."""
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        value = value["text"]
    if isinstance(value, str) and value.strip().startswith("["):
        written = written_list(value, f"{where}: the reference answer")
        value = value if written is None else written
    if isinstance(value, Set):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        texts = [_reference_text(one, where) for one in value if _value(one) is not None]
        if not texts:
            return None
        more = list(dict.fromkeys(texts[1:]))
        return Response(texts[0], metadata={"alternatives": more} if more else {})
    if value is None or isinstance(value, str | Mapping | Response):
        return None if value is None else _checked_reference(value, where)
    return Response(str(value))


def _reference_text(value: Any, where: str) -> str:
    if isinstance(value, list | tuple):
        raise DataError(f"{where}: the reference answer", f"a text was expected, not a list: {value!r:.60}.")
    return str(value) if isinstance(value, int | float) else _checked_reference(value, where).text


def _checked_reference(value: Any, where: str) -> Response:
    try:
        return as_answer(value)
    except TypeError as error:
        raise DataError(f"{where}: the reference answer", f"{error}.") from error


def _object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(where, "the cell is not JSON.", fix="Write an object as JSON.") from error
    if isinstance(value, Mapping):
        return {str(name): one for name, one in value.items()}
    return {} if value is None else {"value": value}
