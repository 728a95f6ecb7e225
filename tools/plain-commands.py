#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a compilation database without precompiled headers, for tools/lint.sh.

usage: plain-commands.py BUILD OUTPUT [FILE...]

Takes BUILD/compile_commands.json and writes OUTPUT/compile_commands.json, and the sources that are compiled, relative
to this folder, to OUTPUT/sources.txt. For each FILE that the build compiles prints a command, ended by a null
character, that compiles it and writes no object.
"""

import json
import os
import shlex
import sys


def remove_precompiled(arguments):
    """The arguments without `-Winvalid-pch` and `-Xclang KIND -Xclang FILE` for -include-pch and -include."""
    kept, position = [], 0
    while position < len(arguments):
        if arguments[position : position + 2] in (["-Xclang", "-include-pch"], ["-Xclang", "-include"]):
            position += 4
            continue
        if arguments[position] != "-Winvalid-pch":
            kept.append(arguments[position])
        position += 1
    return kept


def remove_output(arguments):
    """The arguments of a check of the syntax and of all warnings, in place of those of an object file."""
    at = arguments.index("-o")
    return ["-fsyntax-only" if argument == "-c" else argument for argument in arguments[:at] + arguments[at + 2 :]]


def write(path, text):
    """At once: another check may read the file at the same time."""
    own = f"{path}.{os.getpid()}"
    with open(own, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(own, path)


def main(build, output, *files):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for entry in entries:
        entry["arguments"] = remove_output(remove_precompiled(shlex.split(entry.pop("command"))))
        entry.pop("output", None)
    os.makedirs(output, exist_ok=True)
    write(os.path.join(output, "compile_commands.json"), json.dumps(entries, indent=1))
    sources = sorted({os.path.relpath(os.path.join(entry["directory"], entry["file"])) for entry in entries})
    write(os.path.join(output, "sources.txt"), "".join(f"{source}\n" for source in sources))
    known = {os.path.realpath(os.path.join(entry["directory"], entry["file"])): entry for entry in entries}
    for path in files:
        if (entry := known.get(os.path.realpath(path))) is not None:
            command = f"cd {shlex.quote(entry['directory'])} && {shlex.join(entry['arguments'])}"
            print(command, end="\0")


if __name__ == "__main__":
    main(*sys.argv[1:])
