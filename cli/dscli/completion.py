"""dscli completion: a script for bash or zsh that completes commands, options and worker flags.

It is made from the parsers themselves, so it cannot miss an option. The shell runs no
Python at TAB.
"""

import argparse
from typing import Dict, List

from . import package
from .console import CommandError

SUMMARY = "print a completion script for bash or zsh"
EXAMPLES = """\
examples:
  bash, this shell:      source <(dscli completion bash)
  bash, every shell:     dscli completion bash > ~/.local/share/bash-completion/completions/dscli
  zsh, every shell:      dscli completion zsh > ~/.zfunc/_dscli
                         (and fpath+=~/.zfunc before compinit in ~/.zshrc)"""

_BASH = """\
# bash completion of dscli, printed by: dscli completion bash
_dscli() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words='' kind=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{commands} --help --version' -- "$word")
    return
  fi
  local i
  if [[ ${{COMP_WORDS[1]}} == start ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      if [[ ${{COMP_WORDS[i]}} == -w || ${{COMP_WORDS[i]}} == --worker_args ]]; then
        [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W '{flags}' -- "$word")
        return
      fi
    done
  fi
  case ${{COMP_WORDS[1]}} in
{cases}  esac
  case $kind in
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    value) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
  esac
}}
complete -F _dscli dscli
"""
_BASH_CASE = """\
    {command})
      words='{words}'
      case $before in
{options}      esac
      {positional}
      ;;
"""
_ZSH = """\
#compdef dscli
# zsh completion of dscli, printed by: dscli completion zsh
_dscli() {{
  local -a commands=({commands})
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{cases}  esac
}}
# The first call of an autoloaded file, or a file that was sourced.
if [[ $funcstack[1] == _dscli ]]; then
  _dscli "$@"
else
  compdef _dscli dscli
fi
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh"))


def run(args: argparse.Namespace) -> int:
    from .main import parsers  # main imports this module

    _, commands = parsers()
    print(bash_script(commands) if args.shell == "bash" else zsh_script(commands), end="")
    return 0


def bash_script(commands: Dict[str, argparse.ArgumentParser]) -> str:
    cases = ""
    for name, parser in commands.items():
        words, options, positional = [], "", ""
        for action in parser._actions:  # argparse has no public way to list them
            if not action.option_strings:
                positional = _bash_positional(action)
                continue
            words += action.option_strings
            kind = _kind(action)
            if kind:
                options += f"        {'|'.join(action.option_strings)}) kind='{kind}' ;;\n"
        cases += _BASH_CASE.format(command=name, words=" ".join(words), options=options,
                                   positional=positional or ":")
    cases += _BASH_CASE.format(command="help", words=" ".join(commands), options="", positional=":")
    return _BASH.format(commands=" ".join([*commands, "help"]),
                        flags=" ".join(_worker_flags()),
                        cases=cases)


def zsh_script(commands: Dict[str, argparse.ArgumentParser]) -> str:
    cases = ""
    for command, parser in commands.items():
        specs = []
        for action in parser._actions:
            kind = _kind(action)
            completer = {"file": "_files", "folder": "_files -/", "value": " "}.get(kind, "")
            if not action.option_strings:
                completer = f"({' '.join(action.choices)})" if action.choices else "_files"
                specs.append(_zsh_quoted(f"1:{action.dest}:{completer}"))
            elif action.nargs == argparse.REMAINDER:
                flags = " ".join(_worker_flags())
                specs += [_zsh_quoted(f"{option}[{_zsh_text(action.help)}]:*:flag:({flags})")
                          for option in action.option_strings]
            else:
                excluded = " ".join(action.option_strings)
                name = _zsh_text(str(action.metavar or action.dest))
                value = f":{name}:{completer}" if kind else ""
                specs += [_zsh_quoted(f"({excluded}){option}[{_zsh_text(action.help)}]{value}")
                          for option in action.option_strings]
        cases += f"    {command}) _arguments {' '.join(specs)} ;;\n"
    cases += f"    help) _values command {' '.join(commands)} ;;\n"
    names = " ".join(
        _zsh_quoted(f"{name}:{parser.description}") for name, parser in commands.items())
    return _ZSH.format(commands=names + " 'help:Show help.'", cases=cases)


def _kind(action: argparse.Action) -> str:
    """What follows the option: "file", "folder", another "value", or "" for a switch."""
    if action.nargs == 0 or action.nargs == argparse.REMAINDER:
        return ""
    return {"FILE": "file", "DIR": "folder"}.get(str(action.metavar), "value")


def _bash_positional(action: argparse.Action) -> str:
    if action.choices:
        return f"[[ $word == -* || -n $kind ]] || words='{' '.join(action.choices)}'"
    return "[[ $word == -* || -n $kind ]] || kind='file'"


def _worker_flags() -> List[str]:
    try:
        return [f"--{name}" for name in package.shipped_defaults()]
    except CommandError:  # completion of the rest is still of use
        return []


def _zsh_text(text: "str | None") -> str:
    return (text or "").replace("[", "(").replace("]", ")").replace(":", " -")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
