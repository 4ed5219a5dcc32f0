"""The first step of seed 000: documents to raw tasks, where configs/default.yaml expects them.

    python scripts/generate_offline_dataset.py FOLDER

It is `auepora dataset generate`, with all its flags; without --out the tasks go to
evaluation/datasets/offline_dataset.jsonl.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from auepora_eval.cli.main import main

DEFAULT_OUT = "evaluation/datasets/offline_dataset.jsonl"

if __name__ == "__main__":
    flags = sys.argv[1:]
    if not any(flag == "--out" or flag.startswith("--out=") for flag in flags):
        flags += ["--out", DEFAULT_OUT]
    sys.exit(main(["dataset", "generate", *flags]))
