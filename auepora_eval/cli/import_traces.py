"""Convert OpenTelemetry traces into outputs to score.

The file has spans: OTLP JSON as collectors write it, or one span per line (or a Parquet file) as Phoenix
exports them. Each trace becomes a sample and its output: question, answer, retrieved documents, seconds per
stage, tokens. Traces without a question or without anything to score are left out and listed. Lines that
cannot be read are counted. Example, on the spans of a run of the bundled data:

  auepora run --dataset demo --system auepora_eval.demo.systems:bm25 --spans spans.jsonl --spans-content
  auepora import-traces spans.jsonl --samples live.jsonl --outputs live.predictions.jsonl
  auepora score --dataset live.jsonl --outputs live.predictions.jsonl

With --dataset the traces are matched to its samples: by the question, or by an attribute that has the id of
the sample (--id-attribute). Then only outputs are written.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, open_samples

if TYPE_CHECKING:
    from ..runs.spans.imported import Imported


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("spans", metavar="SPANS", help="a dump of spans")
    parser.add_argument("--outputs", metavar="FILE", required=True, help="where the outputs go (.jsonl)")
    parser.add_argument("--samples", metavar="FILE", help="where the samples go (.jsonl)")
    parser.add_argument("--dataset", metavar="FILE", help="samples whose truth is known, or `demo`")
    parser.add_argument("--id-attribute", metavar="NAME", help="the attribute that holds a sample's id")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    add_json(parser)


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.spans.imported import import_traces

    if bool(args.samples) == bool(args.dataset):
        raise PlanError("give either --samples, to write them, or --dataset, to match the traces to it.")
    imported = import_traces(
        Path(args.spans),
        dataset=open_samples(args.dataset, None) if args.dataset else None,
        id_attribute=args.id_attribute,
    )
    imported.write(Path(args.outputs), Path(args.samples) if args.samples else None, force=args.force)
    if args.json:
        echo.say_json(_summary(args, imported))
    else:
        _say(args, imported)
    return 0


def _summary(args: Namespace, imported: Imported) -> dict[str, Any]:
    return {
        "traces": imported.total,
        "imported": len(imported.pairs),
        "failed": imported.failed,
        "left_out": imported.left_out,
        "not_spans": dict(imported.not_spans),
        "without_trace": imported.without_trace,
        "samples": args.samples,
        "outputs": args.outputs,
    }


def _say(args: Namespace, imported: Imported) -> None:
    failed = f", {imported.failed} of them failed" if imported.failed else ""
    echo.say(f"{len(imported.pairs)} of {imported.total} traces imported{failed}")
    for reason, ids in imported.left_out.items():
        some = ", ".join(echo.one_line(trace_id, 40) for trace_id in ids[:3])
        more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
        echo.say(f"  left out: {len(ids)} with {echo.one_line(reason, 120)}: {some}{more}")
    for reason, count in imported.not_spans.items():
        first = echo.one_line(imported.first_not_span.get(reason, ""), 120)
        echo.say(f"  left out: {count} records that are no spans: {reason} (the first: {first})")
    if imported.without_trace:
        echo.say(f"  {imported.without_trace} samples of {args.dataset} have no trace; they count as failed")
    dataset = args.samples or args.dataset
    echo.say(f"Score them: auepora score --dataset {dataset} --outputs {args.outputs}")
