"""What can be evaluated: a RAG system, or anything that `as_system` accepts."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol, cast

from ..errors import ArgumentError, wrong_type
from ..read.messages import HISTORY, history_of, messages_of
from ..read.names import DOCUMENT_PARAMETERS, TEXT_PARAMETERS
from ..read.outputs import as_answer, as_hits, to_output
from .types import (
    CONTEXTS_AS_RETRIEVED,
    DOCUMENTS_GIVEN,
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
    names_documents,
    unscored,
)

_SYSTEM_FORMS = (
    "an object with run(sample, top_k=...), a function of the query, a pair (retrieve, generate), or an "
    "object of LangChain, LlamaIndex, Haystack, DSPy or OpenAI"
)


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


def as_system(
    thing: Any,
    *,
    input: str | Sequence[str] | None = None,  # noqa: A002 - the user's word
    answer: str | None = None,
    documents: str | None = None,
    model: str | None = None,
) -> RAGSystemProtocol:
    """Return a system made from an object, a function, or a pair of functions.

    Accepted: an object with `run(sample, top_k=...)`, sync or async; a callable that takes the query (or
    the whole sample, if its first parameter is called `sample` or annotated as one); a pair (retrieve,
    generate) of functions or of objects with those methods; a LangChain runnable, a LlamaIndex engine or
    retriever, a Haystack pipeline, a DSPy module, a client of OpenAI's chat protocol (with `model`).
    `top_k` is passed to functions that take it. A function with a parameter `prompt` or `rag_prompt` gets
    the prompt of the sample's record. A sample with `metadata.closed_context` brings the documents that it
    must be answered from: see `answerer_of` for the systems that get them.
    Of a conversation, a function with a parameter `history` gets the earlier turns, and one with `messages`
    these and the question: [{"role": "user", "content": "..."}, ...].

    It may return SystemOutputs, a string, a message, a pair (documents, answer), a list of documents, or a
    dict or object with an answer and documents under any of the usual names. Documents may be
    RetrievedDocuments, Documents, dicts, (id, text) or (id, score) pairs, ids, texts, or documents of
    LangChain, LlamaIndex and Haystack.

    If it is not clear, `input` names the input for the query, `answer` and `documents` the parts of the
    output, such as as_system(pipeline, input="retriever.query", answer="llm.replies").

    >>> system = as_system(lambda query: "forty-two")
    >>> system.run(EvaluationSample("1", "What is it?")).response.text
    'forty-two'
    """
    if isinstance(thing, tuple) and len(thing) == 2:
        return _Pair(_method(thing[0], "retrieve"), _method(thing[1], "generate"))
    from ..read.systems import Names, foreign_system  # not needed to score predictions

    names = Names(input, answer, documents, model)
    # Before callable(): an object of a framework is often both.
    run = _parameters(getattr(thing, "run", None))
    if run is not None and (not run or {"sample", "top_k"} & {one.name for one in run}):
        return cast(RAGSystemProtocol, thing)
    if (foreign := foreign_system(thing, names)) is not None:
        return foreign
    if run is not None:
        if any(one.kind is one.VAR_KEYWORD for one in run):
            return cast(RAGSystemProtocol, thing)
        name, parameters = type(thing).__name__, ", ".join(one.name for one in run)
        raise ArgumentError(
            f"{name}.run({parameters}) is not run(sample, top_k=...). Pass the call that answers a question: "
            f"lambda query: {name.lower()}.run(query)"
        )
    if callable(thing):
        return _Function(thing)
    if isinstance(thing, list | dict):
        kind = type(thing).__name__
        raise ArgumentError(f"a {kind} is not a system. To score answers that exist: ae.score(records)")
    raise wrong_type("system", _SYSTEM_FORMS, thing)


def _parameters(method: Any) -> list[inspect.Parameter] | None:
    """Return the parameters of a method; None if there is no method, none if they cannot be read."""
    if method is None:
        return None
    try:
        return list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):
        return []


def parts_of(system: Any) -> tuple[Any, ...]:
    """Return the user's own functions or objects that a system was made from, or the system itself."""
    if isinstance(system, _Function):
        return (system._function,)
    if isinstance(system, _Pair):
        return system.parts
    from ..read.systems import ForeignSystem

    if isinstance(system, ForeignSystem):
        return (system.thing,)
    return (system,)


