"""What a quality check found: a text to read, and the parts that a program wants."""

from __future__ import annotations

from typing import Any

SEVERITIES = ("error", "warning", "note")  # worst first


class QualityIssue(str):
    """One finding. It is its own text, so a list of findings is a list of texts.

    An error makes scores wrong or samples unusable, a warning is likely a mistake, a note is worth a look.
    """

    __slots__ = ("check", "fix", "message", "sample_id", "severity", "where")
    severity: str
    check: str
    sample_id: str
    where: str
    message: str
    fix: str

    def __new__(
        cls,
        severity: str,
        check: str,
        message: str,
        *,
        where: str = "$",
        sample_id: str = "",
        fix: str = "",
    ) -> QualityIssue:
        named = f"{where} ({sample_id})" if sample_id else where
        issue = super().__new__(cls, " ".join(part for part in (f"{named}:", message, fix) if part))
        issue.severity, issue.check, issue.message, issue.fix = severity, check, message, fix
        issue.sample_id, issue.where = sample_id, where
        return issue

    def as_record(self) -> dict[str, Any]:
        """The parts, as JSON shows them."""
        return {name: getattr(self, name) for name in ("severity", "check", "sample_id", "where")} | {
            "message": self.message,
            "fix": self.fix,
        }


def at_least(issue: QualityIssue, severity: str) -> bool:
    """Whether a finding is of this severity or a worse one."""
    return SEVERITIES.index(issue.severity) <= SEVERITIES.index(severity)
