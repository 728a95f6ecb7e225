# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.search and the command kas: budgets, halving, resuming, failures, results, bad input."""

import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from torch import nn

import kas
from kas import _model_search, cli, evaluate
from kas._search_outcome import front
from kas.evaluate._halving import Halving
from kas.evaluate._workers import Job, Pool

QUICK = evaluate.Recipe(epochs=2, batch_size=20)
# Grouped convolutions and the like: 43 operators that train fast.
OPTIONS = {
    "recipe": QUICK,
    "limits": {"shift": 0, "weights": 1, "sees": None, "reaches": None},
    "algorithm": "random",
    "workers": 1,
    "progress": False,
}


def data():
    whole = evaluate.digits(train=40, validation=40)
    test = tuple(part[:200] for part in whole.test)
    return evaluate.Data(whole.name, whole.train, whole.validation, test, whole.num_classes)


def small():
    return evaluate.DigitsNetwork(8)


def comparable(outcome):
    return [
        (e.id, e.candidate.key, {k: v for k, v in e.metrics.items() if "seconds" not in k}, e.failure)
        for e in outcome.trained
    ]


def test_halving():
    reached, reported, trained = {}, [], []
    plan = Halving().make_plan(epochs=20)
    plan.open(list(range(9)), [])
    while (job := plan.take()) is not None:
        id, reached[id] = job
        trained.append(job)
        out = plan.fail(id) if job == (3, 1) else plan.finish(*job, id % 5, 1.0)
        reported += [(one, reached[one]) for one in out]
    # Of 0 1 2 4 5 6 7 8 the best two by id % 5 are 4 and 8; of two one is kept.
    assert trained == [(id, 1) for id in range(9)] + [(4, 3), (8, 3), (4, 6), (4, 20)]
    assert reported == [(2, 1), (7, 1), (1, 1), (6, 1), (0, 1), (5, 1), (8, 3), (4, 20)]
    assert plan.get_effort() == pytest.approx((9 * 1 - 1 + 2 * 2 + 1 * 3 + 1 * 14) / 20)
    with pytest.raises(kas.Error, match=r"requires the number of a candidate in training, got 4"):
        plan.finish(4, 20, 0.0, 0.0)


def test_front():
    assert front([(1, 5), (2, 4), (2, 5), (0, 9)]) == [0, 1, 3]


def test_wrong_halving():
    for wrong in ({"size": 0}, {"keep": 0}, {"keep": math.nan}, {"rungs": (1, 3)}, {"rungs": (3, 1, None)}):
        with pytest.raises(ValueError):
            Halving(**wrong)


def test_a_budget_of_time_is_kept(monkeypatch, capfd):
    options = {**OPTIONS, "progress": "lines"}
    # Whether the first epoch ends before the pool looks at the clock depends on the machine.
    with pytest.raises(
        ValueError, match=r"for a training of the network itself \((an epoch takes longer|some .* s)\) .* got 0.001 s"
    ):
        kas.search(small(), data(), 0.001, **options)
    # What a whole training takes follows from an epoch.
    with pytest.raises(ValueError, match=r"for a training of the network itself \(some [\d.e+]+ s\) .* got 20 s"):
        kas.search(small(), data(), 20, **{**options, "recipe": replace(QUICK, epochs=10**7)})
    monkeypatch.setattr(_model_search._Run, "_open_bracket", lambda _: None)
    outcome = kas.search(small(), data(), 100, **options)
    assert outcome.is_complete and not outcome.trained
    said = capfd.readouterr().err
    assert "a training of the network itself, 2 epochs, takes about" in said
    assert "no candidate was trained: one and its final trainings take about" in said