_REQUIRED = inspect.Parameter.empty  # the default of a parameter that has none


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
        names = (name for name in DOCUMENT_PARAMETERS if name in parameters)
        self._documents = next((parameters[name] for name in names if parameters[name] is not first), None)
        # The sample has the reference answer, which must not get into a prompt by accident.
        self._takes_sample = first is not None and (
            first.name == "sample" or "EvaluationSample" in str(first.annotation)
        )

    def takes_history(self) -> bool:
        """Return whether the function gets the earlier turns of a conversation."""
        return self._takes_sample or not self._options.isdisjoint((HISTORY, "messages"))

    def takes_documents(self, sample: EvaluationSample) -> bool:
        """Return whether the function gets a sample's own documents: as such, or in the prompt."""
        return self._documents is not None or (self._prompt is not None and bool(rag_prompt_of(sample)))

    @property
    def has_depth(self) -> bool:
        """Return whether it can be asked for more documents."""
        return "top_k" in self._options

    def run(
        self, sample: EvaluationSample, *, top_k: int = 5, documents: Sequence[Document] | None = None
    ) -> Any:
        options: dict[str, Any] = {"top_k": top_k} if "top_k" in self._options else {}
        if HISTORY in self._options:
            options[HISTORY] = history_of(sample)
        if "messages" in self._options:
            options["messages"] = messages_of(sample)
            if self._first is not None and self._first.name == "messages":
                return self._function(**options)
        if documents is not None and self._documents is not None:
            options[self._documents.name] = _in_form(documents, self._documents)
        elif self._documents is not None and self._documents.default is _REQUIRED:
            raise ArgumentError(
                f"{self.name} asks for documents, and the sample brings none (metadata.closed_context). "
                "Write documents=None and search where there are none, or pass a pair (retrieve, generate)"
            )
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
        if not takes_query and self._prompt.default is _REQUIRED:
            return required_prompt(sample, self._prompt.name)
        return prompt


def _in_form(documents: Sequence[Document], parameter: inspect.Parameter) -> Any:
    """Return documents as a parameter wants them: by its annotation, else texts for names of texts."""
    kind = str(getattr(parameter.annotation, "__name__", "") or parameter.annotation)
    texts = [doc.text for doc in documents]
    if "Document" in str(parameter.annotation):
        return list(documents)
    if kind == "str" or (parameter.annotation is _REQUIRED and parameter.name == "context"):
        return "\n\n".join(texts)
    by_name = parameter.annotation is _REQUIRED and parameter.name in TEXT_PARAMETERS
    return texts if by_name or "[str]" in str(parameter.annotation) else list(documents)


# Records of a split (`io.builds`) have the prompt that a model is given, and the contexts in it.


def rag_prompt_of(sample: EvaluationSample) -> str:
    """Return the prompt of the record that a sample was made from; "" if it has none."""
    split = sample.metadata.get("split")
    prompt = split.get("rag_prompt") if isinstance(split, Mapping) else sample.metadata.get("rag_prompt")
    return prompt if isinstance(prompt, str) and prompt.strip() else ""


def required_prompt(sample: EvaluationSample, name: str) -> str:
    """Return the prompt of a sample's record, for a system that asks for it by this name."""
    prompt = rag_prompt_of(sample)
    if not prompt:
        raise ArgumentError(f"the system asks for {name}, and the sample has no prompt")
    return prompt


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
    output = _with_documents(output, documents)
    return replace(output, extra={**output.extra, CONTEXTS_AS_RETRIEVED: True})


