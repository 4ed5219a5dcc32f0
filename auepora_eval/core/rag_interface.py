"""What can be evaluated: a RAG system, or anything that `as_system` can make one of."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from time import perf_counter
from typing import Any, Protocol, cast

from .types import DOCUMENTS_MISSING, Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs


class RAGSystem(ABC):
    """A retrieval-augmented system. `run` may also be a coroutine function."""

    @abstractmethod
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        """Retrieve for `sample.query`, generate an answer, and return both."""
        raise NotImplementedError


class RAGSystemProtocol(Protocol):
    """The same, for those who would rather not inherit."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs: ...


class Retriever(ABC):
    """Finds documents for a query, best first."""

    @abstractmethod
    def retrieve(self, query: str, *, top_k: int = 5) -> list[RetrievedDocument]: ...


class Generator(ABC):
    """Answers a query from documents."""

    @abstractmethod
    def generate(self, query: str, context_docs: list[Document]) -> Response: ...


class SimpleRAGSystem(RAGSystem):
    """A retriever and a generator, one after the other, each timed."""

    def __init__(self, retriever: Retriever, generator: Generator):
        self._retriever = retriever
        self._generator = generator

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        start = perf_counter()
        retrieved = self._retriever.retrieve(sample.query, top_k=top_k)
        found = perf_counter()
        response = self._generator.generate(sample.query, [hit.doc for hit in retrieved])
        done = perf_counter()
        timings = {"retrieval": found - start, "generation": done - found, "end_to_end": done - start}
        return SystemOutputs(retrieved=retrieved, response=response, timings=timings)


def as_system(thing: Any) -> RAGSystemProtocol:
    """Make a system of whatever there is.

    Accepted: an object with `run(sample, top_k=...)`, sync or async; a callable that takes the query (or
    the whole sample, if its first parameter is called `sample` or annotated as one); a pair (retrieve,
    generate) of functions or of objects with those methods. `top_k` is passed to whoever takes it. A
    callable may return SystemOutputs, a Response, a string, a pair (documents, answer) or a dict with
    "answer" and "retrieved"; documents may be RetrievedDocuments, Documents, dicts, (id, text) or (id, score)
    pairs, or ids.

    >>> system = as_system(lambda query: "forty-two")
    >>> system.run(EvaluationSample("1", "What is it?")).response.text
    'forty-two'
    """
    if hasattr(thing, "run"):
        return cast(RAGSystemProtocol, thing)
    if isinstance(thing, tuple) and len(thing) == 2:
        return _Pair(_method(thing[0], "retrieve"), _method(thing[1], "generate"))
    if callable(thing):
        return _Function(thing)
    raise TypeError(
        f"a {type(thing).__name__} is not a RAG system: give an object with run(sample, top_k=...), "
        "a function of the query, or a pair (retrieve, generate)"
    )


def parts_of(system: Any) -> tuple[Any, ...]:
    """What a system was made of: the functions or objects that somebody wrote; else itself."""
    if isinstance(system, _Function):
        return (system._function,)
    if isinstance(system, _Pair):
        return system._retrieve, system._generate
    return (system._retriever, system._generator) if isinstance(system, SimpleRAGSystem) else (system,)


def as_outputs(raw: Any) -> SystemOutputs:
    """SystemOutputs from the short forms that a function may return (see `as_system`)."""
    if isinstance(raw, SystemOutputs):
        return raw
    if isinstance(raw, dict):
        return _from_dict(raw)
    if isinstance(raw, tuple) and len(raw) == 2:
        return SystemOutputs(_as_retrieved(raw[0]), _as_response(raw[1]))
    return SystemOutputs([], _as_response(raw), extra={DOCUMENTS_MISSING: True})


def _from_dict(raw: dict[str, Any]) -> SystemOutputs:
    known = ("answer", "response", "retrieved", "timings", "extra")
    strange = [str(key) for key in raw if key not in known]
    if strange or not raw:
        # Read as nothing, a misnamed answer would be scored as an empty one.
        raise TypeError(f"a dict must have 'answer' and 'retrieved', not {strange[:5]}")
    answer = raw["response"] if raw.get("response") is not None else raw.get("answer", "")
    return SystemOutputs(
        _as_retrieved(raw.get("retrieved") or []),
        _as_response(answer),
        dict(raw.get("timings") or {}),
        {
            **(raw.get("extra") or {}),
            **({} if raw.get("retrieved") is not None else {DOCUMENTS_MISSING: True}),
        },
    )


