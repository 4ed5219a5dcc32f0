"""A dataset card: a README.md with the YAML block that Hugging Face reads, and tables for people.

Everything in it is counted. What is not known, such as the licence and the language, is left to the owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import PurePath
from typing import Any

from ..core.display import markdown_text, terminal_line
from ..core.table import Table
from ..io.builds import Manifest
from ..io.documents import yaml_text

# The largest number of samples of each category that Hugging Face has, with its name.
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_TASKS = {"summaries": "summarization"}
_UNKNOWN = "# Add what only you know: license, language.\n"
_MOST_LABELS, _MOST_VALUES = 30, 8  # rows of a table, values in a cell


@dataclass(frozen=True)
class Split:
    """A file of the dataset, from the folder of the card, and what `describe` says of it."""

    name: str
    path: PurePath
    about: Mapping[str, Any]


def dataset_card(name: str, splits: Sequence[Split], manifest: Manifest | None = None) -> str:
    """Return the card of a dataset; with a `manifest`, of a build."""
    title = f"{name} {manifest.version}" if manifest else name
    parts = [
        f"---\n{yaml_text(_front_matter(title, splits))}{_UNKNOWN}---",
        f"# {markdown_text(title)}",
        "A dataset for the evaluation of retrieval-augmented generation (RAG).",
        _files(splits),
    ]
    for split in splits:
        parts += _contents(split, with_name=len(splits) > 1)
    if manifest is not None:
        parts += _origin(manifest)
    parts += ["## Use it", "```bash\n" + _command(splits[0]) + "\n```"]
    return "\n\n".join(parts) + "\n"


def _front_matter(title: str, splits: Sequence[Split]) -> dict[str, Any]:
    total = sum(split.about["samples"] for split in splits)
    size = next((name for most, name in _SIZES if total < most), "n>10M")
    tasks = dict.fromkeys(_TASKS.get(split.name, "question-answering") for split in splits)
    return {
        "pretty_name": terminal_line(title),
        "task_categories": list(tasks),
        "size_categories": [size],
        "tags": ["rag", "evaluation"],
        # One configuration per file: their fields differ. All of them are for testing, none for training.
        "configs": [
            {
                "config_name": terminal_line(split.name),
                "data_files": [{"split": "test", "path": escape(terminal_line(split.path.as_posix(), 4096))}],
            }
            for split in splits
        ],
    }


def _files(splits: Sequence[Split]) -> str:
    rows = [
        (split.name, split.path.as_posix(), f"{split.about['samples']:,}", split.about["fingerprint"])
        for split in splits
    ]
    return Table(("Split", "File", "Samples", "Fingerprint"), rows).to_markdown()


def _contents(split: Split, *, with_name: bool) -> list[str]:
    about, total = split.about, split.about["samples"]
    of = f": {split.name}" if with_name else ""
    shares = [
        (title, f"{n:,}", f"{n / total:.0%}" if total else "n/a") for title, n in about["fields"].items()
    ]
    lengths = [
        (title, *(f"{spread[key]:g}" for key in ("median", "p95", "max")))
        for title, spread in about["lengths"].items()
        if spread
    ]
    labels = [
        (name, f"{label['samples']:,}", f"{label['distinct']:,}", _values(label))
        for name, label in list(about["labels"].items())[:_MOST_LABELS]
    ]
    targets = [
        (target["target"], f"{len(target['metrics'])}", f"{target['samples']:,}")
        for target in about["targets"]
    ]
    tables = [
        Table(("Samples with", "Count", "Share"), shares),
        Table(("Length", "Median", "95th percentile", "Largest"), lengths),
        Table(("Label", "Samples", "Values", "Most frequent"), labels),
        Table(("What it can measure", "Metrics", "Samples"), targets),
    ]
    return [f"## {markdown_text('Contents' + of)}", *(one.to_markdown() for one in tables if one.rows)]


def _values(label: Mapping[str, Any]) -> str:
    values = list(label["values"].items())
    if values and values[0][1] == 1 < label["samples"]:
        return "each its own"
    more = ", ..." if label["distinct"] > _MOST_VALUES else ""
    return ", ".join(f"{value[:40]} ({count:,})" for value, count in values[:_MOST_VALUES]) + more


def _origin(manifest: Manifest) -> list[str]:
    """Return how a build was made, and what was left out."""
    source = manifest.source
    tool = " ".join(str(manifest.build.get(key, "")) for key in ("tool", "tool_version")).strip()
    facts = [
        ("Built", manifest.generated_at_utc),
        ("With", tool or "unknown"),
        ("Source", manifest.source_offline_dataset),
        ("Records of the source", f"{source.count or manifest.records:,}"),
        ("SHA-256 of the source", source.sha256 or "unknown"),
    ]
    left_out = [
        (f"no split for {name}", f"{count:,}") for name, count in manifest.excluded_task_types.items()
    ]
    left_out += [(name, f"{count:,}") for name, count in manifest.skipped.items()]
    notes = [(name, f"{count:,}") for name, count in manifest.notes.items() if count]
    parts = ["## How it was made", Table(("Version", manifest.version), facts).to_markdown()]
    if left_out:
        parts += ["Records that were left out:", Table(("Reason", "Records"), left_out).to_markdown()]
    if notes:
        parts += ["What may surprise:", Table(("Finding", "Records"), notes).to_markdown()]
    return parts


def _command(split: Split) -> str:
    # A name from outside could leave the block of code: then the command has a placeholder.
    path = split.path.as_posix()
    is_plain = all(letter.isalnum() or letter in "._-/" for letter in path)
    return f"auepora run --dataset {path if is_plain else 'FILE'} --system my_rag.py:my_rag"
