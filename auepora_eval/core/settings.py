"""The settings of a run, defined once.

Each field of `RunSettings` is one setting: a key of plan files and of their schema. Commands have flags for
the common ones (`cli.flags.add_settings`), the others are keys only. To add a setting, add a field here.
"""
# ruff: noqa: RUF009 - `_setting` returns a field of the dataclass

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import PlanError
from .matching import MATCHES

if TYPE_CHECKING:
    from ..calls.policy import CallPolicy

DEFAULT_OUT = "data/evaluation/results"
SPLITS_FOLDER = "evaluation/datasets"  # where `auepora dataset build` writes splits by default
MIN_COVERAGE = 0.99  # below this share of answered samples, the values do not describe the dataset
# A remote server may fail for a moment, so its calls are retried. Python code fails for a reason.
ENDPOINT_RETRIES = 4
PILOT = 5  # samples that an estimate is based on
JUDGE_CONCURRENCY = 8  # most servers take several requests at once

PlanKind = Literal["text", "whole number", "number", "switch", "names", "mapping", "options"]


def out_flag(out: str | Path) -> str:
    """Return the flag that names the folder of runs in a command to type; nothing for the default folder."""
    return "" if Path(out) == Path(DEFAULT_OUT) else f" --out {shlex.quote(str(out))}"


def is_endpoint(system: str) -> bool:
    """Return whether the name of a system is the address of a server rather than Python code."""
    return system.startswith(("openai:", "http:", "https:"))


class Number(NamedTuple):
    """A range of numbers that a setting accepts; in messages `words` follow "Use" and "is not"."""

    words: str
    is_whole: bool = False
    least: float = 0
    most: float = math.inf
    is_open: bool = False  # the ends themselves are not accepted

    @property
    def schema_limits(self) -> dict[str, float]:
        """Return the range for a JSON Schema."""
        low, high = ("exclusiveMinimum", "exclusiveMaximum") if self.is_open else ("minimum", "maximum")
        return {low: self.least} if self.most == math.inf else {low: self.least, high: self.most}

    def accepts(self, value: float) -> bool:
        """Return whether the value is in the range. Infinity and NaN never are."""
        if not math.isfinite(value) or (self.is_whole and value % 1):
            return False
        return self.least < value < self.most if self.is_open else self.least <= value <= self.most


def at_least(least: int) -> Number:
    """Return the range of the whole numbers from `least` on."""
    return Number(f"a whole number of at least {least}", is_whole=True, least=least)


COUNT, AMOUNT = at_least(1), at_least(0)
POSITIVE = Number("a positive number", is_open=True)
SECONDS = Number("a positive number of seconds", is_open=True)
PRICE = Number("a price")
SHARE = Number("a number between 0 and 1", most=1, is_open=True)
COVERAGE = Number("a number from 0 to 1", most=1)
PORT = Number("a number from 1 to 65535", is_whole=True, least=1, most=65535)
# 1 itself is left out: the differences of the two systems would have no variance.
CORRELATION = Number("a correlation between -1 and 1", least=-1, most=math.nextafter(1, 0))


