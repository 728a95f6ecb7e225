# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the Markdown of MkDocs differs from the one that the pages are written in (CommonMark with tables)."""

import posixpath
import re
from typing import Any


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
            line = re.sub(r"(`?)\bdocs/([\w/-]+\.md)\b\1", lambda match: make_link(match[2], page.file.src_uri), line)
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
