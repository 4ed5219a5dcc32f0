"""The settings of a run, defined once.

Each field of `RunSettings` is one setting. Its flag, its key in a plan file and in the schema of plans, what
the header of a run stores, what `--resume` restores, the call policy and the tables in the docs are derived
from the definition. To add a flag to `auepora run`, add a field here.
"""
# ruff: noqa: RUF009 - `_setting` returns a field of the dataclass

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from ..calls.policy import PASSING, CallPolicy
from ..errors import DataError, PlanError
from .matching import MATCHES

DEFAULT_OUT = "data/evaluation/results"
SPLITS_FOLDER = "evaluation/datasets"  # where `auepora dataset build` writes splits by default
MIN_COVERAGE = 0.99  # below this share of answered samples, the values do not describe the dataset
# A remote server may fail for a moment, so its calls are retried. Python code fails for a reason.
ENDPOINT_RETRIES = 4
PILOT = 5  # samples that an estimate is based on
JUDGE_CONCURRENCY = 8  # most servers take several requests at once

# The groups of flags in the help, in this order. The first has no heading of its own.
GENERAL = ""
CALLS = "failed calls and limits"
ENDPOINT = "endpoints (URL of a system or a judge)"
STOPPING = "early stopping (--stop-when clear)"
JUDGE = "judge (--judge)"
TELEMETRY = "OpenTelemetry"

PlanKind = Literal["text", "whole number", "number", "switch", "names", "mapping"]


def is_endpoint(system: str) -> bool:
    """Return whether the name of a system is the address of a server rather than Python code."""
    return system.startswith(("openai:", "http:", "https:"))


class Number(NamedTuple):
    """A range of numbers that a setting accepts; `words` describe it in messages."""

    words: str
    is_whole: bool = False
    least: float = 0
    most: float = math.inf
    is_open: bool = False  # the ends themselves are not accepted

    @property
    def in_words(self) -> str:
        """Return the range after the word "Use"."""
        return f"a number {self.words}" if self.words.startswith(("between", "from")) else self.words

    @property
    def schema_limits(self) -> dict[str, float]:
        """Return the range for a JSON Schema, whose limits are inclusive: 0.001 for any positive number."""
        least = 0.001 if self.is_open and self.most == math.inf else self.least
        return {"minimum": least} if self.most == math.inf else {"minimum": least, "maximum": self.most}

    def accepts(self, value: float) -> bool:
        """Return whether the value is in the range. Infinity and NaN never are."""
        if not math.isfinite(value) or (self.is_whole and value % 1):
            return False
        return self.least < value < self.most if self.is_open else self.least <= value <= self.most


def at_least(least: int) -> Number:
    """Return the range of the whole numbers from `least` on."""
    return Number(f"at least {least}", is_whole=True, least=least)


COUNT, AMOUNT = at_least(1), at_least(0)
POSITIVE = Number("a positive number", is_open=True)
SECONDS = Number("a positive number of seconds", is_open=True)
PRICE = Number("a price")
SHARE = Number("between 0 and 1", most=1, is_open=True)
COVERAGE = Number("from 0 to 1", most=1)
PORT = Number("from 1 to 65535", is_whole=True, least=1, most=65535)
# 1 itself is left out: the differences of the two systems would have no variance.
CORRELATION = Number("a correlation between -1 and 1", least=-1, most=math.nextafter(1, 0))


