# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""That a report compares like with like: rungs, the network itself, warnings, reasons, the command."""

import contextlib
import os
import shlex
import sqlite3
import subprocess

import pytest
from report_pages import SPACE, browser, find_clipped, opened, page_url, sync_api, wait_for_candidate

import kas
from kas import report
from kas.report import _comparison as comparison
from kas.report._command import get_command

__all__ = ["browser", "page_url"]  # Fixtures.

# Images that windows of 3x3 fit into.
LARGE = (
    SPACE.replace("H = 6, W = 6", "H = 16, W = 16")
    .replace("H = 4, W = 4", "H = 8, W = 8")
    .replace("depth = 10", "depth = 6")
)
KAS_OPT = os.path.join(os.environ.get("KAS_BUILD", "build"), "bin", "kas-opt")
SEPARABLE = """
kas.operator @candidate_0<N, Cin, H, W | k>(%n: N, %c: Cin, %h: H, %w: W) from [N, Cin, H, W] {
  %i = kas.reduce sum : k
  %c_d, %c_w = kas.share %c : Cin
  %i_d, %i_w = kas.share %i : k
  %x = kas.unfold %h, %i_d : H, k
  kas.yield data(%n, %c_d, %x, %w) weight(%c_w, %i_w)
}
kas.operator @candidate_1<N, Cin, Cout, H, W>(%n: N, %o: Cout, %h: H, %w: W) from [N, Cin, H, W] {
  %c = kas.reduce sum : Cin
  %c_d, %c_w = kas.share %c : Cin
  kas.yield data(%n, %c_d, %h, %w) weight(%o, %c_w)
}
kas.sequence @candidate [@candidate_0, @candidate_1] between [normalize_relu]
"""
BUDGET = "budget {baseline_flops = 40000000 : i64, baseline_params = 3000 : i64, flops_ratio = 1.0 : f64}"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Candidates of three rungs, and the network that they are compared with."""
    path = tmp_path_factory.mktemp("report") / "search.db"
    with kas.Searcher(
        LARGE.rstrip() + f"\n    {BUDGET}\n", "random", seed=1, database=path, objective="-accuracy"
    ) as one:
        for number, candidate in enumerate(one.ask(30)):
            epochs = (1, 1, 3, 1, 1, 9)[number % 6]
            # Of those that were trained for one epoch some have more than the others in the end.
            accuracy = 0.95 - number / 1000 if epochs == 1 else 0.7 + number / 1000
            one.tell(candidate.id, {"flops": candidate.flops, "accuracy": accuracy, "epochs": epochs})
            one.record_training(
                candidate.id, 0, [(e, "accuracy", accuracy - (epochs - e) / 50) for e in (1, 3, 9) if e <= epochs]
            )
        one.record_training(
            -1, 0, [(1, "accuracy", 0.6), (3, "accuracy", 0.7), (9, "accuracy", 0.8), (9, "test_accuracy", 0.78)]
        )
        one.record_training(-1, 1, [(9, "accuracy", 0.82), (9, "test_accuracy", 0.8)])
        assert one.add_baseline("separable", SEPARABLE) == -2
        one.record_training(-2, 0, [(1, "accuracy", 0.5), (9, "accuracy", 0.7), (9, "flops", 2e5), (9, "params", 1000)])
        assert one.add_baseline("kas.conv2d", str(kas.operator("conv2d"))) == -3
        one.record_training(-3, 0, [(0, "flops", 1e6)])
    return path


def get_trace(page, chart, name):
    return page.evaluate(
        "([chart, name]) => document.getElementById(chart).data.find((trace) => trace.name === name)", [chart, name]
    )


def test_rungs(browser, page_url):
    """Plots have accuracies of one number of epochs only, by default of the most."""
    with opened(browser, page_url) as page:
        offered = page.locator("#front-y option").all_inner_texts()
        assert "accuracy" not in offered
        assert [f"accuracy after {text}" in offered for text in ("1 epoch", "3 epochs", "9 epochs")] == [True] * 3
        assert page.input_value("#front-y") == page.input_value("#history-y") == "accuracy after 9 epochs"
        assert len(get_trace(page, "history", "candidates")["x"]) == 5
        page.select_option("#history-y", "accuracy after 3 epochs")
        assert len(get_trace(page, "history", "candidates")["x"]) == 10
        page.select_option("#history-y", "accuracy after 1 epoch")
        assert len(get_trace(page, "history", "candidates")["x"]) == 30
        # The best of those that were trained longest is open.
        wait_for_candidate(page, 29)
        assert page.inner_text("#operator-heading") == "Candidate 29, the best, on the front"


def test_baseline(browser, page_url):
    with opened(browser, page_url) as page:
        point = get_trace(page, "front", "network itself")
        assert point["x"] == [40000000] and point["y"] == [pytest.approx(0.81)]
        assert get_trace(page, "history", "network itself")["y"] == pytest.approx([0.81, 0.81])
        page.select_option("#history-y", "accuracy after 3 epochs")
        assert get_trace(page, "history", "network itself")["y"] == [0.7, 0.7]
        row = page.locator("#candidates tr.baseline").first.inner_text().split("\t")
        assert row[0] == "network itself" and "0.81" in row and "40.00\u202fM" in row
        assert "0.81" in page.inner_text("#tiles")
        rows = [text.split("\t") for text in page.locator("#details table.metrics tr").all_inner_texts()]
        assert rows[0] == ["", "candidate", "network itself", "separable", "kas.conv2d", "unit"]
        numbers = ["40.00\u202fM", "200\u202f000", "1.000\u202fM", "floating-point operations"]
        assert ["flops", *numbers] in [row[:1] + row[2:] for row in rows]


def test_baselines(browser, page_url):
    """Those that a user gives are wherever the network itself is; what is not known of one is left out."""
    with opened(browser, page_url) as page:
        assert get_trace(page, "front", "separable")["y"] == [0.7]
        assert (
            get_trace(page, "front", "separable")["marker"]["symbol"]
            != get_trace(page, "front", "network itself")["marker"]["symbol"]
        )
        # Of one only the FLOPs are known: a line.
        assert get_trace(page, "front", "kas.conv2d")["x"] == [1e6, 1e6]
        assert get_trace(page, "history", "separable")["y"] == [0.7, 0.7]
        assert get_trace(page, "history", "kas.conv2d") is None
        page.select_option("#history-y", "accuracy after 1 epoch")
        assert get_trace(page, "history", "separable")["y"] == [0.5, 0.5]
        names = [row.split("\t")[0] for row in page.locator("#candidates tr.baseline").all_inner_texts()]
        assert names == ["network itself", "separable", "kas.conv2d"]
        formula = page.locator("#candidates tr.baseline td.formula").nth(1).inner_text()
        assert "then normalize, relu:" in formula
        assert "0.7" in page.inner_text("#tiles")
        assert "kas.sequence @candidate" in page.inner_text("#baselines")


def test_verdict(browser, page_url):
    """The best candidate, of those that were trained as long, is as good as 0.729: less than the network itself."""
    with opened(browser, page_url) as page:
        text = page.inner_text("#verdict")
        assert text == (
            "Nothing better than the network itself was found by accuracy after 9 epochs: candidate 29 has 0.729, "
            "against 0.81 (network itself), 0.7 (separable). Not compared with kas.conv2d, which has no accuracy after "
            "9 epochs."
        )
        assert page.get_attribute("#verdict", "class") == ""


@pytest.mark.parametrize(
    ("objective", "baselines", "better", "text"),
    [
        (
            "-accuracy",
            {"a": {"accuracy": 0.8}, "b": {"accuracy": 0.85}},
            True,
            "Candidate 7 is better than a and b by accuracy: 0.9, against 0.8 (a), 0.85 (b). It was chosen by this "
            "number among all candidates: train it with other seeds before you rely on it.",
        ),
        (
            "-accuracy",
            {"a": {"accuracy": 0.9}},
            False,
            "Nothing better than a was found by accuracy: candidate 7 has 0.9, against 0.9 (a).",
        ),
        ("flops", {"a": {"flops": 4}}, True, "Candidate 7 is better than a by flops: 2, against 4 (a)."),
        (
            "2*flops-accuracy",
            {"a": {"flops": 1, "accuracy": 0.2}},
            False,
            "Nothing better than a was found by 2*flops - accuracy (less is better): candidate 7 has 3.1, "
            "against 1.8 (a).",
        ),
        (
            "pareto(flops,-accuracy)",
            {"a": {"flops": 2, "accuracy": 0.8}, "b": {"flops": 0.5, "accuracy": 0.1}, "c": {"flops": 1}},
            False,
            "No candidate is at least as good as b in flops and accuracy. 1 candidate is at least as good as a in "
            "flops and accuracy, and better in one. Not compared with c, which has no flops and accuracy.",
        ),
        ("-accuracy", {"a": {"flops": 4}}, None, ""),
    ],
)
def test_verdict_texts(objective, baselines, better, text):
    columns = {"flops": [3.0, 2.0, None], "accuracy": [0.5, 0.9, None]}
    verdict = comparison.compare_with_baselines(objective, columns, baselines, (7, 1), "accuracy", ["accuracy"])
    if better is None:
        assert verdict is None
    else:
        assert verdict == {"better": better, "text": text}


def test_formulas_and_warnings(browser, database, page_url):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        texts = dict(connection.execute("SELECT id, operator FROM candidate"))
    operators = {id: kas.parse(text)["candidate"] for id, text in texts.items()}
    warnings = {
        id: [comparison.NO_WINDOW] * ("kas.unfold" not in texts[id])
        + [comparison.BY_POSITION] * operator.weights_indexed_by_position
        for id, operator in operators.items()
    }
    assert len({tuple(found) for found in warnings.values()}) > 2
    with opened(browser, page_url) as page:
        for id, operator in operators.items():
            row = page.locator(f"#candidates tr[data-id='{id}']")
            assert row.locator("td.formula").inner_text() == operator.formula
            assert row.locator(".badge").all_inner_texts() == warnings[id]
        suspect = next(id for id, found in warnings.items() if found)
        page.click(f"#candidates tr[data-id='{suspect}']")
        wait_for_candidate(page, suspect)
        assert page.locator("#details .badge").all_inner_texts() == warnings[suspect]
        texts = get_trace(page, "history", "candidates")["text"]
        assert all("epochs: 9" in text and "<br>" in text for text in texts)


def test_every_column_sorts(browser, page_url):
    with opened(browser, page_url) as page:
        for index in range(page.locator("#candidates thead th").count()):
            head = page.locator("#candidates thead th").nth(index)
            name = head.inner_text().strip(" ▴▾")
            for _ in range(2):
                page.locator("#candidates thead th").nth(index).click()
                arrow = page.locator("#candidates thead th").nth(index).inner_text()[-1]
                cells = page.locator(f"#candidates tbody tr td:nth-child({index + 1})").all_inner_texts()
                assert arrow in "▴▾", name
                cells = [cell for cell in cells if cell]
                if name in ("failure", "formula", "warnings"):
                    if name == "formula":
                        assert cells == sorted(cells, reverse=arrow == "▾")
                    continue
                if name != "seconds":
                    values = [float(cell.replace("\u202f", "").removesuffix("M")) for cell in cells]
                    assert values == sorted(values, reverse=arrow == "▾"), name


def test_empty_plots(browser, tmp_path):
    path = tmp_path / "search.db"
    with kas.Searcher(SPACE, "random", seed=1, database=path, objective="pareto(latency_ms,-accuracy)") as searcher:
        candidates = searcher.ask(3)
        searcher.tell(candidates[0].id, error="loss became NaN")
        with report.serve(path) as server, opened(browser, server.url, ready="html[data-ready=yes]") as page:
            assert page.text_content("#front .annotation") == "no candidate has a metric yet"
            searcher.tell(candidates[1].id, {"latency_ms": 5.0})
            searcher.tell(candidates[2].id, {"accuracy": 0.5})
            expected = "no candidate has both latency_ms and accuracy yet"
            sync_api.expect(page.locator("#front .annotation")).to_have_text(expected, timeout=10_000)
            for candidate in searcher.ask(4):
                searcher.tell(candidate.id, {"latency_ms": 4.0, "accuracy": 0.5})
            sync_api.expect(page.locator("#front .annotation")).to_have_count(0, timeout=10_000)
    with kas.Searcher(SPACE, "random", seed=1, database=tmp_path / "failed.db") as searcher:
        for candidate in searcher.ask(2):
            searcher.tell(candidate.id, error="out of memory")
    report.write(tmp_path / "failed.db", tmp_path / "failed.html")
    with opened(browser, (tmp_path / "failed.html").as_uri(), ready="html[data-ready=yes]") as page:
        assert page.text_content("#front .annotation") == "all 2 candidates failed, most of them: out of memory"


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 390), ("dark", 1400)])
def test_nothing_is_clipped(browser, page_url, scheme, width):
    """On a phone, too, with the entries of all baselines in the legends."""
    with opened(browser, page_url, scheme, width) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert find_clipped(page) == []


def test_command_again(tmp_path):
    """The command that a report has gives the same candidates."""
    (tmp_path / "space.mlir").write_text(SPACE)
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    options = "evaluations=20 seed=7 evaluators=flops,params objective=pareto(flops,params) limits=flops<=1e9"
    command = [KAS_OPT, "space.mlir", f"-kas-search={options} database={first}", "-o", "found.mlir"]
    subprocess.run(command, cwd=tmp_path, check=True)
    again = shlex.split(report.Database(first).read_summary()["command"])
    assert again[:2] == ["kas-opt", "space.mlir"]
    again[2] += f" database={second}"
    subprocess.run([KAS_OPT, *again[1:], "-o", "again.mlir"], cwd=tmp_path, check=True)

    def read(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT id, key, operator FROM candidate ORDER BY id").fetchall()

    assert read(first) == read(second)


def test_command_of_model_search():
    settings = {
        "evaluator": "train",
        "data": "digits 300/300/1197",
        "recipe": "Recipe(epochs=3)",
        "halving": "Halving(size=9)",
        "network": "DigitsNetwork 20 parameters",
        "algorithm": "surrogate",
        "seed": "4",
        "objective": "-accuracy",
    }
    text = get_command(settings, 12)
    compile(text, "<command>", "exec")
    for part in ("data='digits'", "candidates=12", "recipe=Recipe(epochs=3)", "seed=4", "objective='-accuracy'"):
        assert part in text


def test_command_of_model_search_again(tmp_path, monkeypatch):
    """Run as it is written, it gives the same candidates."""
    pytest.importorskip("torch")
    from kas import evaluate

    def read(path):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT key, operator FROM candidate ORDER BY id").fetchall()

    first, second = tmp_path / "first.db", tmp_path / "second.db"
    kas.search(
        evaluate.DigitsNetwork(8),
        "digits",
        kas.Budget(candidates=2),
        recipe=evaluate.Recipe(epochs=1),
        halving=kas.Halving.off(),
        algorithm="random",
        seed=3,
        workers=1,
        final=0,
        final_seeds=1,
        progress=False,
        database=first,
    )
    summary = report.Database(first).read_summary()
    (tmp_path / "space.mlir").write_text(summary["settings"]["space"])
    monkeypatch.chdir(tmp_path)
    command = summary["command"].replace("workers=1,", "workers=1, final=0, final_seeds=1, database='second.db',")
    exec(command, {"model": evaluate.DigitsNetwork(8)})
    assert len(read(first)) == 2 and read(first) == read(second)


def test_command_of_training():
    settings = {
        "evaluators": "flops,training",
        "training": "--data=fashion-mnist --epochs=2",
        "rungs": "1,3",
        "seed": "1",
    }
    text = get_command(settings, 5)
    assert shlex.split(text)[2] == (
        "-kas-search=evaluations=5 threads=1 evaluators=flops,training rungs=1,3 seed=1 "
        "training='--data=fashion-mnist --epochs=2'"
    )


@pytest.mark.parametrize(
    ("objective", "best"),
    [
        ("-accuracy", 2),
        ("flops", 1),
        ("flops - 10*accuracy", 2),
        ("3*flops - accuracy", 1),
        ("pareto(flops,-accuracy)", 2),
        ("", 2),
        ("-nothing", 2),
    ],
)
def test_best(objective, best):
    columns = {"flops": [3.0, 1.0, 2.0, None], "accuracy": [0.5, 0.4, 0.9, None]}
    assert comparison.choose_candidate(objective, columns, "accuracy", ["accuracy"]) == best


def test_best_of_nothing():
    assert comparison.choose_candidate("-accuracy", {}, None, []) is None
    assert comparison.choose_candidate("-accuracy", {"accuracy": [None]}, "accuracy", ["accuracy"]) is None
    columns = {"accuracy": [0.9, 0.5], "final_accuracy": [None, 0.6]}
    assert comparison.choose_candidate("-accuracy", columns, "accuracy", ["accuracy"]) == 1
    columns = {"accuracy after 1 epoch": [0.9, 0.5], "accuracy after 3 epochs": [None, 0.6], "flops": [1.0, 2.0]}
    assert comparison.choose_candidate("flops-accuracy", columns, "flops", []) == 1


def test_baseline_of_rungs():
    """What the evaluator `training` keeps of the network itself: the last epoch, and rungs by their names."""
    curve = [(2, 9, "accuracy", 0.9), (2, 9, "accuracy_1", 0.5), (2, 9, "accuracy_3", 0.7), (2, 9, "loss", 0.3)]
    found = comparison.find_baseline(comparison.find_costs("budget {baseline_flops = 7 : i64}"), curve, [1, 3, 9])
    expected = {
        "flops": 7,
        "accuracy after 1 epoch": 0.5,
        "accuracy after 3 epochs": 0.7,
        "accuracy after 9 epochs": 0.9,
    }
    assert expected.items() <= found.items() and "loss after 1 epoch" not in found
