"""Check the splits of a build against an earlier one: the same as `auepora dataset check`.

python scripts/check_processed_corpus.py --config configs/default.yaml --previous old/manifest.json
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from auepora_eval.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["dataset", "check", *sys.argv[1:]]))
