"""The settings of a run, defined once.

Each field of `RunSettings` is one setting. Its flag, its key in a plan file and in the schema of plans, what
the header of a run stores, what `--resume` restores, the call policy and the tables in the docs are derived
from the definition. To add a flag to `auepora run`, add a field here.
"""
# ruff: noqa: RUF009 - `_setting` returns a field of the dataclass

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..errors import DataError, PlanError
from .calls.policy import PASSING, CallPolicy

DEFAULT_OUT = "data/evaluation/results"
SPLITS_FOLDER = "evaluation/datasets"  # where `auepora dataset build` writes splits by default
MIN_COVERAGE = 0.99  # below this share of answered samples, the values do not describe the dataset
# A remote server may fail for a moment, so its calls are retried. Python code fails for a reason.
ENDPOINT_RETRIES = 4

# The groups of flags in the help, in this order. The first has no heading of its own.
GENERAL = ""
CALLS = "failed calls and limits"
ENDPOINT = "endpoints (--system openai:URL#MODEL, --system http:URL)"
STOPPING = "early stopping (--stop-when clear)"
TELEMETRY = "OpenTelemetry"

PlanKind = Literal["text", "whole number", "number", "switch", "names", "mapping"]


def is_endpoint(system: str) -> bool:
    """Return whether the name of a system is the address of a server rather than Python code."""
    return system.startswith(("openai:", "http:", "https:"))


@dataclass(frozen=True)
class Number:
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
        if not math.isfinite(value):
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
# 1 itself is left out: the differences of the two systems would have no variance.
CORRELATION = Number("a correlation between -1 and 1", least=-1, most=math.nextafter(1, 0))


@dataclass(frozen=True)
class Setting:
    """The properties of one setting, beside its type and its default."""

    help: str = ""
    metavar: str | None = None
    group: str = GENERAL
    number: Number | None = None
    choices: tuple[str, ...] = ()
    everyday: bool = False  # in `run --help`; the others only in `run --help-all`
    flag: bool = True
    optional_value: bool = False  # the flag may be given without a value (`--resume`)
    in_plan: bool = True
    stored: bool = False  # in the configuration of the run, from which --resume restores it
    identifies: bool = False  # says which run is meant: on --resume it is compared with the stored run
    is_path: bool = False  # relative to the plan file that names it
    policy: str = ""  # the field of CallPolicy that it sets
    shared: bool = False  # also a flag of `auepora score`
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


def _setting(default: Any = None, **facts: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(default=default, **facts)})


# What the settings of a group have in common.
_call_setting = partial(_setting, group=CALLS, stored=True, experiment="variant")
_endpoint_setting = partial(_setting, group=ENDPOINT, stored=True, experiment="variant")
_stopping_setting = partial(_setting, group=STOPPING, stored=True, identifies=True)
_telemetry_setting = partial(_setting, group=TELEMETRY, in_plan=False, shared=True)


def _price_help(kind: str) -> str:
    return f"USD per 1,000 {kind} tokens (needs outputs that report {kind}_tokens)"


