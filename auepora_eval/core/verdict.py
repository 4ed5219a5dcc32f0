"""The answer to "is it better?", used by every command that decides."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What two measurements of one quantity show, with the direction of "better" taken into account.

    BETTER and WORSE are significant differences. NO_WORSE means that a loss of the margin is ruled out, SAME
    that no sample differs, and INCONCLUSIVE that the difference may be chance.
    """

    BETTER = "better"
    WORSE = "worse"
    NO_WORSE = "no worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"

    @property
    def is_significant(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self in (Verdict.BETTER, Verdict.WORSE)

    @classmethod
    def of_gain(cls, gain: float) -> Verdict:
        """Return the verdict on a significant gain: positive is better."""
        return cls.BETTER if gain > 0 else cls.WORSE
