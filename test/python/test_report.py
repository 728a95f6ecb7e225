# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report of a search in a browser: what is clicked, live mode, hostile texts, sizes and times."""

import contextlib
import http.client
import re
import sqlite3
import subprocess
import sys

import pytest
from report_pages import SPACE, browser, fill, find_clipped, opened, page_url, proceed, sync_api, wait_for_candidate

import kas
from kas import report

__all__ = ["browser", "page_url"]  # Fixtures.

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "search.db"
    fill(path, 60)
    return path


def click_point(page, chart, trace, number):
    """A real click on a point; its candidate."""
    x, y, candidate = page.evaluate(
        """([chart, trace, number]) => {
          const graph = document.getElementById(chart), {xaxis, yaxis} = graph._fullLayout, data = graph.data[trace];
          graph.scrollIntoView({block: "center"});
          const place = graph.getBoundingClientRect(), i = number < 0 ? data.x.length + number : number;
          return [place.left + xaxis._offset + xaxis.d2p(data.x[i]), place.top + yaxis._offset + yaxis.d2p(data.y[i]),
                  data.customdata[i]];
        }""",
        [chart, trace, number],
    )
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_selector(f"#{chart} .hoverlayer .hovertext")
    page.mouse.click(x, y)
    return candidate


def find_front(path):
    """Of the candidates those that no other dominates, with few FLOPs and much accuracy."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT f.candidate, f.value, a.value FROM metric f JOIN metric a USING (candidate)"
        rows = connection.execute(query + " WHERE f.name = 'flops' AND a.name = 'accuracy'").fetchall()
    return {
        one
        for one, flops, accuracy in rows
        if not any(f <= flops and a >= accuracy and (f, a) != (flops, accuracy) for _, f, a in rows)
    }


def test_front_and_operator(browser, database, page_url):
    front = find_front(database)
    with opened(browser, page_url) as page:
        assert {entry for entry in page.evaluate("document.getElementById('front').data[1].customdata")} == front
        assert page.inner_text("#front-hint") == f"{len(front)} on the front, {48 - len(front)} others"
        candidate = click_point(page, "front", 1, -1)
        assert candidate in front
        wait_for_candidate(page, candidate)
        assert page.inner_text("#operator-heading").endswith(", on the front")
        with contextlib.closing(sqlite3.connect(database)) as connection:
            (text,) = connection.execute("SELECT operator FROM candidate WHERE id = ?", (candidate,)).fetchone()
        assert page.inner_text("#details pre.text").strip() == text.strip()
        operator = kas.parse(text)["candidate"]
        assert page.inner_text("#details pre.formula") == operator.formula
        space = kas.SearchSpace(SPACE)
        nest = operator.loop_nest(space.bindings[0]).strip().replace("candidate(", f"c{candidate}(")
        assert page.inner_text("#details pre.nest").strip() == nest
        rows = page.locator("#details table.layers tr").all_inner_texts()
        assert len(rows) == 3 and rows[2].split("\t")[1] == "3"
        # A heading for each of the costs.
        assert len(rows[0].split("\t")) == len(rows[1].split("\t")) == 2 + len(kas.Cost._fields)
        assert rows[1].split("\t")[2].replace("\u202f", "") == str(operator.cost(space.bindings[0]).macs)
        # A box per primitive, an arrow per edge.
        assert page.locator("#details svg .box").count() == len(re.findall(r"^  p\d+ \[", operator.graph, re.MULTILINE))
        assert page.locator("#details svg .edge").count() == operator.graph.count("->")
        page.wait_for_selector("#details .curve .points path", state="attached")
        assert page.evaluate("location.hash") == f"#candidate={candidate}"
    # The address leads there again.
    with opened(browser, f"{page_url}#candidate={candidate}") as page:
        wait_for_candidate(page, candidate)


def test_zoom_and_axes(browser, page_url):
    with opened(browser, page_url) as page:
        get_range = "document.getElementById('front')._fullLayout.xaxis.range.slice()"
        before = page.evaluate(get_range)
        place = page.locator("#front .nsewdrag").bounding_box()
        page.mouse.move(place["x"] + 0.2 * place["width"], place["y"] + 0.2 * place["height"])
        page.mouse.down()
        page.mouse.move(place["x"] + 0.6 * place["width"], place["y"] + 0.7 * place["height"], steps=5)
        page.mouse.up()
        page.wait_for_timeout(300)
        after = page.evaluate(get_range)
        assert after[1] - after[0] < 0.6 * (before[1] - before[0])
        page.select_option("#front-x", "params")
        assert page.text_content("#front .xtitle") == "params (elements of weights)"
        page.check("#front-log")
        assert page.evaluate("document.getElementById('front')._fullLayout.xaxis.type") == "log"


def test_history_failures_and_table(browser, database, page_url):
    with opened(browser, page_url) as page:
        candidate = click_point(page, "history", 0, 7)
        wait_for_candidate(page, candidate)
        best = page.evaluate("document.getElementById('history').data[1].y")
        assert best == sorted(best) and len(best) > 2
        # Reasons that differ in numbers are one.
        assert page.locator("#failures tr").count() == 1
        page.click("#failures tr")
        assert page.locator("#candidates tbody tr").count() == 12
        page.click("#candidates tbody tr >> nth=3")
        wait_for_candidate(page, 19)
        assert page.inner_text("#details .failure") == "loss became NaN in epoch 19"
        page.select_option("#filter", "all")
        page.click("#candidates th:has-text('accuracy')")
        values = [float(text.split("\t")[1]) for text in page.locator("#candidates tbody tr").all_inner_texts()[:10]]
        assert values == sorted(values, reverse=True)
        page.click("#next")
        assert page.inner_text("#page") == "2 of 2 (60)" and page.locator("#candidates tbody tr").count() == 10
        page.fill("#find", "4")
        assert page.locator("#candidates tbody tr").count() == 11
        assert "kas.Searcher(space, 'random', seed=1" in page.inner_text("#command")


def test_lineage(browser, tmp_path):
    path = tmp_path / "search.db"
    with kas.Searcher(SPACE, "evolution", seed=1, database=path) as searcher:
        for _ in range(150):
            proceed(searcher, 1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        child, parent = connection.execute("SELECT id, parent FROM candidate WHERE parent IS NOT NULL").fetchone()
    report.write(path, tmp_path / "page.html")
    with opened(browser, f"{(tmp_path / 'page.html').as_uri()}#candidate={child}") as page:
        wait_for_candidate(page, child)
        page.click(f".lineage button:text-is('candidate {parent}')")
        wait_for_candidate(page, parent)
        page.click(f".lineage button:text-is('candidate {child}')")
        wait_for_candidate(page, child)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 700])
def test_nothing_is_clipped(browser, page_url, scheme, width):
    with opened(browser, page_url, scheme, width) as page:
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert find_clipped(page) == []
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") != scheme


def test_hostile_texts(browser, tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.db"
    fill(path, 20, HOSTILE)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE metric SET name = ? WHERE name = 'params'", (f"<a href='javascript:alert(1)'>{HOSTILE}",)
        )
        connection.execute("UPDATE training SET name = ?, rung = ?", (HOSTILE, HOSTILE))
        connection.execute("UPDATE setting SET value = value || ? WHERE name != 'space'", (HOSTILE,))
        connection.execute("INSERT INTO setting VALUES (?, ?, 0)", (HOSTILE, HOSTILE))
        connection.execute("UPDATE candidate SET operator = ? || operator WHERE id = 0", (HOSTILE,))
        connection.execute(
            "UPDATE candidate SET operator = replace(operator, '@candidate', ?) WHERE id = 1", (f'@"{HOSTILE}"',)
        )
    output = tmp_path / "page.html"
    report.write(path, output)
    # The summary, one part of the details, Plotly and the page's own script.
    assert output.read_text().count("<script") == 4
    with report.serve(path) as server:
        for url in (output.as_uri(), server.url):
            with opened(browser, url) as page:
                for candidate in (0, 1, 4, 5):
                    page.evaluate(f"document.querySelector('tr[data-id=\"{candidate}\"]').click()")
                    wait_for_candidate(page, candidate)
                for name in page.locator("#front-y option").all_inner_texts():
                    page.select_option("#front-y", name)
                    page.select_option("#history-y", name)
                page.wait_for_timeout(200)
                assert page.evaluate("window.hacked") is None
                assert page.locator("img, a[href^=javascript]").count() == 0
                # They are there to be read.
                assert "<img src=x onerror=" in page.inner_text("#failures")


def test_live(browser, tmp_path):
    path = tmp_path / "search.db"
    with kas.Searcher(SPACE, "random", seed=1, database=path) as searcher:
        proceed(searcher, 10)
        with report.serve(path) as server:
            assert server.url.startswith("http://127.0.0.1:")
            with opened(browser, server.url) as page:
                assert page.inner_text(".tile b >> nth=0") == "10"
                candidate = click_point(page, "front", 1, 0)
                wait_for_candidate(page, candidate)
                proceed(searcher, 7)
                sync_api.expect(page.locator(".tile b").first).to_have_text("17", timeout=10_000)
                assert page.inner_text("#operator-heading").startswith(f"Candidate {candidate}")
                assert "live" in page.inner_text("#status")
            port = int(server.url.rsplit(":", 1)[1].strip("/"))
            for method, url, host, status in [
                ("GET", "/", "example.org", 403),
                ("GET", "/details?id=999999", None, 404),
                ("GET", "/details?id=1%20OR%201", None, 404),
                ("GET", "/../search.db", None, 404),
                ("POST", "/", None, 501),
                ("DELETE", "/details?id=1", None, 501),
            ]:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request(method, url, headers={"Host": host} if host else {})
                assert connection.getresponse().status == status, (method, url)
                connection.close()


def test_sizes(browser, tmp_path):
    """2 000 candidates in less than 8 MB."""
    path, output = tmp_path / "search.db", tmp_path / "page.html"
    fill(path, 2000)
    report.write(path, output, pictures=100)
    assert output.stat().st_size < 8e6 - 900 * 700
    with opened(browser, output.as_uri()) as page:
        assert page.inner_text(".tile b >> nth=0") == "2\u202f000"


@pytest.mark.slow
def test_ten_thousand(browser, tmp_path):
    """10 000 candidates are there in less than 2 s; all pictures of 2 000 in less than 8 MB."""
    path, output = tmp_path / "search.db", tmp_path / "page.html"
    fill(path, 2000)
    report.write(path, output, pictures=2000)
    assert output.stat().st_size < 8e6
    path = tmp_path / "large.db"
    fill(path, 10000)
    report.write(path, output)
    times = []
    for _ in range(3):
        with opened(browser, output.as_uri()) as page:
            times.append(page.evaluate("performance.getEntriesByName('kas-ready')[0].startTime") / 1000)
    print(
        f"\n10 000 candidates: {output.stat().st_size / 1e6:.1f} MB, open in {', '.join(f'{t:.2f}' for t in times)} s"
    )
    assert min(times) < 2


def test_command_line(database, tmp_path):
    output = tmp_path / "page.html"
    done = subprocess.run([sys.executable, "-m", "kas.report", database, "-o", output], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == str(output) and output.exists()
    done = subprocess.run([sys.executable, "-m", "kas.report", tmp_path / "none.db"], capture_output=True, text=True)
    assert done.returncode == 1 and "error: there is no search database" in done.stderr


def test_bad_input(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no search database"):
        report.write(tmp_path / "none.db", tmp_path / "page.html")
    (tmp_path / "text.db").write_text("no database" * 1000)
    with pytest.raises(ValueError, match="is not a search database"):
        report.write(tmp_path / "text.db", tmp_path / "page.html")
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE other(x)")
    with pytest.raises(ValueError, match="it is of another program"):
        report.write(tmp_path / "other.db", tmp_path / "page.html")
    # `kas show` reads databases in the same way.
    shown = subprocess.run([sys.executable, "-m", "kas", "show", tmp_path / "other.db"], capture_output=True, text=True)
    assert shown.returncode == 1 and "it is of another program" in shown.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.executescript(f"PRAGMA application_id = {0x6B617353}; PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="has tables of version 99; this kas reads version 1"):
        report.write(tmp_path / "other.db", tmp_path / "page.html")
    shown = subprocess.run([sys.executable, "-m", "kas", "show", tmp_path / "other.db"], capture_output=True, text=True)
    assert shown.returncode == 1 and "has tables of version 99" in shown.stderr
    with kas.Searcher(SPACE, "random", database=tmp_path / "empty.db"):
        pass
    with pytest.raises(FileNotFoundError):
        report.write(tmp_path / "empty.db", tmp_path / "none" / "page.html")
    report.write(tmp_path / "empty.db", tmp_path / "page.html")
    assert sorted(entry.name for entry in tmp_path.glob("*.html")) == ["page.html"]