@dataclass
class RunSettings:
    """All settings of one run, from its plan file, its flags, or the header of the run that is resumed."""

    dataset: str | None = _setting(
        help="dataset file, or `demo` for the bundled one",
        metavar="FILE",
        everyday=True,
        stored=True,
        identifies=True,
        is_path=True,
        experiment="all",
    )
    format: str | None = _setting(
        help="format of the dataset (default: detected)",
        metavar="NAME",
        stored=True,
        identifies=True,
        experiment="all",
    )
    dataset_type: str | None = _setting(
        help="split to use, if --dataset is a manifest, a folder of splits (default: evaluation/datasets) or "
        "raw tasks",
        choices=("qa", "summaries", "citations"),
        everyday=True,
        stored=True,
        identifies=True,
    )
    ground_truth: str | None = _setting(
        help="annotations (.gt.json) whose citations are the gold, of one annotator or several",
        metavar="FILE",
        stored=True,
        identifies=True,
        is_path=True,
        shared=True,
    )
    system: str | None = _setting(
        help="system to evaluate: MODULE:ATTR, openai:URL#MODEL, or the URL of an HTTP endpoint",
        metavar="MODULE:ATTR",
        everyday=True,
        stored=True,
        identifies=True,
        experiment="variant",
    )
    system_version: str | None = _setting(
        help="version of the system, stored with the results", metavar="TEXT", stored=True, shared=True
    )
    contexts_as_retrieved: bool | None = _setting(
        help="score the contexts of a split's records as the retrieved documents: what the prompt shows",
        stored=True,
        identifies=True,
        shared=True,
    )
    outputs: str | None = _setting(flag=False, experiment="variant")
    metrics: list[str] | str | None = _setting(
        help="metrics to compute, such as recall@5,ndcg@10 (default: all that the dataset supports)",
        metavar="NAMES",
        everyday=True,
        identifies=True,
        shared=True,
    )
    # The files of metrics such as my_metrics.py:brevity@12: a resumed run finds its metrics there.
    metric_files: list[str] | None = _setting(flag=False, in_plan=False, stored=True)
    config: str | None = _setting(
        help="plan file with these flags as keys; flags override it",
        metavar="FILE",
        everyday=True,
        in_plan=False,
        identifies=True,
    )
    top_k: int = _setting(
        5,
        help="documents to request per sample (default: 5)",
        metavar="N",
        number=COUNT,
        everyday=True,
        identifies=True,
        experiment="variant",
    )
    limit: int | None = _setting(
        help="use only the first N samples",
        metavar="N",
        number=COUNT,
        everyday=True,
        stored=True,
        identifies=True,
        experiment="all",
    )
    executor: str = _setting(
        "",
        help="serial, threads, async, processes or ray (default: threads if --concurrency > 1)",
        metavar="NAME",
        stored=True,
        experiment="variant",
    )
    concurrency: int = _setting(
        1,
        help="concurrent calls (default: 1)",
        metavar="N",
        number=COUNT,
        everyday=True,
        stored=True,
        experiment="variant",
    )
    timeout: float | None = _setting(
        help="seconds after which an attempt counts as failed (default: no limit; endpoints: 60)",
        metavar="S",
        number=SECONDS,
        everyday=True,
        stored=True,
        experiment="variant",
        policy="timeout",
    )
    max_failures: int | None = _setting(
        help="abort once more than N calls have failed",
        metavar="N",
        number=AMOUNT,
        stored=True,
        experiment="variant",
    )
    resume: str | None = _setting(
        help="resume run ID with its original settings",
        metavar="ID",
        everyday=True,
        in_plan=False,
        optional_value=True,
    )
    retry_failed: bool = _setting(False, help="with --resume: retry every failed sample", in_plan=False)
    cache: str | None = _setting(
        help="folder of cached answers: reuse those of earlier runs and add the new ones",
        metavar="DIR",
        is_path=True,
        experiment="all",
    )

    retries: int | None = _call_setting(
        help="retries after a 429, a 5xx or a timeout (default: 0; endpoints: 4)", metavar="N", number=AMOUNT
    )
    retry_on: list[str] | str | None = _call_setting(
        help="exception classes that are retried as well", metavar="NAME,..."
    )
    longest_wait: float | None = _call_setting(
        help="longest wait before a retry, in seconds (default: 30, or 120 with Retry-After)",
        metavar="S",
        number=SECONDS,
        policy="longest_wait",
    )
    rpm: int | None = _call_setting(
        help="maximum requests per minute", metavar="N", number=COUNT, policy="requests_per_minute"
    )
    tpm: int | None = _call_setting(
        help="maximum tokens per minute", metavar="N", number=COUNT, policy="tokens_per_minute"
    )
    budget_calls: int | None = _call_setting(
        help="stop after N calls", metavar="N", number=COUNT, policy="max_calls"
    )
    budget_tokens: int | None = _call_setting(
        help="stop after N tokens", metavar="N", number=COUNT, policy="max_tokens"
    )
    budget_cost: float | None = _call_setting(
        help="stop at this cost (needs --price-input and --price-output)",
        metavar="USD",
        number=PRICE,
        policy="max_cost",
    )
    breaker: int | None = _call_setting(
        help="stop after N consecutive failed samples", metavar="N", number=COUNT, policy="breaker_after"
    )
    address: str | None = _call_setting(
        help="address of the Ray cluster (auto, ray://host:10001)", metavar="HOST"
    )

    # Settings of this group are the options that an endpoint system is loaded with.
    # Stored is the name of the variable, never the key.
    api_key_env: str | None = _endpoint_setting(help="environment variable with the API key", metavar="NAME")
    prompt: str | None = _endpoint_setting(
        help="openai: prompt file, with {{material}} in it", metavar="FILE", identifies=True, is_path=True
    )
    plain_http: bool | None = _endpoint_setting(
        help="allow plain HTTP to remote hosts (questions and keys are sent unencrypted)"
    )
    http: dict[str, str] | None = _endpoint_setting(flag=False)
    headers: dict[str, str] | None = _setting(flag=False, group=ENDPOINT, stored=True)
    request: dict[str, Any] | None = _setting(
        flag=False, group=ENDPOINT, stored=True, value_types=("number", "string", "null")
    )

    stop_when: str | None = _stopping_setting(
        help="stop early once the result is statistically decided (samples run in random order)",
        choices=("clear",),
    )
    min: list[str] | str | None = _stopping_setting(
        help="goal: the metric is at least this value", metavar="METRIC=VALUE"
    )
    max: list[str] | str | None = _stopping_setting(
        help="goal: the metric is at most this value", metavar="METRIC=VALUE"
    )
    baseline: str | None = _stopping_setting(
        help="goal: better than this run, compared sample by sample (id or path)", metavar="RUN"
    )
    stop_on: list[str] | str | None = _stopping_setting(
        help="with --baseline: the metric that decides", metavar="METRIC"
    )
    margin: list[str] | str | None = _stopping_setting(
        help="with --baseline: goal is no worse than by this much", metavar="[METRIC=]SIZE"
    )
    alpha: float | None = _stopping_setting(help="significance level (default: 0.05)", number=SHARE)

    spans: str | None = _telemetry_setting(
        help="write the spans of the run to this file (OTLP JSON lines) or send them to this URL (OTLP/HTTP)",
        metavar="FILE|URL",
    )
    spans_content: bool = _telemetry_setting(
        False, help="include questions, answers and documents in the spans"
    )

    seed: int = _setting(
        0,
        help="random seed (default: 0)",
        metavar="N",
        number=AMOUNT,
        identifies=True,
        shared=True,
        experiment="all",
    )
    price_input: float | None = _setting(
        help=_price_help("input"),
        metavar="USD",
        number=PRICE,
        stored=True,
        shared=True,
        experiment="variant",
        policy="price_input",
    )
    price_output: float | None = _setting(
        help=_price_help("output"),
        metavar="USD",
        number=PRICE,
        stored=True,
        shared=True,
        experiment="variant",
        policy="price_output",
    )
    min_coverage: float | None = _setting(
        help=f"exit with code 3 if a smaller share of samples succeeded (default: {MIN_COVERAGE:g})",
        metavar="SHARE",
        number=COVERAGE,
        stored=True,
        shared=True,
    )
    id: str | None = _setting(
        help="id of the run (default: made from system, dataset and time)",
        metavar="ID",
        everyday=True,
        shared=True,
    )
    force: bool = _setting(
        False, help="replace a run with the same id", everyday=True, in_plan=False, shared=True
    )
    out: str = _setting(
        DEFAULT_OUT,
        help=f"folder for stored runs (default: {DEFAULT_OUT})",
        metavar="DIR",
        everyday=True,
        shared=True,
        experiment="all",
    )
    full: bool = _setting(
        False, help="print the table of all results, not only a summary", everyday=True, in_plan=False
    )
    json: bool = _setting(
        False, help="print one JSON document instead of text", everyday=True, in_plan=False, shared=True
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

    def call_policy(self) -> CallPolicy:
        """Return how calls that fail are handled, and how many may be made."""
        if self.budget_cost is not None and self.price_input is None and self.price_output is None:
            raise PlanError("--budget-cost needs --price-input and --price-output.")
        values = {one.policy: getattr(self, one.name) for one in SETTINGS.values() if one.policy}
        values = {name: value for name, value in values.items() if value is not None}
        if self.longest_wait is not None:
            values["longest_retry_after"] = self.longest_wait
        if self.ends_processes:
            # The executor has it then. With two clocks, chance would decide which of them ends the call.
            values.pop("timeout", None)
        usual = ENDPOINT_RETRIES if is_endpoint(self.system or "") else 0
        retries = usual if self.retries is None else self.retries
        return CallPolicy(**values, retries=retries, retry_on=_retried(self.retry_on, retries))

    @property
    def ends_processes(self) -> bool:
        """Return whether a call that times out ends with its process; else the call policy has the clock.

        A process that is ended cannot retry, so this holds only without retries.
        """
        return self.executor == "processes" and not self.retries


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


def _kind(hint: Any) -> PlanKind:
    """Return how a plan file writes a value of this type."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds = {get_origin(option) or option for option in options}
    if list in kinds:
        return "names"
    by_type: dict[Any, PlanKind] = {
        bool: "switch",
        int: "whole number",
        float: "number",
        dict: "mapping",
        str: "text",
    }
    return next(kind for type_, kind in by_type.items() if type_ in kinds)


def _described() -> dict[str, Setting]:
    hints = get_type_hints(RunSettings)
    described = {}
    for one in fields(RunSettings):
        facts = one.metadata.get("setting")
        if facts is not None:
            described[one.name] = replace(facts, name=one.name, kind=_kind(hints[one.name]))
    return described


SETTINGS: dict[str, Setting] = _described()
PLAN_KEYS: dict[str, Setting] = {name: one for name, one in SETTINGS.items() if one.in_plan}
# Budgets end a run when they are spent: the setting's name, and the field of the call policy.
BUDGETS: dict[str, str] = {name: one.policy for name, one in SETTINGS.items() if name.startswith("budget_")}
