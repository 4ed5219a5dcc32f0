"""A system by its name: `module:attribute`, `file.py:attribute`, `openai:URL#model` or `http:URL`.

A system that was loaded by its name can be sent to other processes and machines: only the name is sent, and
no key.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast

import msgspec

from ...calls.chat import ChatModel, Prompt, as_material, fence_of, load_prompt, read_prompt, split_endpoint
from ...calls.http import BadReplyError, Endpoint, check_no_key_in_url
from ...calls.keys import headers_from_environment, key_from_environment
from ...errors import ArgumentError, AueporaError, DataError
from ...read.names import DOCUMENT_LISTS
from ...read.outputs import to_output
from ...read.records import converted
from ..rag_interface import RAGSystemProtocol, as_system, hits_of, rag_prompt_of, required_prompt
from ..settings import is_endpoint
from ..types import (
    CONTEXTS_AS_RETRIEVED,
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
    unscored,
)


class NamedSystem:
    """A system with the name that it was loaded by; the workers of an executor load it by that name."""

    def __init__(self, name: str, folder: str, options: Mapping[str, Any], system: RAGSystemProtocol) -> None:
        self._origin = (name, folder, dict(options))
        self._system = system
        self.run = system.run
        self.contexts_as_retrieved = options.get(CONTEXTS_AS_RETRIEVED) is True
        own = getattr(system, "name", None)
        self.name = own if isinstance(own, str) and own else type(system).__name__

    def __getattr__(self, attribute: str) -> Any:
        # `copy` looks for special methods before `_system` is set: looking there would never end.
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(self._system, attribute)

    def __reduce__(self) -> Any:
        return _loaded, self._origin


def load_system(name: str, options: Mapping[str, Any] | None = None) -> RAGSystemProtocol:
    """Return the system of that name.

    A class is instantiated. A function without parameters is called and returns the system. `options` are
    those of an endpoint: api_key_env, headers, timeout, plain_http, prompt, fields, request. Python code has
    one option: a class or function is called with `arguments` by name.
    """
    return _loaded(name, str(Path.cwd()), dict(options or {}))


def origin_of(system: Any) -> tuple[str, str, dict[str, Any]] | None:
    """Return the name, the folder and the options that a system was loaded by; None if it was not."""
    return system._origin if isinstance(system, NamedSystem) else None


def _loaded(name: str, folder: str, options: dict[str, Any]) -> RAGSystemProtocol:
    if is_endpoint(name):
        own = {option: value for option, value in options.items() if option != CONTEXTS_AS_RETRIEVED}
        system: Any = endpoint_system(name, own)
    else:
        system = _imported(name, folder, options.get("arguments") or {})
    return cast(RAGSystemProtocol, NamedSystem(name, folder, options, system))


def _imported(name: str, folder: str, arguments: Mapping[str, Any]) -> RAGSystemProtocol:
    thing = imported(f"--system {name}", name, folder)
    try:
        if arguments:
            thing = thing(**arguments)
        elif inspect.isclass(thing) or (inspect.isroutine(thing) and not inspect.signature(thing).parameters):
            thing = thing()
        return as_system(thing)
    except (Exception, SystemExit) as error:
        raise DataError(f"--system {name}", _in_one_line(error)) from error


def imported(where: str, name: str, folder: str) -> Any:
    """Return what module:attribute or file.py:attribute names; errors start with `where`."""
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        model = f"#{name}" if where.startswith("--judge") else "#model"
        fix = f"Write, for example, my_rag.py:system, or openai:http://127.0.0.1:8000/v1{model}."
        raise DataError(where, "is not module:attribute.", fix=fix)
    module = _module(module_name, where, Path(folder))
    if not hasattr(module, attribute):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise DataError(
            where,
            f"{module_name} has no {attribute!r}.",
            fix=f"It has {', '.join(public[-8:])}." if public else "It is empty.",
        )
    return getattr(module, attribute)


def _module(module_name: str, where: str, folder: Path) -> ModuleType:
    # An installed command does not have the current folder on its path, and neither do workers.
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        if module_name.endswith(".py"):
            return _from_file(folder / module_name)
        return importlib.import_module(module_name)
    except FileNotFoundError as error:
        raise DataError(where, "there is no such file.") from error
    except (Exception, SystemExit) as error:
        # Otherwise the module was found, and one of its own imports is missing: that error is shown.
        if isinstance(error, ModuleNotFoundError) and error.name and module_name.startswith(error.name):
            what = f"there is no module {error.name!r}."
            raise DataError(where, what, fix="Run from the folder that holds it.") from error
        raise DataError(where, _in_one_line(error)) from error


def _from_file(path: Path) -> ModuleType:
    # Not its own name: a file called json.py must not replace the module of that name.
    name = f"auepora_system_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look the module up by its name
    # The file can import its neighbours, as if it were run as a script.
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _in_one_line(error: Any) -> str:
    """Return the user's exception in one line, with the place in the user's code where it was raised."""
    if isinstance(error, AueporaError):
        return str(error)  # says what to do; where this package raised it helps nobody
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError):
        place = ""  # its text names the file and the line; the frames are those of the import
    return f"{type(error).__name__}: {error}{place}."


# Systems behind an endpoint: any that has OpenAI's chat protocol, and any that takes a query by POST.
#
# | openai:http://127.0.0.1:8000/v1#small-model
# | http:http://127.0.0.1:9000/ask        or, shorter, http://127.0.0.1:9000/ask
#
# Each call is one attempt: the CallPolicy of the run decides about retries.

DEFAULT_TIMEOUT = 60.0
# Only fields that change how the model answers. The model and the messages are set by auepora.
_REQUEST = """temperature max_tokens max_completion_tokens seed top_p top_k min_p stop frequency_penalty
presence_penalty repetition_penalty reasoning_effort""".split()
_Request = msgspec.defstruct(
    "_Request", [(name, str | int | float | None, None) for name in _REQUEST], forbid_unknown_fields=True
)


# An address of a model, that of OpenAI for example, given as if it were that of a whole system.
_CHAT_MODEL = re.compile(r"#|/v1/?$|/chat/completions$")


def endpoint_system(name: str, options: Mapping[str, Any]) -> ChatSystem | HttpSystem:
    """Return the system of a name that starts with openai:, http: or https:."""
    key_name = options.get("api_key_env")
    key = key_from_environment(key_name) if key_name else None
    check_no_key_in_url(name)
    connection: dict[str, Any] = {
        "timeout": options.get("timeout") or DEFAULT_TIMEOUT,
        "plain_http": bool(options.get("plain_http")),
        "headers": headers_from_environment(options.get("headers") or {}),
        "private": True,
    }
    request = dict(options.get("request") or {})
    if name.startswith("openai:"):
        url, model = split_endpoint(name.removeprefix("openai:"))
        converted(request, _Request, "request")  # null leaves a field out of the request
        chat = ChatModel(url, model, api_key=key, extra=request, **connection)
        return ChatSystem(model, chat, _prompt(options.get("prompt")))
    if request:
        raise DataError("request", "is for openai:URL#MODEL.", fix="Leave it out.")
    is_url = name.startswith(("http://", "https://"))
    if is_url and _CHAT_MODEL.search(name):
        base = name.partition("#")[0].removesuffix("/chat/completions")
        raise DataError(
            name,
            "looks like the address of a chat model.",
            fix=f"Write openai:{base}#MODEL. For a service of your own: http:{name}.",
        )
    url = name if is_url else name.removeprefix("http:")
    fields = converted(options.get("fields") or {}, Fields, "http")
    return HttpSystem(Endpoint(url, key, **connection), fields)


_MATERIAL, _RAG_PROMPT = "{{material}}", "{{rag_prompt}}"  # in the user's part of a prompt


class ChatSystem:
    """A language model that answers the query, from the sample's candidate documents where it has some.

    It does not retrieve: the candidate documents count as retrieved, at most `top_k`, in their order. The
    prompt has the placeholders {{fence}} and {{material}}; one with {{rag_prompt}} sends the prompt of the
    sample's record.
    """

    # The endpoint has the timeout of the run: no thread is needed to watch the call.
    keeps_time = True
    has_depth = False

    def __init__(self, name: str, model: ChatModel, prompt: Prompt) -> None:
        self.name, self._model, self._prompt = name, model, prompt
        self.close = model.close

    @property
    def identity(self) -> dict[str, object]:
        """Return what decides its answers, without keys."""
        return {**self._model.identity, "prompt_sha256": self._prompt.sha256}

    def run(
        self, sample: EvaluationSample, *, top_k: int = 5, documents: Sequence[Document] | None = None
    ) -> SystemOutputs:
        """Return the answer of the model."""
        # A prompt without the material does not show the model the documents.
        has_documents = documents is not None or sample.candidate_docs is not None
        shows_documents = has_documents and _MATERIAL in self._prompt.user
        candidates = (sample.candidate_docs or [])[:top_k] if documents is None else documents
        documents = candidates if shows_documents else []
        passages = [{"id": doc.doc_id, "text": doc.text} for doc in documents]
        material = as_material({"question": sample.query, **({"passages": passages} if passages else {})})
        values = {"fence": fence_of(material), "material": material}
        if _RAG_PROMPT in self._prompt.user:
            values["rag_prompt"] = required_prompt(sample, _RAG_PROMPT)
        reply = self._model.complete(self._prompt.filled(**values))
        extra = {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}
        # More than the sum if the server counts reasoning tokens only in the total.
        if (reply.total_tokens or 0) > (reply.prompt_tokens or 0) + (reply.completion_tokens or 0):
            extra["total_tokens"] = reply.total_tokens
        if not shows_documents:
            extra[DOCUMENTS_MISSING] = True
        return SystemOutputs(
            hits_of(documents),
            Response(reply.text, metadata={"model": reply.model, "finish_reason": reply.finish_reason}),
            {"generation": reply.seconds},
            {name: fact for name, fact in extra.items() if fact is not None},
        )


_Name = Annotated[str, msgspec.Meta(min_length=1)]


class Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of the fields in the request and reply of an HTTP system; `a.b` is b within a."""

    query: _Name = "query"
    top_k: _Name = "top_k"
    answer: _Name = "answer"
    documents: _Name = "documents"
    id: _Name = "id"
    text: _Name = "text"
    score: _Name = "score"
    timings: _Name = "timings"
    usage: _Name = "usage"
    prompt: str = ""  # of the sample's record; it is sent only if the field has a name
    given: str = ""  # documents that the server must answer from; sent only if the field has a name


