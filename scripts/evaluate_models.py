"""Evaluate a system on a split of the project: `auepora run` with the name of a split.

python scripts/evaluate_models.py --dataset-type qa --config configs/default.yaml --system my_rag.py:system

All other flags are those of `auepora run`.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from auepora_eval.cli import echo
from auepora_eval.cli.main import EXIT_CANNOT, main
from auepora_eval.errors import AueporaError
from auepora_eval.io.config.project import EvaluationConfig, load_evaluation_config
from auepora_eval.read.tasks import SPLIT_NAMES


def evaluate(words: list[str]) -> int:
    parser = ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--dataset-type", choices=SPLIT_NAMES, required=True, help="which split")
    parser.add_argument("--config", metavar="FILE", help="where the project's paths are")
    args, rest = parser.parse_known_args(words)
    try:
        config = load_evaluation_config(args.config) if args.config else EvaluationConfig()
    except AueporaError as error:
        echo.note(f"evaluate_models: {echo.one_line(error, 1000)}")
        return EXIT_CANNOT
    if config.metrics and not any(word.split("=")[0] == "--metrics" for word in rest):
        rest += ["--metrics", ",".join(config.metrics)]
    return main(["run", "--dataset", str(config.split_path(args.dataset_type)), *rest])


if __name__ == "__main__":
    raise SystemExit(evaluate(sys.argv[1:]))