class _Function:
    """A plain callable, seen as a system."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._options = _option_names(function)
        self.is_async = inspect.iscoroutinefunction(function)
        first = next(iter(inspect.signature(function).parameters.values()), None)
        # Only who asks for the sample gets it: it holds the reference answer, and a prompt must not.
        self._takes_sample = first is not None and (
            first.name == "sample" or "EvaluationSample" in str(first.annotation)
        )

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        options = {"top_k": top_k} if "top_k" in self._options else {}
        return self._function(sample if self._takes_sample else sample.query, **options)


class _Pair:
    """Two functions, retrieve(query, top_k) and generate(query, documents), seen as a system."""

    def __init__(self, retrieve: Callable[..., Any], generate: Callable[..., Any]) -> None:
        self._retrieve, self._generate = retrieve, generate
        self._options = _option_names(retrieve)
        self.name = "+".join(getattr(f, "__name__", "part") for f in (retrieve, generate))
        self.is_async = any(inspect.iscoroutinefunction(part) for part in (retrieve, generate))

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        if self.is_async:
            return self._run_async(sample, top_k)
        start = perf_counter()
        retrieved = _as_retrieved(self._find(sample.query, top_k))
        found = perf_counter()
        answer = self._generate(sample.query, [hit.doc for hit in retrieved])
        return _timed(retrieved, answer, start, found)

    def _find(self, query: str, top_k: int) -> Any:
        return self._retrieve(query, top_k=top_k) if "top_k" in self._options else self._retrieve(query)

    async def _run_async(self, sample: EvaluationSample, top_k: int) -> SystemOutputs:
        start = perf_counter()
        retrieved = _as_retrieved(await _maybe_awaited(self._find(sample.query, top_k)))
        found = perf_counter()
        answer = await _maybe_awaited(self._generate(sample.query, [hit.doc for hit in retrieved]))
        return _timed(retrieved, answer, start, found)


def _timed(retrieved: list[RetrievedDocument], answer: Any, start: float, found: float) -> SystemOutputs:
    done = perf_counter()
    timings = {"retrieval": found - start, "generation": done - found, "end_to_end": done - start}
    return SystemOutputs(retrieved, _as_response(answer), timings)


def _option_names(function: Callable[..., Any]) -> set[str]:
    """What a function can be told by name."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters} | (
        {"top_k"} if any(p.kind is p.VAR_KEYWORD for p in parameters) else set()
    )


async def _maybe_awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _method(thing: Any, name: str) -> Callable[..., Any]:
    method = getattr(thing, name, thing)
    if not callable(method):
        raise TypeError(f"a {type(thing).__name__} is neither a function nor has it a method {name}()")
    return cast(Callable[..., Any], method)


def _as_response(raw: Any) -> Response:
    if isinstance(raw, Response):
        return raw
    if isinstance(raw, str):
        return Response(raw)
    if isinstance(raw, dict) and isinstance(raw.get("text"), str):
        return Response(raw["text"], raw.get("structured"), dict(raw.get("metadata") or {}))
    raise TypeError(f"an answer must be a string or a Response, not {type(raw).__name__}")


def _as_retrieved(raw: Any) -> list[RetrievedDocument]:
    if isinstance(raw, str | bytes | dict) or not hasattr(raw, "__iter__"):
        raise TypeError(f"retrieved documents must be a list, not {type(raw).__name__}")
    return [_as_hit(item, rank) for rank, item in enumerate(raw, start=1)]


def _as_hit(raw: Any, rank: int) -> RetrievedDocument:
    if isinstance(raw, RetrievedDocument):
        return raw
    if isinstance(raw, Document):
        return RetrievedDocument(raw, 1 / rank, rank)
    if isinstance(raw, str):
        return RetrievedDocument(Document(raw, ""), 1 / rank, rank)
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], str):
        return RetrievedDocument(Document(str(raw[0]), raw[1]), 1 / rank, rank)
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], Real):
        return RetrievedDocument(Document(str(raw[0]), ""), float(raw[1]), rank)
    if isinstance(raw, dict) and "doc_id" in raw:
        doc = Document(str(raw["doc_id"]), str(raw.get("text") or ""), dict(raw.get("metadata") or {}))
        score = raw.get("score")
        return RetrievedDocument(
            doc, 1 / rank if score is None else float(score), int(raw.get("rank") or rank)
        )
    raise TypeError(
        f"a retrieved document must be an id, an (id, text) pair, a dict or a Document, not {raw!r:.80}"
    )