class HttpSystem:
    """A system behind HTTP: the query is sent as JSON, the answer and the documents come back.

    {"query": "...", "top_k": 5}  ->  {"answer": "...", "documents": [{"id", "text", "score"}],
    "timings": {"retrieval": 0.1}, "usage": {"input_tokens": 11}}; only the answer must be there.
    """

    keeps_time = True

    def __init__(self, endpoint: Endpoint, fields: Fields) -> None:
        self.name, self._endpoint, self._fields = endpoint.name, endpoint, fields
        self.close = endpoint.close

    @property
    def identity(self) -> dict[str, object]:
        """Return what decides its answers, as far as it is known here, without keys."""
        names = {field: name for field, name in msgspec.structs.asdict(self._fields).items() if name}
        return {"endpoint": self._endpoint.identity, "fields": names}

    def takes_documents(self, sample: EvaluationSample) -> bool:
        """Return whether the server gets a sample's own documents: in a field, or in the sample's prompt."""
        return bool(self._fields.given or (self._fields.prompt and rag_prompt_of(sample)))

    def run(
        self, sample: EvaluationSample, *, top_k: int = 5, documents: Sequence[Document] | None = None
    ) -> SystemOutputs:
        """Return the reply of the server."""
        request: dict[str, Any] = {}
        _put(request, self._fields.query, sample.query)
        _put(request, self._fields.top_k, top_k)
        if self._fields.prompt:
            _put(request, self._fields.prompt, required_prompt(sample, self._fields.prompt))
        if self._fields.given and documents is not None:
            given = [{self._fields.id: doc.doc_id, self._fields.text: doc.text} for doc in documents]
            _put(request, self._fields.given, given)
        return self._endpoint.post(request, self._read)

    def _read(self, body: bytes) -> SystemOutputs:
        try:
            # A server may echo its request: the key must not be stored.
            reply = self._endpoint.redacted.within(msgspec.json.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadReplyError(f"it is not JSON ({error})") from None
        names = self._fields
        answer = _get(reply, names.answer)
        if not isinstance(answer, str):
            raise BadReplyError(f"there is no text under {names.answer!r}")
        documents = _get(reply, names.documents)
        if not isinstance(documents, list | None):
            raise BadReplyError(f"what is under {names.documents!r} is not a list")
        if documents is None:
            output = _with_usual_documents(answer, reply if names.documents == "documents" else {})
        else:
            hits = [self._hit(document, rank) for rank, document in enumerate(documents, start=1)]
            output = SystemOutputs(hits, Response(answer))
        # A negative count would give back a part of a budget that is spent.
        usage = _numbers(_get(reply, names.usage))
        output.extra |= {_USAGE.get(name, name): n for name, n in usage.items() if n >= 0}
        # `checked_output` leaves out numbers that cannot be times.
        output.timings |= _numbers(_get(reply, names.timings))
        return output

    def _hit(self, document: Any, rank: int) -> RetrievedDocument:
        if isinstance(document, str):
            return unscored(Document(document, ""), rank)
        doc_id, text, score = (
            _get(document, name) for name in (self._fields.id, self._fields.text, self._fields.score)
        )
        if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
            raise BadReplyError(f"document {rank} has no id under {self._fields.id!r}")
        if not isinstance(text, str | None):
            raise BadReplyError(f"document {rank}: what is under {self._fields.text!r} is not a text")
        metadata = document.get("metadata")  # it may name the file that a chunk is from
        known = metadata if isinstance(metadata, dict) else {}
        doc, value = Document(str(doc_id), text or "", known), _number(score)
        return unscored(doc, rank) if value is None else RetrievedDocument(doc, value, rank)


def _with_usual_documents(answer: str, reply: Mapping[str, Any]) -> SystemOutputs:
    """Return an answer with the documents under any name that a function may give them: `contexts`, ..."""
    try:
        return to_output(
            {"answer": answer, **{name: reply[name] for name in DOCUMENT_LISTS if name in reply}}
        )
    except (ArgumentError, TypeError, ValueError) as error:
        raise BadReplyError(str(error)) from None


# Names of token counts in a reply, and in our outputs.
_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def _numbers(reply: Any) -> dict[str, float]:
    """Return the numbers of an object; other values are left out."""
    if not isinstance(reply, dict):
        return {}
    numbers = {name: _number(value) for name, value in reply.items()}
    return {name: value for name, value in numbers.items() if value is not None}


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _get(thing: Any, name: str) -> Any:
    for part in name.split("."):
        thing = thing.get(part) if isinstance(thing, dict) else None
    return thing


def _put(document: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        document = document.setdefault(part, {})
    document[last] = value


def _prompt(path: str | None) -> Prompt:
    """Return the prompt in a file, or the usual one; DataError if it has no place for the material."""
    if not path:
        return load_prompt("answer")
    prompt = read_prompt(Path(path))
    if _MATERIAL not in prompt.user and _RAG_PROMPT not in prompt.user:
        fix = f"Put it where the question goes, or {_RAG_PROMPT} for the prompt of each record."
        raise DataError(path, f"the prompt has no {_MATERIAL}.", fix=fix)
    return prompt
