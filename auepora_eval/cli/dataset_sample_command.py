"""show a few samples to read: query, reference, gold documents, citations

On a terminal the words of the reference stand out in its gold documents. Support is the share of the
reference's words that are found there.

Example:

  auepora dataset sample demo --n 2
  auepora dataset sample demo --suspicious
  auepora dataset sample demo --id q001
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, open_samples, refuse_no_samples
from .numbers import at_least

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.dataset import EvaluationDataset
    from ..core.types import Document, EvaluationSample

_LONGEST = 1500


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a dataset of any format, or demo")
    parser.add_argument("--format", metavar="NAME", help="the file's format (default: found by content)")
    parser.add_argument("--n", type=at_least(1), default=5, metavar="N", help="how many samples (5)")
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of the choice (0)")
    parser.add_argument("--id", metavar="ID", help="show this sample")
    parser.add_argument(
        "--suspicious", action="store_true", help="show those whose gold documents support them least"
    )
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

    from ..curation.quality_answers import reference_support
    from ..errors import DataError

    samples = list(dataset)
    refuse_no_samples(args.file, len(samples))
    if args.id is not None:
        found = [sample for sample in samples if sample.sample_id == args.id]
        if not found:
            raise DataError(args.file, f"there is no sample {args.id!r:.80}.")
        return found
    if args.suspicious:
        judged = [(support.share, n) for n, s in enumerate(samples) if (support := reference_support(s, 1))]
        if not judged:
            raise DataError(args.file, "no sample has a reference and gold documents to judge it by.")
        return [samples[n] for _, n in sorted(judged)[: args.n]]
    return random.Random(args.seed).sample(samples, min(args.n, len(samples)))  # noqa: S311 - a spot check


def _say(sample: EvaluationSample) -> None:
    from ..curation.quality_answers import reference_support

    echo.say(f"{echo.one_line(sample.sample_id, 120)}: {echo.one_line(sample.query, _LONGEST)}")
    reference = sample.reference_answer
    echo.say(f"  reference: {'-' if reference is None else echo.one_line(reference.text, _LONGEST)}")
    alternatives = reference.metadata.get("alternatives") if reference else None
    if alternatives:
        echo.say(f"  also right: {echo.one_line('; '.join(map(str, alternatives)), 300)}")
    support = reference_support(sample, 1)
    if support is not None:
        missing = f"; not there: {', '.join(support.missing)}" if support.missing else ""
        echo.say(f"  support:   {support.share:.0%} of its words are in the gold documents{missing}")
    labels = ", ".join(f"{name}={value}" for name, value in sample.labels.items())
    echo.say(f"  labels:    {echo.one_line(labels, 500) or '-'}")
    marked = _words([reference.text] if reference else [])
    for doc in sample.relevant_docs or ():
        _say_document(doc, marked)
    if sample.candidate_docs:
        ids = ", ".join(doc.doc_id for doc in sample.candidate_docs)
        echo.say(f"  candidates: {echo.one_line(ids, 300)}")
    for citation in _citations(sample):
        echo.say(f"  cites {_cited(citation)}")


def _say_document(doc: Document, marked: set[str]) -> None:
    title = doc.metadata.get("title")
    named = f" ({echo.one_line(title, 120)})" if title else ""
    echo.say(f"  gold {echo.one_line(doc.doc_id, 120)}{named}:" + ("" if doc.text.strip() else " no text"))
    if doc.text.strip():
        _say_marked(echo.one_line(doc.text, _LONGEST), marked)


def _say_marked(text: str, marked: set[str], indent: int = 4) -> None:
    """Print a text with some of its words in bold, where bold can be shown."""
    if not sys.stdout.isatty():
        import textwrap

        lines = textwrap.wrap(text, 100, break_on_hyphens=False)
        echo.say("\n".join(" " * indent + line for line in lines))
        return
    import re

    from rich.padding import Padding
    from rich.text import Text

    shown = Text(text)
    for match in re.finditer(r"\w+", text):
        if _words([match[0]]) & marked:
            shown.stylize("bold", *match.span())
    echo.console().print(Padding(shown, (0, 0, 0, indent)))


def _words(texts: Iterable[str]) -> set[str]:
    """The stems of the words that mean something."""
    from ..metrics.content import content_words

    return {word for text in texts for word in content_words(text, stemmed=True)}


def _citations(sample: EvaluationSample) -> list[dict[str, Any]]:
    listed = sample.metadata.get("citations")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _cited(citation: dict[str, Any]) -> str:
    page = f", page {citation['page_number']}" if citation.get("page_number") is not None else ""
    span = f"{citation.get('start_char', '?')}-{citation.get('end_char', '?')}"
    context = f': "{citation["context_text"]}"' if citation.get("context_text") else ""
    return echo.one_line(f"{citation.get('file_name', '?')}{page}, {span}{context}", 400)


def _record(sample: EvaluationSample) -> dict[str, Any]:
    from ..curation.quality_answers import reference_support
    from ..io.records import sample_record

    support = reference_support(sample, 1)
    judged = None if support is None else {"share": support.share, "missing": list(support.missing)}
    return {**sample_record(sample), "support": judged}
