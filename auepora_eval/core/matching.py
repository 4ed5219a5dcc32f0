"""When a retrieved document counts as a relevant one: by its id, by its source, or by its text.

The ids of an index are often new at each indexing, and a chunk has another id than its document. Both sides
then get ids that can be compared: the source of each document, or the relevant text that a chunk contains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..errors import ArgumentError
from .scores import Batch
from .types import Document, EvaluationSample, RetrievedDocument, SystemOutputs

BY_ID, BY_SOURCE, BY_TEXT = "id", "source", "text"
MATCHES = (BY_ID, BY_SOURCE, BY_TEXT)
_SEPARATORS = "-_:/."  # between the id of a document and the number of its chunk


def check_match(match: str) -> str:
    """Return the name of a way to match; raise ArgumentError if there is none of that name."""
    if match not in MATCHES:
        raise ArgumentError(f"match must be one of {', '.join(MATCHES)}, not {match!r:.60}")
    return match


def source_of(doc: Document) -> str:
    """Return the document that a chunk is from: its metadata["source"], or else its own id."""
    return str(doc.metadata.get("source") or doc.metadata.get("source_id") or doc.doc_id)


def matched(batch: Batch, match: str) -> Batch:
    """Return the batch with ids that are equal where documents match; for batch.once."""
    pair = _by_source if match == BY_SOURCE else _by_text
    pairs = [pair(sample, output) for sample, output in zip(batch.samples, batch.outputs, strict=True)]
    return Batch([sample for sample, _ in pairs], [output for _, output in pairs], batch.asked)


def _by_source(sample: EvaluationSample, output: SystemOutputs) -> tuple[EvaluationSample, SystemOutputs]:
    """Name documents by their source. Relevant chunks of one source become one relevant document."""
    judged = [*(sample.relevant_docs or ()), *(sample.candidate_docs or ())]
    sources = {source_of(doc) for doc in judged}
    return (
        replace(
            sample,
            relevant_docs=_renamed(sample.relevant_docs, source_of),
            candidate_docs=_renamed(sample.candidate_docs, source_of),
        ),
        _with_ids(output, [_known_source(hit.doc, sources) for hit in output.retrieved]),
    )


def _known_source(doc: Document, sources: set[str]) -> str:
    """Return the judged source that a document is from, or its own source if it is from another one."""
    source = source_of(doc)
    # A loader may store a whole path, and an id may be all that names the source.
    names = (source, source.replace("\\", "/").rpartition("/")[2], *_without_chunk(source))
    return next((name for name in names if name in sources), source)


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


def _by_text(sample: EvaluationSample, output: SystemOutputs) -> tuple[EvaluationSample, SystemOutputs]:
    """Give a chunk the id of the relevant text in it. Texts that are found in one chunk count as one.

    A judged document without a text is left out: whether it was retrieved is not known.
    """
    judged = (*(sample.relevant_docs or ()), *(sample.candidate_docs or ()))
    judged_ids = {doc.doc_id for doc in judged}
    texts = {doc.doc_id: text for doc in judged if (text := _words(doc.text))}
    ids: dict[str, str] = {}  # of the judged documents that were found, with the id that they share
    hit_ids = []
    for hit in sorted(output.retrieved, key=lambda hit: hit.rank):
        chunk = _words(hit.doc.text)
        contained = [doc_id for doc_id, text in texts.items() if text in chunk]
        new = [doc_id for doc_id in contained if doc_id not in ids]
        ids |= dict.fromkeys(new, new[0] if new else "")
        # An id that happens to be a judged one must not count: only the text does.
        own = f"unmatched {hit.doc.doc_id}" if hit.doc.doc_id in judged_ids else hit.doc.doc_id
        hit_ids.append((hit, ids[contained[0]] if contained else own))
    ordered = replace(output, retrieved=[hit for hit, _ in hit_ids])

    def name(doc: Document) -> str:
        return ids.get(doc.doc_id, doc.doc_id)

    return (
        replace(
            sample,
            relevant_docs=_renamed(_with_text(sample.relevant_docs), name),
            candidate_docs=_renamed(_with_text(sample.candidate_docs), name),
        ),
        _with_ids(ordered, [doc_id for _, doc_id in hit_ids]),
    )


def _words(text: str) -> str:
    # Loaders and splitters change white space, which changes nothing about what a text says.
    return " ".join(text.split())


def _with_text(docs: list[Document] | None) -> list[Document] | None:
    return None if docs is None else [doc for doc in docs if _words(doc.text)]


def _renamed(docs: list[Document] | None, name: Callable[[Document], str]) -> list[Document] | None:
    return None if docs is None else [Document(name(doc), doc.text, doc.metadata) for doc in docs]


def _with_ids(output: SystemOutputs, ids: Sequence[str]) -> SystemOutputs:
    hits = [
        RetrievedDocument(Document(doc_id, hit.doc.text, hit.doc.metadata), hit.score, hit.rank)
        for hit, doc_id in zip(output.retrieved, ids, strict=True)
    ]
    return replace(output, retrieved=hits)
