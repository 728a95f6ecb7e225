# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the files that a page names with the sources that know a primitive.

usage: check-primitive.py PAGE ROOT

Each file that the page names must be there, and each source of the libraries and of the tests' own library that names
the primitive of the page's example, `kas.stride`, must be on the page.
"""

import pathlib
import re
import sys

PATH = re.compile(r"`((?:docs|include|lib|python|test|tools)/[\w./-]+\.\w+)`")
PRIMITIVE = re.compile(r"\bStrideOp\b|\b(?:Coord)?Kind::Stride\b|\bkas\.stride\b")
FOLDERS = ["include/kas", "lib", "python/kas", "test/lib"]
SUFFIXES = {".cpp", ".h", ".td", ".py"}


def main(page: pathlib.Path, root: pathlib.Path) -> int:
    named = set(PATH.findall(page.read_text()))
    known = {
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in SUFFIXES and PRIMITIVE.search(path.read_text())
    }
    errors = [f"requires a file, got '{name}'" for name in sorted(named) if not (root / name).is_file()]
    errors += [f"requires all sources that know the primitive, got none of '{name}'" for name in sorted(known - named)]
    for error in errors:
        print(f"error: {page.name}: {error}")
    print(f"{len(named)} files, {len(known)} know the primitive, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
