"""A language model behind any endpoint that speaks OpenAI's chat protocol.

    model = ChatModel("http://127.0.0.1:8000/v1", "small-model")
    model.complete([{"role": "user", "content": "What is a weir?"}]).text

No SDK: one JSON document goes out, one comes back (`calls/http` has the deadline and the limits).
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import msgspec

from ..errors import CallError, DataError
from .http import BadReplyError, Endpoint, check_no_key_in_url, tidy
from .keys import Secret

Message = Mapping[str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """What a model said, and what it took; token counts are None where the server does not report them."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    model: str
    seconds: float
    finish_reason: str | None = None
    total_tokens: int | None = None  # may hold more than the two above: what the model thought
    # The alternatives for the first token of the reply, with their log probabilities; None if not reported.
    first_token: tuple[tuple[str, float], ...] | None = None


class _Said(msgspec.Struct):
    content: str | list[Any] | None = None
    refusal: str | None = None


class _Option(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    top_logprobs: list[_Option] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None


_completion = msgspec.json.Decoder(_Completion).decode


class ChatModel:
    """A model at an endpoint; safe to use from several threads.

    `extra` are further fields of the request; a field set to None is left out, for servers that refuse it
    (`{"temperature": None}`). A server that does not know `response_format` is asked without it from then on:
    whoever asks for a schema checks the reply anyway.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | Secret | None = None,
        timeout: float = 60.0,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int = 2048,
        extra: Mapping[str, Any] | None = None,
        plain_http: bool = False,
        private: bool = False,
        headers: Mapping[str, Secret] | None = None,
    ) -> None:
        if not model or not model.isprintable():
            raise DataError("the model", "has no name.", fix="Write URL#model.")
        self.model = model
        self._endpoint = Endpoint(
            _completions_url(url),
            Secret(api_key) if isinstance(api_key, str) else api_key,
            timeout=timeout,
            plain_http=plain_http,
            private=private,
            headers=headers or {},
        )
        fields = {"model": model, "temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        self._fields = {key: value for key, value in {**fields, **(extra or {})}.items() if value is not None}
        # Set to False by the first server that rejects the field; a race costs one more request.
        self._takes_schema = True

    @property
    def server(self) -> str:
        """The address that is asked, without the parts that are the same for most servers."""
        address = self._endpoint.identity.partition("://")[2]
        return address.removesuffix("/chat/completions").removesuffix("/v1")

    @property
    def identity(self) -> dict[str, Any]:
        """What decides what the model says: for records and comparisons. Holds no key."""
        # Extra fields by their hashes: one of them may be a secret of the server's.
        public = {"model", "temperature", "max_tokens", "seed"}
        settings = {key: value for key, value in self._fields.items() if key in public}
        extra = {name: _hash(value) for name, value in self._fields.items() if name not in public}
        return {"endpoint": self._endpoint.identity, **settings, "extra": extra}

    def __repr__(self) -> str:
        return f"ChatModel({self._endpoint.name!r}, {self.model!r})"

    def __enter__(self) -> ChatModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        self._endpoint.close()

    def complete(
        self,
        messages: Sequence[Message],
        *,
        response_schema: Mapping[str, Any] | None = None,
        top_logprobs: int = 0,
        least_tokens: int = 0,
    ) -> Reply:
        """The model's reply; CallError if there is none. A schema constrains it where the server can.

        With `top_logprobs` the reply is one token, and has the log probabilities of that many alternatives.
        `least_tokens` raises the limit of the reply, where there is one.
        """
        document = {**self._fields, "messages": list(messages)}
        limit = "max_completion_tokens" if "max_completion_tokens" in self._fields else "max_tokens"
        if top_logprobs:
            document |= {"logprobs": True, "top_logprobs": top_logprobs, limit: 1}
        elif limit in document:
            document[limit] = max(document[limit], least_tokens)
        if response_schema is None or not self._takes_schema:
            return self._asked(document)
        form = {"name": "reply", "strict": True, "schema": response_schema}
        try:
            return self._asked({**document, "response_format": {"type": "json_schema", "json_schema": form}})
        except CallError as error:
            # Servers have no common code for a request that they do not know.
            words = ("response_format", "json_schema", "grammar", "schema")
            if error.status not in (400, 422) or not any(word in str(error) for word in words):
                raise
        self._takes_schema = False
        return self._asked(document)

    def _asked(self, document: dict[str, Any]) -> Reply:
        started = monotonic()
        said = self._endpoint.post(document, _read)
        seconds, choice = monotonic() - started, said.choices[0]
        redacted = self._endpoint.redacted  # a server that echoes its request must not get the key on record
        text = _text_in(choice.message.content)
        if text is None:
            why = f": {tidy(redacted(choice.message.refusal))}" if choice.message.refusal else ""
            raise CallError(f"{self._endpoint.name}: the model gave no text{why}.", kind="refused")
        return Reply(
            redacted.within(text),
            _count(said.usage, "prompt_tokens"),
            _count(said.usage, "completion_tokens"),
            redacted.within(said.model or self.model),
            seconds,
            redacted.within(choice.finish_reason),
            _count(said.usage, "total_tokens"),
            _first_token(choice.logprobs),
        )


def split_endpoint(name: str) -> tuple[str, str]:
    """("http://host/v1", "model") from "http://host/v1#model"."""
    check_no_key_in_url(name)
    url, _, model = name.partition("#")
    if not url or not model:
        raise DataError(
            name[:200] or "the endpoint",
            "there is no model in it." if url else "there is no URL in it.",
            fix="Write URL#model, for example http://127.0.0.1:8000/v1#small-model.",
        )
    return url, model


def parse_strictly(text: str, kind: type[T]) -> T:
    """A reply's JSON as the type that was asked for; BadReplyError says what is wrong, for the model to read.

    The reply is the JSON alone, or in one fenced block (```json), after what a reasoning model thought
    (<think>...</think>) where its server leaves that in. Nothing is searched for in other text: a reply that
    holds two verdicts must not get to choose.
    """
    with _first_use:
        decoder = msgspec.json.Decoder(kind)
    bare = text.strip()
    if bare.startswith("<think>"):
        text = bare = bare.partition("</think>")[2].strip()
    if bare.startswith("```") and bare.endswith("```") and bare.count("```") == 2:
        language, _, block = bare[3:-3].partition("\n")
        text = block if language.strip().lower() in ("", "json") else text
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise BadReplyError(f"the JSON is not of the form asked for: {error}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadReplyError(f"it is not one JSON document and nothing else: {error}") from None


# msgspec ends the process (SIGSEGV) if several threads use a struct for the first time at once.
_first_use = threading.Lock()


def _read(body: bytes) -> _Completion:
    try:
        completion = _completion(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReplyError(f"not a chat completion ({error})") from None
    if not completion.choices:
        raise BadReplyError("it has no choices")
    return completion


def _text_in(content: str | list[Any] | None) -> str | None:
    """The text of a message, be it in one piece or in parts; None if none of them is a text."""
    if not isinstance(content, list):
        return content
    parts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part
        for part in content
    ]
    texts = [text for text in parts if isinstance(text, str)]
    return "".join(texts) if texts else None


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:8]


def _first_token(logprobs: _Logprobs | None) -> tuple[tuple[str, float], ...] | None:
    """The alternatives for the first token, with their log probabilities."""
    tokens = logprobs.content if logprobs else None
    if not tokens or tokens[0].top_logprobs is None:
        return None
    return tuple((option.token, option.logprob) for option in tokens[0].top_logprobs)


def _count(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _completions_url(url: str) -> str:
    """The endpoint's URL, whether the base was given (…/v1) or all of it."""
    base, mark, query = url.partition("?")
    base = base.rstrip("/")
    return f"{base if base.endswith('/chat/completions') else f'{base}/chat/completions'}{mark}{query}"


# Prompts are files: a part for the system's role, a part for the user's, and the places to be filled.
#
# Text from documents or models goes into a prompt only between fences that it cannot hold, as JSON, with
# the words before and after it saying that it is material.

FOLDER = Path(__file__).parent / "prompts"
_PART = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
# A prompt is written by hand; a larger file is another one.
_LONGEST = 100_000  # characters of a file


@dataclass(frozen=True)
class Prompt:
    """A prompt file: its name, its two parts, and the sha256 of its bytes, which decides what it asks."""

    name: str
    system: str
    user: str
    sha256: str

    def filled(self, **values: str) -> list[dict[str, str]]:
        """The messages, with a value in every place; a value's own braces are only text."""

        def value(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise DataError(
                    f"the prompt {self.name}",
                    f"there is no value for {match[0]}.",
                    fix="Remove it.",
                )
            return values[match[1]]

        return [
            {"role": "system", "content": _PLACE.sub(value, self.system)},
            {"role": "user", "content": _PLACE.sub(value, self.user)},
        ]


def load_prompt(name: str) -> Prompt:
    """The prompt in `name.md`, one of ours."""
    return read_prompt(FOLDER / f"{name}.md")


def read_text(path: Path, what: str) -> str:
    """The text of a small file that is sent to a model; DataError names what it is."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(str(path), f"the {what} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise DataError(str(path), f"the {what} is not UTF-8.", fix="Save it as UTF-8.") from None
    if len(text) > _LONGEST:
        raise DataError(str(path), f"the {what} has more than {_LONGEST:,} characters.", fix="Shorten it.")
    return text


def read_prompt(path: Path) -> Prompt:
    """The prompt in a file, whatever it is called."""
    text = read_text(path, "prompt")
    parts = _PART.split(text.replace("\r\n", "\n"))
    if parts[0].strip() or parts[1::2] != ["system", "user"]:
        raise DataError(
            str(path),
            "a prompt has a line '# system', its text, a line '# user' and its text.",
            fix="Take answer.md of the package (auepora_eval/calls/prompts) as a model.",
        )
    return Prompt(path.stem, parts[2].strip(), parts[4].strip(), hashlib.sha256(text.encode()).hexdigest())


def fence_of(material: str) -> str:
    """A line to put around material that does not occur in it; the same material has the same fence.

    So a question that is asked again is the same request, for a model at temperature 0 and for a provider's
    cache. It is a hash of 128 bits over all of the material: whoever writes a part of it would have to find
    a text that holds its own hash.
    """
    content, times = material.encode("utf-8", "surrogatepass"), 0
    while True:
        digest = hashlib.blake2b(content, digest_size=16, salt=times.to_bytes(16, "big")).hexdigest()
        fence = f"=== {digest} ==="
        if fence not in material:
            return fence
        times += 1


def as_material(thing: Any) -> str:
    """Untrusted text as JSON: a line break in it cannot start a line of ours."""
    try:
        return msgspec.json.encode(thing).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, as some PDF files yield: written out
        return json.dumps(thing)
