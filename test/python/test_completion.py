# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What shells make of the scripts of 'kas completion'."""

import argparse
import shutil
import subprocess

import pytest

from kas import cli
from kas._completion import SHELLS, write_completion


def complete(words, folder="."):
    """What bash completes the last word to; the cursor is at its end."""
    script = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_kas
printf '%s\\n' "${COMPREPLY[@]}"
"""
    command = ["bash", "--norc", "-c", script, "bash", str(folder / "kas.bash"), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


@pytest.fixture
def bash(tmp_path, capsys):
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "kas.bash").write_text(capsys.readouterr().out)
    return lambda *words: complete(words, tmp_path)


def test_commands(bash):
    assert bash("kas", "")[:2] == ["-h", "--help"] and set(bash("kas", "")[2:]) == set(cli._HELP)
    assert bash("kas", "s") == ["search", "show"]
    assert bash("kas", "-") == ["-h", "--help"]
    assert bash("kas", "none") == []


def test_options(bash):
    assert bash("kas", "search", "--alg") == ["--algorithm"]
    assert bash("kas", "export", "--fo") == ["--format"]
    assert bash("kas", "show", "conv2d", "--s") == ["--sort"]
    assert bash("kas", "report", "a.db", "--") == ["--help", "--layers", "--output", "--live", "--port", "--json"]
    # An option of another command is none of this.
    assert bash("kas", "doctor", "--alg") == []


def test_values(bash):
    assert bash("kas", "export", "x.db", "--format", "") == [
        "mlir",
        "pytorch",
        "loops",
        "graph",
        "onnx",
        "c",
        "compiled",
    ]
    assert bash("kas", "search", "--algorithm", "e") == ["exhaustive", "evolution"]
    # Bash takes the sign for a word of its own.
    assert bash("kas", "search", "--algorithm", "=", "m") == ["mcts"]
    assert bash("kas", "search", "--optimizer", "=") == ["adamw", "sgd"]
    assert bash("kas", "completion", "") == list(SHELLS)
    # No words: bash itself completes names of files.
    assert bash("kas", "search", "--database", "--a") == bash("kas", "export", "x") == []


def test_all_options_are_there(bash):
    """Of the parser, not of a list."""
    parser = cli.make_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        expected = [option for action in command._actions for option in action.option_strings]
        assert bash("kas", name, "-") == expected
        for shell in ("zsh", "fish"):
            text = write_completion(parser, shell)
            for option in expected:
                assert (
                    f" -l {option[2:]} " if option.startswith("--") else f" -s {option[1:]} "
                ) in text or shell == "zsh"
                assert f"'{option}" in text or f"'*{option}" in text or shell == "fish"


def test_texts_are_quoted(tmp_path):
    parser = argparse.ArgumentParser(prog="kas")
    command = parser.add_subparsers().add_parser("run", help="it's $(touch bad) [here]: 100 %% \\\\ `done`")
    command.add_argument("--what", help="it's $(touch bad) [here]: \\\\ `done`", choices=("a", "b"))
    for shell in SHELLS:
        (tmp_path / f"kas.{shell}").write_text(write_completion(parser, shell))
    assert complete(("kas", "run", "--what", ""), tmp_path) == ["a", "b"]
    subprocess.run(["bash", "-c", f"cd {tmp_path} && source kas.bash"], check=True)
    for shell, options in (("zsh", ["-f", "-n"]), ("fish", ["--no-config", "-n"])):
        if shutil.which(shell):
            subprocess.run([shell, *options, str(tmp_path / f"kas.{shell}")], check=True)
    assert not (tmp_path / "bad").exists()


def test_values_in_fish(bash, tmp_path):
    """What bash offers, and fish where it is installed."""
    offered = [set(bash("kas", "search", "--algorithm", ""))]
    (tmp_path / "kas.fish").write_text(write_completion(cli.make_parser(), "fish"))
    if shutil.which("fish"):
        command = f"source {tmp_path}/kas.fish; complete -C 'kas search --algorithm '"
        done = subprocess.run(["fish", "--no-config", "-c", command], check=True, capture_output=True, text=True)
        offered.append({line.split("\t")[0] for line in done.stdout.splitlines()})
    assert all(values >= {"random", "mcts"} for values in offered)


def test_an_unknown_shell():
    with pytest.raises(SystemExit) as ended:
        cli.main(["completion", "tcsh"])
    assert ended.value.code == 2
