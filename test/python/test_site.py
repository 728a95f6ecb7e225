# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site of the pages builds, needs nothing from elsewhere, and finds what one searches for."""

import functools
import http.server
import pathlib
import shutil
import subprocess
import threading

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site():
    subprocess.run([ROOT / "tools" / "docs.sh", "--site"], check=True, capture_output=True)
    handler = functools.partial(QuietHandler, directory=ROOT / "build" / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_search_box_finds_an_op(site):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        requests, errors = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{site}/index.html")
        assert page.inner_text("h1").startswith("kas")
        page.click("input.md-search__input")
        page.keyboard.type("kas.unfold")
        page.wait_for_selector(".md-search-result__link")
        found = [link.get_attribute("href") for link in page.query_selector_all(".md-search-result__link")]
        browser.close()
    assert any("reference/ops.html" in href and "#kasunfold" in href for href in found)
    assert not errors
    assert all(url.startswith(site) for url in requests)