def test_final_trainings_end_with_the_budget(monkeypatch):
    begun = []
    submit, get_left = Pool.submit, _model_search._Run._get_time_left

    def count(pool, job):
        begun.append(job)
        submit(pool, job)

    # The time is over when one finalist has two of its trainings.
    monkeypatch.setattr(Pool, "submit", count)
    monkeypatch.setattr(
        _model_search._Run, "_get_time_left", lambda run: 0 if sum(j.test for j in begun) >= 5 else get_left(run)
    )
    outcome = kas.search(small(), data(), kas.Budget(seconds=1000, candidates=9), **OPTIONS)
    assert outcome.is_complete and "final_accuracy" in outcome.best.metrics
    assert sum(job.test for job in begun) == 5 and outcome.dense["accuracy_deviation"] >= 0


def test_search_and_go_on(tmp_path):
    database = tmp_path / "search.db"
    options = {**OPTIONS, "halving": Halving(4, (1, None), 0.5), "final": 2, "final_seeds": 2}
    whole = kas.search(small(), data(), kas.Budget(candidates=4), **options)
    assert whole.is_complete and len(whole.trained) == 4 and len(whole.fully_trained) == 2
    assert len(whole.finalists) == 2 and whole.best is whole.finalists[0]
    assert whole.dense["accuracy_deviation"] >= 0
    for entry in whole.fully_trained:
        assert entry.metrics["flops_ratio"] <= 0.5 and entry.metrics["epochs"] == 2
    assert {entry.id for entry in whole.front} <= {entry.id for entry in whole.finalists}

    class Stop(kas.SearchCallback):
        def candidate(self, entry):
            # The first that is out; another of its rung is reported after it.
            raise KeyboardInterrupt

    torch.manual_seed(5)  # The seed of the caller does not matter.
    part = kas.search(small(), data(), "4 candidates", database=database, callbacks=[Stop()], **options)
    assert not part.is_complete and len(part.trained) == 1
    rest = kas.search(small(), data(), "4 candidates", database=database, **options)
    assert rest.is_complete and comparable(rest) == comparable(whole)
    assert rest.dense == pytest.approx(whole.dense)
    again = kas.search(small(), data(), "4 candidates", database=database, **options)
    assert comparable(again) == comparable(whole)
    # Trained as in the search, whatever backend it has.
    images, classes = data().validation
    for backend in ("pytorch", "compiled"):
        network = rest.network(backend=backend)
        with torch.no_grad():
            accuracy = float((network(images).argmax(1) == classes).double().mean())
        assert accuracy == pytest.approx(rest.best.metrics["accuracy"], abs=1e-6)
    frame = again.frame()
    assert list(frame.index) == list(range(4)) and "final_test_accuracy" in frame and frame.formula[0].startswith("Y[")
    network = again.network()
    assert sum(isinstance(module, kas.torch.KasModule) for module in network.modules()) == 4
    assert network(data().test[0][:3]).shape == (3, 10)
    with pytest.raises(kas.Error, match=r"recipe"):
        kas.search(
            small(), data(), "4 candidates", database=database, **{**options, "recipe": evaluate.Recipe(epochs=3)}
        )

    show = run_cli("show", str(database), "--top=2")
    assert show.stdout.splitlines()[0] == "4 evaluated" and len(show.stdout.splitlines()) == 4
    exported = run_cli("export", str(database), str(again.best.id), "--format=pytorch")
    assert "class " in exported.stdout and "import kas" not in exported.stdout
    assert "GFLOP/s" in run_cli("bench", str(database), str(again.best.id), "--runs=1").stdout


def test_two_workers_and_latency():
    callbacks = []

    class Record(kas.SearchCallback):
        def epoch(self, candidate, seed, epoch, metrics):
            callbacks.append((candidate, epoch))

    outcome = kas.search(
        small(),
        data(),
        "3 candidates",
        **{**OPTIONS, "workers": 2, "progress": "table"},
        halving=Halving.off(),
        final=1,
        final_seeds=1,
        latency=True,
        callbacks=[Record()],
        translation_equivariant=True,
    )
    assert len(outcome.fully_trained) == 3
    assert outcome.best.metrics["final_latency_ms"] > 0
    assert sorted(candidate for candidate, _ in callbacks)[0] == -1


