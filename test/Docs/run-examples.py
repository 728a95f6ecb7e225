"""Runs the examples of a page and compares what they print with what the page says.

A fenced block whose first line is a comment with a file name (`// conv.mlir`) is written to that file. In a fenced
block of kind `console`, a line that starts with `$ ` is a command (a line that ends in a backslash goes on), and the
lines up to the next command are its output; `...` in them is any text, and numbers with a decimal point (times,
speeds, rounding errors) and numbers of runs may have any value. The commands run in one empty folder, with the built
tools first on the path.

usage: run-examples.py PAGE TOOLS_FOLDER EMPTY_FOLDER [--update]

With --update, the page gets the output of every command whose output differs.
"""

import os
import re
import subprocess
import sys


def blocks(text):
    """The fenced blocks as (kind, lines)."""
    kind, lines = None, []
    for line in text.splitlines():
        if kind is None and line.startswith("```"):
            kind, lines = line[3:].strip(), []
        elif kind is not None and line.startswith("```"):
            yield kind, lines
            kind = None
        elif kind is not None:
            lines.append(line)


def commands(lines):
    """The commands of a console block as (command, expected output)."""
    command, expected, continued = None, [], False
    for line in lines:
        if continued:
            command += "\n" + line.removeprefix("> ")
        elif line.startswith("$ "):
            if command is not None:
                yield command, expected
            command, expected = line[2:], []
        elif command is not None:
            expected.append(line)
            continue
        continued = line.endswith("\\")
    if command is not None:
        yield command, expected


# What differs from run to run or from machine to machine.
MEASURED = re.compile(r"\d+\.\d+(e[+-]\d+)?|(?<=min of )\d+")


def matches(expected, actual):
    expected, actual = MEASURED.sub("#", expected), MEASURED.sub("#", actual)
    pattern = ".*?".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None


def main(page, tools, folder, update=False):
    environment = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"])
    with open(page, encoding="utf-8") as file:
        text = file.read()
    ran = failed = 0
    for kind, lines in blocks(text):
        name = re.match(r"(?://|#) ([\w.-]+\.\w+)$", lines[0]) if lines else None
        if name:
            with open(os.path.join(folder, name.group(1)), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        if kind != "console":
            continue
        for command, expected in commands(lines):
            result = subprocess.run(
                command,
                shell=True,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            wanted, got = "\n".join(expected).strip(), result.stdout.strip()
            ran += 1
            if not matches(wanted, got) and update:
                text = text.replace("\n".join(["$ " + command, *expected]), f"$ {command}\n{got}", 1)
                with open(page, "w", encoding="utf-8") as file:
                    file.write(text)
            elif not matches(wanted, got):
                failed += 1
                print(f"{page}: the output of this command is not what the page says:\n$ {command}")
                print(f"--- the page\n{wanted}\n--- the command (exit code {result.returncode})\n{got}\n---")
    print(f"{ran} commands, {failed} with another output")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:4], update="--update" in sys.argv[4:]))
