"""Build the evaluation splits: the same as `auepora dataset build`.

python scripts/build_evaluation_dataset.py --config configs/default.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from auepora_eval.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["dataset", "build", *sys.argv[1:]]))
