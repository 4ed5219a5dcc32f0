"""Run two bundled systems, compare them and write a report.

Both systems answer 160 questions about a fictional utility company. The first
retrieves with BM25 and quotes the sentence that matches best. The second combines
BM25 with embeddings (word pairs without the extra `embeddings`) and looks for an
answer of the type that the question asks for. No network and no API key is needed.
With --judge, a small language model on this machine judges a few claims.

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
from ..core.types import EvaluationRun
from ..demo.systems import bm25, second_system
from ..demo.world import demo_dataset
from ..errors import MissingDependencyError
from ..io.files import write_bytes
from ..metrics.parse import default_metrics
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import progress, say_results
from .compare import say_comparison
from .flags import add_flag, add_json, add_out, out_flag

if TYPE_CHECKING:
    from ..comparison.compare import Comparison
    from ..demo.judged import JudgedClaims
    from ..demo.systems import DemoSystem


def add_arguments(parser: ArgumentParser) -> None:
    add_flag(parser, "--full", "print the tables of both runs and of the comparison")
    add_flag(parser, "--judge", "also audit a small local model (extra local-llm)")
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
        judged = _judged() if args.judge else None
        audit = {} if judged is None else {"judge": judged.as_dict()}
        echo.say_json({**written, **audit, "comparison": comparison_to_dict(comparison)})
    else:
        _say(runs, comparison, [*paths, page], args)
        if args.judge:
            _say_judge()
    return 0


def _run(system: DemoSystem, storage: EvaluationResultsStorage) -> EvaluationRun:
    dataset = demo_dataset()
    with progress(len(dataset), system.name) as advance, warnings.catch_warnings():
        # Some questions are unanswerable on purpose and have no gold documents; the table counts them.
        warnings.simplefilter("ignore", PartialCoverageWarning)
        plan = EvaluationPlan(default_metrics(list(dataset)))
        evaluator = AueporaEvaluator(system, plan, on_output=advance)
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
            say_results(each.results)
            echo.say()
        say_comparison(comparison)
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


def _say_next(ids: list[str], flag: str) -> None:
    commands = {
        f"auepora view{flag}": "both runs in a browser",
        f"auepora compare {' '.join(ids)}{flag}": "the same verdict with its tables",
        f"auepora show {ids[0]} --worst ndcg@5{flag}": "the questions it answered worst",
        f"auepora annotate {ids[-1]}{flag}": "label its answers by keyboard",
        "auepora run --dataset demo --system FILE.py:FUNCTION": "your own system",
    }
    width = max(map(len, commands))
    echo.say("Next:")
    for command, purpose in commands.items():
        echo.say(f"  {command:<{width}}  # {purpose}")


def _judged() -> JudgedClaims | None:
    """Return what a small model says about claims; None, and a note, if it is not installed."""
    from ..demo.judged import judged_by_local_model

    try:
        return judged_by_local_model()
    except MissingDependencyError as error:
        echo.note(str(error))
        return None


def _say_judge() -> None:
    echo.say("\nCan a small model judge?\n")
    judged = _judged()
    if judged is None:
        return
    (right, of_right), (wrong, of_wrong) = judged.yes_of(True), judged.yes_of(False)
    echo.say_words(
        f"{judged.model} was asked whether a passage supports a claim. It said yes to {right} of {of_right} "
        f"claims that are in the passage, and to {wrong} of {of_wrong} with a wrong number."
    )
    if judged.calibration is not None:
        echo.say_words(f"Its audit: {judged.calibration}. An AUROC of 0.5 is chance.")
    echo.say_words(
        "This model is too small to trust. Use a stronger one, and audit it the same way: "
        "auepora judge RUN --judge URL#model --probe --calibrate labels.jsonl"
    )