class Setting(NamedTuple):
    """The properties of one setting, beside its type and its default."""

    help: str = ""
    metavar: str | None = None
    group: str = GENERAL
    number: Number | None = None
    choices: tuple[str, ...] = ()
    alias: str = ""  # a second spelling of the flag
    everyday: bool = False  # in `run --help`; the others only in `run --help-all`
    flag: bool = True
    optional_value: bool = False  # the flag may be given without a value (`--resume`)
    in_plan: bool = True
    stored: bool = False  # in the configuration of the run, from which --resume restores it
    identifies: bool = False  # says which run is meant: on --resume it is compared with the stored run
    is_path: bool = False  # relative to the plan file that names it
    policy: str = ""  # the field of CallPolicy that it sets
    shared: bool = False  # also a flag of `auepora score`
    calls: bool = False  # about calls: also a flag of commands that may ask a judge
    experiment: Literal["", "variant", "all"] = ""  # where an experiment file may have it
    value_types: tuple[str, ...] = ("string",)  # JSON types of the values of a mapping
    name: str = ""
    kind: PlanKind = "text"
    default: Any = None

    @property
    def flag_name(self) -> str:
        """Return the flag, such as --top-k."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of its value in a plan file."""
        if self.choices:
            return {"enum": list(self.choices)}
        types = {"text": "string", "whole number": "integer", "number": "number", "switch": "boolean"}
        if self.kind == "names":
            return {"type": ["array", "string"], "items": {"type": "string"}}
        if self.kind == "mapping":
            return {"type": "object", "additionalProperties": {"type": list(self.value_types)}}
        limits = self.number.schema_limits if self.number is not None else {}
        return {"type": types[self.kind], **limits}


def _setting(text: str = "", metavar: str | None = None, *, marks: str = "", **facts: Any) -> Any:
    """Return the field of a setting; `marks` names the properties of Setting that are true."""
    facts |= dict.fromkeys(marks.split(), True)
    setting = Setting(text, metavar, **facts)
    return field(default=setting.default, metadata={"setting": setting})


# What the settings of a group have in common.
_call_setting = partial(_setting, group=CALLS, stored=True, experiment="variant", calls=True)
_endpoint_setting = partial(_setting, group=ENDPOINT, stored=True, experiment="variant")
_stopping_setting = partial(_setting, group=STOPPING, stored=True, identifies=True)
_judge_setting = partial(_setting, group=JUDGE, stored=True, shared=True, experiment="all")
_telemetry_setting = partial(_setting, group=TELEMETRY, in_plan=False, shared=True)


def _price_help(kind: str) -> str:
    return f"USD per 1,000 {kind} tokens (needs outputs that report {kind}_tokens)"


