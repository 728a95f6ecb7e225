# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds names that two libraries define differently (the one definition rule).

usage: check-definitions.py NM FOLDER... -- ARCHIVE...

Two such classes link without a word, and the linker takes the destructor of either. So

- a type in a named namespace may be defined in one file only: read off the sources in the folders, where clang-format
  puts what is in a namespace at the start of a line (gold's --detect-odr-violations compares places of types in the
  debug information; lld has no such option);
- a symbol that is no inline function may be defined in one archive only: read off llvm-nm.
"""

import collections
import pathlib
import re
import subprocess
import sys

TYPE = re.compile(r"^(?:class|struct|union|enum(?: class| struct)?)\s+(?:\[\[\w+\]\]\s*)?((?:\w+::)*\w+)(?=[^;(]*(?:\{|:(?!:)|$))")
OPEN = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{")
CLOSE = re.compile(r"^\} // (?:inline )?namespace(?: [\w:]+)?")


def type_definitions(text: str) -> list[tuple[str, int]]:
    """The qualified names of types that `text` defines in named namespaces, and their lines."""
    found = []
    scopes: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if match := OPEN.match(line):
            scopes.append(match.group(1) or "")
        elif CLOSE.match(line):
            if scopes:
                scopes.pop()
        elif (match := TYPE.match(line)) and scopes and all(scopes):
            # A declaration may go on in the next lines: what comes first, a brace or a semicolon?
            rest = "\n".join(lines[number - 1 : number + 3])
            end = re.search(r"[{;]", rest)
            if end and end.group(0) == "{":
                found.append(("::".join([*scopes, match.group(1)]), number))
    return found


def main() -> int:
    """Prints each name that is defined twice."""
    nm, *rest = sys.argv[1:]
    folders, archives = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    places = collections.defaultdict(list)
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                for name, line in type_definitions(path.read_text()):
                    places[name].append(f"{path}:{line}")
    symbols = collections.defaultdict(set)
    for archive in archives:
        output = subprocess.run([nm, "-C", "--defined-only", "--extern-only", archive], capture_output=True, text=True, check=True).stdout
        for line in output.split("\n"):
            match = re.match(r"[0-9a-f]+ ([A-TX-Z]) (kas.*)$", line)
            if match and match.group(1) not in "VWU":
                symbols[match.group(2)].add(pathlib.Path(archive).name)
    twice = [(name, where) for name, where in sorted(places.items()) if len(where) > 1]
    twice += [(name, sorted(where)) for name, where in sorted(symbols.items()) if len(where) > 1]
    for name, where in twice:
        print(f"error: {name} is defined in {', '.join(where)}")
    print(f"{len(places)} types, {len(symbols)} symbols, {len(twice)} defined twice")
    return int(bool(twice))


if __name__ == "__main__":
    sys.exit(main())
