# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches on several workers: local processes, Ray clusters with nodes that die, simulated workers."""

import collections
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest
from evaluator import Evaluator, Training

import kas
import kas.distributed
from kas.distributed import LocalPool, Outcome, Pool, SimulatedPool, run
from kas.evaluate._workers import Job

SPACE = """
kas.space @layer<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, g = 4, k = 3>]
    limits {depth = 6, reduce = 3, split = 2, merge = 2, unfold = 2}
"""


def make_searcher(algorithm="random", **more):
    return kas.Searcher(SPACE, algorithm, seed=1, objective="loss", **more)


def read(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA integrity_check")
        return connection.execute("SELECT id, key, state, failure FROM candidate ORDER BY id").fetchall()


def check(path, count):
    """Nothing lost, nothing twice."""
    rows = read(path)
    assert [row[0] for row in rows] == list(range(count))
    assert len({row[1] for row in rows}) == count
    assert all(row[2] != "asked" for row in rows), collections.Counter(row[2] for row in rows)
    for number, _, state, failure in rows:
        assert (state == "failed") == (number % 10 == 9) and failure in (None, "ValueError: no good"), (number, failure)


@pytest.fixture
def marks(tmp_path):
    directory = tmp_path / "marks"
    directory.mkdir()
    return directory


def test_local_pool(tmp_path, marks):
    path = tmp_path / "search.db"
    results = []
    with make_searcher(database=path) as searcher, LocalPool(Evaluator(marks, dies=[3, 5]), 2) as pool:
        summary = run(searcher, pool, evaluations=30, on_result=results.append)
    assert summary.evaluated == 27 and summary.failed == 3 and 2 <= summary.lost <= 4
    assert sorted(result.id for result in results) == list(range(30))
    check(path, 30)
    # The same call has nothing left to do; a larger one goes on.
    with make_searcher(database=path) as searcher, LocalPool(Evaluator(marks), 2) as pool:
        assert run(searcher, pool, evaluations=30).evaluated == 0
        run(searcher, pool, evaluations=35)
    check(path, 35)


def test_back_pressure(marks):
    """No more candidates are in flight than there is room for."""
    most = 0
    with make_searcher() as searcher, LocalPool(Evaluator(marks), 2, prefetch=1) as pool:

        def watch(_):
            nonlocal most
            most = max(most, len(searcher.in_flight))

        run(searcher, pool, evaluations=30, on_result=watch)
    assert 1 <= most <= 4


def test_limits_and_stragglers(marks):
    with make_searcher() as searcher, LocalPool(Evaluator(marks, hangs=[12], always=[4]), 2) as pool:
        summary = run(searcher, pool, evaluations=20, retries=1, straggler_factor=3)
        assert pool.get_capacity() == 4
        failures = {result.id: result.failure for result in searcher.results}
    # A second worker had the answer while the first hung.
    assert failures[12] is None and summary.repeated >= 1
    # On a busy machine a third one may have begun before the second was lost.
    assert re.fullmatch("lost [23] workers, the last one: the worker ended with code -9", failures[4])
    with (
        make_searcher() as searcher,
        LocalPool(evaluator := Evaluator(marks.parent / "marks", hangs=[100], seconds=0.01), 1) as pool,
    ):
        (marks / "0").unlink()
        # The process that takes the place of the one that dies while it is idle.
        evaluator.hangs = {0}
        (pid,) = pool._processes.pids
        os.kill(pid, signal.SIGKILL)
        # Far more than a new process takes to start on a busy machine: the limit counts from the submission on.
        run(searcher, pool, evaluations=3, time_limit=15, straggler_factor=0)
        assert [result.failure for result in searcher.results] == ["took more than 15 s", None, None]


class OneWorker(Pool):
    """A worker with a queue, on which the first candidate never ends; the others take no time."""

    def __init__(self):
        self.now, self.tasks, self.lost = 0.0, [], []

    def get_capacity(self):
        return 3

    def get_time(self):
        return self.now

    def submit(self, task, request):
        self.tasks.append((task, request.id))

    def wait(self, seconds):
        outcomes, self.lost = self.lost, []
        if self.tasks and self.tasks[0][1] != 0:
            outcomes.append(Outcome(self.tasks.pop(0)[0], metrics={"loss": 1.0}))
        self.now += 0 if outcomes else seconds
        return outcomes

    def cancel(self, task, *, kill):
        if kill and self.tasks and self.tasks[0][0] == task:
            self.lost += [Outcome(other, lost="killed", begun=False) for other, _ in self.tasks[1:]]
            self.tasks = []


def test_what_waits_for_a_worker_is_not_late():
    with make_searcher() as searcher:
        summary = run(searcher, OneWorker(), evaluations=4, time_limit=5, straggler_factor=0)
        assert [result.failure for result in searcher.results] == ["took more than 5 s", None, None, None]
    assert summary.failed == 1 and summary.lost == 2


def test_simulated_workers():
    def durations(request, random):
        return random.uniform(5, 15)

    pools = []
    for workers in (1, 20):
        pool = SimulatedPool(lambda request: {"loss": request.id % 7}, workers, durations, loss=0.05, seed=3)
        with make_searcher() as searcher:
            summary = run(searcher, pool, evaluations=100, straggler_factor=0, retries=20)
            assert summary.evaluated == 100 and summary.lost > 0
            assert len({result.candidate.key for result in searcher.results}) == 100
        pools.append((pool, summary))
    (_, one), (pool, many) = pools
    assert 800 < one.seconds < 1300
    assert many.seconds < one.seconds / 12 and pool.busy_seconds < 20 * many.seconds


def test_bad_input(marks):
    with make_searcher() as searcher:
        with pytest.raises(ValueError, match="workers must be a positive integer, got 0"):
            LocalPool(Evaluator(marks), 0)
        with LocalPool(Evaluator(marks), 1) as pool:
            for options, message in [
                ({"evaluations": -1}, "evaluations must be a non-negative integer, got -1"),
                ({"evaluations": 1.5}, "evaluations must be a non-negative integer, got 1.5"),
                ({"evaluations": 1, "seconds": 0}, "seconds must be a positive number, got 0"),
                ({"evaluations": 1, "time_limit": "1"}, "time_limit must be a positive number, got '1'"),
            ]:
                with pytest.raises(ValueError, match=message):
                    run(searcher, pool, **options)
            with pytest.raises(kas.Error, match="closed"):
                searcher.close()
                run(searcher, pool, evaluations=1)


def test_wrong_metrics_are_failures(tmp_path):
    with make_searcher() as searcher:
        pool = SimulatedPool(lambda request: {"loss": "low" if request.id else float("nan")}, 1, lambda *_: 1.0)
        run(searcher, pool, evaluations=2)
        assert [result.failure for result in searcher.results] == [
            "loss is nan",
            "the metric 'loss' must be a number, got 'low'",
        ]


def test_training_pool(tmp_path):
    workers = LocalPool(kas.distributed.TrainJob(Training(tmp_path)), 2, prefetch=0)
    with kas.distributed.TrainingPool(workers) as pool:
        jobs, done = [Job(i, text, seed=i) for i, text in enumerate(["well", "dies", "fails", "good"])], []
        waiting = list(jobs)
        while waiting or pool.busy:
            while waiting and pool.idle:
                pool.submit(waiting.pop(0))
            done += pool.wait(1)
        assert sorted(one.job.candidate for one in done) == [0, 1, 2, 3] and pool.idle == 2
        for one in done:
            failed = one.job.text == "fails"
            assert one.failure == ("ValueError: loss became NaN" if failed else None)
            assert one.metrics == (None if failed else {"accuracy": one.job.seed / 10})
            assert len(one.curve) == (0 if failed else 1)
        pool.submit(jobs[0])
        assert pool.cancel() == [jobs[0]] and pool.busy == 0


# ---- Ray

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")


@pytest.fixture(scope="module")
def cluster():
    """Four nodes on this machine: the driver's, which has no place for evaluators, and three others."""
    from ray.cluster_utils import Cluster

    # Workers have the environment of their node.
    os.environ["PYTHONPATH"] = f"{os.path.dirname(os.path.abspath(__file__))}:{os.environ.get('PYTHONPATH', '')}"
    options = {"object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
    nodes = [cluster.add_node(num_cpus=1, resources={"evaluator": 1}, object_store_memory=80_000_000) for _ in range(3)]
    cluster.wait_for_nodes()
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()


DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import kas.distributed
from evaluator import Evaluator
from test_distributed import make_searcher
with make_searcher("mcts", database={database!r}) as searcher:
    with kas.distributed.RayPool(Evaluator({marks!r}, seconds=0.05), 3, address={address!r}) as pool:
        print("summary", kas.distributed.run(searcher, pool, evaluations={count}), flush=True)
"""


def start_driver(cluster, path, marks, count):
    here = os.path.dirname(os.path.abspath(__file__))
    text = DRIVER.format(tests=here, database=str(path), marks=str(marks), address=cluster.address, count=count)
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, text=True)


def wait_for(path, count, driver):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.OperationalError):
            if sum(row[2] != "asked" for row in read(path)) >= count:
                return
        assert driver.poll() is None
        time.sleep(0.05)
    raise AssertionError("the search does not go on")


@pytest.mark.slow
def test_nodes_and_drivers_may_die(cluster, tmp_path, marks):
    """One of four nodes is killed, then the driver; the next driver goes on: nothing is lost or there twice."""
    cluster, nodes = cluster
    path, count = tmp_path / "search.db", 150
    driver = start_driver(cluster, path, marks, count)
    try:
        wait_for(path, 30, driver)
        cluster.remove_node(nodes[1], allow_graceful=False)
        wait_for(path, 60, driver)
        driver.kill()
        driver.wait()
        before = {row[0] for row in read(path) if row[2] != "asked"}
        times = {name.name: len(name.read_text().splitlines()) for name in marks.iterdir()}
        assert 60 <= len(before) < count
        driver = start_driver(cluster, path, marks, count)
        output, _ = driver.communicate(timeout=200)
        assert (
            driver.returncode == 0
            and f"evaluated={count - count // 10 - sum(1 for i in before if i % 10 != 9)}" in output
        )
    finally:
        driver.kill()
    check(path, count)
    # What had an outcome was not evaluated again.
    for number in before:
        assert len((marks / str(number)).read_text().splitlines()) == times[str(number)]
    assert (
        subprocess.run([os.path.join(os.environ["KAS_BUILD"], "bin", "kas-search-db"), "check", path]).returncode == 0
    )


@pytest.mark.slow
def test_lost_workers_and_late_ones(cluster, tmp_path, marks):
    cluster, _ = cluster
    path = tmp_path / "search.db"
    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    with (
        make_searcher(database=path) as searcher,
        kas.distributed.RayPool(Evaluator(marks, dies=[3], hangs=[15]), 2) as pool,
    ):
        summary = run(searcher, pool, evaluations=25, straggler_factor=3)
    assert summary.lost >= 1 and summary.repeated >= 1
    check(path, 25)


@pytest.mark.slow
def test_trainings_on_nodes_that_die(cluster):
    """The trainer itself on two nodes, one of which is killed while it trains: every training comes to its end."""
    from test_pickling import make_trainer

    cluster, _ = cluster
    trainer, operator = make_trainer(), str(kas.operator("conv2d_depthwise_separable"))
    nodes = [cluster.add_node(num_cpus=1, resources={"trainer": 1}, object_store_memory=80_000_000) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    workers = kas.distributed.RayPool(kas.distributed.TrainJob(trainer), 2, resources={"trainer": 1}, prefetch=0)
    jobs = [Job(number, operator if number % 2 else None, seed=number) for number in range(10)]
    waiting, done = list(jobs), []
    with kas.distributed.TrainingPool(workers) as pool:
        while workers.get_capacity() < 2:
            workers.wait(1)
        while waiting or pool.busy:
            while waiting and pool.idle:
                pool.submit(waiting.pop(0))
            if len(nodes) == 2 and len(done) >= 3 and pool.busy == 2:
                cluster.remove_node(nodes.pop(), allow_graceful=False)
            done += pool.wait(1)
        assert workers.get_capacity() == 1
    assert not [one.failure for one in done if one.failure]
    for one in done:
        expected, _ = trainer.train_once(one.job.text, one.job.seed)
        assert one.metrics["accuracy"] == expected["accuracy"] and one.metrics["loss"] == expected["loss"]
    assert sorted(one.job.candidate for one in done) == list(range(10))
    cluster.remove_node(nodes.pop())


@pytest.mark.slow
def test_throughput_of_ray_is_that_of_processes(cluster, tmp_path, marks):
    """Within 10 %, with evaluations of 20 ms on two workers."""
    cluster, _ = cluster
    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    rates = {}
    for kind in (LocalPool, kas.distributed.RayPool):
        with make_searcher() as searcher, kind(Evaluator(marks, seconds=0.02), 2) as pool:
            run(searcher, pool, evaluations=40)
            summary = run(searcher, pool, evaluations=440)
            rates[kind.__name__] = 400 / summary.seconds
    print(f"\ncandidates per second: {rates}")
    assert rates["RayPool"] > 0.9 * rates["LocalPool"]
