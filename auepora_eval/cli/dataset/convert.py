"""Convert a dataset, results or other files between formats.

The formats follow from the names of the files and from the first records.

  a dataset            .jsonl .parquet .eval.json .yaml .csv
  ground truth         .gt.json .gt.yaml
  results              .results.json .results.yaml .results.csv
  benchmark data       .benchmark.json .benchmark.parquet .benchmark.h5

Every format but CSV keeps all data. A note names what CSV cannot hold.

Files of other tools can be read: trec, beir, ragas, deepeval, label-studio, promptfoo, inspect, ragchecker,
mlflow, squad, llama-index, and tables with any columns. The first five can also be written, with --to. If a
file has answers too, --outputs writes them as predictions. A TREC run becomes predictions. With --from
label-studio and an OUT that ends in .gt.json, there is one file per annotator. Examples:

  auepora dataset convert demo demo.eval.json
  auepora dataset convert demo.eval.json demo.csv
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ...cli import echo
from ...core.settings import SETTINGS, column_names
from ..common import add_flag, add_json, open_samples


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="the file to read, or demo")
    parser.add_argument("target", metavar="OUT", help="the file to write")
    add_flag(parser, "--from", "format of IN (default: detected)", "FORMAT", dest="from_format")
    add_flag(parser, "--to", "format of OUT (default: from its name)", "FORMAT", dest="to_format")
    add_flag(parser, "--columns", SETTINGS["columns"].help, SETTINGS["columns"].metavar)
    add_flag(
        parser, "--outputs", "answers: written to FILE, or read from it with --to trec|ragas|...", "FILE"
    )
    add_flag(parser, "--topics", "texts of the queries of TREC qrels: id, tab, text per line", "FILE")
    add_flag(parser, "--force", "replace OUT if it exists")
    add_json(parser)


def run(args: Namespace) -> int:
    from ...quality.conversion import Wanted, convert, write_dataset

    wanted = Wanted(
        from_format=args.from_format,
        to_format=args.to_format,
        force=args.force,
        columns=column_names(args.columns),
        outputs=None if args.outputs is None else Path(args.outputs),
        topics=None if args.topics is None else Path(args.topics),
    )
    # The demo is not a file, so it has no format to detect.
    if args.source == "demo":
        converted = write_dataset(open_samples("demo", None), Path(args.target), wanted)
    else:
        converted = convert(args.source, args.target, wanted)
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
