"""The identity of a run: a resumed run must be the one that was started, so that two are not mixed."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import EvaluationDataset, canonical_json
from ..core.metrics_base import SampleMetric
from ..core.plan import Survey
from ..core.rag_interface import name_of, parts_of
from ..core.runner import AueporaEvaluator
from ..core.settings import is_endpoint
from ..errors import StorageError, warn_user

_LONGEST = 200  # letters of a value that is shown
_OF_THE_PLAN = ("metrics", "top_k", "seed", "stop_when")
_OF_A_VARIANT = ("experiment_id", "variant_id", "arguments")
_OF_THE_SYSTEM = ("system", "asks", "named", "program_sha256")

Header = dict[str, Any]  # what a run is, as its database has it


class ChangedProgramWarning(UserWarning):
    """The file of a system was changed after its run was started."""


def run_facts(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    survey: Survey,
    stop_when: Mapping[str, Any] | None,
    system: Mapping[str, object],
) -> Header:
    """Return the header of a run, beside its id and its start; `system` is what `system_facts` returns."""
    metrics = {
        metric.name: metric.signature() if isinstance(metric, SampleMetric) else {}
        for metric in evaluator.plan.metrics
    }
    return {
        "dataset": dataset.name,
        "samples": survey.size,
        "configuration": evaluator.settings(),
        "dataset_sha256": survey.sha256,
        "system": name_of(evaluator.system),
        # In the order of the plan, which a run that is resumed by its header alone must keep.
        "metrics": {name: msgspec.json.decode(canonical_json(facts)) for name, facts in metrics.items()},
        "top_k": evaluator.top_k,
        "seed": evaluator.seed,
        **({} if stop_when is None else {"stop_when": stop_when}),
        **system,
    }


def identity_hashes(header: Header) -> dict[str, str]:
    """Return one hash each of the plan, the dataset and the system of a run."""
    plan, system = ([header.get(name) for name in names] for names in (_OF_THE_PLAN, _OF_THE_SYSTEM))
    return {
        "plan_sha256": sha256(canonical_json(plan)).hexdigest(),
        "dataset_sha256": str(header.get("dataset_sha256")),
        "system_sha256": sha256(canonical_json(system)).hexdigest(),
    }


def check_same_identity(before: Header, now: Header, path: Path) -> bool:
    """Raise StorageError that names what differs in what decides answers or scores.

    Return whether the program of the system was changed since. This is only a warning: people fix what
    crashed, and resume.
    """
    different = "; ".join(_changes(before, now))
    if different:
        raise StorageError(
            f"{path} is another run: {different}. Resume it as it was started, or choose another id."
        )
    first, last = before.get("program_sha256"), now.get("program_sha256")
    is_changed = bool(first and last and first != last)
    if is_changed:
        what = (
            "The file of the system was changed after the run was started: stored answers are of the earlier "
            "version. To measure only the new one, choose another id."
        )
        warn_user(what, ChangedProgramWarning)
    return is_changed


def _changes(before: Header, now: Header) -> Iterator[str]:
    then, here = (f"{facts.get('dataset')!r:.80}, {facts.get('samples')} samples" for facts in (before, now))
    if before.get("dataset_sha256") != now.get("dataset_sha256"):
        yield _was_and_is("the dataset", then, here if then != here else "the same number of other samples")
    old, new = (", ".join(facts.get("metrics") or ()) for facts in (before, now))
    if old != new:
        yield _was_and_is("metrics", old, new)
    else:
        yield from differences("metrics", before.get("metrics"), now.get("metrics"))
    for name in ("system", *_OF_THE_PLAN[1:]):
        yield from differences(name, before.get(name), now.get(name))
    if before.get("system") == now.get("system") and _is_another_program(before, now):
        yield _was_and_is("system", repr(_name_of_system(before)), repr(_name_of_system(now)))
    if before.get("asks") and now.get("asks"):  # a run of Python code has none
        yield from differences("", before["asks"], now["asks"])
    # Variants of an experiment may share a system, and differ in what it was made with.
    made = ((facts.get("configuration") or {}).get("experiment") or {} for facts in (before, now))
    was, is_ = ({key: one.get(key) for key in _OF_A_VARIANT} for one in made)
    yield from differences("experiment", was, is_)


def _is_another_program(before: Header, now: Header) -> bool:
    """Return whether the system has the name of another file; one that was moved unchanged is the same."""
    then, here = _name_of_system(before), _name_of_system(now)
    if not then or not here or then == here or (is_endpoint(then) and is_endpoint(here)):
        return False
    is_same_attribute = then.rpartition(":")[2] == here.rpartition(":")[2]
    first, last = before.get("program_sha256"), now.get("program_sha256")
    return not (is_same_attribute and first and first == last)


def _name_of_system(facts: Header) -> str:
    """Return the name that a system was loaded by; empty if it was made in Python."""
    name = facts.get("named") or (facts.get("configuration") or {}).get("system")
    return name if isinstance(name, str) else ""


def differences(name: str, then: Any, here: Any) -> Iterator[str]:
    """Yield how a fact differs, in words, each part of a mapping by itself."""
    if isinstance(then, Mapping) and isinstance(here, Mapping):
        for key in sorted({*then, *here}):
            yield from differences(f"{name}: {key}" if name else key, then.get(key), here.get(key))
    elif then != here:
        yield _was_and_is(name, repr(then), repr(here))


def _was_and_is(name: str, then: str, here: str) -> str:
    return f"{name} was {then[:_LONGEST]}, now it is {here[:_LONGEST]}"


def system_facts(system: Any) -> dict[str, object]:
    """Return what identifies a system beyond its name.

    Another server, model or prompt (`asks`), and another module or file (`named`) are other systems. Another
    text of the program (`program_sha256`) is only worth a warning.
    """
    from ..core.systems.named import origin_of  # with the clients of endpoints: 10 ms

    origin = origin_of(system)
    if origin is None:
        files = {file for part in parts_of(system) if (file := _file_of(part)) is not None}
    elif is_endpoint(origin[0]):
        asks = getattr(system, "identity", None)  # not the URL, which may hold a secret
        return {"asks": asks} if isinstance(asks, dict) else {}
    else:
        files = {file for file in [_file_of_name(*origin[:2])] if file.is_file()}
    # Sorted: the order of a set differs between processes, and the hash must not.
    content = b"".join(file.read_bytes() for file in sorted(files))
    return {
        **({} if origin is None else {"named": origin[0]}),
        **({"program_sha256": sha256(content).hexdigest()} if files else {}),
    }


def _file_of_name(name: str, folder: str) -> Path:
    """Return the file of a system that was loaded by its name."""
    module = name.rpartition(":")[0]
    if module.endswith(".py"):
        return Path(folder, module)
    return Path(getattr(sys.modules.get(module), "__file__", None) or "/")


def _file_of(thing: Any) -> Path | None:
    """Return the file of a function, or of the class of an object; None if there is none."""
    # inspect.unwrap follows __wrapped__, which a partial does not have.
    while isinstance(thing, functools.partial):
        thing = thing.func
    code = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__code__", None)
    if code is None:
        kind = thing if isinstance(thing, type) else type(thing)
        name = getattr(sys.modules.get(kind.__module__), "__file__", None)
    else:
        name = code.co_filename
    file = Path(name) if isinstance(name, str) else None
    return file if file is not None and file.suffix == ".py" and file.is_file() else None
