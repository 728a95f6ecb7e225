# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts that let shells complete a command line, from the parser of the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple


class _Option(NamedTuple):
    names: Sequence[str]
    help: str
    takes_value: bool
    choices: Sequence[str]
    repeats: bool
    metavar: str
    is_number: bool


class _Command(NamedTuple):
    name: str
    help: str
    options: Sequence[_Option]
    positionals: Sequence[_Option]


def _describe_option(action: argparse.Action, formatter: argparse.HelpFormatter) -> _Option:
    text = formatter._expand_help(action) if action.help else action.dest.replace("_", " ")
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return _Option(
        action.option_strings,
        text,
        action.nargs != 0,
        [str(choice) for choice in action.choices or ()],
        isinstance(action, argparse._AppendAction),
        metavar,
        action.type in (int, float),
    )


def _describe_commands(parser: argparse.ArgumentParser) -> list[_Command]:
    """All commands of a parser, in their order."""
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
    found = []
    for name, command in subparsers.choices.items():
        described = [_describe_option(action, command._get_formatter()) for action in command._actions]
        options = [one for one in described if one.names]
        found.append(_Command(name, helps.get(name, ""), options, [one for one in described if not one.names]))
    return found


# Bash

_BASH = """# Completion of kas for bash, printed by 'kas completion bash'.
_kas() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}} command= word words=
  COMPREPLY=()
  # Bash takes '--option=value' for three words.
  if [[ $current == '=' ]]; then
    current=
  elif [[ $option == '=' ]]; then
    option=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD - 1}}"; do
    case $word in
      -*) ;;
      *) command=$word; break ;;
    esac
  done
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W '-h --help {commands}' -- "$current"))
    return
  fi
  case "$command $option" in
{values}
  esac
  case "$command $current" in
{options}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _kas kas
"""


def _write_bash(commands: Sequence[_Command]) -> str:
    values, options = [], []
    for command in commands:
        for option in command.options:
            if option.takes_value:
                patterns = " | ".join(f"'{command.name} {name}'" for name in option.names)
                # Without words the names of files.
                words = f"words='{' '.join(option.choices)}'" if option.choices else "return"
                done = "" if words == "return" else '; COMPREPLY=($(compgen -W "$words" -- "$current")); return'
                values.append(f"    {patterns}) {words}{done} ;;")
        names = " ".join(name for option in command.options for name in option.names)
        options.append(f"    '{command.name} -'*) words='{names}' ;;")
        if choices := [choice for one in command.positionals for choice in one.choices]:
            options.append(f"    '{command.name} '*) words='{' '.join(choices)}' ;;")
    return _BASH.format(
        commands=" ".join(command.name for command in commands), values="\n".join(values), options="\n".join(options)
    )


# Zsh

_ZSH = """#compdef kas
# Completion of kas for zsh, printed by 'kas completion zsh'.
_kas() {{
  local curcontext=$curcontext state line
  local -A opt_args
  _arguments -C '(- *)'{{-h,--help}}'[show the help]' '1:command:->command' '*::argument:->argument' && return
  case $state in
    command)
      local -a commands=(
{commands}
      )
      _describe command commands
      ;;
    argument)
      case $words[1] in
{arguments}
      esac
      ;;
  esac
}}
if [[ $funcstack[1] == _kas ]]; then
  _kas "$@"
else
  compdef _kas kas
fi
"""


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _complete_in_zsh(option: _Option) -> str:
    if option.choices:
        return f"({' '.join(option.choices)})"
    return " " if option.is_number else "_files"


def _write_zsh(commands: Sequence[_Command]) -> str:
    lines = []
    for command in commands:
        specs = []
        for option in command.options:
            for name in option.names:
                star = "*" if option.repeats else ""
                name = f"{name}=" if name.startswith("--") and option.takes_value else name
                value = f":{option.metavar}:{_complete_in_zsh(option)}" if option.takes_value else ""
                text = "".join(f"\\{c}" if c in "[]\\" else c for c in option.help)
                specs.append(_quote(f"{star}{name}[{text}]{value}"))
        specs += [_quote(f":{one.metavar.lower()}:{_complete_in_zsh(one)}") for one in command.positionals]
        joined = "".join(f" \\\n            {spec}" for spec in specs)
        lines.append(f"        {command.name})\n          _arguments{joined}\n          ;;")
    entries = "\n".join(f"        {_quote(f'{command.name}:{command.help}')}" for command in commands)
    return _ZSH.format(commands=entries, arguments="\n".join(lines))


# Fish


def _quote_for_fish(text: str) -> str:
    return _quote(text.replace("\\", "\\\\"))


def _write_fish(commands: Sequence[_Command]) -> str:
    return "\n".join(["# Completion of kas for fish, printed by 'kas completion fish'.", *_list_fish(commands), ""])


def _list_fish(commands: Sequence[_Command]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    none = _quote_for_fish(f"not __fish_seen_subcommand_from {names}")
    yield f"complete -c kas -n {none} -f -s h -l help -d 'show the help'"
    for command in commands:
        yield f"complete -c kas -n {none} -f -a {command.name} -d {_quote_for_fish(command.help)}"
    for command in commands:
        seen = _quote_for_fish(f"__fish_seen_subcommand_from {command.name}")
        for option in command.options:
            parts = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
            if option.choices:
                parts.append(f"-x -a {_quote_for_fish(' '.join(option.choices))}")
            elif option.takes_value:
                parts.append("-x" if option.is_number else "-r")
            yield f"complete -c kas -n {seen} {' '.join(parts)} -d {_quote_for_fish(option.help)}"
        for positional in command.positionals:
            if positional.choices:
                yield f"complete -c kas -n {seen} -f -a {_quote_for_fish(' '.join(positional.choices))}"


SHELLS: Mapping[str, Callable[[Sequence[_Command]], str]] = {
    "bash": _write_bash,
    "zsh": _write_zsh,
    "fish": _write_fish,
}
"""The shells, and what writes their scripts."""


def write_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell of `SHELLS`, for all commands and options of the parser."""
    return SHELLS[shell](_describe_commands(parser))
