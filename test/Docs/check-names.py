"""Checks that what a page names exists in the sources.

usage: check-names.py PAGE FOLDER...

A name is code of the form `lowerCamel`, `UpperCamel` or `Class::member` in the text of the page; each of its parts must
occur as a word in a source file of the folders.
"""

import pathlib
import re
import sys

NAME = re.compile(r"`((?:[A-Za-z]\w*::)*[A-Za-z]*[a-z][A-Z]\w*|[A-Z]\w*::\w+)`")


def main():
    page, *folders = sys.argv[1:]
    text = re.sub(r"^```.*?^```", "", pathlib.Path(page).read_text(), flags=re.DOTALL | re.MULTILINE)
    names = sorted(set(NAME.findall(text)))
    words = set()
    for folder in folders:
        for file in pathlib.Path(folder).rglob("*"):
            if file.suffix in (".h", ".cpp", ".td"):
                words.update(re.findall(r"\w+", file.read_text()))
    missing = [name for name in names if not words.issuperset(name.split("::"))]
    for name in missing:
        print(f"{page}: requires a name of the sources, got '{name}'")
    if not missing:
        print(f"{len(names)} names")
    return bool(missing)


sys.exit(main())
