# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The search engine from Python: ask and tell, the database, threads, errors."""

import math
import os
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

import kas
from kas._search import read_objective
from kas._search_database import SearchDatabase

SPACE = """
kas.space @layer<N, Cin, Cout, W | k>
    [N, Cout unordered, W] from [N, Cin unordered, W]
    bindings [<N = 1, Cin = 8, Cout = 8, W = 12, k = 3>, <N = 1, Cin = 16, Cout = 16, W = 8, k = 3> x 3]
    limits {depth = 5}
"""


@pytest.fixture
def space():
    return kas.SearchSpace.parse(SPACE)


def evaluate(candidate):
    return {"loss": candidate.flops / 1e6 + int(candidate.key, 16) % 97 / 97}


def test_a_space_says_what_it_is(space):
    assert space.name == "layer"
    assert space.symbols == (["N", "Cin", "Cout", "W"], ["k"])
    assert space.bindings[0] == {"N": 1, "Cin": 8, "Cout": 8, "W": 12, "k": 3}
    assert space.multiplicities == [1, 3]
    assert space.budget == {}


def test_complete_list_with_exact_costs(space):
    candidates = space.list()
    assert len(candidates) == space.count() == len({candidate.key for candidate in candidates}) > 5
    assert [candidate.flops for candidate in candidates] == sorted(candidate.flops for candidate in candidates)
    for candidate in candidates:
        costs = [candidate.operator.cost(binding) for binding in space.bindings]
        assert candidate.flops == sum(cost.flops * n for cost, n in zip(costs, space.multiplicities))
        assert candidate.params == sum(cost.parameters * n for cost, n in zip(costs, space.multiplicities))


def test_limits_are_set_and_taken_away(space):
    """Whatever their names, order and values are: as if they were written in the text."""
    from kas._search_setup import fit_limits

    text = SPACE.replace("depth = 5", 'reduce = 1, occurrences.W = 2, depth = 4, sees = ["3"], unfold_ratio = 1.5')
    changes = {"depth": 4, "reduce": 1, "occurrences.W": 2, "sees": ["3"], "unfold_ratio": 1.5}
    assert fit_limits(space, changes).text == kas.SearchSpace.parse(text).text
    assert "depth = 5" in space.text
    bare = fit_limits(space, {"depth": None, "reduce": None, "unfold_ratio": 2})
    assert "depth" not in bare.text and "unfold_ratio = 2" in bare.text
    fields = fit_limits(space, {"sees": ["*"], "equivariant": ["cyclic"], "any_grid": 1})
    for limit in ("any_grid = 1 : i64", 'equivariant = ["cyclic"]', 'sees = ["*"]'):
        assert limit in fields.text
    for wrong in ({"dept": 3}, {"depth": "3"}, {"equivariant": ["torus"]}, {"unfold_ratio": math.nan}, {"depth": True}):
        with pytest.raises((kas.Error, TypeError), match=r"depth|dept|equivariant|unfold_ratio|limit|expected"):
            fit_limits(space, wrong)


def test_objectives_are_read():
    assert read_objective("") == []
    assert read_objective("2*loss - 1e-3*accuracy") == [[(2, "loss"), (-1e-3, "accuracy")]]
    assert read_objective("pareto(flops, -accuracy)") == [[(1, "flops")], [(-1, "accuracy")]]
    for wrong in ("loss+", "pareto(loss)", "3", "loss accuracy*", "pareto(a,b"):
        with pytest.raises(kas.Error, match=r"requires "):
            read_objective(wrong)


@pytest.mark.parametrize("kept", [False, True])
def test_baselines_have_numbers(space, tmp_path, kept):
    database = tmp_path / "a.db" if kept else None
    with kas.Searcher(space, "random", database=database) as searcher:
        assert [searcher.add_baseline(name, "text") for name in ("a", "b", "a")] == [-2, -3, -2]
        with pytest.raises(kas.Error, match=r"the database has another baseline 'b'; requires one of another name"):
            searcher.add_baseline("b", "other")
    with pytest.raises(kas.Error, match=r"the search is closed"):
        searcher.add_baseline("c", "text")
    with kas.Searcher(space, "random", database=database) as searcher:
        assert searcher.add_baseline("b", "text") == (-3 if kept else -2)