class Setting(NamedTuple):
    """What is known of one setting, beside its default."""

    help: str
    metavar: str | None = None
    number: Number | None = None
    choices: tuple[str, ...] = ()
    name: str = ""
    kind: PlanKind = "text"

    @property
    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of its value in a plan file."""
        if self.choices:
            return {"enum": list(self.choices)}
        limits = self.number.schema_limits if self.number is not None else {}
        return {**_SCHEMAS[self.kind], **limits}


_SCHEMAS: dict[PlanKind, dict[str, object]] = {
    "text": {"type": "string"},
    "whole number": {"type": "integer"},
    "number": {"type": "number"},
    "switch": {"type": "boolean"},
    "names": {"type": ["array", "string"], "items": {"type": "string"}},
    "mapping": {"type": "object", "additionalProperties": {"type": ["string"]}},
    "options": {"type": "object", "additionalProperties": {"type": ["number", "string", "null"]}},
}


def _setting(
    text: str,
    metavar: str | None = None,
    number: Number | None = None,
    *,
    choices: tuple[str, ...] = (),
    default: Any = None,
) -> Any:
    """Return the field of a setting."""
    return field(default=default, metadata={"setting": Setting(text, metavar, number, choices)})


# Nobody compares or prints them, and to write these methods for 70 fields takes 2 ms of each start.
@dataclass(eq=False, repr=False)
class RunSettings:
    """All settings of one run, from its plan file, its flags, or the header of the run that is resumed."""

    dataset: str | None = _setting("dataset file, or `demo` for the bundled one", "FILE")
    format: str | None = _setting("format of the dataset (default: detected)", "NAME")
    columns: str | None = _setting("your columns: query=question,reference_answer=gold", "F=NAME,...")
    convert: str | None = _setting("function that makes a sample of each record", "FILE:NAME")
    dataset_type: str | None = _setting(
        "split of a build: qa, summaries or citations", "TYPE", choices=("qa", "summaries", "citations")
    )
    ground_truth: str | None = _setting("annotations (.gt.json) whose citations become the gold ones", "FILE")
    system: str | None = _setting("MODULE:ATTR, openai:URL#MODEL, or an HTTP endpoint", "MODULE:ATTR")
    system_version: str | None = _setting("version of the system, stored with the results", "TEXT")
    contexts_as_retrieved: bool | None = _setting(
        "treat the contexts of a split's records, which the prompt shows, as the retrieved documents"
    )
    outputs: str | None = _setting("experiments: file of predictions of a variant, instead of a system")
    metrics: list[str] | str | None = _setting(
        "such as recall@5,mrr (default: what the data support)", "NAMES"
    )
    match: str | None = _setting(
        f"a document matches by {', '.join(MATCHES)} (default: {MATCHES[0]})", "HOW", choices=MATCHES
    )
    # The files of metrics such as my_metrics.py:brevity@12: a resumed run finds its metrics there.
    metric_files: list[str] | None = _setting("")
    arguments: dict[str, Any] | None = _setting("")  # that a variant of an experiment makes its system with
    config: str | None = _setting("plan file: settings as YAML keys; flags override it", "FILE")
    top_k: int = _setting("documents to request per sample (default: 5)", "N", COUNT, default=5)
    limit: int | None = _setting("use only the first N samples", "N", COUNT)
    ignore_identical_ids: bool | None = _setting(
        "score: leave out hits with the id of the query, as BEIR does"
    )
    estimate: bool = _setting("call five samples; estimate the cost of the whole run", default=False)
    executor: str = _setting("serial, threads, async, processes or ray", "NAME", default="")
    concurrency: int = _setting("concurrent calls (default: 1)", "N", COUNT, default=1)
    timeout: float | None = _setting("seconds per attempt (default: none; endpoints: 60)", "S", SECONDS)
    max_failures: int | None = _setting("abort once more than this number of calls have failed", "N", AMOUNT)
    resume: str | None = _setting("resume run ID with its original settings", "ID")
    retry_failed: bool = _setting("with --resume: retry every failed sample", default=False)
    cache: str | None = _setting("file of replies to reuse (default: $AUEPORA_CACHE)", "FILE")

    retries: int | None = _setting(
        "retries after a 429, a 5xx or a timeout (default: 0; endpoints: 4)", "N", AMOUNT
    )
    retry_on: list[str] | str | None = _setting("exception classes that are retried as well", "NAME,...")
    longest_wait: float | None = _setting(
        "longest wait before a retry, in seconds (default: 30, or 120 with Retry-After)", "S", SECONDS
    )
    rpm: int | None = _setting("maximum requests per minute", "N", COUNT)
    tpm: int | None = _setting("maximum tokens per minute", "N", COUNT)
    budget_calls: int | None = _setting("stop after N calls", "N", COUNT)
    budget_tokens: int | None = _setting("stop after this number of tokens", "N", COUNT)
    budget_cost: float | None = _setting("stop at this cost; needs price_input, price_output", "USD", PRICE)
    breaker: int | None = _setting("stop after this number of consecutive failed samples", "N", COUNT)
    keep_going: bool | None = _setting("call the rest even if the first 20 samples fail")
    address: str | None = _setting("address of the Ray cluster (auto, ray://host:10001)", "HOST")

    # Stored is the name of the variable, never the key.
    api_key_env: str | None = _setting("environment variable with the API key", "NAME")
    prompt: str | None = _setting("openai: prompt file, with {{material}} or {{rag_prompt}} in it", "FILE")
    plain_http: bool | None = _setting(
        "allow plain HTTP to remote hosts (questions and keys are sent unencrypted)"
    )
    http: dict[str, str] | None = _setting("http: names of the fields of an endpoint's requests and replies")
    headers: dict[str, str] | None = _setting("headers of the requests to an endpoint")
    request: dict[str, Any] | None = _setting("openai: fields of the request, such as temperature")

    stop_when: str | None = _setting(
        "`clear`: stop once the goals below are decided (samples run in random order)", choices=("clear",)
    )
    min: list[str] | str | None = _setting("goals: METRIC=VALUE, the metric is at least this value")
    max: list[str] | str | None = _setting("goals: METRIC=VALUE, the metric is at most this value")
    baseline: str | None = _setting("goal: better than this run, compared sample by sample (id or path)")
    stop_on: list[str] | str | None = _setting("with baseline: the metrics that decide")
    margin: list[str] | str | None = _setting("with baseline: [METRIC=]SIZE, a loss of at most this size")
    alpha: float | None = _setting("significance level of early stopping (default: 0.05)", "X", SHARE)

    judge: str | None = _setting("URL#model, support:NAME, MODULE:ATTR or jury:[A,B]", "NAME")
    # The judged metrics of --metrics: they are computed after the run, from the verdicts of the judge.
    judge_metrics: list[str] | None = _setting("")
    judge_mode: str | None = _setting("label or logprob (default: label)", "MODE")
    judge_api_key_env: str | None = _setting("environment variable with the judge's API key", "NAME")
    judge_concurrency: int | None = _setting(
        f"concurrent calls to the judge (default: {JUDGE_CONCURRENCY})", "N", COUNT
    )
    judge_repeats: int | None = _setting("ask each question this number of times (default: 1)", "N", COUNT)
    judge_timeout: float | None = _setting("seconds per attempt of the judge (default: 60)", "S", SECONDS)
    judge_retries: int | None = _setting(
        f"retries of the judge's calls (default: {ENDPOINT_RETRIES})", "N", AMOUNT
    )
    judge_rpm: int | None = _setting("maximum requests per minute to the judge", "N", COUNT)
    judge_tpm: int | None = _setting("maximum tokens per minute of the judge", "N", COUNT)
    judge_budget_calls: int | None = _setting("stop judging after this number of calls", "N", COUNT)
    judge_budget_tokens: int | None = _setting("stop judging after this number of tokens", "N", COUNT)
    judge_budget_cost: float | None = _setting(
        "stop judging at this cost; needs judge_price_input, judge_price_output", "USD", PRICE
    )
    judge_price_input: float | None = _setting("USD per 1,000 input tokens of the judge", "USD", PRICE)
    judge_price_output: float | None = _setting("USD per 1,000 output tokens of the judge", "USD", PRICE)

    seed: int = _setting("random seed (default: 0)", "N", AMOUNT, default=0)
    price_input: float | None = _setting("USD per 1,000 input tokens of the system", "USD", PRICE)
    price_output: float | None = _setting("USD per 1,000 output tokens of the system", "USD", PRICE)
    min_coverage: float | None = _setting(
        f"exit with 3 if fewer samples succeed (default: {MIN_COVERAGE:g})", "SHARE", COVERAGE
    )
    id: str | None = _setting("id of the run (default: the name of the system)", "ID")
    force: bool = _setting("replace a run with the same id", default=False)
    out: str = _setting(f"folder of runs (default: {DEFAULT_OUT})", "DIR", default=DEFAULT_OUT)
    json: bool = _setting("print one JSON document instead of text", default=False)

    def __post_init__(self) -> None:
        if not self.executor:
            self.executor = "threads" if self.concurrency > 1 else "serial"

    @classmethod
    def merged(cls, *layers: Mapping[str, Any]) -> RunSettings:
        """Return the settings of several layers. Later layers win; None and unknown names are left out."""
        values: dict[str, Any] = {}
        for layer in layers:
            values |= {name: value for name, value in layer.items() if name in SETTINGS and value is not None}
        for name, value in values.items():
            if isinstance(value, float) and SETTINGS[name].kind == "whole number":
                values[name] = int(value)  # 2.0 in a plan
        return cls(**values)

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the named settings that have a value."""
        return {name: value for name in names if (value := getattr(self, name))}

    def as_stored(self) -> dict[str, Any]:
        """Return what the configuration of a run keeps, by name; settings without a value are left out."""
        values = {name: getattr(self, name) for name in STORED}
        return {name: value for name, value in values.items() if value is not None}

    def for_judge(self) -> RunSettings:
        """Return the settings of the calls of the judge: those whose names start with judge_."""
        own = {name.removeprefix("judge_"): value for name, value in self.given(OF_JUDGE).items()}
        # Zero retries are a value, too.
        own["retries"] = self.judge_retries
        usual = {"out": self.out, "plain_http": self.plain_http, "concurrency": JUDGE_CONCURRENCY}
        return RunSettings.merged(usual, own)

    def call_policy(self) -> CallPolicy:
        """Return how calls that fail are handled, and how many may be made."""
        from ..calls.policy import CallPolicy  # most commands make no call

        if self.budget_cost is not None and self.price_input is None and self.price_output is None:
            raise PlanError("budget_cost needs price_input and price_output.")
        values = {theirs: getattr(self, ours) for ours, theirs in _POLICY.items()}
        values = {name: value for name, value in values.items() if value is not None}
        if self.longest_wait is not None:
            values["longest_retry_after"] = self.longest_wait
        usual = ENDPOINT_RETRIES if is_endpoint(self.system or "") else 0
        retries = usual if self.retries is None else self.retries
        return CallPolicy(**values, retries=retries, retry_on=_retried(self.retry_on, retries))


