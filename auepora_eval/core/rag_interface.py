"""What can be evaluated: a RAG system, or anything that `as_system` accepts."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from time import perf_counter
from typing import Any, Protocol, cast

from ..errors import ArgumentError, wrong_type
from .types import (
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
    as_document,
    as_response,
    unscored,
)

_SYSTEM_FORMS = (
    "an object with run(sample, top_k=...), a function of the query, or a pair (retrieve, generate)"
)
_OUTPUT_KEYS = ("answer", "response", "retrieved", "timings", "extra")
_HIT_FORMS = "an id, an (id, text) or (id, score) pair, a dict with 'doc_id' or a Document"


class RAGSystem(ABC):
    """A retrieval-augmented system. `run` may also be a coroutine function."""

    @abstractmethod
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        """Retrieve for `sample.query`, generate an answer, and return both."""
        raise NotImplementedError


class RAGSystemProtocol(Protocol):
    """A system that does not inherit from RAGSystem."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs: ...


class Retriever(ABC):
    """Retrieves documents for a query, best first."""

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
        retrieval_end = perf_counter()
        response = self._generator.generate(sample.query, [hit.doc for hit in retrieved])
        return _timed(retrieved, response, start, retrieval_end)


def as_system(thing: Any) -> RAGSystemProtocol:
    """Return a system made from an object, a function, or a pair of functions.

    Accepted: an object with `run(sample, top_k=...)`, sync or async; a callable that takes the query (or
    the whole sample, if its first parameter is called `sample` or annotated as one); a pair (retrieve,
    generate) of functions or of objects with those methods. `top_k` is passed to those that take it. A
    One that has a parameter `prompt` or `rag_prompt` gets the prompt of the sample's record. A
    callable may return SystemOutputs, a Response, a string, a pair (documents, answer) or a dict with
    "answer" and "retrieved"; documents may be RetrievedDocuments, Documents, dicts, (id, text) or (id, score)
    pairs, or ids.

    >>> system = as_system(lambda query: "forty-two")
    >>> system.run(EvaluationSample("1", "What is it?")).response.text
    'forty-two'
    """
    # Before callable(): an object of a framework is often both.
    if hasattr(thing, "run"):
        return cast(RAGSystemProtocol, thing)
    if isinstance(thing, tuple) and len(thing) == 2:
        return _Pair(_method(thing[0], "retrieve"), _method(thing[1], "generate"))
    if callable(thing):
        return _Function(thing)
    raise wrong_type("system", _SYSTEM_FORMS, thing)


def parts_of(system: Any) -> tuple[Any, ...]:
    """Return the user's own functions or objects that a system was made from, or the system itself."""
    if isinstance(system, _Function):
        return (system._function,)
    if isinstance(system, _Pair):
        return system._retrieve, system._generate
    if isinstance(system, SimpleRAGSystem):
        return system._retriever, system._generator
    if isinstance(system, ContextsAsRetrieved):
        return parts_of(system._system)
    return (system,)


def as_outputs(raw: Any) -> SystemOutputs:
    """Return SystemOutputs from the short forms that a function may return (see `as_system`)."""
    if isinstance(raw, SystemOutputs):
        return raw
    if isinstance(raw, dict):
        return _from_dict(raw)
    if isinstance(raw, tuple) and len(raw) == 2:
        return SystemOutputs(_as_retrieved(raw[0]), as_response(raw[1]))
    # An answer alone says nothing about retrieval, which is not the same as an empty list.
    return SystemOutputs([], as_response(raw), extra={DOCUMENTS_MISSING: True})


