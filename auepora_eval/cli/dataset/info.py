"""Describe a dataset and list the metrics it supports.

With --card, write a dataset card: a README.md for people, with the YAML block that Hugging Face reads. The
file may then also be the manifest of a build. Example:

  auepora dataset info demo
  auepora dataset info evaluation/datasets/manifest.json --card evaluation/datasets/README.md
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ...errors import DataError
from .. import echo
from ..common import add_flag, add_format, add_json, open_samples, say_stored

# Values of a label that fit into a line.
_VALUES = 8


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a dataset of any format, or demo")
    add_format(parser, "the file")
    add_flag(parser, "--card", "write a dataset card", "FILE")
    add_flag(parser, "--force", "overwrite the card if it exists")
    add_json(parser)


def run(args: Namespace) -> int:
    if args.card:
        _write_card(args)
        return 0
    return _describe(args)


def _write_card(args: Namespace) -> None:
    from ...core.dataset import EvaluationDataset
    from ...io.builds.manifest import MANIFEST_NAME, Manifest, read_manifest
    from ...io.builds.splits import load_split
    from ...io.detect import kind_of_file
    from ...io.files.atomic import write_bytes
    from ...quality.card import Split, dataset_card
    from ...quality.description import describe

    if args.file == "demo":
        raise DataError(
            "--card", "a card describes a file.", fix="Write one: dataset convert demo demo.jsonl"
        )
    file, card = Path(args.file), Path(args.card)
    file = file / MANIFEST_NAME if file.is_dir() else file
    manifest: Manifest | None = None
    datasets: dict[str, tuple[Path, EvaluationDataset]]
    if kind_of_file(file) == "manifest":
        snapshot = read_manifest(file)
        manifest = snapshot.manifest
        datasets = {name: (path, load_split(path)) for name, path in snapshot.splits.items()}
        title = file.absolute().parent.name
    else:
        dataset = open_samples(args.file, args.format)
        datasets, title = {"default": (file, dataset)}, dataset.name
    splits = [
        Split(name, Path(os.path.relpath(path, card.absolute().parent)), describe(dataset))
        for name, (path, dataset) in datasets.items()
    ]
    text = dataset_card(title, splits, manifest)
    write_bytes(card, text.encode("utf-8", "replace"), force=args.force)
    say_stored(card)


def _describe(args: Namespace) -> int:
    from ...io.loader import detected_format
    from ...quality.description import describe

    bundled = args.file == "demo"
    dataset = open_samples(args.file, args.format)
    described: dict[str, Any] = {
        "file": None if bundled else args.file,
        "format": "jsonl" if bundled else args.format or detected_format(Path(args.file)),
        "bytes": None if bundled else _size(Path(args.file)),
        **describe(dataset),
    }
    if args.json:
        echo.say_json(described)
    else:
        _say(described)
    return 0


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _say(about: dict[str, Any]) -> None:
    total = about["samples"]
    size = "" if about["bytes"] is None else f", {about['bytes']:,} bytes"
    echo.say(f"{echo.one_line(about['name'], 120)}: {total} samples ({about['format']}{size})")
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


def _say_labels(labels: dict[str, Any]) -> None:
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