def _retried(named: list[str] | str | None, retries: int) -> tuple[str, ...]:
    """Return the kinds of failure that are retried, and the exception classes that the user added."""
    from ..calls.policy import PASSING

    if named is None:
        return PASSING
    names = [name.strip() for name in as_names(named)]
    if not retries:
        raise PlanError("retry_on needs retries: add a number of them.")
    return (*PASSING, *(name.rpartition(".")[2] for name in names))


def as_names(value: str | Iterable[str] | None) -> list[str]:
    """Return the names in a list, or in a text with commas."""
    if value is None:
        return []
    return value.split(",") if isinstance(value, str) else list(value)


def named_number(text: str) -> tuple[str, float]:
    """Return "recall@5=0.8" as ("recall@5", 0.8), and "0.8" as ("", 0.8); ValueError without a number."""
    # From the right: the options of a metric may contain an equals sign too.
    name, _, number = str(text).rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r:.60} has no number. Write, for example, recall@5=0.8")
    return name.strip(), value


def column_names(text: str | None) -> dict[str, str] | None:
    """Return "query=question,..." as a dict; None for nothing."""
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for field_name, equals, column in pairs:
        if not equals or not field_name.strip() or not column.strip():
            raise PlanError(
                f"--columns {text!r:.80} is not FIELD=NAME,... Write, for example, query=question."
            )
    return {field_name.strip(): column.strip() for field_name, _, column in pairs}