def test_plans_refuse_wrong_options():
    for wrong in ({"size": 0}, {"keep": 0.0}, {"rungs": [3, 3]}, {"epochs": 0}, {"workers": 0}):
        with pytest.raises(kas.Error, match=r"requires "):
            kas._kas.TrainingPlan(**{"size": 3, "rungs": [1], "keep": 0.5, "epochs": 4} | wrong)


def test_weights_indexed_by_a_position():
    text = SPACE.replace("depth = 5", "depth = 5, occurrences.W = 2")
    everything = kas.SearchSpace.parse(text).list()
    by_position = {candidate.key for candidate in everything if candidate.weights_indexed_by_position}
    assert 0 < len(by_position) < len(everything)
    others = kas.SearchSpace.parse(text.replace("depth = 5", "depth = 5, weights_by_position = 0")).list()
    assert {candidate.key for candidate in others} == {candidate.key for candidate in everything} - by_position
    conv = kas.operator("conv2d")
    assert conv.weight_outputs == [[1]]
    assert not conv.weights_indexed_by_position
    b = kas.OperatorBuilder("local", primaries=["N", "C", "W"])
    n, c, w = b.outputs("N", "C", "W")
    c0, c1 = b.share(c)
    w0, w1 = b.share(w)
    assert b.build([n, c0, w0], [[c1, w1]]).weights_indexed_by_position


@pytest.mark.parametrize("algorithm", kas.ALGORITHMS)
def test_every_algorithm_finds_all(space, algorithm):
    with kas.Searcher(space, algorithm, seed=3, objective="loss") as searcher:
        keys = set()
        while candidates := searcher.ask(3):
            for candidate in candidates:
                assert candidate.key not in keys
                keys.add(candidate.key)
                result = searcher.tell(candidate.id, evaluate(candidate))
                assert result.metrics["flops"] == candidate.flops
        assert searcher.is_exhausted
        assert len(keys) == space.count()
        statistics = searcher.statistics
        assert statistics["asked"] == statistics["evaluated"] == len(keys)


def ask_some(space, count, database=None, **options):
    with kas.Searcher(space, "mcts", seed=1, database=database, objective="loss", **options) as searcher:
        while len(searcher.results) < count:
            (candidate,) = searcher.ask(1)
            searcher.tell(candidate.id, evaluate(candidate))
        return [(result.candidate.key, result.metrics) for result in searcher.results]


def test_the_same_call_goes_on(space, tmp_path):
    database = tmp_path / "search.db"
    expected = ask_some(space, 8)
    ask_some(space, 5, database)
    # Killed with a candidate in flight: it is proposed first.
    searcher = kas.Searcher(space, "mcts", seed=1, database=database, objective="loss")
    assert searcher.num_replayed == 5
    lost = searcher.ask(1)[0]
    del searcher
    with kas.Searcher(space, "mcts", seed=1, database=database, objective="loss") as searcher:
        assert searcher.ask(1)[0] == lost
    assert ask_some(space, 8, database) == expected
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM candidate WHERE state = 'evaluated'").fetchone() == (8,)


def test_a_database_of_another_search(space, tmp_path):
    database = tmp_path / "search.db"
    ask_some(space, 2, database, settings={"recipe": "short"})
    with pytest.raises(kas.Error, match=r"recipe"):
        ask_some(space, 2, database, settings={"recipe": "long"})
    with (
        kas.Searcher(space, "mcts", seed=1, database=database, objective="loss", settings={"recipe": "short"}),
        pytest.raises(kas.Error, match=r"in use by another search"),
    ):
        ask_some(space, 2, database, settings={"recipe": "short"})
    database.write_bytes(b"this is no database")
    with pytest.raises(kas.Error, match=r"requires a database, got a file of another kind"):
        ask_some(space, 2, database)


