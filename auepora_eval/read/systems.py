"""Systems of other frameworks, recognised by their methods. No other package is imported.

| LangChain   `invoke` or `ainvoke` of a runnable; a dict as input if the runnable asks for one
| LlamaIndex  `query`, `chat` or `retrieve` of an engine or a retriever
| Haystack    `run` of a pipeline, whose inputs and outputs are named "component.socket"
| OpenAI      `chat.completions.create` of a client
| DSPy        a module that is called with the name of its input

How many documents are retrieved is a setting of these objects: `top_k` is not passed to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.types import EvaluationSample
from ..errors import ArgumentError
from .names import QUERY_PARAMETERS


@dataclass(frozen=True)
class Names:
    """What a user says about an object: where its input goes, and where its outputs are; "a.b" is b in a."""

    input: str | Sequence[str] | None = None
    answer: str | None = None
    documents: str | None = None
    model: str | None = None


class ForeignSystem:
    """An object of another framework as a system; what it returns is read by `to_output`."""

    def __init__(self, thing: Any, names: Names) -> None:
        self.thing, self.names = thing, names
        self.name = type(thing).__name__
        self.prepare()
        self.is_async = inspect.iscoroutinefunction(self.method())

    def prepare(self) -> None:
        """Find out what a call needs; raise ArgumentError if the user must say more."""

    def method(self) -> Callable[..., Any]:
        """Return the method that is called."""
        raise NotImplementedError

    def call(self, query: str) -> Any:
        """Call the method with a query."""
        return self.method()(query)

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        raw = self.call(sample.query)
        return self._awaited(raw) if inspect.isawaitable(raw) else self.picked(raw)

    async def _awaited(self, raw: Any) -> Any:
        return self.picked(await raw)

    def picked(self, raw: Any) -> Any:
        """Return the parts of an output that the user has named; without names, the output itself."""
        paths = {"answer": self.names.answer, "retrieved": self.names.documents}
        parts = {name: _at(raw, path) for name, path in paths.items() if path is not None}
        return parts or raw


class Runnable(ForeignSystem):
    """A LangChain runnable: a chain, a retriever, an agent."""

    def prepare(self) -> None:
        named = self.names.input
        self.input = named if isinstance(named, str) else _input_of_runnable(self.thing)

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing.invoke
        return method

    def call(self, query: str) -> Any:
        if self.input is None:
            return self.method()(query)
        value = [{"role": "user", "content": query}] if self.input == "messages" else query
        return self.method()({self.input: value})


class AsyncRunnable(Runnable):
    """A LangChain runnable whose `ainvoke` was passed, or that has no other method."""

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing.ainvoke
        return method


def _input_of_runnable(thing: Any) -> str | None:
    """Return the key of the query in the input of a runnable; None if the input is the query itself."""
    describe = getattr(thing, "get_input_jsonschema", None)
    schema = describe() if callable(describe) else {}
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not properties:
        return None
    return one_query_name(properties, schema.get("required") or properties, type(thing).__name__)


def one_query_name(names: Iterable[str], required: Iterable[str], owner: str) -> str:
    """Return the input that takes the query: one with a usual name, or the only one that is required."""
    usual = [name for name in (*QUERY_PARAMETERS, "messages") if name in set(names)]
    only = list(required)
    if not usual and len(only) != 1:
        raise ArgumentError(
            f"{owner} has the inputs {sorted(names)[:8]}. Name the one that takes the query: "
            "as_system(thing, input='NAME')"
        )
    return usual[0] if usual else only[0]


class Engine(ForeignSystem):
    """A query engine, a chat engine or a retriever of LlamaIndex."""

    METHODS = ("query", "aquery", "chat", "achat", "retrieve", "aretrieve")

    def method(self) -> Callable[..., Any]:
        found = (getattr(self.thing, name, None) for name in self.METHODS)
        method: Callable[..., Any] = next(method for method in found if callable(method))
        return method


class Module(ForeignSystem):
    """A DSPy module: it takes its inputs by name."""

    def prepare(self) -> None:
        if isinstance(self.names.input, str):
            self.input = self.names.input
            return
        # Of the class: DSPy warns if `forward` of an object is touched.
        parameters = list(inspect.signature(type(self.thing).forward).parameters.values())[1:]
        names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
        if not names:
            names = [name for part in self.thing.predictors()[:1] for name in part.signature.input_fields]
        self.input = one_query_name(names, names, self.name)

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing
        return method

    def call(self, query: str) -> Any:
        return self.thing(**{self.input: query})


class Client(ForeignSystem):
    """A client with OpenAI's chat protocol."""

    def prepare(self) -> None:
        if not self.names.model:
            raise ArgumentError(f"{self.name} needs the name of a model: as_system(client, model='NAME')")
        self.name = self.names.model

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing.chat.completions.create
        return method

    def call(self, query: str) -> Any:
        return self.method()(model=self.names.model, messages=[{"role": "user", "content": query}])