# Nobody compares or prints them, and to write these methods for 70 fields takes 2 ms of each start.
@dataclass(eq=False, repr=False)
class RunSettings:
    """All settings of one run, from its plan file, its flags, or the header of the run that is resumed."""

    dataset: str | None = _setting(
        "dataset file, or `demo` for the bundled one",
        "FILE",
        marks="everyday stored identifies is_path",
        experiment="all",
    )
    format: str | None = _setting(
        "format of the dataset (default: detected)",
        "NAME",
        marks="stored identifies",
        experiment="all",
        alias="--from",
    )
    columns: str | None = _setting(
        "names of your columns for our fields, such as query=question,reference_answer=gold",
        "FIELD=NAME,...",
        marks="stored identifies",
    )
    dataset_type: str | None = _setting(
        "split to evaluate, if --dataset is a manifest, raw tasks or a folder of splits (without --dataset: "
        "evaluation/datasets)",
        marks="everyday stored identifies",
        choices=("qa", "summaries", "citations"),
    )
    ground_truth: str | None = _setting(
        "annotations (.gt.json) by one or more people; their citations become the gold citations",
        "FILE",
        marks="stored identifies is_path shared",
    )
    system: str | None = _setting(
        "system to evaluate: MODULE:ATTR, openai:URL#MODEL, or the URL of an HTTP endpoint",
        "MODULE:ATTR",
        marks="everyday stored identifies",
        experiment="variant",
    )
    system_version: str | None = _setting(
        "version of the system, stored with the results", "TEXT", marks="stored shared"
    )
    contexts_as_retrieved: bool | None = _setting(
        "treat the contexts of a split's records, which the prompt shows, as the retrieved documents",
        marks="stored identifies shared",
    )
    outputs: str | None = _setting(flag=False, experiment="variant")
    metrics: list[str] | str | None = _setting(
        "metrics to compute, such as recall@5,ndcg@10 (default: all that the dataset supports)",
        "NAMES",
        marks="everyday identifies shared",
    )
    match: str | None = _setting(
        "how a retrieved document matches a relevant one: same id (default), same source, or it has its text",
        marks="stored identifies shared",
        choices=MATCHES,
    )
    # The files of metrics such as my_metrics.py:brevity@12: a resumed run finds its metrics there.
    metric_files: list[str] | None = _setting(marks="stored", flag=False, in_plan=False)
    config: str | None = _setting(
        "plan file: the same settings as YAML keys; flags override the file",
        "FILE",
        marks="everyday identifies",
        in_plan=False,
    )
    top_k: int = _setting(
        "documents to request per sample (default: 5)",
        "N",
        marks="everyday identifies",
        default=5,
        number=COUNT,
        experiment="variant",
    )
    limit: int | None = _setting(
        "use only the first N samples",
        "N",
        marks="everyday stored identifies",
        number=COUNT,
        experiment="all",
    )
    estimate: bool = _setting(
        "call five samples, print the estimated calls, tokens, cost and time of the whole run, and stop",
        marks="everyday",
        default=False,
        in_plan=False,
    )
    executor: str = _setting(
        "serial, threads, async, processes or ray (default: threads if --concurrency > 1)",
        "NAME",
        marks="stored",
        default="",
        experiment="variant",
    )
    concurrency: int = _setting(
        "concurrent calls (default: 1)",
        "N",
        marks="everyday stored",
        default=1,
        number=COUNT,
        experiment="variant",
        calls=True,
    )
    timeout: float | None = _setting(
        "seconds after which an attempt counts as failed (default: no limit; endpoints: 60)",
        "S",
        marks="everyday stored",
        number=SECONDS,
        experiment="variant",
        policy="timeout",
        calls=True,
    )
    max_failures: int | None = _setting(
        "abort once more than N calls have failed", "N", marks="stored", number=AMOUNT, experiment="variant"
    )
    resume: str | None = _setting(
        "resume run ID with its original settings", "ID", marks="everyday optional_value", in_plan=False
    )
    retry_failed: bool = _setting("with --resume: retry every failed sample", default=False, in_plan=False)
    cache: str | None = _setting(
        "folder of cached answers: reuse those of earlier runs and add the new ones",
        "DIR",
        marks="is_path",
        experiment="all",
    )

    retries: int | None = _call_setting(
        "retries after a 429, a 5xx or a timeout (default: 0; endpoints: 4)", "N", number=AMOUNT
    )
    retry_on: list[str] | str | None = _call_setting("exception classes that are retried as well", "NAME,...")
    longest_wait: float | None = _call_setting(
        "longest wait before a retry, in seconds (default: 30, or 120 with Retry-After)",
        "S",
        number=SECONDS,
        policy="longest_wait",
    )
    rpm: int | None = _call_setting(
        "maximum requests per minute", "N", number=COUNT, policy="requests_per_minute"
    )
    tpm: int | None = _call_setting(
        "maximum tokens per minute", "N", number=COUNT, policy="tokens_per_minute"
    )
    budget_calls: int | None = _call_setting("stop after N calls", "N", number=COUNT, policy="max_calls")
    budget_tokens: int | None = _call_setting("stop after N tokens", "N", number=COUNT, policy="max_tokens")
    budget_cost: float | None = _call_setting(
        "stop at this cost (needs --price-input and --price-output)", "USD", number=PRICE, policy="max_cost"
    )
    breaker: int | None = _call_setting(
        "stop after N consecutive failed samples", "N", number=COUNT, policy="breaker_after"
    )
    keep_going: bool | None = _call_setting(
        "do not stop after the first 20 samples if none was answered and all failed alike",
        policy="keep_going",
        calls=False,
        experiment="",
    )
    address: str | None = _call_setting(
        "address of the Ray cluster (auto, ray://host:10001)", "HOST", calls=False
    )

    # Settings of this group are the options that an endpoint system is loaded with.
    # Stored is the name of the variable, never the key.
    api_key_env: str | None = _endpoint_setting("environment variable with the API key", "NAME")
    prompt: str | None = _endpoint_setting(
        "openai: prompt file, with {{material}} or {{rag_prompt}} in it", "FILE", marks="identifies is_path"
    )
    plain_http: bool | None = _endpoint_setting(
        "allow plain HTTP to remote hosts (questions and keys are sent unencrypted)"
    )
    http: dict[str, str] | None = _endpoint_setting(flag=False)
    headers: dict[str, str] | None = _setting(marks="stored", flag=False, group=ENDPOINT)
    request: dict[str, Any] | None = _setting(
        marks="stored", flag=False, group=ENDPOINT, value_types=("number", "string", "null")
    )

    stop_when: str | None = _stopping_setting(
        "stop early once the result is statistically decided (samples run in random order)",
        choices=("clear",),
    )
    min: list[str] | str | None = _stopping_setting("goal: the metric is at least this value", "METRIC=VALUE")
    max: list[str] | str | None = _stopping_setting("goal: the metric is at most this value", "METRIC=VALUE")
    baseline: str | None = _stopping_setting(
        "goal: better than this run, compared sample by sample (id or path)", "RUN"
    )
    stop_on: list[str] | str | None = _stopping_setting("with --baseline: the metric that decides", "METRIC")
    margin: list[str] | str | None = _stopping_setting(
        "with --baseline: goal: a loss of at most this size", "[METRIC=]SIZE"
    )
    alpha: float | None = _stopping_setting("significance level (default: 0.05)", number=SHARE)

    judge: str | None = _judge_setting(
        "judge of the judged metrics: URL#model, support:NAME, MODULE:ATTR or jury:[A,B]",
        "NAME",
        marks="everyday",
    )
    # The judged metrics of --metrics: they are computed after the run, from the verdicts of the judge.
    judge_metrics: list[str] | None = _judge_setting(flag=False, in_plan=False)
    judge_mode: str | None = _judge_setting(
        "how the judge answers: logprob, label or sampled:N (default: auto)", "MODE"
    )
    judge_api_key_env: str | None = _judge_setting("environment variable with the judge's API key", "NAME")
    judge_concurrency: int | None = _judge_setting(
        f"concurrent calls to the judge (default: {JUDGE_CONCURRENCY})", "N", number=COUNT
    )
    judge_budget_calls: int | None = _judge_setting("stop judging after N calls", "N", number=COUNT)
    judge_budget_tokens: int | None = _judge_setting("stop judging after N tokens", "N", number=COUNT)
    judge_budget_cost: float | None = _judge_setting(
        "stop judging at this cost (needs --judge-price-input and --judge-price-output)",
        "USD",
        number=PRICE,
    )
    judge_price_input: float | None = _judge_setting(
        "USD per 1,000 input tokens of the judge", "USD", number=PRICE
    )
    judge_price_output: float | None = _judge_setting(
        "USD per 1,000 output tokens of the judge", "USD", number=PRICE
    )

    spans: str | None = _telemetry_setting(
        "write the spans of the run to this file (OTLP JSON lines) or send them to this URL (OTLP/HTTP)",
        "FILE|URL",
    )
    spans_content: bool = _telemetry_setting(
        "include questions, answers and documents in the spans", default=False
    )

    seed: int = _setting(
        "random seed (default: 0)", "N", marks="identifies shared", default=0, number=AMOUNT, experiment="all"
    )
    price_input: float | None = _setting(
        _price_help("input"),
        "USD",
        marks="stored shared",
        number=PRICE,
        experiment="variant",
        policy="price_input",
        calls=True,
    )
    price_output: float | None = _setting(
        _price_help("output"),
        "USD",
        marks="stored shared",
        number=PRICE,
        experiment="variant",
        policy="price_output",
        calls=True,
    )
    min_coverage: float | None = _setting(
        f"exit with code 3 if a smaller share of samples succeeded (default: {MIN_COVERAGE:g})",
        "SHARE",
        marks="stored shared",
        number=COVERAGE,
    )
    id: str | None = _setting(
        "id of the run (default: made from system, dataset and time)", "ID", marks="everyday shared"
    )
    force: bool = _setting(
        "replace a run with the same id", marks="everyday shared", default=False, in_plan=False
    )
    out: str = _setting(
        f"folder for stored runs (default: {DEFAULT_OUT})",
        "DIR",
        marks="everyday shared",
        default=DEFAULT_OUT,
        experiment="all",
    )
    full: bool = _setting(
        "print the table of all results, not only a summary", marks="everyday", default=False, in_plan=False
    )
    json: bool = _setting(
        "print one JSON document instead of text", marks="everyday shared", default=False, in_plan=False
    )

    # Not a setting: the header of a run that was started in Python does not name its dataset and system.

    def __post_init__(self) -> None:
        if not self.executor:
            self.executor = "threads" if self.concurrency > 1 else "serial"

    @classmethod
    def merged(cls, *layers: Mapping[str, Any]) -> RunSettings:
        """Return the settings of several layers. Later layers win; None and unknown names are left out."""
        names = {one.name for one in fields(cls)}
        values: dict[str, Any] = {}
        for layer in layers:
            values |= {name: value for name, value in layer.items() if name in names and value is not None}
        return cls(**values)

    def as_stored(self) -> dict[str, Any]:
        """Return what the configuration of a run keeps, by name; settings without a value are left out."""
        values = {one.name: getattr(self, one.name) for one in SETTINGS.values() if one.stored}
        return {name: value for name, value in values.items() if value is not None}

    def in_group(self, group: str) -> dict[str, Any]:
        """Return the settings of a group that have a value, by name."""
        values = {one.name: getattr(self, one.name) for one in SETTINGS.values() if one.group == group}
        return {name: value for name, value in values.items() if value}

    def for_judge(self) -> RunSettings:
        """Return the settings of the calls of the judge: those whose names start with judge_."""
        own = {name.removeprefix("judge_"): value for name, value in self.in_group(JUDGE).items()}
        usual = {"out": self.out, "plain_http": self.plain_http, "concurrency": JUDGE_CONCURRENCY}
        return RunSettings.merged(usual, own)

    def call_policy(self) -> CallPolicy:
        """Return how calls that fail are handled, and how many may be made."""
        if self.budget_cost is not None and self.price_input is None and self.price_output is None:
            raise PlanError("--budget-cost needs --price-input and --price-output.")
        values = {one.policy: getattr(self, one.name) for one in SETTINGS.values() if one.policy}
        values = {name: value for name, value in values.items() if value is not None}
        if self.longest_wait is not None:
            values["longest_retry_after"] = self.longest_wait
        usual = ENDPOINT_RETRIES if is_endpoint(self.system or "") else 0
        retries = usual if self.retries is None else self.retries
        return CallPolicy(**values, retries=retries, retry_on=_retried(self.retry_on, retries))


