"""TREC: judgements (qrels) as a dataset, a run as predictions, and both written.

Qrels have four columns: query, iteration, document, relevance. A run has six: query, Q0, document, rank,
score, tag. As in trec_eval, the second column and the rank are not read: documents are ordered by score, and
by document id in descending order where scores are equal. A query that the run lacks counts as one without
documents, as with `trec_eval -c`; without -c, trec_eval leaves it out. Queries that only the run has are left
out.

Both may also be JSON, {query: {document: number}}, as pytrec_eval, BEIR and ranx have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, repeat
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset, ready_frame, records_of
from ..core.matching import grade_of
from ..core.types import (
    ANSWER_MISSING,
    Document,
    EvaluationSample,
    RankedIds,
    Response,
    RetrievedDocument,
    SystemOutputs,
    falls,
)
from ..errors import DataError, warn_user, wrong_type
from ..read.fields import ReadingNote
from ..read.text import check_same_text
from .documents import read_content, read_document
from .files import stem, write_bytes
from .jsonl import placed_lines

# A line of JSON starts with { or [, and must not be taken for four words.
_QRELS = re.compile(rb"[^\s{\[]\S*[ \t]+\S+[ \t]+\S+[ \t]+-?[0-9]+\s*")
_RUN = re.compile(
    rb"[^\s{\[]\S*[ \t]+\S+[ \t]+\S+[ \t]+[0-9]+[ \t]+-?[0-9.]+(?:[eE][-+]?[0-9]+)?[ \t]+\S+\s*"
)


def trec_kind(start: bytes) -> str | None:
    """Return whether a file is qrels ("trec") or a run ("trec-run"), by its first line."""
    line = start.lstrip().split(b"\n")[0]
    if _QRELS.fullmatch(line):
        return "trec"
    return "trec-run" if _RUN.fullmatch(line) else None


def json_rankings_kind(document: Mapping[str, Any]) -> str | None:
    """Return whether {query: {document: number}} are qrels, with whole numbers, or a run; None if neither."""
    lists = list(document.values())
    if not all(isinstance(each, dict) for each in lists):
        return None
    kinds = {type(number) for each in lists for number in each.values()}
    return ("trec" if kinds == {int} else "trec-run") if kinds and kinds <= {int, float} else None


def load_qrels(path: str | Path) -> InMemoryDataset:
    """Load judgements; the text of a query is its id, as qrels hold no texts."""
    path = Path(path)
    samples = [judged_sample(query, *judged) for query, judged in by_query(path, "relevance").items()]
    return InMemoryDataset(stem(path), samples)


def judged_sample(query: str, docs: Sequence[str], grades: Sequence[float]) -> EvaluationSample:
    """Return the sample of a query with the grades of documents."""
    facts = ({"relevance": grade, "text_missing": True} for grade in grades)
    return EvaluationSample(query, query, relevant_docs=list(map(Document, docs, repeat(""), facts)))


def with_topics(dataset: EvaluationDataset, path: Path) -> InMemoryDataset:
    """Return the dataset with the texts of its queries, from lines with an id, a tab and a text."""
    texts: dict[str, str] = {}
    for where, line in placed_lines(path):
        name, tab, text = line.decode("utf-8", "replace").strip("\r\n").partition("\t")
        if not tab or not text.strip():
            raise DataError(where, "this is not a topic.", fix="Write the id of a query, a tab and its text.")
        texts[name.strip()] = text.strip()
    samples = list(dataset)
    lacking = [sample.sample_id for sample in samples if sample.sample_id not in texts]
    if lacking:
        what = f"{len(lacking)} of {len(samples)} queries have no topic, first {lacking[0]!r:.60}."
        raise DataError(path.name, what, fix="Is it the file of another dataset?")
    named = [replace(sample, query=texts[sample.sample_id]) for sample in samples]
    return InMemoryDataset(dataset.name, named, info=dict(dataset.info), documents=dataset.documents)


def read_run(source: Any) -> dict[str, SystemOutputs]:
    """Return the documents of each query, ordered by score."""
    lists = by_query(source, "score")
    return {query: ranked_output(RankedIds.by_score(*docs)) for query, docs in lists.items()}


def ranked_output(ranked: Sequence[RetrievedDocument]) -> SystemOutputs:
    """Return the output of a system that only retrieves."""
    return SystemOutputs(ranked, Response(""), extra={ANSWER_MISSING: True})


Lists = tuple[list[str], list[float]]  # documents, and the number of each


def by_query(source: Any, number: str) -> dict[str, Lists]:
    """Return the documents of each query with their grades or scores; `number` is "relevance" or "score".

    The source is a dict of dicts, a file of TREC, or a table with the columns query_id, doc_id and the
    number, as ir_measures has them.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if not _is_json(path):
            return _numbers_in(path, is_run=number == "score")
        source = _json_numbers_in(path)
    names = ("query_id", "doc_id", number)
    table = _table(source, names)
    if table is not None:
        queries, docs, numbers = (_listed(table[name]) for name in names)
        found: dict[str, Lists] = {}
        _add(found, queries, list(map(str, docs)), numbers)
        return _without_repeats(found, "the table")
    if isinstance(source, Mapping) and all(isinstance(each, Mapping) for each in source.values()):
        return {query: (list(docs), list(docs.values())) for query, docs in source.items()}
    forms = f"a dict of {{query: {{document: {number}}}}}, a TREC file, or a table of {', '.join(names)}"
    raise wrong_type("qrels" if number == "relevance" else "run", forms, source)


