"""Generate raw tasks from the project's documents: `auepora dataset generate` with the project's paths.

python scripts/generate_offline_dataset.py --config configs/default.yaml

Without --config the documents are read from data/processed and the tasks written to
evaluation/datasets/offline_dataset.jsonl, relative to the current folder. FOLDER and --out override this.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from auepora_eval.cli.main import main

if __name__ == "__main__":
    words = sys.argv[1:]
    if not any(word.split("=")[0] in ("--config", "-h", "--help") for word in words):
        words = ["--config", "", *words]
    raise SystemExit(main(["dataset", "generate", *words]))
