"""Convert OpenTelemetry traces into outputs to score.

The file has spans: OTLP JSON as collectors write it, or one span per line (or a
Parquet file) as Phoenix exports them. Each trace becomes a sample and its output.
With --dataset the traces are matched to its samples instead.

  auepora demo
  auepora show demo-bm25 --spans spans.jsonl
  auepora import-traces spans.jsonl --samples live.jsonl --outputs out.jsonl
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from ..quality.imported_traces import import_traces
from . import echo
from .common import open_samples
from .flags import add_flag, add_json

if TYPE_CHECKING:
    from ..quality.imported_traces import Imported


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("spans", metavar="SPANS", help="a dump of spans")
    add_flag(parser, "--outputs", "file for the outputs (.jsonl)", "FILE", required=True)
    add_flag(parser, "--samples", "file for the samples (.jsonl)", "FILE")
    add_flag(parser, "--dataset", "dataset whose samples the traces belong to, or `demo`", "FILE")
    add_flag(parser, "--id-attribute", "the attribute that holds a sample's id", "NAME")
    add_flag(parser, "--doc-id", "path of the document id, such as metadata.source", "PATH")
    add_flag(parser, "--force", "replace files that exist")
    add_json(parser)


def run(args: Namespace) -> int:
    if bool(args.samples) == bool(args.dataset):
        raise PlanError("give either --samples, to write them, or --dataset, to match the traces to it.")
    imported = import_traces(
        Path(args.spans),
        dataset=open_samples(args.dataset, None) if args.dataset else None,
        id_attribute=args.id_attribute,
        doc_id=args.doc_id,
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
