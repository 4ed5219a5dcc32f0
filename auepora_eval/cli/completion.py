"""Print a script that completes commands and flags with Tab.

Load it in the start-up file of the shell: eval "$(auepora completion bash)" in
~/.bashrc, the same with zsh in ~/.zshrc, and auepora completion fish | source in
~/.config/fish/config.fish.

  auepora completion bash
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from . import echo

_BASH = """_auepora() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" first="${{COMP_WORDS[1]}}" words="{commands}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "$first ${{COMP_WORDS[2]}}" in
{cases}
      *) words="" ;;
    esac
  fi
  # Anything that is not a flag may be a file: the shell completes it.
  case "$words" in -*) [ "${{word#-}}" = "$word" ] && words="" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _auepora auepora"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def run(args: Namespace) -> int:
    echo.say(_fish() if args.shell == "fish" else f"{_ZSH * (args.shell == 'zsh')}{_bash()}")
    return 0


def _flags() -> dict[str, dict[str, str]]:
    """Return the flags of each command, with their help."""
    from .main import COMMANDS, command_parser, load_command

    return {
        name: {
            action.option_strings[-1]: (action.help or "").replace("%%", "%")
            for action in command_parser(name, load_command(name))._actions
            if action.option_strings
        }
        for name in COMMANDS
    }


def _bash() -> str:
    flags = _flags()
    families = _families(flags)
    cases = [f'      "{name}"*) words="{" ".join(known)}" ;;' for name, known in flags.items() if " " in name]
    cases += [f'      "{name} "*) words="{" ".join(known)}" ;;' for name, known in flags.items()]
    cases += [f'      "{first} "*) words="{" ".join(rest)}" ;;' for first, rest in families.items()]
    commands = " ".join(dict.fromkeys(name.split()[0] for name in flags))
    return _BASH.format(commands=commands, cases="\n".join(cases))


def _fish() -> str:
    from .main import summary_of

    lines = []
    flags = _flags()
    families = _families(flags)
    for name, known in flags.items():
        first, _, second = name.partition(" ")
        if second:
            place = f"__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from "
            place += " ".join(families[first])
        else:
            place = "__fish_use_subcommand"
        lines.append(_fish_line(place, f"-f -a {second or first}", summary_of(name)))
        place = " and ".join(f"__fish_seen_subcommand_from {word};" for word in name.split())
        lines += [_fish_line(place.rstrip(";"), f"-l {flag[2:]}", text) for flag, text in known.items()]
    lines += [_fish_line("__fish_use_subcommand", f"-f -a {first}", "") for first in families]
    return "\n".join(lines)


def _fish_line(condition: str, what: str, about: str) -> str:
    text = about.replace("\\", "\\\\").replace("'", "\\'")
    return f"complete -c auepora -n '{condition}' {what} -d '{text}'"


def _families(names: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for first, _, second in (name.partition(" ") for name in names):
        if second:
            families.setdefault(first, []).append(second)
    return families