def _is_json(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".json")


def _json_numbers_in(path: Path) -> dict[str, dict[str, float]]:
    document = read_document(path)
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        raise DataError(path.name, "{query: {document: number}} was expected.")
    for query, docs in document.items():
        for doc, number in docs.items():
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise DataError(
                    f"{path.name}: {query!r:.60}: {doc!r:.60}", f"{number!r:.40} is not a number."
                )
    return document


def _table(source: Any, names: Sequence[str]) -> Any:
    """Return something that gives each named column; None if the source is not such a table."""
    source = ready_frame(source)
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        return source if all(name in source for name in names) else None
    rows = records_of(source)  # a list of dicts, or a Hugging Face dataset
    if not rows or not all(isinstance(row, Mapping) and row.keys() >= set(names) for row in rows):
        return None
    return {name: [row[name] for row in rows] for name in names}


def _listed(column: Any) -> list[Any]:
    """Return a column of a table as a list: their own method is many times faster than a loop."""
    methods = (getattr(column, name, None) for name in ("tolist", "to_list", "to_pylist"))
    return list(next((method() for method in methods if callable(method)), column))


_END = "\0"  # of a line
_BLOCK = 1 << 16  # characters whose words are in the cache of a processor, and in memory, at a time


def _numbers_in(path: Path, *, is_run: bool) -> dict[str, Lists]:
    """Return the last but one of the six columns of a run, or the last of the four columns of qrels."""
    count, place, kind = (6, 4, float) if is_run else (4, 3, int)
    content = read_content(path)
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        check_same_text(content, path.name)  # says where
        raise
    found: dict[str, Lists] = {}
    start = 0
    while start < len(text) or not found:
        end = text.find("\n", start + _BLOCK)
        block = text[start:] if end < 0 else text[start:end]
        words = _words(block, count) or _words("\n".join(filter(str.strip, block.split("\n"))), count)
        numbers = _numbers(words[place :: count + 1], kind)
        if not numbers:
            raise _wrong_line(path, count, place, kind)
        _add(found, words[0 :: count + 1], words[2 :: count + 1], numbers)
        start += len(block) + 1
    return _without_repeats(found, path.name)


def _numbers(words: list[str], kind: type[float]) -> list[float]:
    """Return words as numbers; none if one of them is not a number."""
    # The decoder of JSON takes half of the time of `float`. To it, a word with a comma is two numbers, and -0
    # has no sign.
    with suppress(msgspec.DecodeError):
        numbers: list[float] = msgspec.json.decode(f"[{','.join(words)}]", type=list[kind])  # type: ignore[valid-type]
        if len(numbers) == len(words) and "-0" not in words:
            return numbers
    try:
        return list(map(kind, words))
    except ValueError:
        return []


