"""What `dataset check` shows of a dataset: its description and a few samples."""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.types import Document, EvaluationSample, gold_documents
from ...errors import DataError
from ...quality.description import describe
from ...quality.samples import reference_support
from ...read.records import sample_record
from .. import echo

if TYPE_CHECKING:
    from ...core.dataset import EvaluationDataset
    from ...quality.samples import Support

_VALUES = 8  # values of a label that fit into a line
_SAMPLES = 5
_MAX_LENGTH = 1500  # characters of a text of a sample


def description(dataset: EvaluationDataset, name: str, format_name: str) -> dict[str, Any]:
    """Return the description of a dataset, and of its file."""
    path = None if name == "demo" else Path(name)
    size = path.stat().st_size if path is not None and path.is_file() else None
    return {"file": path and name, "format": format_name, "bytes": size, **describe(dataset)}


def say_description(about: Mapping[str, Any]) -> None:
    """Print the description of a dataset, and which metrics it supports."""
    total = about["samples"]
    size = "" if about["bytes"] is None else f", {about['bytes']:,} bytes"
    echo.say(
        f"{echo.one_line(about['name'], 120)}: {total} sample{'s' * (total != 1)} ({about['format']}{size})"
    )
    for title in ("dataset_id", "version", "created_at", "description"):
        if about[title]:
            echo.say(f"  {title + ':':<13}{echo.one_line(about[title], 300)}")
    echo.say(f"  fingerprint: {about['fingerprint']}")
    documents = about["documents"]
    corpus = "no corpus" if documents["corpus"] is None else f"{documents['corpus']} in the corpus"
    missing = f", {documents['gold without text']} of them without text" * bool(
        documents["gold without text"]
    )
    echo.say(
        f"  documents:   {corpus}, {documents['gold']} gold{missing}, {documents['candidates']} candidates"
    )
    echo.say()
    rows = [
        (title, f"{count}", f"{count / total:.0%}" if total else "n/a")
        for title, count in about["fields"].items()
    ]
    echo.say_table(("Samples with", "Count", "Share"), rows, numeric=(1, 2))
    rows_of_lengths = [
        (title, *(f"{spread[key]:g}" for key in ("median", "p95", "max")))
        for title, spread in about["lengths"].items()
        if spread
    ]
    echo.say()
    echo.say_table(("Length", "Median", "p95", "Largest"), rows_of_lengths, numeric=(1, 2, 3))
    _say_labels(about["labels"])
    _say_targets(about["targets"], total)


def _say_labels(labels: Mapping[str, Any]) -> None:
    if not labels:
        return
    rows = []
    for name, label in labels.items():
        frequent = list(label["values"].items())
        # The most frequent value occurs once: ids or free text, not categories.
        if frequent and frequent[0][1] == 1 < label["samples"]:
            values = "each its own"
        else:
            values = ", ".join(f"{echo.one_line(value, 40)} {count}" for value, count in frequent[:_VALUES])
            values += ", ..." * (label["distinct"] > _VALUES)
        rows.append((echo.one_line(name, 40), f"{label['samples']}", f"{label['distinct']}", values))
    echo.say()
    echo.say_table(("Label", "Samples", "Values", "Which"), rows, numeric=(1, 2))


def _say_targets(targets: list[dict[str, Any]], total: int) -> None:
    rows = []
    for target in targets:
        possible, lacks = len(target["metrics"]), ", ".join(target["lacks"])
        rows.append(
            (
                target["target"],
                f"{possible} metrics" if possible else "no metric",
                f"{target['samples']}/{total}" if possible else "-",
                lacks or "-",
            )
        )
    echo.say()
    echo.say_table(("Target", "Measured by", "Samples", "More with"), rows, numeric=(2,))


# A few samples to read: no check replaces that.


def chosen_samples(dataset: EvaluationDataset, args: Namespace, name: str) -> list[EvaluationSample]:
    """Return the samples to read: one by --id, the least supported, or a few at random."""
    samples, count = list(dataset), args.sample or _SAMPLES
    if args.id is not None:
        matching = [sample for sample in samples if sample.sample_id == args.id]
        if not matching:
            raise DataError(name, f"there is no sample {args.id!r:.80}.")
        return matching
    if args.suspicious:
        judged = [(support.share, n) for n, s in enumerate(samples) if (support := _support(s))]
        if not judged:
            raise DataError(name, "no sample has a reference and documents to judge it by.")
        return [samples[n] for _, n in sorted(judged)[:count]]
    return random.Random(0).sample(samples, min(count, len(samples)))  # noqa: S311 - a spot check


def _support(sample: EvaluationSample) -> Support | None:
    """Return how far its documents support the reference: the gold ones, or else those of its context."""
    judged = sample if sample.relevant_docs else replace(sample, relevant_docs=sample.candidate_docs)
    return reference_support(judged, 1)  # one word is enough: a short reference is shown, not judged


def say_sample(sample: EvaluationSample) -> None:
    """Print a sample with its documents, and how far they support its reference."""
    echo.say(f"{echo.one_line(sample.sample_id, 120)}: {echo.one_line(sample.query, _MAX_LENGTH)}")
    reference = sample.reference_answer
    echo.say(f"  reference: {'-' if reference is None else echo.one_line(reference.text, _MAX_LENGTH)}")
    alternatives = reference.metadata.get("alternatives") if reference else None
    if alternatives:
        echo.say(f"  also right: {echo.one_line('; '.join(map(str, alternatives)), 300)}")
    kind = "gold" if sample.relevant_docs else "candidate"
    support = _support(sample)
    if support is not None:
        missing = f"; not there: {', '.join(support.missing)}" if support.missing else ""
        echo.say(f"  support:   {support.share:.0%} of its words are in the {kind} documents{missing}")
    labels = ", ".join(f"{name}={value}" for name, value in sample.labels.items())
    echo.say(f"  labels:    {echo.one_line(labels, 500) or '-'}")
    for doc in gold_documents(sample) or sample.candidate_docs or ():
        _say_document(kind, doc)
    if sample.relevant_docs and sample.candidate_docs:
        ids = ", ".join(doc.doc_id for doc in sample.candidate_docs)
        echo.say(f"  candidates: {echo.one_line(ids, 300)}")
    citations = sample.metadata.get("citations")
    for citation in citations if isinstance(citations, list) else ():
        if isinstance(citation, dict):
            page = f", page {citation['page_number']}" if citation.get("page_number") is not None else ""
            span = f"{citation.get('start_char', '?')}-{citation.get('end_char', '?')}"
            context = f': "{citation["context_text"]}"' if citation.get("context_text") else ""
            cited = f"{citation.get('file_name', '?')}{page}, {span}{context}"
            echo.say(f"  cites {echo.one_line(cited, 400)}")


def _say_document(kind: str, doc: Document) -> None:
    title = doc.metadata.get("title")
    named = f" ({echo.one_line(title, 120)})" if title else ""
    text = echo.one_line(doc.text, _MAX_LENGTH) if doc.text.strip() else "no text"
    echo.say(f"  {kind} {echo.one_line(doc.doc_id, 120)}{named}: {text}")


def sample_with_support(sample: EvaluationSample) -> dict[str, object]:
    """Return a sample for JSON, and how far its documents support its reference."""
    support = _support(sample)
    judged = None if support is None else {"share": support.share, "missing": list(support.missing)}
    return {**sample_record(sample), "support": judged}