def test_failures_are_results(space, tmp_path):
    database = tmp_path / "search.db"
    with kas.Searcher(space, database=database) as searcher:
        a, b, c = searcher.ask(3)
        assert searcher.tell(a.id, error="no, not this one").failure == "no, not this one"
        assert searcher.tell(b.id, {"loss": math.nan}).failure == "loss is nan"
        assert searcher.in_flight == [c]
        assert searcher.statistics["failed"] == 2
    with kas.Searcher(space, database=database) as searcher:
        assert [result.failure for result in searcher.results] == ["no, not this one", "loss is nan"]


def test_what_is_kept_beside(space, tmp_path):
    options = {"database": tmp_path / "search.db", "objective": "loss"}
    with kas.Searcher(space, **options) as searcher:
        first, second = searcher.ask(2)
        for candidate in (first, second):
            searcher.tell(candidate.id, evaluate(candidate))
        searcher.record_final(first.id, {"accuracy": 0.5}, seconds=3)
        searcher.record_final(second.id, error="out of memory")
        searcher.record_training(first.id, 1, [(1, "loss", 2.0), (2, "loss", 1.0), (2, "bad", math.nan)])
        searcher.record_training(-1, 0, [(1, "accuracy", 0.75)])
    with kas.Searcher(space, **options) as searcher:
        assert searcher.finals[first.id].metrics == {"accuracy": 0.5}
        assert searcher.finals[second.id].failure == "out of memory"
        assert searcher.training == [(-1, 0, 1, "accuracy", 0.75), (0, 1, 1, "loss", 2.0), (0, 1, 2, "loss", 1.0)]
    with (
        kas.Searcher(space) as searcher,
        pytest.raises(kas.Error, match=r"requires a searcher with a database, got one without"),
    ):
        searcher.record_training(-1, 0, [])


def test_bad_input(space):
    with pytest.raises(kas.Error, match=r"requires one kas.space in the module, or the name of one, got 0"):
        kas.SearchSpace("module {}")
    with pytest.raises(kas.Error, match=r"the module has no space 'other'"):
        kas.SearchSpace.parse(SPACE, "other")
    with pytest.raises(kas.Error, match=r"surrogate"):
        kas.Searcher(space, "gradient descent")
    with pytest.raises(kas.Error, match=r"expected a parameter of .mcts"):
        kas.Searcher(space, "mcts", parameters={"no_such_constant": 3})
    with pytest.raises(ValueError, match=r"the seed must be an integer from 0"):
        kas.Searcher(space, seed=-1)
    with pytest.raises(TypeError, match=r"expected a kas.Module or its text, got int"):
        kas.SearchSpace(3)
    searcher = kas.Searcher(space)
    with pytest.raises(ValueError, match=r"must be a non-negative integer, got 1.5"):
        searcher.ask(1.5)
    with pytest.raises(kas.Error, match=r"got 0, which was not proposed"):
        searcher.tell(0, {"loss": 1})
    (candidate,) = searcher.ask()
    with pytest.raises(TypeError, match=r"tell either metrics or an error"):
        searcher.tell(candidate.id)
    with pytest.raises(TypeError, match=r"the metric 'loss' must be a number, got 'low'"):
        searcher.tell(candidate.id, {"loss": "low"})
    searcher.tell(candidate.id, {"loss": 1})
    with pytest.raises(kas.Error, match=r"which has an outcome"):
        searcher.tell(candidate.id, {"loss": 1})
    searcher.close()
    searcher.close()
    with pytest.raises(kas.Error, match=r"the search is closed; make another searcher on its database to go on"):
        searcher.ask()


def test_many_threads(space, tmp_path):
    with kas.Searcher(space, "evolution", seed=5, database=tmp_path / "search.db", objective="loss") as searcher:

        def work():
            while candidates := searcher.ask(2):
                for candidate in candidates:
                    searcher.tell(candidate.id, evaluate(candidate))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(searcher.results) == space.count()


