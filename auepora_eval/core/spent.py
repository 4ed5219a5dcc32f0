"""What calls cost, by what their outputs tell: the sums that budgets are held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .policy import CallPolicy
from .resources import told_count
from .types import SystemOutputs

_NOTHING = "tells no tokens"


class UncountedUsageWarning(UserWarning):
    """A limit on tokens or money is set, and calls do not tell what they used."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one output tells of its tokens; None where it does not."""

    sent: float | None = None
    written: float | None = None
    total: float | None = None

    @classmethod
    def of(cls, output: SystemOutputs) -> Tokens:
        """The counts in an output's `extra`, or in its response's metadata."""
        if not output.extra and not output.response.metadata:
            return cls()
        names = ("input_tokens", "output_tokens", "total_tokens")
        return cls(*(told_count(output, name) for name in names))

    def known(self) -> tuple[float, str]:
        """The tokens that are told, and what is lacking, in words."""
        parts = (self.sent or 0) + (self.written or 0)
        if self.total is not None:  # of some servers only the total counts what a model thought
            return max(self.total, parts), ""
        if self.sent is not None and self.written is not None:
            return parts, ""
        if self.sent is not None:
            return self.sent, "tells only input_tokens"
        return (0, _NOTHING) if self.written is None else (self.written, "tells only output_tokens")

    def priced(self, policy: CallPolicy) -> tuple[float, float, str]:
        """The tokens to pay for at either price, and what is lacking, in words."""
        sent, written, price = self.sent, self.written, policy.price_input
        if sent is None and written is None:
            if self.total is None:
                return 0, 0, _NOTHING
            if price is None or price != policy.price_output:
                return 0, 0, "tells only total_tokens, and the two prices differ"
            return self.total, 0, ""
        if self.total is not None:  # the one that is not told is the rest
            sent = max(0, self.total - (written or 0)) if sent is None else sent
            written = max(0, self.total - sent) if written is None else written
        lacking = _lacking("input_tokens", sent, price)
        return sent or 0, written or 0, lacking or _lacking("output_tokens", written, policy.price_output)


def _lacking(name: str, count: float | None, price: float | None) -> str:
    if count is None:
        return f"does not tell {name}" if price else ""
    return f"has {name}, which have no price" if count and price is None else ""


@dataclass
class Spent:
    """Calls and tokens, as far as outputs tell them, and what those cost."""

    calls: int = 0
    tokens: float = 0
    input_tokens: float = 0  # to pay for at either price
    output_tokens: float = 0
    answers: int = 0
    telling: int = 0  # answers that tell of any tokens
    uncounted: int = 0  # answers that a limit of the policy could not count in full
    lacking: str = ""  # of the first of those, in words

    def add(self, output: SystemOutputs, policy: CallPolicy) -> float:
        """Count an answer; the tokens that it tells."""
        told = Tokens.of(output)
        tokens, lacks_tokens = told.known()
        sent, written, lacks_cost = told.priced(policy)
        self.tokens += tokens
        self.input_tokens += sent
        self.output_tokens += written
        self.answers += 1
        self.telling += lacks_tokens != _NOTHING
        lacking = lacks_tokens if policy.max_tokens is not None or policy.tokens_per_minute else ""
        if policy.max_cost is not None:
            lacking = lacking or lacks_cost
        if lacking:
            self.uncounted += 1
            self.lacking = self.lacking or lacking
        return tokens

    def cost(self, policy: CallPolicy) -> float:
        """US dollars, at the policy's prices of 1,000 tokens."""
        sent = self.input_tokens * (policy.price_input or 0.0)
        return (sent + self.output_tokens * (policy.price_output or 0.0)) / 1000

    def sums(self) -> dict[str, float]:
        """What is counted, by its names."""
        return {name: getattr(self, name) for name in ("calls", "tokens", "input_tokens", "output_tokens")}

    def less(self, before: Spent) -> Spent:
        """What was spent since then."""
        earlier = before.sums()
        return Spent(**{name: value - earlier[name] for name, value in self.sums().items()})  # type: ignore[arg-type]

    def add_sums(self, sums: Mapping[str, object]) -> None:
        """Count what was counted elsewhere; what is no number counts for nothing."""
        for name in self.sums():
            value = sums.get(name)
            if isinstance(value, int | float) and 0 <= value < float("inf"):
                setattr(self, name, getattr(self, name) + value)

    def in_words(self, policy: CallPolicy) -> str:
        """That a limit cannot be held, at the first answer that does not tell enough."""
        how = "" if self.lacking == _NOTHING else " exactly"
        return (
            f"an answer {self.lacking}: {_limits(policy)} cannot be held{how}. The run goes on; a limit on "
            "calls (--budget-calls, max_calls) holds in any case."
        )

    def summary(self, policy: CallPolicy) -> str:
        """The same at the end: of how many answers."""
        number = f"{self.uncounted:,} of {self.answers:,} answers"
        return f"{number} could not be counted in full for {_limits(policy)}."


def _limits(policy: CallPolicy) -> str:
    """The limits that need to know what a call used, by their flags and names."""
    caps = {
        "--budget-tokens (max_tokens)": policy.max_tokens,
        "--budget-cost (max_cost)": policy.max_cost,
        "--tpm (tokens_per_minute)": policy.tokens_per_minute,
    }
    return " and ".join(name for name, value in caps.items() if value is not None)
