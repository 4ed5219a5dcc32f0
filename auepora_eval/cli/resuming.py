"""Going on with a run: what its header remembers, what it has spent, and what is said about it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import echo
from .span_flags import span_words

if TYPE_CHECKING:
    from ..core.policy import CallPolicy
    from ..runs.storage import EvaluationResultsStorage

# What ends a run when it is spent: the flag's name, and the policy's.
BUDGETS = {"budget_calls": "max_calls", "budget_tokens": "max_tokens", "budget_cost": "max_cost"}
_PRICES = ("price_input", "price_output")
_PATHS = ("dataset", "prompt")


def is_complete(storage: EvaluationResultsStorage, name: str, *, retry_failed: bool) -> bool:
    """Whether a run is finished and going on with it would ask for nothing."""
    from ..runs.journal import lacking

    return storage.is_finished(name) and not lacking(storage.run_folder(name), retry_failed=retry_failed)


def say_complete(storage: EvaluationResultsStorage, name: str) -> None:
    """Say that there is nothing to do, and what else could be done."""
    from ..runs.journal import lacking

    failed = lacking(storage.run_folder(name), retry_failed=True)
    more = f" {failed} failures would come again; --retry-failed tries them all the same." if failed else ""
    echo.note(f"{echo.one_line(name)} is finished; there is nothing to go on with.{more}")


def begun(args: Namespace, stored: Collection[str]) -> dict[str, Any]:
    """The settings of the run to go on with, from its header: the flags need not be typed again."""
    from ..errors import DataError, NotFoundError
    from ..runs.journal import HEADER, read_header
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
    return known | _found_again(known, header.get("begun_in"))


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
    storage: EvaluationResultsStorage, settings: Mapping[str, Any], given: Collection[str], policy: CallPolicy
) -> dict[str, float]:
    """What earlier sessions spent of the budgets that the run was begun with.

    One that is given now, on the line that resumes, counts from here.
    """
    from ..runs.spending import spent_before

    kept = {limit for name, limit in BUDGETS.items() if settings.get(name) is not None and name not in given}
    if not kept:
        return {}
    spent = spent_before(storage.run_folder(settings["id"]), policy)
    return {limit: amount for limit, amount in spent.items() if limit in kept}


def say_resuming(storage: EvaluationResultsStorage, name: str, size: int, *, retry_failed: bool) -> int:
    """Say how much is there already; how many samples need not be asked."""
    from ..runs.journal import stored_places

    places = stored_places(storage.run_folder(name))
    if places is None or not len(places):
        return 0
    again = places.failed[True] + (places.failed[False] if retry_failed else 0)
    more = f"; {again} of them failed and are asked again" if again else ""
    echo.note(f"resuming: {len(places)} of {size} samples have an output{more}")
    return len(places) - again


def say_how_to_resume(storage: EvaluationResultsStorage, settings: Mapping[str, Any]) -> None:
    """Say what is kept of a run that stopped, and how to go on with it."""
    from ..errors import StorageError

    try:
        kept = storage.answered(settings["id"])
    except StorageError:
        return  # it is the storage that failed; the error says so
    if kept is not None and not storage.is_finished(settings["id"]):
        echo.note(f"kept: {kept} outputs in {storage.run_folder(settings['id'])}")
        flags = f"{out_flag(settings['out'])}{span_words(settings)}"
        echo.note(f"resume: auepora run --resume {settings['id']}{flags}")


def say_how_to_raise(error: BaseException, settings: Mapping[str, Any]) -> None:
    """Say that a spent budget stays spent, if that is why the run stopped."""
    if "budget" not in str(error):
        return
    flags = [f"--{name.replace('_', '-')}" for name in BUDGETS if settings.get(name) is not None]
    if flags:
        echo.note(f"A budget that is spent stays spent: resume with a new {' or '.join(flags)}.")


def out_flag(out: str) -> str:
    """The flag that names the folder, where it is not the usual one."""
    from .common import DEFAULT_OUT

    return "" if out == DEFAULT_OUT else f" --out {out}"


def system_identity(name: str, system_name: str, system: Any = None) -> list[Any]:
    """What tells a system from another: its name and the text of the file that it is in.

    Of a server: what is sent to it, as the system says (its prompt, its model).
    """
    asks = endpoint_identity(name, system)
    return [name, system_name, program_sha256(name), *([asks] if asks else [])]


def endpoint_identity(name: str, system: Any, fields: object = None) -> dict[str, Any] | None:
    """What decides the answers of a server, as far as this side knows; None of Python code."""
    from ..execution.systems import is_endpoint

    identity = getattr(system, "identity", None)
    if not is_endpoint(name) or not isinstance(identity, dict):
        return None
    return {**identity, **({"fields": fields} if fields else {})}


def program_sha256(name: str) -> str:
    """The hash of the text of the file that a system is in; of nothing where there is no such file."""
    from importlib.util import find_spec

    module = name.rpartition(":")[0]
    try:
        origin = module if module.endswith(".py") else getattr(find_spec(module), "origin", None)
        content = Path(origin).read_bytes() if origin else b""
    except (OSError, ImportError, ValueError):
        content = b""
    return sha256(content).hexdigest()