def with_given(output: SystemOutputs, documents: Sequence[Document]) -> SystemOutputs:
    """Return the output of a system that was given documents, marked as such; they count as its documents."""
    # Those that it names itself are the ones that it used.
    output = output if names_documents(output) else _with_documents(output, documents)
    return replace(output, extra={**output.extra, DOCUMENTS_GIVEN: True})


def _with_documents(output: SystemOutputs, documents: Sequence[Document]) -> SystemOutputs:
    extra = {name: value for name, value in output.extra.items() if name != DOCUMENTS_MISSING}
    return replace(output, retrieved=hits_of(documents), extra=extra)


def hits_of(documents: Sequence[Document]) -> list[RetrievedDocument]:
    """Return documents as retrieved ones, in their order."""
    return [unscored(doc, rank) for rank, doc in enumerate(documents, start=1)]


def document_parameter(system: Any, sample: EvaluationSample) -> str:
    """Return the parameter of `run` that takes the documents of a sample; "" if the system takes none."""
    of_sample = getattr(system, "takes_documents", None)
    if callable(of_sample):
        return DOCUMENT_PARAMETERS[0] if of_sample(sample) is True else ""
    names = {one.name for one in _parameters(getattr(system, "run", None)) or ()}
    return next((name for name in DOCUMENT_PARAMETERS if name in names), "")


class Answerer:
    """A system whose generator can be handed documents: what it answers from them, and what it retrieves."""

    def __init__(self, system: Any, parameter: str) -> None:
        self.system, self._parameter = system, parameter
        self.is_async = is_async(system)
        self._retrieve = retrieve = getattr(system, "retrieve", None)
        # Whether it can be asked for more documents: then what is below its cutoff can be seen.
        takes_depth = not callable(retrieve) or len(_parameters(retrieve) or ()) != 1
        self.has_depth = takes_depth and getattr(system, "has_depth", True) is True
        self.retrieves_alone = callable(retrieve)  # else the whole system is asked for its documents
        self.retrieves = self.has_depth or self.retrieves_alone

    def answer(self, query: str | EvaluationSample, documents: Sequence[Document]) -> Any:
        """Return what the system makes of these documents; a coroutine if it is async."""
        sample = query if isinstance(query, EvaluationSample) else EvaluationSample("query", query)
        raw = self.system.run(sample, **{self._parameter: list(documents)})

        async def awaited() -> SystemOutputs:
            return with_given(to_output(await raw), documents)

        return awaited() if inspect.isawaitable(raw) else with_given(to_output(raw), documents)

    def retrieve(self, query: str, top_k: int) -> Any:
        """Return what the system retrieves; without a retriever of its own the whole system is asked."""
        if callable(self._retrieve):
            return self._retrieve(query, top_k) if self.has_depth else self._retrieve(query)
        return self.system.run(EvaluationSample("query", query), top_k=top_k)


def answerer_of(thing: Any) -> Answerer | None:
    """Return a system by its two halves; None if its generator cannot be handed documents: a black box.

    Accepted: a pair (retrieve, generate), a SimpleRAGSystem, a function or `run` with a parameter `documents`
    (`docs`, `contexts`, `context`, `passages`), a LangChain runnable with a retriever or a step or an input
    `context`, a query engine of LlamaIndex, a Haystack pipeline, an endpoint with a field for documents. A
    system with a method `retrieve(query, top_k)` is asked for documents alone.

    >>> reader = answerer_of(lambda query, documents=None: documents[0].text)
    >>> reader.answer("What is it?", [Document("d7", "42")]).response.text
    '42'
    """
    system = as_system(thing)
    parameter = document_parameter(system, EvaluationSample("query", ""))
    return Answerer(system, parameter) if parameter else None


def is_async(system: Any) -> bool:
    """Return whether `run` of a system returns something to be awaited."""
    return inspect.iscoroutinefunction(system.run) or getattr(system, "is_async", False) is True


