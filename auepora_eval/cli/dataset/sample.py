"""Print a few samples of a dataset.

Support is the share of the reference's words that are in its gold documents, or in its candidates if it has
no gold ones.

Example:

  auepora dataset sample demo --n 2
  auepora dataset sample demo --suspicious
  auepora dataset sample demo --id q001
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.types import Document, EvaluationSample, gold_documents
from ...errors import DataError
from .. import echo
from ..common import add_flag, add_format, add_json, check_has_samples, open_samples
from ..flags import add_seed, at_least

if TYPE_CHECKING:
    from ...core.dataset import EvaluationDataset
    from ...quality.samples import Support

_MAX_LENGTH = 1500  # characters of a text


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a dataset of any format, or demo")
    add_format(parser, "the file")
    add_flag(parser, "--n", "number of samples", "N", type=at_least(1), default=5)
    add_seed(parser)
    add_flag(parser, "--id", "show this sample", "ID")
    add_flag(parser, "--suspicious", "show the samples that their documents support least")
    add_json(parser)


def run(args: Namespace) -> int:
    dataset = open_samples(args.file, args.format)
    chosen = _chosen(dataset, args)
    if args.json:
        echo.say_json([_record(sample) for sample in chosen])
        return 0
    for number, sample in enumerate(chosen):
        if number:
            echo.say()
        _say(sample)
    return 0


def _chosen(dataset: EvaluationDataset, args: Namespace) -> list[EvaluationSample]:
    import random

    samples = list(dataset)
    check_has_samples(args.file, len(samples))
    if args.id is not None:
        matching = [sample for sample in samples if sample.sample_id == args.id]
        if not matching:
            raise DataError(args.file, f"there is no sample {args.id!r:.80}.")
        return matching
    if args.suspicious:
        judged = [(support.share, n) for n, s in enumerate(samples) if (support := _support(s))]
        if not judged:
            raise DataError(args.file, "no sample has a reference and documents to judge it by.")
        return [samples[n] for _, n in sorted(judged)[: args.n]]
    return random.Random(args.seed).sample(samples, min(args.n, len(samples)))  # noqa: S311 - a spot check


def _support(sample: EvaluationSample) -> Support | None:
    """Return how far its documents support the reference: the gold ones, or else those of its context."""
    from ...quality.samples import reference_support

    judged = sample if sample.relevant_docs else replace(sample, relevant_docs=sample.candidate_docs)
    return reference_support(judged, 1)  # one word is enough: a short reference is shown, not judged


def _say(sample: EvaluationSample) -> None:
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


def _record(sample: EvaluationSample) -> dict[str, object]:
    from ...io.json.records import sample_record

    support = _support(sample)
    judged = None if support is None else {"share": support.share, "missing": list(support.missing)}
    return {**sample_record(sample), "support": judged}
