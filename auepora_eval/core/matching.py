"""When a retrieved document counts as a relevant one: by its id, by its source, or by its text.

Which documents are relevant, and how much, is in the metadata of the judged documents.
The ids of an index are often new at each indexing, and a chunk has another id than its document. Both sides
then get ids that can be compared: the source of each document, or the relevant text that a chunk contains.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError, ScoringError
from .scores import Batch, given, is_given, spaced
from .types import (
    DOCUMENTS_MISSING,
    Document,
    EvaluationRun,
    EvaluationSample,
    RetrievedDocument,
    SystemOutputs,
    gold_documents,
    retrieved_ids,
)

BY_ID, BY_SOURCE, BY_TEXT = "id", "source", "text"
MATCHES = (BY_ID, BY_SOURCE, BY_TEXT)
_NUMBERS, _LARGEST = (int, float), sys.float_info.max
_RECORD = re.compile(r"\.jsonl(?:\.gz)?#(.+)$")  # a document in a file of many
_SEPARATORS = "-_:/."  # between the id of a document and the number of its chunk


def check_match(match: str) -> str:
    """Return the name of a way to match; raise ArgumentError if there is none of that name."""
    if match not in MATCHES:
        raise ArgumentError(f"match must be one of {', '.join(MATCHES)}, not {match!r:.60}")
    return match


# The names under which a chunk says what it is from. The last two are those of generated records (seed 000).
_SOURCES = ("source", "source_id", "document", "source_path")


def source_of(doc: Document) -> str:
    """Return the document that a chunk is from, as its metadata say; else its own id."""
    sources = (given(doc.metadata, name) for name in _SOURCES)
    return next((str(source) for source in sources if isinstance(source, str | int)), doc.doc_id)


# The names of the first character of a chunk, and of the character after its last.
STARTS = ("start", "start_index", "start_char_idx", "start_char", "split_idx_start")
ENDS = ("end", "end_index", "end_char_idx", "end_char")
Span = tuple[int, int]


def own_span(doc: Document) -> Span | None:
    """Return where in its source a chunk is, half-open, in characters; None if it does not say so."""
    start, end = (next(filter(is_given, map(doc.metadata.get, names)), None) for names in (STARTS, ENDS))
    if end is None and isinstance(start, int) and doc.text:
        end = start + len(doc.text)
    return None if start is None and end is None else checked_span(doc, start, end)


def chunk_span(doc: Document) -> Span | None:
    """Return the same, or None if what it says has another form."""
    try:
        return own_span(doc)
    except ScoringError:
        return None


def located(documents: Iterable[Document]) -> dict[str, tuple[str, Span | None]]:
    """Return the source of each document and its place there, by its id.

    Two documents with one id are one: what a retriever returns need not repeat what the dataset says of it.
    """
    known: dict[str, tuple[str, Span | None]] = {}
    for doc in documents:
        source, span = known.get(doc.doc_id, (doc.doc_id, None))
        known[doc.doc_id] = (source_of(doc) if source == doc.doc_id else source, span or chunk_span(doc))
    return known


def spans_in(doc: Document) -> list[Mapping[str, Any]]:
    """Return the gold spans of a relevant document; ScoringError if they are none."""
    spans = doc.metadata.get("spans") or []
    if not isinstance(spans, list) or not all(isinstance(span, Mapping) for span in spans):
        found = f"{str(spans)[:60]!r}, not a list of start and end"
        raise ScoringError(f"the spans of document {doc.doc_id!r} are {found}")
    for span in spans:
        checked_span(doc, span.get("start"), span.get("end"))
    return spans


def checked_span(doc: Document, start: Any, end: Any) -> Span:
    """Return where a span or a chunk starts and ends; ScoringError if that is not a span."""
    for number in (start, end):
        if isinstance(number, bool) or not isinstance(number, int):
            raise ScoringError(
                f"a span of document {doc.doc_id!r} goes from {start!r} to {end!r}, not whole numbers"
            )
    if not 0 <= start < end:
        raise ScoringError(f"document {doc.doc_id!r} has a span from {start} to {end}, which is not a span")
    return start, end


def by_any_name(sources: Iterable[str]) -> dict[str, str]:
    """Return sources by each name that they go by: a record of a file also by its own id.

    >>> by_any_name(["docs/all.jsonl#tides"])
    {'tides': 'docs/all.jsonl#tides', 'docs/all.jsonl#tides': 'docs/all.jsonl#tides'}
    """
    names = list(sources)
    records = {found[1]: name for name in names if (found := _RECORD.search(name))}
    return records | {name: name for name in names}


def grade_of(doc: Document) -> float:
    """Return the relevance of a judged document: 1 if none is given."""
    grade: Any = doc.metadata.get("relevance")
    if grade is None:
        return 1.0
    # Compared, not converted: a whole number may be larger than any float.
    is_number = type(grade) in _NUMBERS or (isinstance(grade, _NUMBERS) and not isinstance(grade, bool))
    if is_number and -_LARGEST <= grade <= _LARGEST:
        return float(grade)
    if is_given(grade):
        raise ScoringError(f"the relevance of document {doc.doc_id!r} is {grade!r:.40}, not a finite number")
    return 1.0


def match_of(run: EvaluationRun) -> str:
    """Return by what the metrics of a run compare documents: id, source or text."""
    stored = (result.signature.get("match") for result in run.results)
    # A run without a metric of documents has only its settings.
    match = next(filter(None, stored), None) or run.configuration.get("match")
    return match if match in MATCHES else BY_ID


def gold_found(
    sample: EvaluationSample, output: SystemOutputs, match: str = BY_ID
) -> tuple[list[bool], list[Document]]:
    """Return which of the retrieved documents are gold, and the gold documents that were not retrieved.

    The metrics of relevant documents count the same ones. An output without documents does not say.
    """
    if output.extra.get(DOCUMENTS_MISSING) is True:
        return [False] * len(output.retrieved), []
    name_of, hits = _names(sample, output, match)
    gold = [(name_of(doc), doc) for doc in gold_documents(sample)]
    names, known = {name for name, _ in gold}, {None, *hits}
    return [hit in names for hit in hits], [doc for name, doc in gold if name not in known]


def matched(batch: Batch, match: str) -> Batch:
    """Return the batch with ids that are equal where documents match; for batch.once."""
    pairs = [
        _renamed(sample, output, match) for sample, output in zip(batch.samples, batch.outputs, strict=True)
    ]
    return Batch.of(pairs)


def _renamed(
    sample: EvaluationSample, output: SystemOutputs, match: str
) -> tuple[EvaluationSample, SystemOutputs]:
    name_of, hits = _names(sample, output, match)

    def renamed(docs: list[Document] | None) -> list[Document] | None:
        if docs is None:
            return None
        named = ((name_of(doc), doc) for doc in docs)
        return [Document(name, doc.text, doc.metadata) for name, doc in named if name is not None]

    renamed_hits = [
        RetrievedDocument(Document(name, hit.doc.text, hit.doc.metadata), hit.score, hit.rank)
        for name, hit in zip(hits, output.retrieved, strict=True)
    ]
    return (
        replace(
            sample,
            relevant_docs=renamed(sample.relevant_docs),
            candidate_docs=renamed(sample.candidate_docs),
        ),
        replace(output, retrieved=renamed_hits),
    )


# The name of a judged document, None if it cannot be compared; and the names of the retrieved documents.
Names = tuple[Callable[[Document], str | None], list[str]]


def _names(sample: EvaluationSample, output: SystemOutputs, match: str) -> Names:
    """Return names that are equal where documents match."""
    if match == BY_ID:
        return (lambda doc: doc.doc_id), retrieved_ids(output.retrieved)
    return _by_source(sample, output) if match == BY_SOURCE else _by_text(sample, output)


def _judged(sample: EvaluationSample) -> list[Document]:
    return [*(sample.relevant_docs or ()), *(sample.candidate_docs or ())]


def _by_source(sample: EvaluationSample, output: SystemOutputs) -> Names:
    """Name documents by their source. Relevant chunks of one source become one relevant document."""
    sources = by_any_name(map(source_of, _judged(sample)))
    return source_of, [_known_source(hit.doc, sources) for hit in output.retrieved]


def _known_source(doc: Document, sources: Mapping[str, str]) -> str:
    """Return the judged source that a document is from, or its own source if it is from another one."""
    source = source_of(doc)
    # A loader may store a whole path, and an id may be all that names the source.
    base, before = source.replace("\\", "/").rpartition("/")[2], source.rpartition("#")[0]
    names = (source, base, before, *_without_chunk(source))
    return next((sources[name] for name in names if name in sources), source)


def _without_chunk(source: str) -> Iterator[str]:
    """Yield what the id of a chunk may start with: billing.md#0, billing.md::chunk-2, billing.md:6:2.

    >>> list(_without_chunk("billing.md:6:2"))
    ['billing.md:6:2', 'billing.md:6:2', 'billing.md:6', 'billing.md']
    """
    yield from (source.partition(mark)[0] for mark in ("#", "::"))
    while (rest := source.rstrip("0123456789")) != source:
        source = rest.rstrip(_SEPARATORS)
        if source.lower().endswith("chunk"):
            source = source[: -len("chunk")].rstrip(_SEPARATORS)
        elif source == rest:  # a number that is a part of the name
            return
        yield source


def _by_text(sample: EvaluationSample, output: SystemOutputs) -> Names:
    """Give a chunk the id of the relevant text in it. Texts that are found in one chunk count as one.

    A judged document without a text is left out: whether it was retrieved is not known.
    """
    judged = _judged(sample)
    judged_ids = {doc.doc_id for doc in judged}
    texts = {doc.doc_id: text for doc in judged if (text := spaced(doc.text))}
    ids: dict[str, str] = {}  # of the judged documents that were found, with the id that they share
    names = [""] * len(output.retrieved)
    for place, hit in sorted(enumerate(output.retrieved), key=lambda each: each[1].rank):
        chunk = spaced(hit.doc.text)
        contained = [doc_id for doc_id, text in texts.items() if text in chunk]
        # Overlapping chunks share texts: each chunk counts as a text that no better one has.
        new = [doc_id for doc_id in contained if doc_id not in ids]
        ids |= dict.fromkeys(new, new[0] if new else "")
        # An id that happens to be a judged one must not count: only the text does.
        own = f"unmatched {hit.doc.doc_id}" if hit.doc.doc_id in judged_ids else hit.doc.doc_id
        names[place] = ids[(new or contained)[0]] if contained else own

    def name_of(doc: Document) -> str | None:
        return ids.get(doc.doc_id, doc.doc_id) if spaced(doc.text) else None

    return name_of, names
