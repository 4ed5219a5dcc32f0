"""Going on with a run: what its header remembers, what it has spent, and what is said about it."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import exit_code, out_flag
from .span_flags import span_words
from .stop_flags import STOP_SETTINGS

if TYPE_CHECKING:
    from ..core.policy import CallPolicy
    from ..runs.journal_places import JournalPlaces
    from ..runs.storage import EvaluationResultsStorage

_PRICES = ("price_input", "price_output")
_PATHS = ("dataset", "prompt")
# Who names one of these says what run is meant; it is compared, also if there is nothing to go on with.
_COMPARED = ("config", "dataset", "format", "system", "metrics", "top_k", "seed", "limit", "prompt")
# The executors of a run that was begun in Python, as the flag calls them.
_EXECUTORS = {
    "SerialExecutor": "serial",
    "ThreadExecutor": "threads",
    "AsyncExecutor": "async",
    "ProcessExecutor": "processes",
    "RayExecutor": "ray",
}


def is_complete(storage: EvaluationResultsStorage, name: str, *, retry_failed: bool) -> bool:
    """Whether a run is finished and going on with it would ask for nothing."""
    return storage.is_complete(name, retry_failed=retry_failed)


def is_compared(args: Namespace) -> bool:
    """Whether a line that resumes says anything of what the run is."""
    return any(getattr(args, name) is not None for name in (*_COMPARED, *STOP_SETTINGS))


def say_complete(storage: EvaluationResultsStorage, name: str) -> None:
    """Say that there is nothing to do, and what else could be done."""
    from ..runs.journal import lacking

    failed = lacking(storage.run_folder(name), retry_failed=True)
    more = f" {failed} failures would come again; --retry-failed tries them all the same." if failed else ""
    echo.note(f"{echo.one_line(name)} is finished; there is nothing to go on with.{more}")


def exit_code_of_finished(storage: EvaluationResultsStorage, name: str, minimum: float | None) -> int:
    """How the run itself ended: what is finished is not the same as good, also the second time."""
    from ..io.results_json import is_ours
    from ..runs.storage import read_results

    if not is_ours(read_results(storage.find(name))):
        return 0
    run = storage.load_scores(name)
    least = run.configuration.get("min_coverage") if minimum is None else minimum
    return exit_code(run, storage.load_tally(name), least)


def refuse_words(args: Namespace) -> None:
    """DataError if words of the line do not fit each other."""
    from ..errors import DataError

    if args.resume is None:
        if args.retry_failed:
            what = "is about a run that is gone on with."
            raise DataError("--retry-failed", what, fix="Add --resume ID.")
        return
    if args.resume and args.id and args.resume != args.id:
        what = f"names {args.id!r:.80}, and --resume {args.resume!r:.80}."
        raise DataError("--id", what, fix="Leave one of them out.")
    if args.force:
        raise DataError(
            "--force", "would throw away what --resume goes on with.", fix="Leave one of them out."
        )


def begun(args: Namespace, planned: Mapping[str, Any], stored: Collection[str]) -> dict[str, Any]:
    """The settings of the run to go on with, from its header: the flags need not be typed again."""
    from ..runs.budgets import budgets_of
    from ..runs.journal import HEADER, read_header
    from ..runs.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    name = args.id = args.resume or args.id or planned.get("id") or _which(storage)
    folder = storage.run_folder(name)
    _refuse_variant(storage, name, args.out)
    if not is_compared(args) and is_complete(storage, name, retry_failed=args.retry_failed):
        return {"dataset": "-", "system": "-"}  # they are not looked at
    if not (folder / HEADER).is_file():
        _refuse_without_header(storage, name, args.out)
    header = read_header(folder)
    told = header.get("configuration")
    configuration = told if isinstance(told, dict) else {}
    known = {key: value for key, value in configuration.items() if key in {*stored, *_PRICES}}
    known["executor"] = _executor(known.get("executor"))
    metrics = header.get("metrics")
    known |= {"top_k": header.get("top_k"), "seed": header.get("seed")}
    known |= {"metrics": list(metrics) if isinstance(metrics, dict) else None}
    known["is_named_again"] = not (configuration.get("dataset") and configuration.get("system"))
    known |= {budget: limit for budget, (limit, _) in budgets_of(header).items()}
    return {key: value for key, value in known.items() if value is not None} | _found_again(
        known, header.get("begun_in")
    )


def new_in_plan(args: Namespace, planned: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The plan without budgets that the run was begun with: what it was given since is its own."""
    from ..runs.budgets import BUDGETS
    from ..runs.journal import HEADER, read_header
    from ..runs.storage import EvaluationResultsStorage

    folder = EvaluationResultsStorage(args.out).run_folder(args.id)
    if not (folder / HEADER).is_file():
        return dict(planned)
    told = read_header(folder).get("configuration")
    first = told if isinstance(told, dict) else {}
    old = [name for name in BUDGETS if name in before and planned.get(name) == first.get(name)]
    for name in old:
        if name in planned and planned[name] != before[name] and getattr(args, name, None) is None:
            echo.note(
                f"budget: the plan's {name} of {planned[name]:,} is that of the beginning; the run was given "
                f"{before[name]:,} since, which counts"
            )
    return {name: value for name, value in planned.items() if name not in old}