class Pipeline(ForeignSystem):
    """A Haystack pipeline: the query goes to every open input for one, unless the inputs are named."""

    def prepare(self) -> None:
        named = self.names.input
        self.inputs = [named] if isinstance(named, str) else list(named or _open_queries(self.thing.inputs()))
        if not self.inputs:
            raise ArgumentError(_pipeline_help("no input for a query", "input", self.thing.inputs()))
        every = self.thing.outputs(include_components_with_connected_outputs=True)
        last = self.thing.outputs()
        self.answer = (
            self.names.answer or _only(last, "answers", "answer") or _only(last, "replies", "answer")
        )
        self.documents = self.names.documents or _only(every, "documents", "documents")
        if not self.answer and not self.documents:
            raise ArgumentError(_pipeline_help("neither answers nor documents", "answer", every))

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing.run
        return method

    def call(self, query: str) -> Any:
        data: dict[str, dict[str, str]] = {}
        for path in self.inputs:
            component, _, socket = path.partition(".")
            data.setdefault(component, {})[socket] = query
        paths = [path for path in (self.answer, self.documents) if path]
        return self.method()(data, include_outputs_from={path.partition(".")[0] for path in paths})

    def picked(self, raw: Any) -> Any:
        parts = {"answer": self.answer, "retrieved": self.documents}
        return {name: _at(raw, path) for name, path in parts.items() if path}


def _open_queries(inputs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the open inputs of a pipeline that a query belongs in."""
    return [
        f"{component}.{socket}"
        for component, sockets in inputs.items()
        for socket, facts in sockets.items()
        if socket in QUERY_PARAMETERS[:2] or (facts.get("is_mandatory") and _takes_query(socket, facts))
    ]


def _takes_query(socket: str, facts: Mapping[str, Any]) -> bool:
    return socket in QUERY_PARAMETERS or facts.get("type") is str


def _only(outputs: Mapping[str, Mapping[str, Any]], socket: str, argument: str) -> str | None:
    """Return the path of the only output of that name, or None; ArgumentError if there are several."""
    paths = [f"{component}.{socket}" for component, sockets in outputs.items() if socket in sockets]
    if len(paths) > 1:
        what = f"the pipeline has several outputs {socket!r}: {', '.join(paths)}"
        raise ArgumentError(f"{what}. Choose one: as_system(pipeline, {argument}='{paths[-1]}')")
    return paths[0] if paths else None


def _pipeline_help(what: str, argument: str, sockets: Mapping[str, Mapping[str, Any]]) -> str:
    paths = [f"{component}.{socket}" for component, each in sockets.items() for socket in each]
    return f"the pipeline has {what}. Name it: as_system(pipeline, {argument}='NAME'), one of {paths[:8]}"


def _at(raw: Any, path: str) -> Any:
    for name in path.split("."):
        raw = raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
    return raw


def foreign_system(thing: Any, names: Names) -> ForeignSystem | None:
    """Return the system of an object that belongs to a known framework; None for any other object."""
    # A method such as chain.invoke means its object, which says how the input must look.
    owner, method = getattr(thing, "__self__", None), getattr(thing, "__name__", "")
    if owner is not None and method in ("invoke", "ainvoke"):
        return (Runnable if method == "invoke" else AsyncRunnable)(owner, names)
    for kind, is_one in _KINDS:
        if not isinstance(thing, type) and is_one(thing):
            return kind(thing, names)
    return None


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda thing: all(callable(getattr(thing, name, None)) for name in names)


# The first that fits decides.
_KINDS: tuple[tuple[type[ForeignSystem], Callable[[Any], bool]], ...] = (
    (Pipeline, _has("run", "inputs", "outputs")),
    (Runnable, _has("invoke")),
    (AsyncRunnable, _has("ainvoke")),
    (Module, lambda thing: _has("__call__", "predictors")(thing) and hasattr(type(thing), "forward")),
    # A callable object is called, whatever other methods it has.
    (Engine, lambda thing: not callable(thing) and any(_has(name)(thing) for name in Engine.METHODS)),
    (Client, lambda thing: _has("create")(getattr(getattr(thing, "chat", None), "completions", None))),
)
