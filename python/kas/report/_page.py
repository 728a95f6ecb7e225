# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page as text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from importlib import resources
from typing import Any

from ._database import Database, choose_best

# Candidates whose details are unpacked together.
CHUNK = 128


def _pack(value: Any) -> str:
    """Compressed JSON. Nothing in it can be taken for markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0)).decode()


def _read(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _read_plotly() -> str:
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def make_page(database: Database, *, live: bool = False, pictures: int = 0) -> str:
    """The page with all data inside, or, if `live`, one that asks its server for them."""
    scripts = [_read_plotly(), _read("page.js")]
    # Scripts run by what they are: no other text can become one.
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {chr(39) + 'self' + chr(39) if live else chr(39) + 'none' + chr(39)}; base-uri 'none'; "
        "form-action 'none'"
    )
    data = []
    if not live:
        summary = database.read_summary()
        data.append(f'<script type="text/plain" id="summary">{_pack(summary)}</script>')
        ids, drawn = summary["ids"], choose_best(summary, pictures)
        for start in range(0, len(ids), CHUNK):
            details = list(database.read_details(ids[start : start + CHUNK], drawn))
            data.append(f'<script type="text/plain" id="details{start // CHUNK}">{_pack(details)}</script>')
    replacements = {
        "POLICY": html.escape(policy, quote=True),
        "TITLE": html.escape(database.path.replace("\\", "/").split("/")[-1]),
        "MODE": "live" if live else "file",
        "STYLE": _read("page.css"),
        "DATA": "\n".join(data),
        "PLOTLY": scripts[0],
        "SCRIPT": scripts[1],
    }
    parts = _read("page.html").split("@@")
    # Between the marks every second part is a name.
    return "".join(replacements[part] if index % 2 else part for index, part in enumerate(parts))
