"""Where a call failed: the last lines of the user's own files, as a short text that failures keep."""

from __future__ import annotations

import linecache
import sysconfig
from functools import cache
from pathlib import Path
from traceback import walk_tb

MOST_FRAMES = 3
_LONGEST_LINE = 200
_PACKAGE = f"{Path(__file__).parents[1]}/"
_INSTALLED = {"site-packages", "dist-packages"}


def user_traceback(error: BaseException) -> str:
    """Return the last frames of an exception, two lines each; "" if all of them are in this library.

    Frames of installed packages and of Python itself are left out, unless there are no others.
    """
    return "\n".join(_in_words(*place) for place in _places(error)[-MOST_FRAMES:])


def user_place(error: BaseException) -> str:
    """Return the file and the line where an exception was raised; "" if that is in this library."""
    return "".join(f"{_shown(file)}, line {line}" for file, line, _ in _places(error)[-1:])


def _places(error: BaseException) -> list[tuple[str, int, str]]:
    places = [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_PACKAGE)
    ]
    own = [place for place in places if not _is_library(place[0])]
    return own or places


@cache
def _is_library(file: str) -> bool:
    standard = sysconfig.get_path("stdlib")
    return file.startswith(("<frozen ", f"{standard}/")) or not _INSTALLED.isdisjoint(Path(file).parts)


def _in_words(file: str, line: int, function: str) -> str:
    source = linecache.getline(file, line).strip()
    place = f'File "{_shown(file)}", line {line}, in {function}'
    return f"  {place[:_LONGEST_LINE]}" + (f"\n    {source[:_LONGEST_LINE]}" if source else "")


def _shown(file: str) -> str:
    """Return a path from the current folder if it is below it."""
    try:
        folder = f"{Path.cwd()}/"
    except OSError:  # the folder was removed
        return file
    return file.removeprefix(folder)
