"""Set up a project: plan, gate, test and CI workflow, and a run of five samples.

The command asks no questions and overwrites no files. It calls the system for five samples, prints their
scores and the estimated calls, tokens, cost and time of the whole run, and writes four files. Example:

  auepora init --dataset questions.jsonl --system my_rag.py:my_rag

The other flags are those of auepora run. They become keys of the plan.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import chdir, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.settings import PLAN_KEYS, STOPPING, RunSettings, as_names, is_endpoint
from ..core.types import TargetCategory
from ..errors import AueporaError, StorageError
from . import echo
from .common import add_flag, say_results
from .flags import add_settings

if TYPE_CHECKING:
    from ..core.metrics_base import Metric
    from ..core.plan import EvaluationPlan
    from ..runs.pilot import Pilot

# The run has its own place, and is never stopped early: later runs are compared with it.
_NOT_HERE = ("id", "out")
_SETTINGS = [
    setting
    for name, setting in PLAN_KEYS.items()
    if setting.flag and setting.group != STOPPING and name not in _NOT_HERE
]
EVERYDAY = {
    *("--folder", "--force", "--log-level"),
    *(setting.flag_name for setting in _SETTINGS if setting.everyday),
}
# One metric of each of these targets is in the gate: the more there are, the more evidence each one needs.
_GUARDED = (
    TargetCategory.RETRIEVAL_RELEVANCE,
    TargetCategory.GENERATION_CORRECTNESS,
    TargetCategory.NEGATIVE_REJECTION,
)
_PREFERRED = "contains_answer"  # to exact_match, which few systems ever reach


def add_arguments(parser: ArgumentParser) -> None:
    add_settings(parser, _SETTINGS)
    add_flag(parser, "--folder", "folder of the project; it is created if needed", "DIR", default=".")
    add_flag(parser, "--force", "replace files that exist, and an earlier baseline")


def run(args: Namespace) -> int:
    folder = Path(args.folder)
    is_new = not folder.exists()
    plan = _written_plan(args, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder} cannot be used: {error.strerror or error}.") from error
    try:
        with chdir(folder):
            code = _set_up(plan, force=args.force)
    except AueporaError:
        if is_new:
            with suppress(OSError):  # there is something in it: a pilot that was stopped
                folder.rmdir()
        raise
    if folder.resolve() != Path.cwd():
        echo.say(f"Run these commands in {folder}.")
    return code


def _written_plan(args: Namespace, folder: Path) -> dict[str, Any]:
    """Return the flags as keys of the plan; paths are relative to its folder."""

    def from_folder(path: str) -> str:
        return Path(os.path.relpath(path, folder)).as_posix()

    plan: dict[str, Any] = {}
    for setting in _SETTINGS:
        value = getattr(args, setting.name)
        if value is None:
            continue
        is_path = setting.is_path and value != "demo"
        plan[setting.name] = from_folder(value) if is_path else value
    file, colon, attribute = str(plan.get("system", "")).rpartition(":")
    if file.endswith(".py") and not is_endpoint(plan["system"]):
        plan["system"] = f"{from_folder(file)}{colon}{attribute}"
    return plan


def _set_up(plan: dict[str, Any], *, force: bool) -> int:
    """Run the pilot in the current folder and write the files beside it; return the exit code."""
    from ..core.runner import name_of
    from ..io.config.new_project import BASELINE, BASELINES, FILES
    from ..io.files.atomic import check_absent
    from ..runs.store.storage import EvaluationResultsStorage
    from .run import RunCommand, check_present, prepared

    own = {"id": BASELINE, "out": BASELINES, "estimate": True, "force": force}
    settings = RunSettings.merged(plan, own)
    check_present(settings, "Example: auepora init --dataset questions.jsonl --system my_rag.py:my_rag")
    storage = EvaluationResultsStorage(BASELINES)
    state = storage.state(BASELINE)
    check_absent([*map(Path, FILES), state.path], force=force)
    if state.has_header and not force:
        settings.resume = BASELINE  # a pilot that was interrupted: its calls count
    judge, record = prepared(settings, storage)
    command = RunCommand(settings, storage, record, judge)
    pilot, code = command.pilot(scored=True)
    if pilot is None:
        return code
    metrics = _measured(record.evaluator.plan, pilot)
    judged = settings.judge_metrics or [] if judge is not None else []
    guarded = [*_guarded(metrics), *judged[:1]]
    # Metrics that were named stay as they are: my_metrics.py:brevity@12 has its file in its name.
    names = [*(metric.name for metric in metrics), *judged]
    plan["metrics"] = as_names(plan["metrics"]) if "metrics" in plan else names
    keys = [name for name in (settings.api_key_env, settings.judge_api_key_env) if name]
    _write(plan, guarded, list(dict.fromkeys(keys)), force=force)
    echo.say(f"{name_of(record.evaluator.system)} on {record.dataset.name}: {len(pilot.pairs)} samples")
    say_results(pilot.results)
    code = command.say_estimate(pilot)
    echo.say_words(f"This finishes the baseline. Then commit {BASELINES}/ and the written files.")
    return code


def _measured(plan: EvaluationPlan, pilot: Pilot) -> Sequence[Metric]:
    """Return the metrics of the plan without those that need documents, if the system returns none."""
    from ..core.scoring import measurable

    answered = [output for _, output in pilot.pairs if output.error is None]
    if not answered:
        return plan.metrics
    return [
        metric for metric in measurable(plan, answered).metrics if not getattr(metric, "not_measured", "")
    ]


def _guarded(metrics: Sequence[Metric]) -> list[str]:
    """Return the metrics that the gate compares with the baseline."""
    names = []
    for target in _GUARDED:
        own = [metric.name for metric in metrics if metric.target is target]
        names += [_PREFERRED] if _PREFERRED in own else own[:1]
    others = [metric.name for metric in metrics if metric.target is not TargetCategory.LATENCY]
    return names or others[:1]


def _write(plan: dict[str, Any], guarded: Sequence[str], keys: Sequence[str], *, force: bool) -> None:
    from ..io.config.new_project import project_files
    from ..io.files.atomic import written_together

    files = {Path(name): text for name, text in project_files(plan, guarded, keys).items()}
    with written_together(list(files), force=force) as together:
        for path, text in files.items():
            together[path].write(text.encode())
    for path in files:
        echo.note(f"written: {path}")
