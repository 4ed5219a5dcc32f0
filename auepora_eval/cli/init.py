"""Set up a project: plan, gate, test and CI workflow.

The command asks no questions and overwrites no files. It calls the system for five
samples, prints their scores and the estimated calls, tokens, cost and time of the
whole run, and writes four files. Other settings go into the plan (--config).

  auepora init --dataset demo --system auepora_eval.demo.systems:bm25
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.rag_interface import name_of
from ..core.scores import Batch
from ..core.scoring import measurable
from ..core.settings import OF_STOPPING, PATHS, RunSettings, as_names
from ..core.watches import UnmatchedIds
from ..decide.first_rules import decidable, guarded_metrics, units_of
from ..errors import installed_from
from ..io.config.new_project import BASELINE, BASELINES, FILES, PLAN, REQUIREMENTS, project_files
from ..io.config.plan import planned
from ..io.files import check_absent, written_together
from ..store.record import replace_plan
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import say_main_results
from .flags import add_flag, add_settings

if TYPE_CHECKING:
    from ..core.metrics_base import Metric
    from ..core.plan import EvaluationPlan
    from ..decide.pilot import Pilot
    from .run import RunCommand

_FLAGS = (
    *("dataset", "format", "columns", "dataset_type", "system", "metrics", "match", "top_k", "limit"),
    *("judge", "concurrency", "api_key_env"),
)


def add_arguments(parser: ArgumentParser) -> None:
    add_settings(parser, *_FLAGS)
    add_flag(parser, "--config", "plan file with further settings to start from", "FILE")
    add_flag(parser, "--force", "replace files that exist, and an earlier baseline")


def run(args: Namespace) -> int:
    from .run import check_present

    plan = planned(args.config) | {
        name: value for name in _FLAGS if (value := getattr(args, name)) is not None
    }
    # The run has its own place, and is never stopped early: later runs are compared with it.
    plan = {name: value for name, value in plan.items() if name not in ("id", "out", *OF_STOPPING)}
    # The plan is committed: what a plan file elsewhere names is read from this folder on any machine.
    plan |= {name: relpath(plan[name]) for name in PATHS if plan.get(name, "demo") != "demo"}
    own = {"id": BASELINE, "out": BASELINES, "estimate": True, "force": args.force}
    settings = RunSettings.merged(plan, own)
    check_present(settings, "Example: auepora init --dataset questions.jsonl --system my_rag.py:my_rag")
    return _set_up(plan, settings, force=args.force)


def _set_up(plan: dict[str, Any], settings: RunSettings, *, force: bool) -> int:
    """Run the pilot and write the files into the current folder; return the exit code."""
    storage = EvaluationResultsStorage(BASELINES)
    state = storage.state(BASELINE)
    check_absent([*map(Path, FILES), state.path], force=force)
    if state.header is not None and not force:
        settings.resume = BASELINE  # a pilot that was interrupted: its calls count
    command, pilot, code = _piloted(settings, storage)
    if pilot is None:
        return code
    if settings.match is not None:
        plan["match"] = settings.match
    record = command.record
    metrics = _measured(record.evaluator.plan, pilot)
    judged = settings.judge_metrics or [] if command.judge is not None else []
    answer = next((output for _, output in pilot.pairs if output.error is None), None)
    units = units_of(guarded_metrics(metrics), list(record.dataset), answer)
    guarded, too_few = decidable({**units, **dict.fromkeys(judged[:1], record.survey.size)})
    # Metrics that were named stay as they are: my_metrics.py:brevity@12 has its file in its name.
    names = [*(metric.name for metric in metrics), *judged]
    plan["metrics"] = as_names(plan["metrics"]) if "metrics" in plan else names
    keys = [name for name in (settings.api_key_env, settings.judge_api_key_env) if name]
    _write(project_files(plan, guarded, list(dict.fromkeys(keys)), too_few), force=force)
    echo.say(f"{name_of(record.evaluator.system)} on {record.dataset.name}: {len(pilot.pairs)} samples")
    say_main_results(pilot.results, f"see {PLAN}", is_named=settings.metrics is not None)
    code = command.say_estimate(pilot)
    echo.say_words(f"This finishes the baseline. Then commit {BASELINES}/ and the written files.")
    if installed_from() is None:
        echo.say_words(f"CI installs from {REQUIREMENTS}: add auepora-eval and what your system needs to it.")
    return code


def _piloted(
    settings: RunSettings, storage: EvaluationResultsStorage
) -> tuple[RunCommand, Pilot | None, int]:
    """Return the run, its pilot (None if that was interrupted) and the exit code.

    Where no id of a document matches but its source or its text does, the run is scored by that.
    """
    from .run import RunCommand, prepared

    def command() -> RunCommand:
        judge, record = prepared(settings, storage)
        return RunCommand(settings, storage, record, judge)

    first = command()
    pilot, code = first.pilot(scored=True)
    match = None if pilot is None or settings.match is not None else _needed_match(pilot)
    if match is None:
        return first, pilot, code
    echo.note(f"note: No id of a retrieved document equals a relevant one, so the plan has match: {match}.")
    settings.match, settings.force, settings.resume = match, False, settings.id
    again = command()
    replace_plan(again.record.state, again.record.facts())
    return again, *again.pilot(scored=True)


def _measured(plan: EvaluationPlan, pilot: Pilot) -> Sequence[Metric]:
    """Return the metrics of the plan without those that need documents, if the system returns none."""
    answered = [output for _, output in pilot.pairs if output.error is None]
    if not answered:
        return plan.metrics
    return [
        metric for metric in measurable(plan, answered).metrics if not getattr(metric, "not_measured", "")
    ]


def _needed_match(pilot: Pilot) -> str | None:
    """Return how documents have to be matched; None if by their ids, or if nothing would match them."""
    lists = UnmatchedIds()
    lists.look(Batch.of(pilot.pairs))
    return lists.needed_match


def _write(contents: Mapping[str, str], *, force: bool) -> None:
    files = {Path(name): text for name, text in contents.items()}
    with written_together(list(files), force=force) as together:
        for path, text in files.items():
            together[path].write(text.encode())
    for path in files:
        echo.note(f"written: {path}")
