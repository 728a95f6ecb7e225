#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries of kas and who uses whom, from CMake's graph (build/libraries.json).

usage: libraries.py --table[=check]   writes the table of CONTRIBUTING.md, or says whether it is up to date
       libraries.py --edges           reports edges that must not be, of links and of includes

--graph=FILE and --root=FOLDER take another graph and another source tree.
"""

import argparse
import difflib
import json
import pathlib
import re
import sys

# The folders of code generation that use emitters, and the headers of the passes.
ABOVE_EMITTERS = ["Transforms", "NVVM", "SPIRV", "Emulation", "Passes.h"]
# Which folders must not reach which, by links (directly or not) or by an include; the reason is what a message says.
# A folder stands for all below it.
FORBIDDEN = [
    ("lib/Support", ["lib/Dialect"], "sizes, files and targets are below the dialects"),
    ("lib/Schedule", ["lib/Dialect"], "plans know no ops"),
    ("lib/Solver", ["lib/Dialect"], "solvers know no ops"),
    ("lib/Search/Core", ["lib/Dialect"], "the core of the search knows no ops"),
    ("lib/Codegen", ["lib/ExecutionEngine"], "code generation runs nothing"),
    *(
        (f"{target}/{low}", [f"{target}/{folder}" for folder in high], reason)
        for target in ("lib/Codegen/CPU", "lib/Codegen/GPU")
        for low, high, reason in (
            ("Strategy", ["Emit", *ABOVE_EMITTERS], "strategies choose, and emit nothing"),
            ("Emit", ABOVE_EMITTERS, "emitters know no passes"),
        )
    ),
    (
        "lib/Dialect",
        [
            "lib/Conversion",
            "lib/Codegen",
            "lib/Pipelines",
            "lib/ExecutionEngine",
            "lib/Networks",
            "lib/Target",
            "lib/Search",
            "lib/Tuning",
        ],
        "a dialect does not know what is made of it",
    ),
    ("lib", ["lib/CAPI", "tools"], "the C interface and the tools are on top"),
    ("lib/Runtime", ["lib/Support", "lib/Dialect"], "programs that only launch kernels link nothing of MLIR"),
]
# What KAS_ENABLE_GPU=OFF leaves out: only these and what is on top, which registers whatever there is, may use them.
GPU = [
    "lib/Codegen/GPU",
    "lib/ExecutionEngine/GPU",
    "lib/Pipelines/GPU",
    "lib/Runtime",
    "lib/Target/GPU",
    "lib/Tuning/GPU",
]
USERS_OF_GPU = [*GPU, "lib/CAPI", "tools"]
BEGIN, END = "<!-- libraries: written by tools/docs.sh -->", "<!-- end of libraries -->"


def below(folder: str, parent: str) -> bool:
    """Whether `folder` is `parent` or in it."""
    return folder == parent or folder.startswith(parent + "/")


def folder_of(path: str) -> str:
    """The folder of lib that a header or a source belongs to: that of its library."""
    return re.sub(r"^include/kas/", "lib/", path)


def link_edges(libraries: list[dict]) -> list[tuple[str, str, str]]:
    """Pairs of folders of which the first links the second, directly or not, and the chain between them."""
    uses = {library["name"]: library["uses"] for library in libraries}
    folders = {library["name"]: library["folder"] for library in libraries}
    edges = []
    for start in uses:
        chains = {start: [start]}
        pending = [start]
        while pending:
            name = pending.pop(0)
            for used in uses.get(name, []):
                if used not in chains:
                    chains[used] = [*chains[name], used]
                    pending.append(used)
        edges += [
            (folders[start], folders.get(end, end), " -> ".join(chain)) for end, chain in chains.items() if end != start
        ]
    return edges


def include_edges(root: pathlib.Path) -> list[tuple[str, str, str]]:
    """Pairs of folders of which a file in the first includes a header of the second, and the file."""
    edges = []
    files = [
        path
        for top in ("include/kas", "lib")
        for path in sorted((root / top).rglob("*"))
        if path.suffix in (".h", ".cpp", ".td")
    ]
    for path in files:
        name = path.relative_to(root).as_posix()
        # It lists what all libraries register.
        if name == "include/kas/InitAll.h":
            continue
        for header in re.findall(r'^#?include "([^"]+)"', path.read_text(), re.MULTILINE):
            if header.startswith("kas/"):
                target = "include/" + header
            elif header.startswith("kas-c/"):
                target = "lib/CAPI/" + header
            else:
                target = (path.parent / header).resolve()
                if not target.is_relative_to(root.resolve()):
                    continue
                target = target.relative_to(root.resolve()).as_posix()
            edges.append((folder_of(name), folder_of(target), f'{name} includes "{header}"'))
        if below(name, "lib/Runtime") and re.search(r'^#include "(mlir|llvm)/', path.read_text(), re.MULTILINE):
            edges.append(("lib/Runtime", "lib/Dialect", f"{name} includes MLIR or LLVM"))
    return edges


def research_edges(root: pathlib.Path) -> list[str]:
    """Where the product uses research: imports in Python, includes in C++."""
    found = []
    for top in ("include", "lib", "python", "test", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".td", ".py"):
                continue
            pattern = r'^#?include ".*\bresearch/' if path.suffix != ".py" else r"^\s*(?:import|from) kas_research\b"
            found += [
                f"{path.relative_to(root).as_posix()}: {match[0].strip()}"
                for match in re.finditer(pattern, path.read_text(errors="replace"), re.MULTILINE)
            ]
    return found


def check_edges(libraries: list[dict], root: pathlib.Path) -> int:
    """Prints the edges that must not be, and returns how many there are."""
    found = 0
    edges = link_edges(libraries) + include_edges(root)
    for source, target, how in edges:
        for folder, others, reason in FORBIDDEN:
            if below(source, folder) and any(below(target, other) and not below(source, other) for other in others):
                print(f"error: {folder} must not use {target}: {how} ({reason})")
                found += 1
        if any(below(target, folder) for folder in GPU) and not any(below(source, user) for user in USERS_OF_GPU):
            print(f"error: {source} must not use {target}: {how} (KAS_ENABLE_GPU=OFF leaves it out)")
            found += 1
    linked = {(source, target) for source, target, _ in link_edges(libraries)}
    for source, target in sorted(linked):
        if source < target and (target, source) in linked:
            print(f"error: {source} and {target} must not link each other")
            found += 1
    for how in research_edges(root):
        print(f"error: the product must not use research: {how}")
        found += 1
    # Each include is covered by a link, so that the graph tells the truth.
    folders = {library["folder"] for library in libraries}

    def library_of(path: str) -> str:
        if any(below(path, folder) for folder in GPU if folder not in folders):
            return ""
        return max((folder for folder in folders if below(path, folder)), key=len, default="")

    for source, target, how in include_edges(root):
        pair = library_of(source), library_of(target)
        if all(pair) and pair[0] != pair[1] and pair not in linked:
            print(f"error: {pair[0]} does not link {pair[1]}: {how}")
            found += 1
    print(f"{len(libraries)} libraries, {len(edges)} edges, {found} forbidden")
    return found


def in_order_of_use(libraries: list[dict]) -> list[dict]:
    """Each library after those that it uses; else in the order of the build, where neighbours belong together."""
    known = {library["name"] for library in libraries}
    placed: set[str] = set()
    order = []
    while len(order) < len(libraries):
        ready = [
            library
            for library in libraries
            if library["name"] not in placed and placed.issuperset(known.intersection(library["uses"]))
        ]
        if not ready:
            sys.exit(f"error: expected a graph without cycles, got one of {', '.join(sorted(known - placed))}")
        order.append(ready[0])
        placed.add(ready[0]["name"])
    return order


def table(libraries: list[dict]) -> str:
    """The table of CONTRIBUTING.md: each library after those that it uses."""
    lines = ["| library | folder | holds | uses |", "|---|---|---|---|"]
    for library in in_order_of_use(libraries):
        uses = ", ".join(name.removeprefix("KAS") for name in sorted(library["uses"]))
        lines.append(f"| `{library['name']}` | `{library['folder']}` | {library['holds']} | {uses} |")
    return "\n".join(lines)


def write_table(libraries: list[dict], page: pathlib.Path, check: bool) -> int:
    """Replaces the table in `page`, or with `check` prints how it differs; returns 1 if it does."""
    before = page.read_text()
    if BEGIN not in before or END not in before:
        sys.exit(f"error: {page} must have the lines '{BEGIN}' and '{END}'")
    head, rest = before.split(BEGIN)
    after = f"{head}{BEGIN}\n{table(libraries)}\n{END}{rest.split(END)[1]}"
    if before == after:
        return 0
    if not check:
        page.write_text(after)
        return 0
    sys.stdout.writelines(
        difflib.unified_diff(before.splitlines(True), after.splitlines(True), page.name, "CMake's graph")
    )
    print(f"error: {page.name} is not what CMake's graph gives; run tools/docs.sh")
    return 1


def main() -> int:
    """Runs what the command line names."""
    top = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="?", const="write", choices=["write", "check"])
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=top)
    parser.add_argument("--graph", type=pathlib.Path)
    arguments = parser.parse_args()
    libraries = json.loads((arguments.graph or arguments.root / "build" / "libraries.json").read_text())
    failed = 0
    if arguments.table:
        failed += write_table(libraries, arguments.root / "CONTRIBUTING.md", arguments.table == "check")
    if arguments.edges:
        failed += check_edges(libraries, arguments.root)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
