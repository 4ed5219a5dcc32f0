"""Systems behind an endpoint: any that speaks OpenAI's chat protocol, and any that takes a query by POST.

    openai:http://127.0.0.1:8000/v1#small-model
    http:http://127.0.0.1:9000/ask        or, shorter, http://127.0.0.1:9000/ask

Each call is one attempt: what is done about those that fail is the business of the run's CallPolicy.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..core.types import (
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
    unscored,
)
from ..errors import DataError
from ..judges.http_calls import BadReplyError, Endpoint
from ..judges.llm import ChatModel, split_endpoint
from ..judges.prompt_files import Prompt, as_material, fence_of, load_prompt, read_prompt
from ..judges.retries import Patience
from ..judges.secrets import Secret, headers_from_environment, key_from_environment

DEFAULT_TIMEOUT = 60.0
_KEY_LIKE = re.compile(r"key|token|secret|passw|auth|sig|code|credential", re.IGNORECASE)
_OPTIONS = ("api_key_env", "headers", "timeout", "plain_http", "prompt", "fields", "request")
_REQUEST: tuple[str, ...] = (
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "top_p",
    "top_k",
    "min_p",
    "stop",
)
_REQUEST += ("frequency_penalty", "presence_penalty", "repetition_penalty", "reasoning_effort")


def endpoint_system(name: str, options: Mapping[str, Any]) -> ChatSystem | HttpSystem:
    """The system of a name that begins with openai:, http: or https:."""
    strange = [option for option in options if option not in _OPTIONS]
    if strange:
        raise DataError("the options of the endpoint", f"there is no {strange[0]!r}.")
    key_name = options.get("api_key_env")
    key = key_from_environment(key_name) if key_name else None
    timeout = options.get("timeout") or DEFAULT_TIMEOUT
    _refuse_key_in_url(name)
    plain_http = bool(options.get("plain_http"))
    headers = headers_from_environment(options.get("headers") or {})
    if name.startswith("openai:"):
        url, model = split_endpoint(name.removeprefix("openai:"))
        return ChatSystem(
            url,
            model,
            key=key,
            timeout=timeout,
            plain_http=plain_http,
            prompt=_prompt(options.get("prompt")),
            headers=headers,
            request=_request(options.get("request") or {}),
        )
    if options.get("request"):
        raise DataError("request", "is for openai:URL#MODEL.", fix="Leave it out.")
    is_url = name.startswith(("http://", "https://"))
    url = name if is_url else name.removeprefix("http:")
    fields = Fields.of(options.get("fields") or {})
    return HttpSystem(url, key=key, timeout=timeout, plain_http=plain_http, fields=fields, headers=headers)


def _refuse_key_in_url(name: str) -> None:
    """The name of a system is stored with its run: what is secret must not be a part of it."""
    for pair in name.partition("#")[0].partition("?")[2].split("&"):
        if _KEY_LIKE.search(pair.partition("=")[0]):
            raise DataError(
                "the URL",
                "it seems to hold a key, and it is stored with the run.",
                fix="Put the key into an environment variable, and name that with --api-key-env.",
            )


class ChatSystem:
    """A language model that answers the query, from the sample's candidate documents where it has some.

    It retrieves nothing: the documents that it was given are its retrieved ones, at most `top_k`, in
    their order. The prompt has the places {{fence}} and {{material}}.
    """

    keeps_time = True

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: Secret | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        plain_http: bool = False,
        prompt: Prompt | None = None,
        headers: Mapping[str, Secret] | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = model
        self._prompt = prompt or load_prompt("answer")
        self._request = dict(request or {})
        self._model = ChatModel(
            url,
            model,
            api_key=key,
            timeout=timeout,
            retries=0,
            extra=self._request,
            plain_http=plain_http,
            private=True,
            headers=headers,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its answers; holds no key."""
        asked = hashlib.sha256(msgspec.json.encode(self._request, order="sorted")).hexdigest()
        return {**self._model.identity, "prompt_sha256": self._prompt.sha256, "request_sha256": asked}

    def close(self) -> None:
        """Close the connections that are kept."""
        self._model.close()

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        """Ask the model."""
        given = (sample.candidate_docs or [])[:top_k]
        passages = [{"id": doc.doc_id, "text": doc.text} for doc in given]
        material = as_material({"question": sample.query, **({"passages": passages} if passages else {})})
        reply = self._model.complete(self._prompt.filled(fence=fence_of(material), material=material))
        told: dict[str, Any] = {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}
        if (reply.total_tokens or 0) > (reply.prompt_tokens or 0) + (reply.completion_tokens or 0):
            told["total_tokens"] = reply.total_tokens
        if sample.candidate_docs is None:
            told[DOCUMENTS_MISSING] = True
        return SystemOutputs(
            [unscored(doc, rank) for rank, doc in enumerate(given, start=1)],
            Response(reply.text, metadata={"model": reply.model, "finish_reason": reply.finish_reason}),
            {"generation": reply.seconds},
            {name: fact for name, fact in told.items() if fact is not None},
        )


