"""The rules of a gate: what a run must reach, what it may lose, how much of it must have been measured.

A file of rules is YAML or JSON; every key is a flag of `auepora gate`:

    min: {recall@5: 0.8, ndcg@10: {limit: 0.6, on: bound}}
    max: {latency_stats.p95: 2000}
    margin: {recall@5: 0.02}
    no_regression: [token_f1, mrr]
    max_loss: {memory_mb.peak: 0.2}
    max_failed: 0.01
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..core.settings import POSITIVE, Number
from ..errors import DataError
from ..io.documents import read_document
from ..read.records import converted

ALL = "*"  # the name of a rule for every metric that both runs have
ABSOLUTE, RELATIVE = ("min", "max"), ("margin", "no_regression", "max_loss", "max_count_drop")
KINDS = (*ABSOLUTE, *RELATIVE, "max_failed")
_OF_THE_RUN = ("max_count_drop", "max_failed")  # rules that name no metric
_TAKE_ALL = ("margin", "no_regression")  # rules that can be for every metric

COUNT_DROP = 0.1
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Rule:
    """One demand on a run: its kind, the metric or figure it is about ("" for the run), and its limit."""

    kind: str
    name: str = ""
    limit: float | None = None
    on: str = "value"  # or "bound": the worse end of the 95% interval
    of_all: bool = False  # written out of a rule for all metrics: nobody named this one

    @property
    def title(self) -> str:
        """The rule by its kind and name: "min recall@5"."""
        return f"{self.kind} {self.name}".strip()


@dataclass(frozen=True)
class GateRules:
    """The rules of a gate; `alpha` is the chance of a false alarm over all its tests together."""

    rules: tuple[Rule, ...] = ()
    alpha: float = 0.05
    if_inconclusive: str = "stop"
    allow_uncalibrated: bool = False  # limits on values of a judge that was not compared with people

    def of(self, *kinds: str) -> list[Rule]:
        return [rule for rule in self.rules if rule.kind in kinds]

    @property
    def relative(self) -> list[Rule]:
        """The rules that need a baseline."""
        return self.of(*RELATIVE)

    def over(self, ground: GateRules) -> GateRules:
        """These rules on top of others: of two for the same thing, this one's holds."""
        own = {(rule.kind, rule.name) for rule in self.rules}
        kept = tuple(rule for rule in ground.rules if (rule.kind, rule.name) not in own)
        allowed = self.allow_uncalibrated or ground.allow_uncalibrated
        return GateRules((*kept, *self.rules), self.alpha, self.if_inconclusive, allowed)


def read_rules(path: str | Path) -> GateRules:
    """The rules of a file."""
    path = Path(path)
    return rules_of(read_document(path, max_bytes=_MAX_BYTES), path.name)


def rules_of(record: Any, where: str = "rules") -> GateRules:
    """Return the rules of a record, as a file has it; DataError if it is not one."""
    document = dict(record) if isinstance(record, Mapping) else record
    hint = "Use value or bound for `on`, and stop, pass or fail for `if_inconclusive`."
    file = converted(document, _File, where, hint=hint)
    rules = [rule for kind in KINDS for rule in _rules(kind, getattr(file, kind), file.on, where)]
    return GateRules(tuple(rules), file.alpha, file.if_inconclusive, file.allow_uncalibrated)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A file of rules. Limits are converted one by one, so that an error names the metric."""

    min: dict[str, Any] | None = None
    max: dict[str, Any] | None = None
    margin: float | dict[str, Any] | None = None
    no_regression: bool | str | list[str] | dict[str, Any] | None = None
    max_loss: dict[str, Any] | None = None
    max_count_drop: float | dict[str, Any] | None = None
    max_failed: float | dict[str, Any] | None = None
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05
    on: Literal["value", "bound"] = "value"
    if_inconclusive: Literal["stop", "pass", "fail"] = "stop"
    allow_uncalibrated: bool = False


class _Limited(msgspec.Struct, forbid_unknown_fields=True):
    """A limit with its settings."""

    limit: float | None = None
    on: Literal["value", "bound"] | None = None


_ANY = Number("a finite number", least=-1e300)
_SHARE = Number("a share from 0 to below 1, such as 0.01", most=math.nextafter(1, 0))
_RANGES = {
    "margin": POSITIVE,
    "max_loss": Number("a share of 0 or more, such as 0.1"),
    "max_count_drop": _SHARE,
    "max_failed": _SHARE,
}


def _rules(kind: str, value: Any, on: str, where: str) -> Iterator[Rule]:
    """Yield what one key says: a limit for the run, a limit for each name, a list of names."""
    if value is None or value is False:
        return
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, list):
        value = dict.fromkeys(value)
    if kind in _OF_THE_RUN or not isinstance(value, dict):
        value = {"" if kind in _OF_THE_RUN else ALL: None if value is True else value}
    for name, one in value.items():
        place = f"{where}: {kind}{f'.{name[:80]}' if name else ''}"
        entry = converted(one if isinstance(one, dict) else {"limit": one}, _Limited, place, hint=_CHOICES)
        name = ALL if name == "all" else name
        _check(kind, name, entry, place)
        yield Rule(kind, name, entry.limit, entry.on or on)


_CHOICES = "Use value or bound for `on`."


def _check(kind: str, name: str, entry: _Limited, place: str) -> None:
    """Raise DataError for what the types of a file do not exclude."""
    if name == ALL and kind not in _TAKE_ALL:
        raise DataError(place, "this rule needs the name of a metric.", fix="Name each metric.")
    if (entry.limit is None) is not (kind == "no_regression"):
        what = "there is no limit." if entry.limit is None else "this rule has no limit."
        raise DataError(place, what, fix="Write, for example, min: {recall@5: 0.8} or no_regression: [mrr].")
    limits = _RANGES.get(kind, _ANY)
    if entry.limit is not None and not limits.accepts(entry.limit):
        raise DataError(place, f"{entry.limit:g} is out of range.", fix=f"Use {limits.words}.")