def _from_dict(raw: Mapping[str, Any]) -> SystemOutputs:
    unknown = [str(key) for key in raw if key not in _OUTPUT_KEYS]
    if unknown or not raw:
        # If unknown keys were ignored, a misnamed answer would be scored as an empty one.
        raise ArgumentError(f"a dict must have 'answer' and 'retrieved', not {unknown[:5]}")
    answer = raw["response"] if raw.get("response") is not None else raw.get("answer", "")
    if raw.get("answer") is not None and as_response(raw["answer"]).text != as_response(answer).text:
        raise ArgumentError("'answer' and 'response' of a dict differ: return one of them")
    extra = dict(raw.get("extra") or {})
    if raw.get("retrieved") is None:
        extra[DOCUMENTS_MISSING] = True
    hits = _as_retrieved(raw.get("retrieved") or [])
    return SystemOutputs(hits, as_response(answer), dict(raw.get("timings") or {}), extra)


class _Function:
    """A plain callable as a system."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self._options = _option_names(function)
        self.is_async = inspect.iscoroutinefunction(function)
        parameters = inspect.signature(function).parameters
        self._prompt = parameters.get("rag_prompt") or parameters.get("prompt")
        self._first = first = next(iter(parameters.values()), None)
        # The sample has the reference answer, which must not get into a prompt by accident.
        self._takes_sample = first is not None and (
            first.name == "sample" or "EvaluationSample" in str(first.annotation)
        )

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        options: dict[str, Any] = {"top_k": top_k} if "top_k" in self._options else {}
        prompt = self._prompt_of(sample)
        if prompt and self._prompt is self._first:  # a function of the prompt alone
            return self._function(prompt, **options)
        if prompt and self._prompt is not None:
            options[self._prompt.name] = prompt
        return self._function(sample if self._takes_sample else sample.query, **options)

    def _prompt_of(self, sample: EvaluationSample) -> str:
        """Return the prompt of the sample's record, if the function takes one; "" if there is none."""
        if self._prompt is None:
            return ""
        prompt = rag_prompt_of(sample)
        # Of a dataset without prompts, a first parameter `prompt` gets the query: many models call it so.
        takes_query = self._prompt is self._first and self._prompt.name == "prompt"
        if not prompt and not takes_query and self._prompt.default is inspect.Parameter.empty:
            raise ArgumentError(f"the system asks for {self._prompt.name}, and the sample has no prompt")
        return prompt


# Records of a split (`io.builds`) have the prompt that a model is given, and the contexts in it.


def rag_prompt_of(sample: EvaluationSample) -> str:
    """Return the prompt of the record that a sample was made from; "" if it has none."""
    split = sample.metadata.get("split")
    prompt = split.get("rag_prompt") if isinstance(split, Mapping) else sample.metadata.get("rag_prompt")
    return prompt if isinstance(prompt, str) and prompt.strip() else ""


def shown_contexts(sample: EvaluationSample) -> list[Document]:
    """Return the contexts of the record that a sample was made from, as documents without their numbers."""
    split = sample.metadata.get("split")
    record: Mapping[str, Any] = split if isinstance(split, Mapping) else {}
    texts, sources = record.get("contexts") or [], record.get("sources") or []
    chunks = record.get("retrieved") or []
    documents: dict[str, Document] = {}
    for place, text in enumerate(texts, start=1):
        # The id of the chunk is the one that the gold has; two contexts of one source are two documents.
        chunk = chunks[place - 1] if len(chunks) == len(texts) else {}
        name = str(chunk.get("id") if chunk.get("id") is not None else sources[place - 1])
        name = f"{name}#{place}" if name in documents else name
        documents[name] = Document(name, str(text).removeprefix(f"[{place}]").lstrip())
    return list(documents.values())


def with_contexts(sample: EvaluationSample, output: SystemOutputs) -> SystemOutputs:
    """Return an output whose retrieved documents are the contexts of the sample's record, if it has some."""
    documents = shown_contexts(sample)
    if not documents or output.error is not None:
        return output
    extra = {name: value for name, value in output.extra.items() if name != DOCUMENTS_MISSING}
    hits = [unscored(doc, rank) for rank, doc in enumerate(documents, start=1)]
    return replace(output, retrieved=hits, extra=extra)


