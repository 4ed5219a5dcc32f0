"""Every error that the library raises on purpose.

    AueporaError
    ├── DataError               a file or a record is not what it should be      (ValueError)
    ├── PlanError               the plan does not fit the dataset or the system   (ValueError)
    ├── UnknownNameError        no metric, format or executor of that name        (ValueError)
    ├── ScoringError            this one sample cannot be scored                  (ValueError)
    ├── TooManyFailuresError    the system failed more often than was allowed     (RuntimeError)
    ├── StorageError            a run cannot be written or read back              (OSError)
    └── MissingDependencyError  an optional package is not installed              (ImportError)

Each is also the builtin that a caller would expect, so `except ValueError` keeps working.
"""

from __future__ import annotations


class AueporaError(Exception):
    """The root of our errors: catch it to catch them all."""


class DataError(AueporaError, ValueError):
    """Input that cannot be used: where it is, what is wrong with it, what to do about it."""

    def __init__(self, where: str, what: str, *, fix: str = "") -> None:
        self.where, self.what, self.fix = where, what, fix
        super().__init__(" ".join(part for part in (f"{where}:", what, fix) if part))


class PlanError(AueporaError, ValueError):
    """A plan that cannot be carried out on this dataset."""


class UnknownNameError(AueporaError, ValueError):
    """A name that nothing is registered under."""


class ScoringError(AueporaError, ValueError):
    """Raised by a metric for a sample that it cannot score; recorded, and the run goes on."""


class TooManyFailuresError(AueporaError, RuntimeError):
    """The system failed on more samples than the caller allowed."""


class StorageError(AueporaError, OSError):
    """A run that cannot be written, read or found."""


class MissingDependencyError(AueporaError, ImportError):
    """An optional package that this feature needs; the message names the extra to install."""
