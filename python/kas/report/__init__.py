# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports on searches: one page that needs no network, or one that follows a running search.

>>> import kas.report
>>> kas.report.write("search.db", "report.html")
>>> with kas.report.serve("search.db") as server:               # read-only, on this machine only
...     print(server.url)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence

from .._errors import need
from .._options import add_report_options

need("plotly", "report")

from ._database import Database
from ._page import make_page
from ._server import Server

__all__ = ["Database", "Server", "main", "serve", "write"]


def write(database: str | os.PathLike[str], output: str | os.PathLike[str], *, pictures: int = 1000) -> None:
    """Writes the report of a search database as one HTML file.

    `pictures` bounds how many candidates, the best in each metric, have their graph drawn (by Graphviz, where `dot` is
    installed: some milliseconds each); the others show its text. Raises `FileNotFoundError` or `ValueError` when there
    is no such database.
    """
    page = make_page(Database(database), pictures=pictures)
    # Whoever has the file open, or stops this, never sees half a page.
    directory = os.path.dirname(os.path.abspath(output))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=directory, suffix=".html", delete=False) as file:
        try:
            file.write(page)
            file.close()
            os.chmod(file.name, 0o644)
            os.replace(file.name, output)
        except BaseException:
            os.unlink(file.name)
            raise


def serve(database: str | os.PathLike[str], *, port: int = 0) -> Server:
    """Serves the page at a port of the loopback address (0: any that is free), and follows the search.

    Nothing can be changed through it. Ends with `close()` or the `with` statement.
    """
    return Server(Database(database), port)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `kas report`; returns its exit code."""
    parser = argparse.ArgumentParser(prog="kas report", description="Shows what a search found, as an HTML page.")
    add_report_options(parser)
    options = parser.parse_args(arguments)
    if options.layers or options.database is None:
        parser.error("requires the database of a search; the layers of kas accelerate are shown by kas report")
    return run(options)


def run(options: argparse.Namespace) -> int:
    """`main` with the options of its parser."""
    try:
        if not options.live:
            output = options.output or os.path.splitext(options.database)[0] + ".html"
            write(options.database, output)
            if options.json:
                print(json.dumps({"output": output, **Database(options.database).read_summary()}, indent=2))
            else:
                print(output)
            return 0
        with serve(options.database, port=options.port) as server:
            print(json.dumps({"url": server.url}) if options.json else f"{server.url} (until Ctrl-C)", flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        return 0
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
