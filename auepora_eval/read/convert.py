"""A sample from a dict, and from any record by a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..core.types import EvaluationSample
from ..errors import AueporaError, DataError, warn_user, wrong_type
from .fields import Reading, ReadingNote, read_foreign
from .outputs import to_output

# A record to a sample, or to a pair of a sample and what the system answered; None leaves the record out.
Convert = Callable[[Any], Any]


def to_sample(thing: object, argument: str = "sample") -> EvaluationSample:
    """Return a sample from one, or from a dict with its fields under any names that are known."""
    if isinstance(thing, EvaluationSample):
        return thing
    if not isinstance(thing, Mapping):
        raise wrong_type(argument, "a sample or a dict with 'sample_id' and 'query'", thing)
    return read_foreign([thing], argument, is_table=False)[0][0]


def converted(placed: Iterable[tuple[str, Any]], convert: Convert, where: str) -> Iterator[Reading]:
    """Yield what the user's function makes of each record; DataError names the record that it fails on."""
    count = left_out = 0
    for place, record in placed:
        count += 1
        try:
            made = convert(record)
            sample, output = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
            if sample is None:
                left_out += 1
                continue
            reading = to_sample(sample, "the sample"), None if output is None else to_output(output)
        except AueporaError as error:
            raise DataError(place, f"convert: {error}.") from error
        except Exception as error:
            raise DataError(place, f"convert raised {type(error).__name__}: {error!s:.200}.") from error
        yield reading
    if left_out:
        warn_user(f"{where}: {left_out} of {count} records were left out by convert.", ReadingNote)
