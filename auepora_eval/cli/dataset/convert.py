"""Convert a dataset, results or other files between formats.

The formats follow from the names of the files and from the first records.

  a dataset            .jsonl .parquet .eval.json .yaml .csv
  ground truth         .gt.json .gt.yaml
  results              .results.json .results.yaml .results.csv
  benchmark data       .benchmark.json .benchmark.parquet .benchmark.h5
  a configuration      .config.yaml .config.json

All but CSV keep everything; a note names what CSV cannot hold. Examples:

  auepora dataset convert demo demo.eval.json
  auepora dataset convert demo.eval.json demo.csv
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .. import echo
from ..common import add_json, open_samples


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="the file to read, or demo")
    parser.add_argument("target", metavar="OUT", help="the file to write")
    parser.add_argument("--from", dest="from_format", metavar="FORMAT", help="what IN is (default: detected)")
    parser.add_argument("--to", dest="to_format", metavar="FORMAT", help="what OUT is (default: by its name)")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    add_json(parser)


def run(args: Namespace) -> int:
    from ...quality.conversion import Wanted, convert, write_dataset

    wanted = Wanted(
        from_format=args.from_format,
        to_format=args.to_format,
        force=args.force,
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