@dataclass(frozen=True)
class Fields:
    """What the fields of an HTTP system's request and reply are called; `a.b` is b within a."""

    query: str = "query"
    top_k: str = "top_k"
    answer: str = "answer"
    documents: str = "documents"
    id: str = "id"
    text: str = "text"
    score: str = "score"
    timings: str = "timings"
    usage: str = "usage"

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> Fields:
        """The fields that a configuration names; those that it does not name keep their names."""
        for key, value in names.items():
            if key not in cls.__dataclass_fields__:
                near = difflib.get_close_matches(str(key)[:80], cls.__dataclass_fields__, n=1)
                fix = (
                    f"Did you mean {near[0]}?"
                    if near
                    else f"The fields are {', '.join(cls.__dataclass_fields__)}."
                )
                raise DataError(f"http: {key!s:.80}", "there is no such field.", fix=fix)
            if not isinstance(value, str) or not value:
                raise DataError(f"http: {key}", "must be the name of a field.")
        return cls(**names)


class HttpSystem:
    """A system of any language: the query goes out as JSON, the answer and the documents come back.

    {"query": "...", "top_k": 5}  ->  {"answer": "...", "documents": [{"id", "text", "score"}],
    "timings": {"retrieval": 0.1}, "usage": {"input_tokens": 11}}; only the answer must be there.
    """

    keeps_time = True

    def __init__(
        self,
        url: str,
        *,
        key: Secret | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        plain_http: bool = False,
        fields: Fields | None = None,
        headers: Mapping[str, Secret] | None = None,
    ) -> None:
        patience = Patience(timeout=timeout, retries=0)
        self._endpoint = Endpoint(
            url, key, patience, plain_http=plain_http, private=True, headers=headers or {}
        )
        self._fields = fields or Fields()
        self.name = self._endpoint.name

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its answers, as far as this side knows; holds no key."""
        return {"endpoint": self._endpoint.name, "fields": asdict(self._fields)}

    def close(self) -> None:
        """Close the connections that are kept."""
        self._endpoint.close()

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        """Ask the server."""
        asked: dict[str, Any] = {}
        _put(asked, self._fields.query, sample.query)
        _put(asked, self._fields.top_k, top_k)
        return self._endpoint.post(asked, self._read).value

    def _read(self, body: bytes) -> SystemOutputs:
        try:
            # A server that echoes its request must not get the key on record.
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
        hits = [self._hit(found, rank) for rank, found in enumerate(documents or [], start=1)]
        extra: dict[str, Any] = _usage(_get(reply, names.usage))
        if documents is None:
            extra[DOCUMENTS_MISSING] = True
        # Which of them can be times is asked of whatever a system tells.
        return SystemOutputs(hits, Response(answer), _numbers(_get(reply, names.timings)), extra)

    def _hit(self, found: Any, rank: int) -> RetrievedDocument:
        if isinstance(found, str):
            return unscored(Document(found, ""), rank)
        doc_id, text, score = (
            _get(found, name) for name in (self._fields.id, self._fields.text, self._fields.score)
        )
        if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
            raise BadReplyError(f"document {rank} has no id under {self._fields.id!r}")
        if not isinstance(text, str | None):
            raise BadReplyError(f"document {rank}: what is under {self._fields.text!r} is not a text")
        doc, known = Document(str(doc_id), text or ""), _number(score)
        return unscored(doc, rank) if known is None else RetrievedDocument(doc, known, rank)


_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def _usage(told: Any) -> dict[str, Any]:
    """Token counts by the names that a run knows them by."""
    return {_USAGE.get(name, name): value for name, value in _numbers(told).items() if value >= 0}


def _numbers(told: Any) -> dict[str, float]:
    """The plain numbers of an object; what else a server tells there is not measured."""
    if not isinstance(told, dict):
        return {}
    found = {name: _number(value) for name, value in told.items()}
    return {name: value for name, value in found.items() if value is not None}


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


def _prompt(path: str | None) -> Prompt | None:
    """A prompt file of the user's, which must have the place of the material."""
    if not path:
        return None
    prompt = read_prompt(Path(path))
    if "{{material}}" not in prompt.user:
        raise DataError(path, "the prompt has no {{material}}.", fix="Put it where the question goes.")
    return prompt


def _request(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fields of a chat request that a plan sets; null leaves one out, for servers that refuse it."""
    for name, value in fields.items():
        if name not in _REQUEST:
            near = difflib.get_close_matches(str(name)[:80], _REQUEST, n=1)
            fix = f"Did you mean {near[0]}?" if near else f"The fields are {', '.join(_REQUEST)}."
            raise DataError(f"request: {name!s:.80}", "there is no such field.", fix=fix)
        if not isinstance(value, str | int | float | None) or isinstance(value, bool):
            raise DataError(f"request: {name}", "must be a number, a text or null.")
    return fields
