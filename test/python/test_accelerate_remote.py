# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate with workers elsewhere: the result of a run without, whatever becomes of the workers."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections import deque

import pytest
import torch

import kas
import kas.distributed
from kas._accelerate import _contest, _library, _problem, _remote
from kas._accelerate._progress import Clock, Reporter
from kas._accelerate._store import Store
from kas.distributed import AccelerateJob, Outcome, Pool

torch.set_num_threads(1)


class Losing(Pool):
    """Workers in this process, of which each `period`-th is lost at its job; all that travels is pickled."""

    def __init__(self, evaluator, period):
        self._evaluator = pickle.dumps(evaluator)
        self._worker = pickle.loads(self._evaluator)
        self._tasks, self._period, self.count = deque(), period, 0
        self.cancelled = []

    def get_capacity(self):
        return 3

    def submit(self, task, request):
        self._tasks.append((task, pickle.dumps(request)))

    def wait(self, seconds):
        task, request = self._tasks.popleft()
        self.count += 1
        if self._period and self.count % self._period == 0:
            self._worker = pickle.loads(self._evaluator)
            return [Outcome(task, lost="gone")]
        try:
            return [Outcome(task, metrics=pickle.loads(pickle.dumps(self._worker(pickle.loads(request)))))]
        except ValueError as error:
            return [Outcome(task, error=str(error))]

    def cancel(self, task, *, kill):
        self.cancelled.append(task)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return kas.evaluate.DigitsNetwork(8, blocks=1).eval()


def learn(network, pool):
    """The errors of alternatives after imitation, and two networks after a short training."""
    data, clock, reporter = kas.evaluate.digits(), Clock(1e6), Reporter(Clock(1e6), True)
    store = Store(None, {})
    try:
        options = _problem.Options(workers=1)
        problem = _problem.Problem(network, data, kas.evaluate.Classification(), options, store, clock, reporter)
        problem.remote = pool and _remote.Remote(pool, reporter)
        library = _library.Library(problem)
        library._measure()
        library._imitate()
        trainings = _contest.Trainings(problem)
        choice = [_library.Option(one.unit.name, one.form, 0.0, 0.0) for one in library.alternatives[:1]]
        contenders = [_contest.Contender(f"front-{n}", "ours", library.put(choice), {}, 0.1) for n in range(2)]
        jobs = [_contest.Job(one, seed, 0.2) for seed, one in enumerate(contenders)]
        trainings.prepare(contenders)
        results = trainings.run(jobs, "training", 1e6)
        return {one.name: one.error for one in library.alternatives}, results
    finally:
        store.close()


def test_workers_elsewhere_give_the_same(network, monkeypatch):
    monkeypatch.setattr(_library, "read_all", lambda: [])
    monkeypatch.setattr(_library, "LEAST_SHARE", 0.3)
    # All of them, however long they take.
    monkeypatch.setattr(_library, "GAIN", 1e9)
    monkeypatch.setattr("kas._accelerate._found.TIME_SHARE", 0.0)
    errors, results = learn(network, None)
    pool = Losing(AccelerateJob(network, kas.evaluate.digits()), 4)
    monkeypatch.setattr(_contest, "train", None)
    monkeypatch.setattr(_library, "imitate", None)
    found, others = learn(network, pool)
    assert found == errors and pool.count > len(errors) + 2
    for (one, drop), (other, other_drop) in zip(results, others):
        assert drop == other_drop
        assert all(torch.equal(*pair) for pair in zip(one.state_dict().values(), other.state_dict().values()))


class Failing:
    def run(self, worker):
        raise ValueError("no reason")


def test_what_goes_wrong_at_workers_is_said(network):
    reporter = Reporter(Clock(1.0), True)
    pool = Losing(AccelerateJob(network, kas.evaluate.digits()), 0)
    with pytest.raises(RuntimeError, match="a worker could not go on: no reason"):
        _remote.Remote(pool, reporter).map([1, 2], "some", lambda _: Failing(), None)
    assert pool.cancelled == [1]
    pool = Losing(AccelerateJob(network, kas.evaluate.digits()), 1)
    with pytest.raises(RuntimeError, match="a worker could not go on: gone"):
        _remote.Remote(pool, reporter).map([1], "some", lambda _: Failing(), None)
    assert pool.count == 1 + _remote.RETRIES
    # There is nothing to do for a worker.
    _remote.Remote(pool, reporter).map([1, 2], "some", lambda _: None, None)
    assert pool.count == 1 + _remote.RETRIES


SCRIPT = """
import sys
import test_accelerate_killed
exec(test_accelerate_killed.SCRIPT.split("data = ")[0])
import kas.distributed
from kas._accelerate import _files, _found, _library

# What is sent to workers is little.
_found.TIME_SHARE, _library.LEAST_SHARE, _run.MOST_EPOCHS = 0.0, 0.3, 0.1
_files.write_files = lambda *_: []
data = kas.evaluate.digits()
torch.manual_seed(0)
network = kas.evaluate.DigitsNetwork(16, blocks=1)
training = kas.evaluate.Training(network, data, kas.evaluate.Recipe(epochs=1))
training.advance(1)
training.evaluate()
network = training.network.eval()
options = {"max_drop": 100, "minutes": 1e6, "precision": precision, "progress": False, "out": folder}
if size == "whole":
    kas.accelerate(network, data, **options)
else:
    job = kas.distributed.AccelerateJob(network, data)
    with kas.distributed.RayPool(job, 2, prefetch=0, address=size) as pool:
        kas.accelerate(network, data, pool=pool, **options)
"""


@pytest.mark.slow
def test_two_nodes_of_ray_of_which_one_is_killed(tmp_path):
    import ray
    from ray.cluster_utils import Cluster

    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}", "KAS_LAYERS": ""}
    os.environ["PYTHONPATH"] = environment["PYTHONPATH"]
    options = {"object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **options})
    try:
        nodes = [cluster.add_node(num_cpus=1, **options) for _ in range(2)]
        cluster.wait_for_nodes()
        folders = {"whole": tmp_path / "whole", cluster.address: tmp_path / "remote"}
        subprocess.run([sys.executable, "-c", SCRIPT, folders["whole"], "f32", "whole"], check=True, env=environment)
        command = [sys.executable, "-c", SCRIPT, folders[cluster.address], "f32", cluster.address]
        process = subprocess.Popen(command, env=environment)
        log = folders[cluster.address] / "state" / "steps.jsonl"
        while process.poll() is None and not (log.exists() and '"imitation ' in log.read_text()):
            time.sleep(0.05)
        assert process.poll() is None
        cluster.remove_node(nodes[0])
        assert process.wait() == 0
        results = [json.loads((folder / "results.json").read_text()) for folder in folders.values()]
        assert results[0] == results[1]
        assert {"dense", "narrower", "ours"} <= {one["kind"] for one in results[0]["networks"]}
    finally:
        ray.shutdown()
        cluster.shutdown()
