"""Complete commands and flags with Tab: scripts for shells, and the words that these ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

_BASH = """\
_auepora() { COMPREPLY=($(auepora --complete "${COMP_WORDS[@]:1:COMP_CWORD}")); }
complete -o bashdefault -o default -F _auepora auepora"""
# Each asks the command for the words that fit. Where none does, the shell completes files.
SCRIPTS = {
    "bash": _BASH,
    "zsh": f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": "complete -c auepora -a '(auepora --complete (commandline -opc)[2..] (commandline -ct))'",
}


def completions(words: Sequence[str], commands: Iterable[str], flags: Iterable[str]) -> list[str]:
    """Return what the last word may become: the next word of a command, or a flag of that before it."""
    *before, last = words or [""]
    names = [name.split() for name in commands]
    next_words = [name[len(before)] for name in names if name[: len(before)] == before and name != before]
    options = chain(next_words, flags if last.startswith("-") else ())
    return [option for option in dict.fromkeys(options) if option.startswith(last)]
