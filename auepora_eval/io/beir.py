"""BEIR: a folder with corpus.jsonl, queries.jsonl and judgements in qrels/test.tsv (or dev, or train).

Queries without judgements are left out, as BEIR does. A document's text is its title and its text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import Document, EvaluationSample
from ..errors import DataError, warn_user
from ..read.fields import ReadingNote
from .files import write_bytes
from .jsonl import placed_lines, read_records, save_records

SPLITS = ("test", "dev", "train")


def is_beir(path: Path) -> bool:
    """Return whether a folder has the files of BEIR."""
    # By os.path, which takes any name: a path that is too long is not a folder.
    return all(os.path.exists(f"{path}/{name}") for name in ("queries.jsonl", "qrels"))  # noqa: PTH110


def load_beir(path: str | Path) -> InMemoryDataset:
    """Load the queries that are judged, with their documents and the corpus."""
    folder = Path(path)
    if not is_beir(folder):
        is_folder = os.path.isdir(folder)  # noqa: PTH112 - it takes any name
        what = "is a folder without queries.jsonl and qrels." if is_folder else "there is no such file."
        raise DataError(f"{str(folder)!r:.80}", what, fix="Name the folder of a BEIR dataset.")
    corpus = {doc.doc_id: doc for doc in _corpus(folder / "corpus.jsonl")}
    judged = _judgements(folder)
    samples, left_out = [], 0
    for where, record in read_records(folder / "queries.jsonl"):
        name = _text(record, "_id", where)
        if name not in judged:
            left_out += 1
            continue
        docs = [_graded(doc_id, grade, corpus) for doc_id, grade in judged[name].items()]
        samples.append(EvaluationSample(name, _text(record, "text", where), relevant_docs=docs))
    if left_out:
        queries = "1 query has" if left_out == 1 else f"{left_out} queries have"
        warn_user(f"{folder.name}: {queries} no judgements: left out.", ReadingNote)
    return InMemoryDataset(folder.name, samples, documents=list(corpus.values()))


def _corpus(path: Path) -> Iterator[Document]:
    if not path.is_file():
        return
    for where, record in read_records(path):
        title, text = str(record.get("title") or ""), str(record.get("text") or "")
        metadata = record.get("metadata")
        yield Document(
            _text(record, "_id", where),
            f"{title} {text}".strip(),
            {**(metadata if isinstance(metadata, dict) else {}), **({"title": title} if title else {})},
        )


def _graded(doc_id: str, grade: int, corpus: dict[str, Document]) -> Document:
    doc = corpus.get(doc_id)  # a judged document may be missing: ArguAna has five such ids
    if doc is None:
        return Document(doc_id, "", {"relevance": grade, "text_missing": True})
    return Document(doc_id, doc.text, {**doc.metadata, "relevance": grade})


def _judgements(folder: Path) -> dict[str, dict[str, int]]:
    path = next((file for split in SPLITS if (file := folder / "qrels" / f"{split}.tsv").is_file()), None)
    if path is None:
        raise DataError(str(folder), "there is no qrels/test.tsv.", fix="Add the judgements.")
    judged: dict[str, dict[str, int]] = {}
    for number, (where, line) in enumerate(placed_lines(path)):
        if number == 0:  # the heading, whatever it says: BEIR does not read it
            continue
        columns = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
        try:
            query, doc_id, grade = columns
            judged.setdefault(query, {})[doc_id] = int(grade)
        except ValueError:
            fix = "Write query, document and a whole number, with tabs between them."
            raise DataError(where, "this is not a judgement.", fix=fix) from None
    return judged


def _text(record: dict[str, Any], name: str, where: str) -> str:
    value = record.get(name)
    if not isinstance(value, str | int):
        raise DataError(where, f"there is no {name!r}.", fix="BEIR needs _id and text.")
    return str(value)


def save_beir(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write the corpus, the queries and the judgements of a dataset to a folder."""
    folder = Path(path)
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    corpus = {doc.doc_id: doc for doc in dataset.documents}
    lines = ["query-id\tcorpus-id\tscore"]
    for sample in dataset:
        for doc in sample.relevant_docs or ():
            corpus.setdefault(doc.doc_id, doc)
            lines.append(f"{sample.sample_id}\t{doc.doc_id}\t{int(doc.metadata.get('relevance', 1))}")
    save_records((_corpus_record(doc) for doc in corpus.values()), folder / "corpus.jsonl", force=force)
    queries = ({"_id": sample.sample_id, "text": sample.query, "metadata": {}} for sample in dataset)
    save_records(queries, folder / "queries.jsonl", force=force)
    write_bytes(folder / "qrels" / "test.tsv", ("\n".join(lines) + "\n").encode(), force=force)


def _corpus_record(doc: Document) -> dict[str, Any]:
    title = str(doc.metadata.get("title") or "")
    text = doc.text.removeprefix(title).lstrip() if title else doc.text
    return {"_id": doc.doc_id, "title": title, "text": text, "metadata": {}}