def _which(storage: EvaluationResultsStorage) -> str:
    from ..errors import DataError

    unfinished = storage.unfinished()
    hint = f" Not finished are {', '.join(unfinished[:5])}." if unfinished else ""
    raise DataError("--resume", "does not say which run.", fix=f"Write --resume ID.{hint}")


def _refuse_variant(storage: EvaluationResultsStorage, name: str, out: str) -> None:
    """DataError if a run is of an experiment, which knows its settings and its share of the samples."""
    from ..errors import DataError, StorageError
    from ..runs.journal import HEADER, read_header
    from ..runs.storage import read_results
    from ..runs.unfinished import variant_of

    facts: Mapping[str, Any] = {}
    if (storage.run_folder(name) / HEADER).is_file():
        try:
            facts = read_header(storage.run_folder(name))
        except StorageError:
            return  # whoever needs it says what is wrong with it
    elif storage.is_finished(name):
        facts = read_results(storage.find(name))
    found = variant_of(facts.get("configuration"))
    if found is not None:
        what = f"is variant {found[1]!r:.80} of the experiment {found[0]!r:.80}."
        line = f"auepora experiment FILE --resume{out_flag(out)}"
        fix = f"Go on with all of it: {line} (--retry-failed tries its failures again)."
        raise DataError(f"--resume {name:.80}", what, fix=fix)


def _refuse_without_header(storage: EvaluationResultsStorage, name: str, out: str) -> None:
    from ..errors import NotFoundError, StorageError
    from ..runs.journal import HEADER, JOURNAL

    folder = storage.run_folder(name)
    if (folder / JOURNAL).is_file():
        raise StorageError(
            f"{folder} has lost its {HEADER}: nobody knows what was run on what. Its answers can be scored: "
            f"auepora score --dataset FILE --outputs {folder / JOURNAL}"
        )
    if storage.is_finished(name):
        raise StorageError(
            f"{name!r:.80} is finished, and was not made by auepora run: what this line says of it cannot be "
            "compared. Leave the other flags out, or choose another id."
        )
    unfinished = storage.unfinished()
    hint = "See auepora list." if Path(out).is_dir() else "There is no such folder."
    if unfinished:
        hint = f"Not finished are {', '.join(unfinished[:5])}."
    raise NotFoundError(out, f"there is no run {name!r:.80} to go on with.", fix=hint)


def _executor(name: object) -> str | None:
    """An executor by the name of its flag; of somebody's own class nothing: the flag has none for it."""
    return _EXECUTORS.get(str(name), str(name) if name in _EXECUTORS.values() else None)


def refuse_missing(settings: Mapping[str, Any], *, resumes: bool) -> None:
    """DataError if it is not known what is run on what."""
    from ..errors import DataError

    missing = next((name for name in ("dataset", "system") if not settings.get(name)), None)
    if missing is None:
        return
    if not resumes:
        raise DataError(
            f"--{missing}", "is missing.", fix="Give the flag, or put it into the plan (--config)."
        )
    what = f"{settings['id']:.80} was begun in Python, and its header does not name the {missing}."
    fix = "Go on with it there (resume=True), or name both: --dataset FILE --system MODULE:ATTR."
    raise DataError("--resume", what, fix=fix)