def _retried(named: list[str] | str | None, retries: int) -> tuple[str, ...]:
    """Return the kinds of failure that are retried, and the exception classes that the user added."""
    if named is None:
        return PASSING
    names = [name.strip() for name in as_names(named)]
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise DataError(
                "--retry-on",
                f"{name!r:.60} is not the name of an exception class.",
                fix="Write, for example, ModelLoading.",
            )
    if not retries:
        raise PlanError("--retry-on needs --retries N.")
    return (*PASSING, *(name.rpartition(".")[2] for name in names))


def as_names(value: str | Iterable[str] | None) -> list[str]:
    """Return the names in a list, or in a text with commas."""
    if value is None:
        return []
    return value.split(",") if isinstance(value, str) else list(value)


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


# How a plan file writes a value, by the first of these types that a setting may have.
_KINDS: dict[type, PlanKind] = {
    list: "names",
    bool: "switch",
    int: "whole number",
    float: "number",
    dict: "mapping",
    str: "text",
}


def _described() -> dict[str, Setting]:
    described = {}
    hints = get_type_hints(RunSettings)
    for one in fields(RunSettings):
        facts = one.metadata.get("setting")
        if facts is not None:
            hint = hints[one.name]
            types = {get_origin(part) or part for part in get_args(hint) or (hint,)}
            kind = next(kind for type_, kind in _KINDS.items() if type_ in types)
            described[one.name] = facts._replace(name=one.name, kind=kind)
    return described


SETTINGS: dict[str, Setting] = _described()
PLAN_KEYS: dict[str, Setting] = {name: one for name, one in SETTINGS.items() if one.in_plan}
# Budgets end a run when they are spent: the setting's name, and the field of the call policy.
BUDGETS: dict[str, str] = {name: one.policy for name, one in SETTINGS.items() if name.startswith("budget_")}
