"""Judges by their names: `URL#model`, `support:NAME`, `module:attribute`, `jury:[A,B]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..calls.chat import ChatModel, split_endpoint
from ..calls.keys import key_from_environment
from ..core.metric_names import split_outside_brackets
from ..core.systems.named import imported
from ..errors import DataError
from .judge import Judge, SupportJudge, as_judge
from .llm import AUTO, LlmJudge


@dataclass(frozen=True)
class JudgeOptions:
    """How the models behind a judge are called; the same for all members of a jury."""

    mode: str = AUTO
    api_key_env: str | None = None
    plain_http: bool = False
    timeout: float = 60.0


def judge_named(name: str, options: JudgeOptions | None = None) -> Judge:
    """Return the judge of a name; DataError if there is none."""
    options = options or JudgeOptions()
    form, _, rest = name.partition(":")
    if form == "support":
        return SupportJudge(rest)
    if form == "jury":
        return _jury(name, rest, options)
    if form in ("http", "https") or (form == "openai" and "://" in rest):
        return _model(rest if form == "openai" else name, options)
    return as_judge(imported(f"--judge {name}", name, str(Path.cwd())))


def _jury(name: str, rest: str, options: JudgeOptions) -> Judge:
    from .jury import Jury

    names = [part.strip() for part in split_outside_brackets(rest.removeprefix("[").removesuffix("]"))]
    members = [judge_named(part, options) for part in names if part]
    if len(members) > 1:
        return Jury(members)
    fix = "Write, for example, jury:[support:trained,URL#model]."
    raise DataError(f"--judge {name:.80}", "has the wrong number of judges.", fix=fix)


def _model(name: str, options: JudgeOptions) -> LlmJudge:
    url, model = split_endpoint(name)
    key = None if options.api_key_env is None else key_from_environment(options.api_key_env)
    chat = ChatModel(
        url, model, api_key=key, timeout=options.timeout, plain_http=options.plain_http, private=True
    )
    return LlmJudge(chat, options.mode)
