# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page as a server, for a search that is running."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ._database import Database
from ._page import make_page

HOST = "127.0.0.1"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET: the page, the summary when it changed, the details of one candidate."""

    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    server_version = "kas"
    sys_version = ""

    def do_GET(self) -> None:
        # A page of another site that calls this address by another name is not to read anything.
        if self.headers.get("Host") not in self.server.names:
            return self._answer(403, b"this server answers to its own address only")
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        try:
            if url.path == "/":
                return self._answer(200, self.server.page, "text/html; charset=utf-8")
            if url.path == "/summary":
                if query.get("known") == self.server.database.get_version():
                    return self._answer(204, b"")
                return self._answer_json(self.server.database.read_summary())
            if url.path == "/details" and query.get("id", "").isdigit() and len(query["id"]) < 19:
                return self._answer_json(next(self.server.database.read_details([int(query["id"])])))
        except KeyError:
            pass
        except Exception as error:
            return self._answer(500, f"{type(error).__name__}: {error}".encode())
        return self._answer(404, b"not found")

    def _answer_json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        packed = len(body) > 1000 and "gzip" in self.headers.get("Accept-Encoding", "")
        if packed:
            body = gzip.compress(body, 1)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet."""


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, database: Database, port: int):
        super().__init__((HOST, port), _Handler)
        self.database = database
        self.page = make_page(database, live=True).encode()
        self.names = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}


class Server:
    """A server in a thread of this process, on the loopback address."""

    def __init__(self, database: Database, port: int = 0):
        self._server = _HTTPServer(database, port)
        self.url = f"http://{HOST}:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
