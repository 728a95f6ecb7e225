# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the site differs from the pages in the tree.

The pages of research/ are in the site, too, in the folder of that name. The Markdown of MkDocs is not quite the one
that the pages are written in (CommonMark with tables).
"""

import pathlib
import posixpath
import re
from typing import Any

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESEARCH = ("guide", "reports", "data")
"""Its folders with pages and with what these link to."""


def on_files(files: Any, config: Any, **_: object) -> Any:
    for folder in RESEARCH:
        for path in sorted((ROOT / "research" / folder).rglob("*")):
            if path.is_file():
                name = path.relative_to(ROOT).as_posix()
                files.append(File(name, str(ROOT), config.site_dir, use_directory_urls=False))
    return files


def in_site(path: str) -> str:
    """Of a path in the tree: docs/ is the root of the site."""
    return path.removeprefix("docs/")


def fix_links(line: str, here: str) -> str:
    """Links between docs/ and research/, from a page of the site."""
    source = posixpath.dirname(here if here.startswith("research/") else f"docs/{here}")

    def fix(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(source, match[1]))
        if target.split("/")[0] not in ("docs", "research"):
            return match[0]
        return f"]({posixpath.relpath(in_site(target), posixpath.dirname(here) or '.')}"

    return re.sub(r"\]\((\.\.?/[^)#\s]+)", fix, line)


def make_link(path: str, here: str) -> str:
    name = posixpath.splitext(posixpath.basename(path))[0].replace("-", " ")
    return f"[{name}]({posixpath.relpath(path, posixpath.dirname(here) or '.')})"


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    if page.file.src_uri.startswith("reference/"):
        # Who searches for the name of an op or a pass wants its reference first.
        page.meta["search"] = {"boost": 4}
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    lines = []
    fenced = False
    for line in markdown.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and line.startswith("|"):
            # A bar in code is escaped in tables there, and shows its escape here.
            line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        if not fenced:
            # Generated pages name others as sources do, by their path.
            line = fix_links(line, page.file.src_uri)
            line = re.sub(
                r"(`?)(?<![\w/.(])((?:docs|research)/[\w/-]+\.md)\b\1",
                lambda match: make_link(in_site(match[2]), page.file.src_uri),
                line,
            )
            if (
                re.match(r"([-*]|\d+\.) ", line)
                and lines
                and re.match(r"[^\s#|<`*-]", lines[-1])
                and not re.match(r"\d+\. ", lines[-1])
            ):
                # A list does not begin within a paragraph here.
                lines.append("")
        lines.append(line)
        if not fenced and re.fullmatch(r"<!--.*-->", line):
            # A table does not begin right after a comment here.
            lines.append("")
    return "\n".join(lines) + "\n"
