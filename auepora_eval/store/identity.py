"""The identity of a run: a resumed run must be the one that was started, so that two are not mixed."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import EvaluationDataset, canonical_json
from ..core.metrics_base import SampleMetric
from ..core.plan import Survey
from ..core.rag_interface import parts_of
from ..core.runner import AueporaEvaluator, name_of
from ..core.settings import is_endpoint
from ..errors import StorageError

# What decides the answers and the scores: resuming under another of these would mix two runs.
BINDING = ("dataset_sha256", "system", "metrics", "top_k", "seed", "stop_when")

_LONGEST = 200  # letters of a value that is shown

Header = dict[str, Any]  # what a run is, as its database has it


class ChangedProgramWarning(UserWarning):
    """The file of a system was changed after its run was started."""


def check_same_identity(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raise StorageError that names what differs in what decides answers or scores."""
    parts = [_dataset_change(before, now), *(_change(name, before, now) for name in BINDING[1:])]
    if before.get("system") == now.get("system"):
        parts.append(_program_change(before, now))
    asks_before, asks = before.get("asks"), now.get("asks")
    if isinstance(asks_before, dict) and isinstance(asks, dict):  # a run of Python code has none
        parts += [_change(name, asks_before, asks) for name in sorted({*asks_before, *asks})]
    # Variants of an experiment may share a system, and differ in what it was made with.
    was, is_ = (_mapping(_mapping(one.get("configuration")).get("experiment")) for one in (before, now))
    parts += [_change(name, was, is_) for name in ("experiment_id", "variant_id", "arguments")]
    different = "; ".join(part for part in parts if part)
    if different:
        raise StorageError(
            f"{path} is another run: {different}. Resume it as it was started, or choose another id."
        )


def run_facts(
    evaluator: AueporaEvaluator,
    dataset: EvaluationDataset,
    survey: Survey,
    stop_when: Mapping[str, Any] | None,
    identity: SystemIdentity | None,
) -> dict[str, Any]:
    """Return the header of a run, beside its id and its start."""
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
        **({} if identity is None else identity.as_header()),
    }


def identity_hashes(header: Mapping[str, Any]) -> dict[str, str]:
    """Return one hash each of the plan, the dataset and the system of a run."""
    plan = {name: header.get(name) for name in ("metrics", "top_k", "seed", "stop_when")}
    system = {name: header.get(name) for name in ("system", "asks", "named", "program_sha256")}
    return {
        "plan_sha256": sha256(canonical_json(plan)).hexdigest(),
        "dataset_sha256": str(header.get("dataset_sha256")),
        "system_sha256": sha256(canonical_json(system)).hexdigest(),
    }


