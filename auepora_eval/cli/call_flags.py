"""The flags of `auepora run` that say how the system is called."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .numbers import at_least, price, seconds

if TYPE_CHECKING:
    from ..core.executor import Executor
    from ..core.policy import CallPolicy
    from ..core.rag_interface import RAGSystemProtocol
    from ..core.types import EvaluationSample

# The settings that are stored with a run; the name of a variable is no secret.
CALL_SETTINGS: tuple[str, ...] = (
    "retries",
    "retry_on",
    "rpm",
    "tpm",
    "budget_calls",
    "budget_tokens",
    "budget_cost",
    "breaker",
    "adaptive",
    "warm_up",
    "longest_wait",
    "min_coverage",
    "api_key_env",
    "headers",
    "plain_http",
    "prompt",
    "http",
    "request",
    "address",
)
_ENDPOINT_RETRIES = 4  # what another machine answers may fail for a moment; Python code fails for a reason


def add_call_flags(parser: ArgumentParser) -> None:
    """Retries, limits, budgets, and what an endpoint needs."""
    group = parser.add_argument_group("calls that fail, and limits")
    whole, above = at_least(0), at_least(1)
    group.add_argument(
        "--retries", type=whole, metavar="N", help="further attempts after a 429, 5xx, timeout (endpoints: 4)"
    )
    group.add_argument(
        "--retry-on", metavar="NAME,...", help="further errors to try again, by the names of their classes"
    )
    group.add_argument(
        "--longest-wait",
        type=seconds,
        metavar="S",
        help="the longest pause before another attempt (30; where the server asks for one: 120)",
    )
    group.add_argument("--rpm", type=above, metavar="N", help="the most requests a minute")
    group.add_argument("--tpm", type=above, metavar="N", help="the most tokens a minute")
    group.add_argument("--budget-calls", type=above, metavar="N", help="stop after so many calls")
    group.add_argument("--budget-tokens", type=above, metavar="N", help="stop after so many tokens")
    group.add_argument(
        "--budget-cost", type=price, metavar="USD", help="stop when so much is spent (--price-input/-output)"
    )
    group.add_argument("--breaker", type=above, metavar="N", help="stop after N failed samples in a row")
    group.add_argument(
        "--adaptive",
        action="store_true",
        default=None,
        help="fewer calls at a time while the endpoint pushes back (429, timeouts), then more again "
        "(executors threads, async)",
    )
    group.add_argument("--warm-up", type=whole, metavar="N", help="calls beforehand that count for nothing")
    group.add_argument("--address", metavar="HOST", help="executor ray: the cluster (auto, ray://host:10001)")
    group = parser.add_argument_group("endpoints (--system openai:URL#MODEL, --system http:URL)")
    group.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the key")
    group.add_argument("--prompt", metavar="FILE", help="openai: the prompt, a file with {{material}} in it")
    group.add_argument(
        "--plain-http",
        action="store_true",
        default=None,
        help="let questions and keys go unencrypted to another host",
    )


def add_scoring_flags(parser: ArgumentParser) -> None:
    """Where scores are computed, for commands that call no system."""
    group = parser.add_argument_group("scoring on more than one processor")
    group.add_argument(
        "--executor", choices=("serial", "processes", "ray"), help="who scores (processes if N > 1)"
    )
    group.add_argument(
        "--concurrency",
        type=at_least(1),
        metavar="N",
        help="workers (as many as this machine has processors)",
    )
    group.add_argument("--address", metavar="HOST", help="executor ray: the cluster (auto, ray://host:10001)")


def scoring_executor(args: Namespace) -> Executor | None:
    """The executor that the flags name; None if none is asked for."""
    name = args.executor or ("processes" if (args.concurrency or 1) > 1 else "serial")
    workers = args.concurrency or os.cpu_count() or 1
    executor = call_executor({"executor": name, "concurrency": workers, "address": args.address})
    return None if name == "serial" else executor


def named_system(settings: Mapping[str, Any]) -> RAGSystemProtocol:
    """The system that the settings name."""
    from ..errors import PlanError
    from ..execution.systems import is_endpoint, load_system

    name = settings["system"]
    options = ("api_key_env", "plain_http", "prompt", "headers", "request")
    given = {option: settings.get(option) for option in options}
    given["fields"] = settings.get("http")
    given = {option: value for option, value in given.items() if value}
    if not is_endpoint(name):
        keys = {"fields": "http:", "headers": "headers:", "request": "request:"}
        for option in given:
            flag = keys.get(option, f"--{option.replace('_', '-')}")
            raise PlanError(f"{flag} is for an endpoint: --system openai:URL#MODEL or http:URL.")
        return load_system(name)
    return load_system(name, {**given, "timeout": settings.get("timeout")})


def as_measured(system: str, examples: Mapping[str, EvaluationSample]) -> list[EvaluationSample]:
    """The dataset's examples, with what this system can be measured by.

    A chat model retrieves nothing: where no sample gives it documents, gold ones are no measure of it.
    """
    samples = list(examples.values())
    if not system.startswith("openai:") or "candidate_docs" in examples:
        return samples
    return [replace(sample, relevant_docs=None) for sample in samples]


def call_policy(settings: Mapping[str, Any]) -> CallPolicy:
    """What is done about calls that fail, and how many may be made."""
    from ..core.policy import CallPolicy
    from ..errors import DataError
    from ..execution.systems import is_endpoint

    if settings.get("budget_cost") is not None and not any(
        settings.get(name) is not None for name in ("price_input", "price_output")
    ):
        raise DataError(
            "--budget-cost",
            "there are no prices to reckon with.",
            fix="Give --price-input and --price-output.",
        )
    if settings.get("adaptive") and settings.get("executor") in ("processes", "ray"):
        raise DataError(
            "--adaptive",
            f"the workers of --executor {settings['executor']} do not hear of each other's 429.",
            fix="Use --executor threads or async, or leave --adaptive out and choose a fixed --concurrency.",
        )
    usual = _ENDPOINT_RETRIES if is_endpoint(settings["system"]) else 0
    retries = settings.get("retries")
    longest = settings.get("longest_wait")
    return CallPolicy(
        **({} if longest is None else {"longest_wait": longest, "longest_retry_after": longest}),
        timeout=None if _ends_processes(settings) else settings.get("timeout"),
        retries=usual if retries is None else retries,
        retry_on=_retried(settings.get("retry_on"), usual if retries is None else retries),
        requests_per_minute=settings.get("rpm"),
        tokens_per_minute=settings.get("tpm"),
        max_calls=settings.get("budget_calls"),
        max_tokens=settings.get("budget_tokens"),
        max_cost=settings.get("budget_cost"),
        price_input=settings.get("price_input"),
        price_output=settings.get("price_output"),
        breaker_after=settings.get("breaker"),
        adaptive=settings["concurrency"] if settings.get("adaptive") else None,
    )


def _retried(named: str | list[str] | None, retries: int) -> tuple[str, ...]:
    """The kinds of failure that may pass, and the classes of errors that somebody says may pass too."""
    from ..core.policy import PASSING
    from ..errors import DataError

    if named is None:
        return PASSING
    names = [name.strip() for name in (named.split(",") if isinstance(named, str) else named)]
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise DataError(
                "--retry-on", f"{name!r:.60} is no name of an error.", fix="Write, for example, ModelLoading."
            )
    if not retries:
        raise DataError("--retry-on", "nothing is tried again.", fix="Give --retries N too.")
    return (*PASSING, *(name.rpartition(".")[2] for name in names))


def call_executor(settings: Mapping[str, Any]) -> Executor:
    """The executor that the settings name."""
    from ..errors import PlanError
    from ..execution.local import EXECUTORS
    from ..execution.warm_up import WarmedUp

    options: dict[str, Any] = {"concurrency": settings["concurrency"]}
    if settings.get("address"):
        if settings["executor"] != "ray":
            raise PlanError("--address is for a cluster: add --executor ray, or leave it out.")
        options["address"] = settings["address"]
    if _ends_processes(settings):
        options["timeout"] = settings.get("timeout")
    executor = EXECUTORS.get(settings["executor"])(**options)
    return WarmedUp(executor, settings["warm_up"]) if settings.get("warm_up") else executor


def _ends_processes(settings: Mapping[str, Any]) -> bool:
    """A hung call ends with its process, where that makes one attempt only; else the policy has the clock."""
    return settings.get("executor") == "processes" and not settings.get("retries")
