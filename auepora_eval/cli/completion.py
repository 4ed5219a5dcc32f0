"""Complete commands and flags with Tab: scripts for shells, and the words that these ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

_BASH = """\
_auepora() { COMPREPLY=($(auepora --complete "${COMP_WORDS[@]:1:COMP_CWORD}")); }
complete -o bashdefault -o default -F _auepora auepora"""
# Each asks the command for the words that fit. Where none does, the shell completes files.
SCRIPTS = {
    "bash": _BASH,
    "zsh": """\
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
_auepora() {
  local -a found=(${(f)"$(auepora --complete "${(@)words[2,CURRENT]}")"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _auepora auepora""",
    "fish": """\
function _auepora
    set -l found (auepora --complete (commandline -opc)[2..] (commandline -ct))
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c auepora -f -a '(_auepora)'""",
}
# The commands that name stored runs.
_OF_RUNS = ("annotate", "compare", "diagnose", "gate", "judge", "judge-audit", "show", "view")


def completions(words: Sequence[str], commands: Iterable[str], flags: Iterable[str]) -> list[str]:
    """Return what the last word may become: the next word of a command, a flag of it, or a stored run."""
    from ..core.settings import DEFAULT_OUT  # with numpy, which no other start of the command needs

    *before, last = words or [""]
    names = [name.split() for name in commands]
    next_words = [name[len(before)] for name in names if name[: len(before)] == before and name != before]
    paths = Path(DEFAULT_OUT).glob("*.results.json") if before and before[0] in _OF_RUNS else ()
    # Runs that `diagnose` made of another one are rarely named.
    runs = sorted(path.name.removesuffix(".results.json") for path in paths if "~" not in path.name)
    options = chain(next_words, flags if last.startswith("-") else runs)
    return [option for option in dict.fromkeys(options) if option.startswith(last)]