class ContextsAsRetrieved:
    """A system whose retrieved documents are the contexts of each sample's record."""

    def __init__(self, system: RAGSystemProtocol) -> None:
        self._system = system
        self.is_async = inspect.iscoroutinefunction(system.run) or getattr(system, "is_async", False) is True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` looks for special methods before `_system` is set
            raise AttributeError(name)
        return getattr(self._system, name)

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        raw: Any = self._system.run(sample, top_k=top_k)
        return (
            self._awaited(sample, raw) if inspect.isawaitable(raw) else with_contexts(sample, as_outputs(raw))
        )

    async def _awaited(self, sample: EvaluationSample, raw: Any) -> SystemOutputs:
        return with_contexts(sample, as_outputs(await raw))


class _Pair:
    """Two functions, retrieve(query, top_k) and generate(query, documents), as a system."""

    def __init__(self, retrieve: Callable[..., Any], generate: Callable[..., Any]) -> None:
        self._retrieve, self._generate = retrieve, generate
        self._options = _option_names(retrieve)
        self.name = "+".join(getattr(f, "__name__", "part") for f in (retrieve, generate))
        self.is_async = any(inspect.iscoroutinefunction(part) for part in (retrieve, generate))

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        if self.is_async:
            return self._run_async(sample, top_k)
        start = perf_counter()
        retrieved = _as_retrieved(self._hits(sample.query, top_k))
        retrieval_end = perf_counter()
        answer = self._generate(sample.query, [hit.doc for hit in retrieved])
        return _timed(retrieved, answer, start, retrieval_end)

    def _hits(self, query: str, top_k: int) -> Any:
        return self._retrieve(query, top_k=top_k) if "top_k" in self._options else self._retrieve(query)

    async def _run_async(self, sample: EvaluationSample, top_k: int) -> SystemOutputs:
        start = perf_counter()
        retrieved = _as_retrieved(await _maybe_awaited(self._hits(sample.query, top_k)))
        retrieval_end = perf_counter()
        answer = await _maybe_awaited(self._generate(sample.query, [hit.doc for hit in retrieved]))
        return _timed(retrieved, answer, start, retrieval_end)


def _timed(
    retrieved: list[RetrievedDocument], answer: Any, start: float, retrieval_end: float
) -> SystemOutputs:
    """Return outputs with the seconds of each step; generation ended just now."""
    end = perf_counter()
    timings = {
        "retrieval": retrieval_end - start,
        "generation": end - retrieval_end,
        "end_to_end": end - start,
    }
    return SystemOutputs(retrieved, as_response(answer), timings)


def _option_names(function: Callable[..., Any]) -> set[str]:
    """Return the parameter names of a function; one with **options also takes top_k."""
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names.add("top_k")
    return names


async def _maybe_awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _method(thing: Any, name: str) -> Callable[..., Any]:
    method = getattr(thing, name, thing)
    if not callable(method):
        raise wrong_type("system", f"a function or an object with {name}()", thing)
    return cast(Callable[..., Any], method)


def _as_retrieved(raw: Any) -> list[RetrievedDocument]:
    if isinstance(raw, str | bytes | dict) or not hasattr(raw, "__iter__"):
        raise wrong_type("retrieved", "a list of documents", raw)
    return [_as_hit(item, rank) for rank, item in enumerate(raw, start=1)]


def _as_hit(raw: Any, rank: int) -> RetrievedDocument:
    if isinstance(raw, RetrievedDocument):
        return raw
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], str):
        # Without a score of the system, 1/rank keeps the order of the list.
        return RetrievedDocument(Document(str(raw[0]), raw[1]), 1 / rank, rank)
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], Real):
        return RetrievedDocument(Document(str(raw[0]), ""), float(raw[1]), rank)
    if isinstance(raw, dict) and "doc_id" in raw:
        score = raw.get("score")
        own_rank = int(raw.get("rank") or rank)
        return RetrievedDocument(as_document(raw), 1 / rank if score is None else float(score), own_rank)
    if isinstance(raw, Document | str):
        return RetrievedDocument(as_document(raw), 1 / rank, rank)
    raise wrong_type("a retrieved document", _HIT_FORMS, raw)