# How a plan file writes a value, by the first type in the annotation of its field.
_KINDS: dict[str, PlanKind] = {
    "list[str]": "names",
    "bool": "switch",
    "int": "whole number",
    "float": "number",
    "dict[str, str]": "mapping",
    "dict[str, Any]": "options",
    "str": "text",
}


SETTINGS: dict[str, Setting] = {
    one.name: one.metadata["setting"]._replace(name=one.name, kind=_KINDS[str(one.type).partition(" | ")[0]])
    for one in fields(RunSettings)
}

# Of one command only, or found out while it runs.
_NOT_IN_PLANS = {
    *("config", "estimate", "resume", "retry_failed", "force", "json"),
    *("metric_files", "judge_metrics", "arguments"),
}
PLAN_KEYS: dict[str, Setting] = {name: one for name, one in SETTINGS.items() if name not in _NOT_IN_PLANS}
PATHS = ("dataset", "outputs", "ground_truth", "cache", "prompt")  # relative to the plan file that names them

# The configuration of a run keeps the others, and --resume restores them from there. The header of a run has
# its metrics, top_k, seed and id.
_NOT_STORED = {
    *("outputs", "ignore_identical_ids", "cache", "out", "metrics", "top_k", "seed", "id"),
    *(_NOT_IN_PLANS - {"metric_files", "judge_metrics"}),
}
STORED = tuple(name for name in SETTINGS if name not in _NOT_STORED)

# The options that an endpoint system is loaded with, the goals of early stopping, and the calls of a judge.
OF_ENDPOINT = ("api_key_env", "prompt", "plain_http", "http", "headers", "request")
OF_STOPPING = ("stop_when", "min", "max", "baseline", "stop_on", "margin", "alpha")
OF_JUDGE = tuple(name for name in SETTINGS if name.startswith("judge"))
BUDGETS = ("budget_calls", "budget_tokens", "budget_cost")  # they end a run when they are spent

# The fields of the call policy that settings give.
_POLICY = {
    "timeout": "timeout",
    "longest_wait": "longest_wait",
    "rpm": "requests_per_minute",
    "tpm": "tokens_per_minute",
    "budget_calls": "max_calls",
    "budget_tokens": "max_tokens",
    "budget_cost": "max_cost",
    "breaker": "breaker_after",
    "keep_going": "keep_going",
    "price_input": "price_input",
    "price_output": "price_output",
}