def test_kas_opt_reads_the_same_file(space, tmp_path):
    database = tmp_path / "search.db"
    ask_some(space, 4, database)
    tool = os.path.join(os.environ.get("KAS_BUILD", "build"), "bin", "kas-search-db")
    if not os.path.exists(tool):
        pytest.fail(f"{tool} is not built")
    listed = subprocess.run([tool, "list", database, "--json"], capture_output=True, text=True, check=True).stdout
    assert listed.count("loss") == 4


@pytest.mark.parametrize("algorithm", kas.ALGORITHMS)
def test_kas_opt_searches_alike(space, algorithm, tmp_path):
    """With the same settings both give the same candidates, in the same order, and the same scores."""
    count, objective = min(12, space.count()), "predicted_ms + 1e-9 * params"
    ours, theirs = tmp_path / "python.db", tmp_path / "kas-opt.db"
    with kas.Searcher(space, algorithm, seed=5, database=ours, objective=objective) as searcher:
        for _ in range(count):
            (candidate,) = searcher.ask(1)
            names = [name for kind in candidate.operator.symbols for name in kind]
            times = [candidate.operator.predict_milliseconds({n: b[n] for n in names}) for b in space.bindings]
            total = sum(time * count for time, count in zip(times, space.multiplicities))
            searcher.tell(candidate.id, {"predicted_ms": total})
    (tmp_path / "space.mlir").write_text(SPACE)
    settings = f"algorithm={algorithm} seed=5 evaluations={count} threads=1 progress=false"
    program = os.path.join(os.environ.get("KAS_BUILD", "build"), "bin", "kas-opt")
    command = [
        program,
        tmp_path / "space.mlir",
        f'-kas-search={settings} evaluators=flops,params,predicted_ms objective="{objective}" database={theirs}',
    ]
    subprocess.run([*command, "-o", os.devnull], check=True, capture_output=True)
    found = []
    for path in (ours, theirs):
        with SearchDatabase(path).snapshot() as snapshot:
            rows = snapshot.read_rows()
            texts, metrics = snapshot.read_texts([row.id for row in rows]), snapshot.read_metrics()
            found.append([(row.id, row.parent, row.state, texts[row.id]) for row in rows])
            found.append([metrics[row.id] for row in rows])
    assert len(found[0]) == count and found[0] == found[2]
    assert {"flops", "params", "predicted_ms"} == found[1][0].keys()
    for one, other in zip(found[1], found[3]):
        # The evaluator of kas-opt also says what the least time is.
        assert one == pytest.approx({name: other[name] for name in one}, rel=1e-12)


LARGE = """kas.space @layers<N, Cin, Cout, H, W | k, g> [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
  bindings [<N = 1, Cin = 8, Cout = 64, H = 224, W = 224, k = 7, g = 4>]
  limits {depth = 10, equivariant = 1, expand = 0, merge = 2, reduce = 4, shift = 1, split = 2, stride = 0, unfold = 2,
          weights = 1, weights_by_position = 0, sees = ["k", "k"]}
  budget {flops_ratio = 0.75, min_flops_ratio = 0.02, baseline_flops = 2517630976}"""
"""A space in which the moves of the first state alone take seconds."""


@pytest.mark.parametrize("algorithm", ["random", "exhaustive", "mcts"])
def test_stop_is_heeded_before_there_is_a_candidate(algorithm):
    with kas.Searcher(kas.SearchSpace.parse(LARGE), algorithm) as searcher:
        threading.Timer(0.2, searcher.stop).start()
        start = time.monotonic()
        searcher.ask(1000)
        assert time.monotonic() - start < 2
        assert not searcher.is_exhausted and searcher.ask(1) == []


@pytest.fixture
def with_ctrl_c():
    """Python leaves the signal alone where a shell that runs it in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heeded_before_there_is_a_candidate(with_ctrl_c):
    with kas.Searcher(kas.SearchSpace.parse(LARGE), "random") as searcher:
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            searcher.ask(1000)
        assert time.monotonic() - start < 2
        assert searcher.ask(1) == []