def _words(text: str, count: int) -> list[str]:
    """Return the words of lines of `count` words, and the end of each; none if a line has more or fewer.

    One split of many lines is three times as fast as one per line.
    """
    words = text.replace("\n", f" {_END} ").split()
    ends = words[count :: count + 1]
    is_regular = len(words) == (count + 1) * (len(ends) + 1) - 1 and ends.count(_END) == len(ends)
    return words if is_regular else []


def _wrong_line(path: Path, count: int, place: int, kind: type[float]) -> DataError:
    """Return the error of the first line that is not one of a run, or of qrels."""
    for where, line in placed_lines(path):
        words = line.decode("utf-8", "replace").split()
        if len(words) != count:
            what = f"there are {len(words)} columns, not {count}."
            return DataError(where, what, fix="Is it the right kind of file?")
        try:
            kind(words[place])
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            return DataError(where, f"{words[place]!r:.40} is not {what}.", fix="Correct the line.")
    return DataError(path.name, "there is nothing in it.", fix="Is it the right file?")


def _add(found: dict[str, Lists], queries: list[Any], docs: list[str], numbers: list[float]) -> None:
    """Add documents and their numbers to the lists of their queries."""
    start = 0
    for query, group in groupby(queries):  # the lines of a query follow each other, as a rule
        end = start + len(list(group))
        ids, values = found.setdefault(str(query), ([], []))
        ids += docs[start:end]
        values += numbers[start:end]
        start = end


def _without_repeats(found: dict[str, Lists], where: str) -> dict[str, Lists]:
    """Return the lists of each query; of a repeated document the last number."""
    repeated = 0
    for query, (ids, values) in found.items():
        if len(set(ids)) < len(ids):
            last = dict(zip(ids, values, strict=True))
            repeated += len(ids) - len(last)
            found[query] = list(last), list(last.values())
    if repeated:
        what = f"{repeated} lines name a document of a query again; the last one counts"
        warn_user(f"{where}: {what}.", ReadingNote)
    return found


def save_qrels(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write the judgements of a dataset; documents without a grade have the relevance 1."""
    _write(path, _qrels_lines(dataset), force=force)


def _qrels_lines(dataset: EvaluationDataset) -> Iterator[str]:
    for sample in dataset:
        for doc in sample.relevant_docs or ():
            grade = grade_of(doc)
            if not grade.is_integer():
                what = f"the relevance {grade} of {doc.doc_id!r:.60} is not a whole number, as qrels need it."
                raise DataError(f"sample {sample.sample_id!r:.60}", what)
            yield f"{_word(sample.sample_id)} 0 {_word(doc.doc_id)} {int(grade)}"


def save_run(
    outputs: Iterable[tuple[str, SystemOutputs]],
    path: str | Path,
    *,
    tag: str = "auepora",
    force: bool = False,
) -> None:
    """Write outputs as a run. The scores fall with the rank, so that other tools keep the order."""
    _write(path, _run_lines(outputs, _word(tag)), force=force)


def _run_lines(outputs: Iterable[tuple[str, SystemOutputs]], tag: str) -> Iterator[str]:
    for sample_id, output in outputs:
        hits = sorted(output.retrieved, key=lambda hit: hit.rank)
        scores = [hit.score for hit in hits]
        # Equal or rising scores would be put in another order by the tool that reads them.
        if not falls(scores):
            scores = [float(len(hits) - place) for place in range(len(hits))]
        for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), start=1):
            yield f"{_word(sample_id)} Q0 {_word(hit.doc.doc_id)} {rank} {score!r} {tag}"


def _word(text: str) -> str:
    if not text or re.search(r"\s", text):
        raise DataError(f"the id {text!r:.60}", "has white space, which TREC files use as separator.")
    return text


def _write(path: str | Path, lines: Iterable[str], *, force: bool) -> None:
    content = "".join(f"{line}\n" for line in lines)
    write_bytes(Path(path), content.encode("utf-8", "surrogatepass"), force=force)
