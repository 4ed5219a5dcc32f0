"""Every error that the library raises on purpose.

Each is also the builtin that a caller would expect, so `except ValueError` keeps working.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

_NAME = "auepora-eval"  # of the package
# Options that are compared with a misspelt name: a hostile document may have a million keys.
_MAX_OPTIONS = 1000
# Names are cut to this length before they are compared: the comparison is quadratic in it.
_MAX_NAME = 80


class AueporaError(Exception):
    """The root of our errors: catch it to catch them all."""


class DataError(AueporaError, ValueError):
    """Input that cannot be used: where it is, what is wrong with it, what to do about it."""

    def __init__(self, where: str, what: str, *, fix: str = "") -> None:
        where = where.removesuffix(": $")  # the top level of a document has no name
        self.where, self.what, self.fix = where, what, fix
        place = f"{where}:" if where else ""
        super().__init__(" ".join(part for part in (place, what, fix) if part))


class NotFoundError(DataError, FileNotFoundError):
    """Something asked for by its name that is not stored: a run, a dataset, a ground truth."""


class ArgumentError(AueporaError, TypeError):
    """An argument of the wrong type; the message names the argument and the accepted forms."""


class PlanError(AueporaError, ValueError):
    """A plan that cannot be carried out on this dataset."""


class UnknownNameError(AueporaError, ValueError):
    """A name that nothing is registered under."""


class ScoringError(AueporaError, ValueError):
    """Raised by a metric for a sample that it cannot score; recorded, and the run goes on."""


class BadOutputError(ScoringError):
    """Raised by a metric for an output that its system made unusable: in a comparison it is the worst."""


class RunStoppedError(AueporaError, RuntimeError):
    """A run that ended before its last sample: the budget is spent, or the endpoint is down."""


class InterruptedRunError(RunStoppedError):
    """A stop was requested, by Ctrl-C or in Python; the calls under way were finished."""


class WorkerLostError(AueporaError, RuntimeError):
    """A worker process died on this sample, every time that it was tried."""


class TooManyFailuresError(RunStoppedError):
    """The system failed on more samples than the caller allowed."""


class EvaluationError(RunStoppedError):
    """A system that answered no sample: what the first call raised, and the lines of the user's files.

    `run` is the run with all its failures, unless it was stopped before its last sample.
    """

    def __init__(self, message: str, traceback: str = "", run: Any = None) -> None:
        self.message, self.traceback, self.run = message, traceback, run
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\n{self.traceback}" if self.traceback else self.message


class AccessRefusedError(RunStoppedError):
    """An endpoint that refuses the API key, so that no call can be answered. No sample counts as failed."""


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


@dataclass(frozen=True)
class Failure:
    """Why a request has no answer: the exception's type and message, and the seconds until it failed."""

    type: str
    message: str
    seconds: float | None = None
    traceback: str = ""  # the last lines of the user's own files, if there are some

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class StorageError(AueporaError, OSError):
    """A run that cannot be written, read or found."""


class MissingDependencyError(AueporaError, ImportError):
    """An optional package that this feature needs; the message names the extra to install."""


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from where this package was installed."""
    source = installed_from()
    if source is not None:
        return f"pip install '{_NAME}[{extra}]{source.removeprefix(_NAME)}'"
    from urllib.parse import unquote, urlsplit

    direct = _direct_url()
    editable = "-e " if direct.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{unquote(urlsplit(direct['url']).path)}[{extra}]'"


def installed_from() -> str | None:
    """Return the requirement by which any machine can install this package; None if only this one can."""
    direct = _direct_url()
    if not direct:  # from an index of packages
        return _NAME
    url, vcs = direct["url"], direct.get("vcs_info")
    if url.startswith("file:"):
        return None
    return f"{_NAME} @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f"{_NAME} @ {url}"


def _direct_url() -> dict[str, Any]:
    """Return what pip recorded about the source of this package; empty if that is an index."""
    import json  # with the rest only where a package is missing, or a project is set up
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path

    try:
        stored = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # it is not installed, but runs from its folder
        return {"url": Path(__file__).resolve().parents[1].as_uri()}
    return dict(json.loads(stored)) if stored else {}


def did_you_mean(
    name: object, options: Iterable[str], otherwise: str = "", *, count: int = 1, cutoff: float = 0.6
) -> str:
    """Return "Did you mean X?" for the options nearest to a misspelt name, or `otherwise` if none is near.

    >>> did_you_mean("recal", ["recall", "precision"])
    'Did you mean recall?'
    """
    near = nearest_names(str(name)[:_MAX_NAME], tuple(islice(options, _MAX_OPTIONS)), count, cutoff)
    return f"Did you mean {' or '.join(near)}?" if near else otherwise


@lru_cache(maxsize=256)  # the same slip comes again in every record of a file
def nearest_names(name: str, options: tuple[str, ...], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the options most similar to a name, best first; none that is less similar than the cutoff."""
    import difflib  # slow to import, and only needed when something is wrong

    if not options:
        return []
    return difflib.get_close_matches(name, [option[:_MAX_NAME] for option in options], count, cutoff)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that called this library, which is what the user can change."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("auepora_eval"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def wrong_type(argument: str, accepted: str, value: object) -> ArgumentError:
    """Return the error for an argument that has none of the accepted forms."""
    # Without the address in memory, the same mistake of many calls has one message.
    shown = re.sub(r" at 0x[0-9a-fA-F]+", "", f"{value!r:.120}")
    return ArgumentError(f"{argument} must be {accepted}, not {type(value).__name__}: {shown:.80}")


def check_type(argument: str, value: object, accepted: str, *types: type) -> None:
    """Raise ArgumentError unless an argument has one of the types; True is not taken for a number."""
    if isinstance(value, bool) or not isinstance(value, types):
        raise wrong_type(argument, accepted, value)
