"""Run two bundled systems, compare them and write a report.

Both systems answer 160 questions about a fictional utility company. The first
retrieves with BM25 and quotes the sentence that matches best. The second combines
BM25 with embeddings (word pairs without the extra `embeddings`) and looks for an
answer of the type that the question asks for. No network and no API key is needed.

  auepora demo
"""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..comparison.compare import compare_runs
from ..comparison.tables import comparison_to_dict
from ..comparison.words import compared_names, comparison_in_plain_words
from ..core.plan import EvaluationPlan, PartialCoverageWarning
from ..core.runner import AueporaEvaluator
from ..core.settings import out_flag
from ..core.types import EvaluationRun, results_table
from ..demo.systems import bm25, second_system
from ..demo.world import demo_dataset
from ..io.files import write_bytes
from ..metrics.parse import default_metrics
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import progress, say_next
from .compare import say_comparison, say_verdict
from .flags import add_flag, add_json, add_out

if TYPE_CHECKING:
    from ..comparison.compare import Comparison
    from ..demo.systems import DemoSystem


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--full", "print the tables of both runs and of the comparison")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..pages.one_file import one_file
    from ..pages.workspace import Workspace

    # Both runs are stored and can be shown and compared afterwards, as those of `auepora run`.
    storage = EvaluationResultsStorage(args.out)
    runs = [_run(system, storage) for system in (bm25(), second_system())]
    paths = [storage.save_run(each) for each in runs]
    workspace = Workspace.named(args.out, [each.evaluation_id for each in runs])
    comparison = compare_runs(*runs, by=list(workspace.index(runs[1].evaluation_id).fields))
    page = Path(args.out) / f"{'-vs-'.join(each.evaluation_id for each in runs)}.html"
    # The name has the ids of both runs, which are new, so no file of the user is replaced.
    write_bytes(page, one_file(workspace, list(workspace.only), comparison=comparison).encode(), force=True)
    if args.json:
        written = {"runs": [str(path) for path in paths], "report": str(page)}
        echo.say_json({**written, "comparison": comparison_to_dict(comparison)})
    else:
        _say(runs, comparison, [*paths, page], args)
    return 0


def _run(system: DemoSystem, storage: EvaluationResultsStorage) -> EvaluationRun:
    dataset = demo_dataset()
    with progress(len(dataset), system.name) as advance, warnings.catch_warnings():
        # Some questions are unanswerable on purpose and have no gold documents; the table counts them.
        warnings.simplefilter("ignore", PartialCoverageWarning)
        plan = EvaluationPlan(default_metrics(list(dataset)))
        # By name: `auepora diagnose` asks it again.
        named = {"dataset": "demo", "system": f"auepora_eval.demo.systems:{system.name}"}
        evaluator = AueporaEvaluator(system, plan, on_output=advance, configuration=named)
        # A free id, so that the demo can be run again.
        return evaluator.run(dataset, evaluation_id=storage.free_id(f"demo-{system.name}"))


def _say(runs: list[EvaluationRun], comparison: Comparison, written: list[Path], args: Namespace) -> None:
    names = " and ".join(each.system_name for each in runs)
    echo.say_words(
        "Skerravane Tideworks, a fictional utility company: 88 documents, 160 questions, "
        f"answered by {names}."
    )
    echo.say()
    if args.full:
        for each in runs:
            echo.say(each.system_name)
            echo.show(results_table(each.results))
            echo.say()
        say_comparison(comparison, full=True)
    else:
        _say_verdict(comparison)
    echo.say("\nStored:")
    for path in written:
        echo.say(f"  {path}")
    _say_next([each.evaluation_id for each in runs], out_flag(args.out))


def _say_verdict(comparison: Comparison) -> None:
    baseline, candidate = compared_names(comparison)
    echo.say(f"Is {candidate} better than {baseline}?\n")
    for sentence in comparison_in_plain_words(comparison):
        echo.say_words(sentence)
    say_verdict(comparison)


def _say_next(ids: list[str], flag: str) -> None:
    commands = {
        f"auepora view{flag}": "both runs in a browser",
        f"auepora compare {' '.join(ids)} --full{flag}": "verdict with its tables",
        f"auepora show {ids[0]} --worst ndcg@5{flag}": "what it answered worst",
        f"auepora annotate {ids[-1]}{flag}": "label its answers",
        "auepora run --dataset demo --system FILE.py:FUNCTION": "your own system",
    }
    say_next(commands)
