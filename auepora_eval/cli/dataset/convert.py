"""Convert a dataset, results or other files between formats.

  a dataset         .jsonl .parquet .eval.json .yaml .csv
  ground truth      .gt.json .gt.yaml
  results           .results.json .results.yaml .results.csv
  benchmark data    .benchmark.json .benchmark.parquet .benchmark.h5

Every format but CSV keeps all data. Files of trec, beir, ragas, deepeval,
label-studio, promptfoo, inspect, ragchecker, mlflow, squad, llama-index and tables
with any columns can be read, and the first five can be written, with --to.

  auepora dataset convert demo demo.eval.json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ...core.settings import column_names
from ...quality.conversion import convert, write_dataset
from .. import echo
from ..common import convert_function, open_samples
from ..flags import add_flag, add_json, add_settings


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="the file to read, or demo")
    parser.add_argument("target", metavar="OUT", help="the file to write")
    add_flag(parser, "--from", "format of IN (default: detected)", "FORMAT", dest="from_format")
    add_flag(parser, "--to", "format of OUT (default: from its name)", "FORMAT", dest="to_format")
    add_settings(parser, "columns", "convert")
    add_flag(parser, "--outputs", "file of answers: written, or read with --to ragas, ...", "FILE")
    add_flag(parser, "--topics", "TREC: texts of the queries, one line of id, tab, text", "FILE")
    add_flag(parser, "--force", "replace OUT if it exists")
    add_json(parser)


def run(args: Namespace) -> int:
    target = Path(args.target)
    outputs = None if args.outputs is None else Path(args.outputs)
    # The demo is not a file, so it has no format to detect.
    if args.source == "demo":
        demo = open_samples("demo", None)
        converted = write_dataset(demo, target, args.to_format, outputs, force=args.force)
    else:
        converted = convert(
            args.source,
            target,
            from_format=args.from_format,
            to_format=args.to_format,
            columns=column_names(args.columns),
            reader=None if args.convert is None else convert_function(args.convert),
            topics=None if args.topics is None else Path(args.topics),
            outputs=outputs,
            force=args.force,
        )
    if args.json:
        echo.say_json(
            {
                "file": str(converted.path),
                "kind": converted.kind,
                **converted.counts,
                "bytes": converted.size,
            }
        )
    else:
        counts = ", ".join(
            f"{count} {what if count != 1 else what.removesuffix('s')}"
            for what, count in converted.counts.items()
        )
        echo.say(f"{converted.path}: {counts}, {converted.size:,} bytes")
    return 0
