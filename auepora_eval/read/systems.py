"""Systems of other frameworks, recognised by their methods. No other package is imported.

| LangChain   `invoke` or `ainvoke` of a runnable; a dict as input if the runnable asks for one
| LlamaIndex  `query`, `chat` or `retrieve` of an engine or a retriever
| Haystack    `run` of a pipeline, whose inputs and outputs are named "component.socket"
| OpenAI      `chat.completions.create` of a client
| DSPy        a module that is called with the name of its input

How many documents are retrieved is a setting of these objects: `top_k` is not passed to them. Documents can
be handed to the generators of LangChain, LlamaIndex and Haystack: they take the place of what is retrieved.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..core.types import Document, EvaluationSample
from ..errors import ArgumentError
from .messages import Turn, messages_of
from .names import DOCUMENT_PARAMETERS, QUERY_PARAMETERS


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

    def call(self, query: str, messages: list[Turn]) -> Any:
        """Call the method with a query, or with the messages of which it is the last."""
        return self.method()(query)

    def takes_history(self) -> bool:
        """Return whether the object gets the earlier turns of a conversation."""
        return False

    has_depth = False

    def takes_documents(self, sample: EvaluationSample) -> bool:
        """Return whether documents can be handed to the generator."""
        return False

    def answer(self, query: str, messages: list[Turn], documents: Sequence[Document]) -> Any:
        """Call the generator with documents that take the place of the retrieved ones."""
        raise NotImplementedError

    def run(
        self, sample: EvaluationSample, *, top_k: int = 5, documents: Sequence[Document] | None = None
    ) -> Any:
        asked = sample.query, messages_of(sample)
        raw = self.call(*asked) if documents is None else self.answer(*asked, documents)
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

    name_of_method = "invoke"

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.thing, self.name_of_method)
        return method

    def call(self, query: str, messages: list[Turn]) -> Any:
        return self.method()(self._input(query, messages))

    def _input(self, query: str, messages: list[Turn]) -> Any:
        return query if self.input is None else {self.input: messages if self.takes_history() else query}

    def takes_history(self) -> bool:
        return self.input == "messages"

    def takes_documents(self, sample: EvaluationSample) -> bool:
        return bool(self._context_input()) or with_documents(self.thing, []) is not None

    def answer(self, query: str, messages: list[Turn], documents: Sequence[Document]) -> Any:
        value = self._input(query, messages)
        if key := self._context_input():
            return self.method()({**value, key: _joined(documents)})
        return getattr(with_documents(self.thing, documents), self.name_of_method)(value)

    def _context_input(self) -> str:
        """Return the input of a runnable that takes documents, such as `context` of a prompt; else ""."""
        names = _inputs_of_runnable(self.thing)
        return next((name for name in DOCUMENT_PARAMETERS if name in names and name != self.input), "")


class AsyncRunnable(Runnable):
    """A LangChain runnable whose `ainvoke` was passed, or that has no other method."""

    name_of_method = "ainvoke"


def with_documents(thing: Any, documents: Sequence[Document]) -> Any:
    """Return a runnable whose retriever, or else whose step `context`, gives these documents; None if none.

    Only the runnables around it are new: what is below a retriever, and every other step, is the
    user's own.
    """
    core = import_module("langchain_core.runnables")
    if callable(getattr(thing, "_get_relevant_documents", None)):
        texts = import_module("langchain_core.documents").Document
        found = [
            texts(id=doc.doc_id, page_content=doc.text, metadata=dict(doc.metadata)) for doc in documents
        ]
        return core.RunnableLambda(lambda _: found)
    if isinstance(thing, core.RunnableSequence):
        steps = [with_documents(step, documents) for step in thing.steps]
        kept = [old if new is None else new for old, new in zip(thing.steps, steps, strict=True)]
        return core.RunnableSequence(*kept) if any(step is not None for step in steps) else None
    if isinstance(thing, core.RunnableAssign):
        mapper = with_documents(thing.mapper, documents)
        return None if mapper is None else core.RunnableAssign(mapper)
    if isinstance(thing, core.RunnableParallel):
        new = {key: with_documents(step, documents) for key, step in thing.steps__.items()}
        named = next((key for key in DOCUMENT_PARAMETERS if key in new), None)
        if named is not None and all(step is None for step in new.values()):
            new[named] = core.RunnableLambda(lambda _: _joined(documents))
        given = {key: new[key] or step for key, step in thing.steps__.items()}
        return core.RunnableParallel(given) if any(step is not None for step in new.values()) else None
    return None


def _joined(documents: Sequence[Document]) -> str:
    return "\n\n".join(doc.text for doc in documents)


def _input_of_runnable(thing: Any) -> str | None:
    """Return the key of the query in the input of a runnable; None if the input is the query itself."""
    names = _inputs_of_runnable(thing)
    required = [name for name, is_required in names.items() if is_required]
    return one_query_name(names, required or names, type(thing).__name__) if names else None


def _inputs_of_runnable(thing: Any) -> dict[str, bool]:
    """Return the keys of the input of a runnable, and whether they are required; none if it is not a dict."""
    describe = getattr(thing, "get_input_jsonschema", None)
    schema = describe() if callable(describe) else {}
    schema = schema if isinstance(schema, Mapping) else {}
    if list(schema.get("properties") or ()) == ["root"]:  # of any type: not a dict with that key
        return {}
    return {name: name in (schema.get("required") or ()) for name in schema.get("properties") or ()}


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

    def takes_documents(self, sample: EvaluationSample) -> bool:
        return _has("synthesize", "retrieve")(self.thing)

    def answer(self, query: str, messages: list[Turn], documents: Sequence[Document]) -> Any:
        schema = import_module("llama_index.core.schema")
        nodes = [
            schema.NodeWithScore(
                node=schema.TextNode(id_=doc.doc_id, text=doc.text, metadata=dict(doc.metadata)), score=1.0
            )
            for doc in documents
        ]
        return (self.thing.asynthesize if self.is_async else self.thing.synthesize)(
            schema.QueryBundle(query), nodes
        )

    def retrieve(self, query: str) -> Any:
        """Return what the engine retrieves."""
        return self.thing.retrieve(import_module("llama_index.core.schema").QueryBundle(query))


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

    def call(self, query: str, messages: list[Turn]) -> Any:
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

    def call(self, query: str, messages: list[Turn]) -> Any:
        return self.method()(model=self.names.model, messages=messages)

    def takes_history(self) -> bool:
        return True


class Pipeline(ForeignSystem):
    """A Haystack pipeline: the query goes to every open input for one, unless the inputs are named."""

    def prepare(self) -> None:
        named = self.names.input
        self.inputs = [named] if isinstance(named, str) else list(named or _open_queries(self.thing.inputs()))
        if not self.inputs:
            raise ArgumentError(_pipeline_help("no input for a query", "input", self.thing.inputs()))
        every = self.thing.outputs(include_components_with_connected_outputs=True)
        last = self.thing.outputs()
        self.answer_path = (
            self.names.answer or _only(last, "answers", "answer") or _only(last, "replies", "answer")
        )
        self.documents = self.names.documents or _only(every, "documents", "documents")
        if not self.answer_path and not self.documents:
            raise ArgumentError(_pipeline_help("neither answers nor documents", "answer", every))

    def method(self) -> Callable[..., Any]:
        method: Callable[..., Any] = self.thing.run
        return method

    def takes_documents(self, sample: EvaluationSample) -> bool:
        return bool(self.answer_path and self.documents)

    def answer(self, query: str, messages: list[Turn], documents: Sequence[Document]) -> Any:
        """Run the pipeline while the part that gives its documents gives these."""
        name, _, socket = str(self.documents).partition(".")
        component = self.thing.get_component(name)
        if not hasattr(component, _HANDED):
            _hand_over(component, socket)
        kind = import_module("haystack").Document
        found = [kind(id=doc.doc_id, content=doc.text, meta=dict(doc.metadata)) for doc in documents]
        token = _given.set(found)
        try:
            return self.call(query, messages)
        finally:
            _given.reset(token)

    def call(self, query: str, messages: list[Turn]) -> Any:
        data: dict[str, dict[str, str]] = {}
        for path in self.inputs:
            component, _, socket = path.partition(".")
            data.setdefault(component, {})[socket] = query
        paths = [path for path in (self.answer_path, self.documents) if path]
        return self.method()(data, include_outputs_from={path.partition(".")[0] for path in paths})

    def picked(self, raw: Any) -> Any:
        parts = {"answer": self.answer_path, "retrieved": self.documents}
        return {name: _at(raw, path) for name, path in parts.items() if path}


# Documents that a pipeline is handed: of this call alone, since calls may run side by side.
_given: ContextVar[list[Any] | None] = ContextVar("given", default=None)
_HANDED = "_auepora_hands_documents"


def _hand_over(component: Any, socket: str) -> None:
    """Let a part of a pipeline return the documents that are handed to it, and else work as before."""
    own = component.run

    def run(**inputs: Any) -> Any:
        documents = _given.get()
        return own(**inputs) if documents is None else {socket: documents}

    component.run = run
    setattr(component, _HANDED, True)


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
