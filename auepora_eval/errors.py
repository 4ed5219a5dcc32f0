"""Every error that the library raises on purpose.

    AueporaError
    ├── DataError               a file or a record is not what it should be      (ValueError)
    │   └── NotFoundError       what was asked for by name is not stored          (FileNotFoundError)
    ├── PlanError               the plan does not fit the dataset or the system   (ValueError)
    ├── UnknownNameError        no metric, format or executor of that name        (ValueError)
    ├── ScoringError            this one sample cannot be scored                  (ValueError)
    ├── RunStoppedError         a run ended early; what is finished is kept       (RuntimeError)
    │   └── TooManyFailuresError    the system failed more often than was allowed
    ├── WorkerLostError         a process died while it worked on a sample        (RuntimeError)
    ├── CallError               an endpoint did not answer, or not as it should   (RuntimeError)
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


class NotFoundError(DataError, FileNotFoundError):
    """Something asked for by its name that is not stored: a run, a dataset, a ground truth."""


class PlanError(AueporaError, ValueError):
    """A plan that cannot be carried out on this dataset."""


class UnknownNameError(AueporaError, ValueError):
    """A name that nothing is registered under."""


class ScoringError(AueporaError, ValueError):
    """Raised by a metric for a sample that it cannot score; recorded, and the run goes on."""


class RunStoppedError(AueporaError, RuntimeError):
    """A run that ended before its last sample: the budget is spent, or the endpoint is down."""


class WorkerLostError(AueporaError, RuntimeError):
    """A worker process died on this sample, every time that it was tried."""


class TooManyFailuresError(RunStoppedError):
    """The system failed on more samples than the caller allowed."""


class CallError(AueporaError, RuntimeError):
    """A call to an endpoint that failed for good: its kind, the last status, how many attempts.

    `retry_after` is the pause in seconds that the server asked for, if it did; `lasting` says that asking
    again would not help.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        status: int | None = None,
        attempts: int = 1,
        retry_after: float | None = None,
        lasting: bool = False,
    ) -> None:
        self.kind, self.status, self.attempts = kind, status, attempts
        self.retry_after, self.lasting = retry_after, lasting
        super().__init__(message)


class StorageError(AueporaError, OSError):
    """A run that cannot be written, read or found."""


class MissingDependencyError(AueporaError, ImportError):
    """An optional package that this feature needs; the message names the extra to install."""
