"""Going on with a run: what its header remembers, what it has spent, and what is said about it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .common import out_flag
from .span_flags import span_words

if TYPE_CHECKING:
    from ..core.policy import CallPolicy
    from ..runs.journal_places import JournalPlaces
    from ..runs.storage import EvaluationResultsStorage

# What ends a run when it is spent: the flag's name, and the policy's.
BUDGETS = {"budget_calls": "max_calls", "budget_tokens": "max_tokens", "budget_cost": "max_cost"}
_PRICES = ("price_input", "price_output")
_PATHS = ("dataset", "prompt")


def is_complete(storage: EvaluationResultsStorage, name: str, *, retry_failed: bool) -> bool:
    """Whether a run is finished and going on with it would ask for nothing."""
    return storage.is_complete(name, retry_failed=retry_failed)


def say_complete(storage: EvaluationResultsStorage, name: str) -> None:
    """Say that there is nothing to do, and what else could be done."""
    from ..runs.journal import lacking

    failed = lacking(storage.run_folder(name), retry_failed=True)
    more = f" {failed} failures would come again; --retry-failed tries them all the same." if failed else ""
    echo.note(f"{echo.one_line(name)} is finished; there is nothing to go on with.{more}")


def begun(args: Namespace, stored: Collection[str]) -> dict[str, Any]:
    """The settings of the run to go on with, from its header: the flags need not be typed again."""
    from ..errors import DataError, NotFoundError, StorageError
    from ..runs.journal import HEADER, JOURNAL, read_header
    from ..runs.storage import EvaluationResultsStorage

    name = args.resume or args.id
    if not name:
        raise DataError("--resume", "does not say which run.", fix="Write --resume ID.")
    if args.force:
        raise DataError(
            "--force", "would throw away what --resume goes on with.", fix="Leave one of them out."
        )
    storage = EvaluationResultsStorage(args.out)
    args.id = name
    folder = storage.run_folder(name)
    if is_complete(storage, name, retry_failed=args.retry_failed):
        return {"dataset": "-", "system": "-"}  # they are not looked at
    if not (folder / HEADER).is_file() and (folder / JOURNAL).is_file():
        raise StorageError(
            f"{folder} has lost its {HEADER}: nobody knows what was run on what. Its answers can be scored: "
            f"auepora score --dataset FILE --outputs {folder / JOURNAL}"
        )
    if not (folder / HEADER).is_file():
        unfinished = storage.unfinished()
        hint = "See auepora list." if Path(args.out).is_dir() else "There is no such folder."
        if unfinished:
            hint = f"Not finished are {', '.join(unfinished[:5])}."
        raise NotFoundError(args.out, f"there is no run {name!r:.80} to go on with.", fix=hint)
    header = read_header(folder)
    told = header.get("configuration")
    configuration = told if isinstance(told, dict) else {}
    known = {key: value for key, value in configuration.items() if key in {*stored, *_PRICES}}
    metrics = header.get("metrics")
    known |= {"top_k": header.get("top_k"), "seed": header.get("seed")}
    known |= {"metrics": list(metrics) if isinstance(metrics, dict) else None}
    return known | _given_later(header.get("budgets")) | _found_again(known, header.get("begun_in"))


def _given_later(budgets: object) -> dict[str, Any]:
    """The budgets that a line which resumed the run has given; what was spent by then is not of them."""
    found: dict[str, Any] = {"spent_by_then": {}}
    for name, told in budgets.items() if isinstance(budgets, dict) else ():
        if name in BUDGETS and isinstance(told, dict) and _are_numbers(told.get("limit"), told.get("after")):
            found[name] = told["limit"]
            found["spent_by_then"][name] = told["after"]
    return found


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)


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


def still_counted(
    storage: EvaluationResultsStorage, settings: Mapping[str, Any], policy: CallPolicy
) -> tuple[dict[str, float], dict[str, Any]]:
    """What earlier sessions spent of the budgets that the run has, and the budgets that are given now.

    One that is given on the line that resumes counts from here: each with what was spent before it.
    """
    from ..runs.spending import spent_before

    named = [name for name in BUDGETS if settings.get(name) is not None]
    if not named:
        return {}, {}
    spent = spent_before(storage.run_folder(settings["id"]), policy)
    counted, given = {}, {}
    for name in named:
        amount = spent.get(BUDGETS[name], 0)
        if name in settings["given"]:
            given[name] = {"limit": settings[name], "after": amount}
        else:
            counted[BUDGETS[name]] = amount - settings.get("spent_by_then", {}).get(name, 0)
    return counted, given


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
        kind = {"max_calls": "calls", "max_tokens": "tokens"}.get(limit, "US dollars")
        echo.note(f"budget: {amount:,.10g} of {getattr(policy, limit):,.10g} {kind} were spent before")
    return there - again


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
    echo.note(f"resume: auepora run --resume {name}{out_flag(settings['out'])}{span_words(settings)}")


def say_how_to_raise(error: BaseException, settings: Mapping[str, Any]) -> None:
    """Say that a spent budget stays spent, if that is why the run stopped."""
    if "budget" not in str(error):
        return
    flags = [f"--{name.replace('_', '-')}" for name in BUDGETS if settings.get(name) is not None]
    if flags:
        echo.note(f"A budget that is spent stays spent: resume with a new {' or '.join(flags)}.")


def system_identity(name: str, system_name: str, system: Any = None) -> list[Any]:
    """What tells a system from another: its name and the text of the file that it is in.

    Of a server: what is sent to it, as the system says (its prompt, its model).
    """
    from ..runs.system_identity import endpoint_identity, program_sha256

    asks = endpoint_identity(name, system)
    return [name, system_name, program_sha256(name), *([asks] if asks else [])]