def test_a_budget_of_time_holds(capsys):
    start = time.monotonic()
    outcome = kas.search(
        small(), data(), 1.0, **{**OPTIONS, "progress": "lines"}, final=0, final_seeds=1, halving=Halving.off()
    )
    assert outcome.is_complete and not outcome.finalists
    assert time.monotonic() - start < 60
    assert "the network itself: test accuracy" in capsys.readouterr().err


class Fragile(nn.Module):
    """Its process dies, it hangs, or it raises, when its convolutions are replaced."""

    def __init__(self, how):
        super().__init__()
        self.network, self.how = evaluate.DigitsNetwork(8), how

    def forward(self, x):
        if self.training and any(isinstance(module, kas.torch.KasModule) for module in self.modules()):
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "hang":
                time.sleep(60)
            raise RuntimeError("I do not like this operator")
        return self.network(x)


@pytest.mark.parametrize(
    "how, limit, reason",
    [
        ("kill", None, "the process that trained it ended twice, last with signal 9"),
        ("hang", 0.5, "training to the end of epoch 1 needs more than 0.5 s"),
        ("raise", None, "RuntimeError: I do not like this operator (forward, line "),
    ],
)
def test_failures_are_recorded(how, limit, reason):
    outcome = kas.search(Fragile(how), data(), "1 candidates", **OPTIONS, final_seeds=1, time_limit=limit)
    (entry,) = outcome.trained
    assert entry.failure.startswith(reason)
    assert outcome.best is None and sum(outcome.failures.values()) == 1


def test_workers_end_with_their_parent():
    code = (
        "import os, signal\n"
        "from kas import evaluate\n"
        "from kas.evaluate._workers import Pool\n"
        "pool = Pool(evaluate.Trainer(evaluate.DigitsNetwork(8), 'digits'), 2)\n"
        "print(*pool.pids, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    process = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in process.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 60
    while any(
        os.path.exists(f"/proc/{pid}") and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2]
        for pid in workers
    ):
        assert time.monotonic() < deadline, "a worker outlives its parent"
        time.sleep(0.1)


def test_the_pool_limits_memory():
    trainer = evaluate.Trainer(small(), data(), QUICK)
    with Pool(trainer, 1, memory_limit=300) as pool:
        pool.submit(Job(0, None))
        done = []
        while not done:
            done = pool.wait(1)
        # What is mapped already is more.
        assert done[0].metrics is None and done[0].failure


def test_bad_input():
    with pytest.raises(TypeError, match=r"the model must be a torch.nn.Module, got NoneType"):
        kas.search(None)
    with pytest.raises(ValueError, match=r"no layer that an operator can take the place of"):
        kas.search(nn.Sequential(nn.Flatten(), nn.LayerNorm(100), nn.AdaptiveAvgPool1d(10)), data())
    for budget, error in (
        ([], TypeError),
        (True, TypeError),
        ("soon", ValueError),
        (-3, ValueError),
        (math.nan, ValueError),
    ):
        with pytest.raises(error, match=r"the budget must"):
            kas.search(small(), data(), budget)
    with pytest.raises(ValueError, match=r"at least one limit"):
        kas.search(small(), data(), kas.Budget())
    with pytest.raises(TypeError, match=r"'halving' must be a kas.Halving, got int"):
        kas.search(small(), data(), 1, halving=3)
    with pytest.raises(TypeError, match=r"the limit 'shift' must be a number, got 'none'"):
        kas.search(small(), data(), 1, limits={"shift": "none"})
    with pytest.raises(kas.Error, match=r"limit"):
        kas.search(small(), data(), 1, limits={"no_such_limit": 3})
    with pytest.raises(ValueError, match=r"'final' must be an integer of at least 0, got -1"):
        kas.search(small(), data(), 1, final=-1)
    with pytest.raises(ValueError, match=r"0 <= min_flops_ratio <= flops_ratio"):
        kas.search(small(), data(), 1, flops_ratio=0.1, min_flops_ratio=0.5)
    with pytest.raises(ValueError, match=r"'progress' must be True, False, 'table' or 'lines', got 'loud'"):
        kas.search(small(), data(), 1, **{**OPTIONS, "progress": "loud"})

    class Nan(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = evaluate.DigitsNetwork(8)

        def forward(self, x):
            return self.network(x) * (math.nan if self.training else 1)

    with pytest.raises(ValueError, match=r"the network itself cannot be trained: the loss is nan"):
        kas.search(Nan(), data(), 1, **OPTIONS)


def run_cli(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "kas.cli", *arguments], capture_output=True, text=True, **options)