def _found_again(known: Mapping[str, Any], folder: object) -> dict[str, str]:
    """Files that were named from the folder in which the run was begun, as they are named from this one."""
    if not isinstance(folder, str) or Path(folder) == Path.cwd():
        return {}
    there = Path(folder)
    found = {}
    for name in _PATHS:
        path = known.get(name)
        if isinstance(path, str) and path != "demo" and not Path(path).exists() and (there / path).exists():
            found[name] = str(there / path)
    module, _, attribute = str(known.get("system", "")).rpartition(":")
    if module.endswith(".py") and not Path(module).exists() and (there / module).exists():
        found["system"] = f"{there / module}:{attribute}"
    return found


def say_resuming(
    places: JournalPlaces | None,
    size: int,
    spent: Mapping[str, float],
    policy: CallPolicy | None,
    *,
    retry_failed: bool,
) -> int:
    """Say how much is there already, and what was spent; how many samples need not be asked."""
    again = there = 0
    if places is not None and len(places):
        again, there = places.failed[True] + (places.failed[False] if retry_failed else 0), len(places)
        more = f"; {again} of them failed and are asked again" if again else ""
        echo.note(f"resuming: {there} of {size} samples have an output{more}")
    for limit, amount in spent.items():
        echo.note(
            f"budget: {amount:,.10g} of {getattr(policy, limit):,.10g} {_kind(limit)} were spent before"
        )
    if places is not None:
        _say_new_budgets(places.path.parent, spent, policy)
    return there - again


def _say_new_budgets(folder: Path, counted: Collection[str], policy: CallPolicy | None) -> None:
    """Say of each budget that was given now that it counts from here: also a smaller one allows more."""
    from ..runs.budgets import BUDGETS, budgets_of
    from ..runs.journal import read_header

    for name, (limit, after) in budgets_of(read_header(folder)).items():
        kind = BUDGETS[name]
        if after and kind not in counted and getattr(policy, kind, None) is not None:
            echo.note(
                f"budget: {limit:,.10g} {_kind(kind)} from here on; {after:,.10g} were spent before, under "
                "another budget"
            )


def _kind(limit: str) -> str:
    return {"max_calls": "calls", "max_tokens": "tokens"}.get(limit, "US dollars")


def say_how_to_resume(storage: EvaluationResultsStorage, settings: Mapping[str, Any]) -> None:
    """Say what is kept of a run that was begun and stopped, and how to go on with it."""
    from ..errors import AueporaError

    name = settings["id"]
    try:
        kept, finished = storage.answered(name), storage.is_finished(name)
        if kept is None or storage.is_complete(name):
            return
    except AueporaError:
        return  # it is the storage that failed; the error says so
    echo.note(f"kept: {kept} outputs in {storage.run_folder(name)}")
    if finished:
        echo.note(f"The results that {echo.one_line(name)} has stay, until there are new ones.")
    echo.note(f"resume: {line_to_resume(settings)}")


def line_to_resume(settings: Mapping[str, Any]) -> str:
    """The command that goes on with a run."""
    words = f"auepora run --resume {shlex.quote(settings['id'])}{out_flag(settings['out'])}"
    if settings.get("is_named_again"):  # it was begun in Python: its header does not have them
        words += f" --dataset {shlex.quote(settings['dataset'])} --system {shlex.quote(settings['system'])}"
    return words + span_words(settings)


def say_how_to_raise(error: BaseException, settings: Mapping[str, Any]) -> None:
    """Say that a spent budget stays spent, if that is why the run stopped."""
    from ..runs.budgets import BUDGETS

    if "budget" not in str(error):
        return
    flags = [f"--{name.replace('_', '-')}" for name in BUDGETS if settings.get(name) is not None]
    if flags:
        echo.note(f"A budget that is spent stays spent: resume with another number for {' or '.join(flags)}.")


def system_identity(name: str, system_name: str, system: Any = None) -> list[Any]:
    """What tells a system from another: its name and the text of the file that it is in.

    Of a server: what is sent to it, as the system says (its prompt, its model).
    """
    from ..runs.system_identity import endpoint_identity, program_sha256

    asks = endpoint_identity(name, system)
    return [name, system_name, program_sha256(name), *([asks] if asks else [])]