def takes_history(system: Any) -> bool:
    """Return whether a system gets the earlier turns of a conversation: an object gets the whole sample."""
    known = getattr(system, "takes_history", None)
    if callable(known):
        return known() is True
    # A pair gets the question, and an endpoint, which keeps its own time, is sent the question.
    return not isinstance(system, _Pair) and getattr(system, "keeps_time", False) is not True


class _Pair:
    """Two functions, retrieve(query, top_k) and generate(query, documents), as a system."""

    def __init__(self, retrieve: Callable[..., Any], generate: Callable[..., Any]) -> None:
        self._retrieve, self._generate = retrieve, generate
        self.parts: tuple[Any, ...] = (retrieve, generate)
        self._options = _option_names(retrieve)
        self.name = "+".join(getattr(f, "__name__", "part") for f in (retrieve, generate))
        self.is_async = any(inspect.iscoroutinefunction(part) for part in (retrieve, generate))

    def run(
        self, sample: EvaluationSample, *, top_k: int = 5, documents: Sequence[Document] | None = None
    ) -> Any:
        if self.is_async:
            return self._run_async(sample, top_k, documents)
        start = perf_counter()
        if documents is not None:
            return _timed(hits_of(documents), self._generate(sample.query, list(documents)), start)
        retrieved = as_hits(self.retrieve(sample.query, top_k))
        retrieval_end = perf_counter()
        answer = self._generate(sample.query, [hit.doc for hit in retrieved])
        return _timed(retrieved, answer, start, retrieval_end)

    @property
    def has_depth(self) -> bool:
        """Return whether it can be asked for more documents."""
        return "top_k" in self._options

    def retrieve(self, query: str, top_k: int = 0) -> Any:
        """Return what the retriever finds; awaitable if it is."""
        return self._retrieve(query, top_k=top_k) if self.has_depth else self._retrieve(query)

    async def _run_async(
        self, sample: EvaluationSample, top_k: int, documents: Sequence[Document] | None
    ) -> SystemOutputs:
        start = perf_counter()
        if documents is not None:
            answer = await _maybe_awaited(self._generate(sample.query, list(documents)))
            return _timed(hits_of(documents), answer, start)
        retrieved = as_hits(await _maybe_awaited(self.retrieve(sample.query, top_k)))
        retrieval_end = perf_counter()
        answer = await _maybe_awaited(self._generate(sample.query, [hit.doc for hit in retrieved]))
        return _timed(retrieved, answer, start, retrieval_end)


class SimpleRAGSystem(_Pair, RAGSystem):
    """A retriever and a generator, one after the other, each timed.

    `run` takes `documents` to answer from instead of those that the retriever finds.
    """

    def __init__(self, retriever: Retriever, generator: Generator):
        super().__init__(retriever.retrieve, generator.generate)
        self.parts = (retriever, generator)
        self.name = type(self).__name__


def _timed(
    retrieved: list[RetrievedDocument], answer: Any, start: float, retrieval_end: float | None = None
) -> SystemOutputs:
    """Return outputs with the seconds of each step; generation ended just now."""
    end = perf_counter()
    timings = {"end_to_end": end - start, "generation": end - (retrieval_end or start)}
    if retrieval_end is not None:
        timings["retrieval"] = retrieval_end - start
    return SystemOutputs(retrieved, as_answer(answer), timings)


def _option_names(function: Callable[..., Any]) -> set[str]:
    """Return the parameter names of a function; one with **options also takes top_k."""
    if getattr(function, "__name__", "") == "invoke":
        return set()  # LangChain passes the options of a retriever on to functions that may not take them
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names.add("top_k")
    return names


async def _maybe_awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _method(thing: Any, name: str) -> Callable[..., Any]:
    method = getattr(thing, name, None) or getattr(thing, "invoke", thing)
    if not callable(method):
        raise wrong_type("system", f"a function or an object with {name}()", thing)
    return cast(Callable[..., Any], method)


def name_of(system: RAGSystemProtocol) -> str:
    """Return the `name` of a system if it has one, else the name of its class."""
    name = getattr(system, "name", None)
    return name if isinstance(name, str) and name else type(system).__name__