def facts_of_results(results: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the results of a run without a header say of it, without the signatures of its metrics."""
    configuration, metadata = _mapping(results.get("configuration")), _mapping(results.get("metadata"))
    signatures, names = _mapping(now.get("metrics")), configuration.get("metrics")
    return {
        "dataset_sha256": metadata.get("dataset_sha256"),
        "system": results.get("system_name") or results.get("system_version"),
        "metrics": {name: signatures.get(name) for name in names} if isinstance(names, list) else names,
        "top_k": configuration.get("retrieval_k"),
        "seed": _mapping(metadata.get("evaluation_parameters")).get("random_seed"),
        "configuration": configuration,
    }


def program_was_changed(before: Mapping[str, Any], now: Mapping[str, Any], message: str) -> bool:
    """Return whether the file of the system was changed, and warn with the message if it was."""
    first, last = before.get("program_sha256"), now.get("program_sha256")
    if not first or not last or first == last:
        return False
    warnings.warn(f"The file of the system was changed {message}", ChangedProgramWarning, stacklevel=3)
    return True


def _program_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how the module, file or attribute of the system differs; empty if it is the same.

    Another spelling of the same path is the same file, and so is a file that was moved unchanged.
    """
    then, here = _name_of_system(before), _name_of_system(now)
    if not then or not here or then == here or (is_endpoint(then) and is_endpoint(here)):
        return ""
    if then.rpartition(":")[2] == here.rpartition(":")[2]:
        # Two files that cannot be found share the hash of nothing, and need not be the same program.
        if now.get("program_sha256") == before.get("program_sha256") != NO_PROGRAM:
            return ""
        old = _program_file(then, Path(str(before.get("begun_in") or "")))
        new = _program_file(here, Path(str(now.get("begun_in") or "")))
        if old is not None and new is not None and old.resolve() == new.resolve():
            return ""
    return _was_and_is("system", repr(then), repr(here))


def _name_of_system(facts: Mapping[str, Any]) -> str:
    """Return the name that a system was loaded by; empty if it was made in Python."""
    name = facts.get("named") or _mapping(facts.get("configuration")).get("system")
    return name if isinstance(name, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _change(name: str, before: Mapping[str, Any], now: Mapping[str, Any], inside: str = "") -> str:
    """Return how a fact differs, each part of a mapping by itself; empty if it is the same."""
    then, here = before.get(name), now.get(name)
    if then == here:
        return ""
    if isinstance(then, Mapping) and isinstance(here, Mapping):
        if name == "metrics" and then.keys() != here.keys():
            return _was_and_is(name, ", ".join(then), ", ".join(here))
        parts = (_change(key, then, here, f"{inside}{name}: ") for key in sorted({*then, *here}))
        return "; ".join(part for part in parts if part)
    return _was_and_is(f"{inside}{name}", repr(then), repr(here))


def _was_and_is(name: str, then: str, here: str) -> str:
    return f"{name} was {then[:_LONGEST]}, now it is {here[:_LONGEST]}"


def _dataset_change(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return how a dataset differs: by its name and size, or else by its hash."""
    then, here = before.get("dataset_sha256"), now.get("dataset_sha256")
    if then == here:
        return ""
    was, is_ = (f"{facts.get('dataset')!r:.80}, {facts.get('samples')} samples" for facts in (before, now))
    if was != is_ and "dataset" in before:
        return f"the dataset was {was}, now it is {is_}"
    return f"the samples of the dataset were changed (sha256 was {then!s:.12}, now it is {here!s:.12})"


NO_PROGRAM = sha256(b"").hexdigest()  # of a system whose file is not known


@dataclass(frozen=True)
class SystemIdentity:
    """What identifies a system beyond its name, for a run that is resumed.

    Another server, model or prompt (`asks`), and another module or file (`named`) are errors. Another text of
    the program is only a warning: people fix what crashed and resume. `begun_in` is the folder that relative
    paths start from.
    """

    asks: Mapping[str, object] | None = None
    program_sha256: str | None = None
    begun_in: str | None = None
    named: str | None = None

    def as_header(self) -> dict[str, object]:
        """Return the facts that are not None, by their names in a header."""
        return {name: fact for name, fact in vars(self).items() if fact is not None}


def identity_of(system: Any, *, begun_in: str | None = None) -> SystemIdentity:
    """Return the identity of a system that was loaded by its name, or made in Python."""
    from ..core.systems.named import origin_of  # with the clients of endpoints: 10 ms

    origin = origin_of(system)
    if origin is not None:
        name, folder, _ = origin
        asks = endpoint_identity(name, system)
        named = None if is_endpoint(name) else name  # a URL may hold a secret; `asks` does not
        return SystemIdentity(asks, program_sha256(name, Path(folder)), begun_in or folder, named=named)
    files = {file for part in parts_of(system) if (file := _file_of(part)) is not None}
    # Sorted: the order of a set differs between processes, and the hash must not.
    content = b"".join(file.read_bytes() for file in sorted(files))
    return SystemIdentity(None, sha256(content).hexdigest() if files else None, begun_in)


def endpoint_identity(name: str, system: Any) -> dict[str, object] | None:
    """Return what decides the answers of a server, as far as it is known here; None for Python code."""
    identity = getattr(system, "identity", None)
    return identity if is_endpoint(name) and isinstance(identity, dict) else None


def program_sha256(name: str, folder: Path = Path()) -> str:
    """Return the hash of the file that a system is in; of nothing if there is no such file."""
    file = _program_file(name, folder)
    try:
        return NO_PROGRAM if file is None else sha256(file.read_bytes()).hexdigest()
    except OSError:
        return NO_PROGRAM


def _program_file(name: str, folder: Path) -> Path | None:
    """Return the file that a system of that name is in, seen from a folder; it need not exist.

    A module is looked up in that folder first, where it was loaded from; then as an import finds it.
    """
    from importlib.util import find_spec

    module = name.rpartition(":")[0]
    if module.endswith(".py"):
        return folder / module
    if folder.resolve() != Path.cwd():
        path = folder.joinpath(*module.split("."))
        for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):  # in the order of an import
            if file.is_file():
                return file
    try:
        origin = getattr(find_spec(module), "origin", None)
    except (OSError, ImportError, ValueError):
        return None
    return Path(origin) if origin else None


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