def test_command_line(capsys, tmp_path):
    assert cli.main(["show", "conv2d", "--bind=N=1,Cin=4,Cout=4,H=4,W=4,k=3"]) == 0
    shown = capsys.readouterr().out
    assert "4608 FLOPs, 144 parameters" in shown and "weights indexed by a position: no" in shown
    assert cli.main(["export", "conv2d", "-o", str(tmp_path / "conv2d.mlir")]) == 0
    assert cli.main(["export", str(tmp_path / "conv2d.mlir"), "--format=graph"]) == 0
    assert "digraph" in capsys.readouterr().out
    (tmp_path / "bytes.db").write_bytes(bytes(range(200, 256)))
    for arguments, message in (
        (["show", "conv3d5"], "no operator 'conv3d5' in the library"),
        (["show", "missing.db"], "there is no file 'missing.db'"),
        (["show", str(tmp_path / "bytes.db")], "is neither a search database nor text"),
        (["export", str(tmp_path / "conv2d.mlir"), "-1"], "has operators 0 to 0, got -1"),
        (["search", "--workers=0"], "'workers' must be at least 1, got 0"),
        (["export", "conv2d", "--format=loops"], "requires sizes: --bind=N=1,..."),
        (["bench", "conv2d"], "requires sizes: --bind=N=1,..."),
        (["search", "--budget=soon"], "the budget must be text such as"),
        (["search", "--limit=shift"], "a limit must be NAME=NUMBER, got 'shift'"),
        (["search", "--network=nothing.py:make"], "FILE.py:NAME"),
        (["search", "--milestone=soon"], "a milestone must be EPOCH=ACCURACY such as 3=0.2"),
    ):
        assert cli.main(arguments) == 1
        assert message in capsys.readouterr().err


def test_ctrl_c_keeps_everything(tmp_path):
    """In a space that is not exhausted while this looks."""
    command = [
        sys.executable,
        "-m",
        "kas.cli",
        "search",
        "--budget=10m",
        "--algorithm=random",
        "--limit=shift=0",
        "--epochs=1",
        "--no-halving",
        "--final-seeds=1",
        "--workers=1",
        f"--database={tmp_path / 'search.db'}",
    ]
    # A shell starts what it runs in the background with the signal ignored, and children inherit that.
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        listed = run_cli("show", str(tmp_path / "search.db"))
        if listed.returncode == 0 and "evaluated" in listed.stdout:
            break
        time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted: the same call with a database goes on" in errors
    assert "kas.operator" in output


def test_missing_extras():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import kas, kas.cli\n"
        "for use in (lambda: kas.search, lambda: kas.evaluate):\n"
        "    try: use()\n"
        "    except kas.MissingExtraError as error: print(error)\n"
        "print(kas.cli.main(['search']), kas.cli.main(['show', 'conv2d']))\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout.count("install it by: pip install 'kas[torch]'") == 2, process.stderr
    assert "install it by: pip install 'kas[torch]'" in process.stderr
    assert process.stdout.splitlines()[-1] == "1 0"
