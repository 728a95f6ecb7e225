# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Search databases and a browser for the tests of reports."""

import contextlib
import shutil
import sqlite3

import pytest

import kas

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs chromium (tools/packages.txt)", allow_module_level=True)
report = pytest.importorskip("kas.report", reason="needs the extra 'report'")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (python/requirements.txt)")

SPACE = """
kas.space @layer<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, g = 4, k = 3>,
              <N = 1, Cin = 16, Cout = 16, H = 4, W = 4, g = 4, k = 3> x 3]
    limits {depth = 10, reduce = 4, split = 2, merge = 2, unfold = 2, weights = 3, rank_saves = 0}
"""


def fill(path, count, hostile=""):
    """A search of `count` candidates, every fifth failed, with curves of training."""
    with kas.Searcher(SPACE, "random", seed=1, database=path, objective="pareto(flops,-accuracy)") as searcher:
        proceed(searcher, count, hostile)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE training(candidate, rung, seed, epoch, name TEXT, value REAL)")
        ids = [row[0] for row in connection.execute("SELECT id FROM candidate WHERE state = 'evaluated'")]
        connection.executemany(
            "INSERT INTO training VALUES (?, ?, 0, ?, 'accuracy', ?)",
            [(i, rung, epoch, 0.5 + epoch / 10) for i in ids for rung in (0, 1) for epoch in range(3)],
        )


def proceed(searcher, count, hostile=""):
    for candidate in searcher.ask(count):
        if candidate.id % 5 == 4:
            searcher.tell(candidate.id, error=f"loss became NaN in epoch {candidate.id}{hostile}")
            continue
        accuracy = 0.9 - 1e3 / (1e3 + candidate.params) / 2 + int(candidate.key, 16) % 9973 / 99730
        searcher.tell(candidate.id, {"flops": candidate.flops, "params": candidate.params, "accuracy": accuracy})


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser, url, scheme="light", width=1400, ready="html[data-ready=yes] #history .points path"):
    """A page that asks for nothing beyond its address and complains about nothing."""
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    # Other work on the machine makes nothing fail.
    page.set_default_timeout(300_000)
    complaints, requests = [], []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(url)
    page.wait_for_selector(ready, state="attached")
    yield page
    assert not complaints
    assert not [one for one in requests if not one.startswith((url.split("#")[0], "data:", "blob:"))]
    context.close()


def find_clipped(page):
    """Texts of a plot that are not inside it, and pairs of them that overlap."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".chart")].flatMap((chart) => {
          const outer = chart.getBoundingClientRect();
          const texts = [...chart.querySelectorAll(".xtick text, .ytick text, .xtitle, .ytitle, .legendtext")];
          const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
          const isOutside = (b) =>
            b.left < outer.left || b.right > outer.right || b.top < outer.top || b.bottom > outer.bottom;
          const bad = boxes.filter(([, b]) => isOutside(b));
          for (const [i, [one, a]] of boxes.entries())
            for (const [two, b] of boxes.slice(i + 1))
              if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                bad.push([one, two]);
          return bad.map(String);
        })"""
    )


@pytest.fixture(scope="module")
def page_url(database):
    """The page of the test file's own fixture `database`."""
    output = database.with_suffix(".html")
    report.write(database, output)
    return output.as_uri()


def wait_for_candidate(page, candidate):
    page.wait_for_selector(f"#operator[data-candidate='{candidate}']")
