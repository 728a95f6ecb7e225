# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas.accelerate killed at random instants, and the same call again: the result of a run that was not killed.

Times are measured again where they were not kept. Here they follow from what is timed, so that all of the result does.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import sys, torch
import kas
from kas._accelerate import _baselines, _contest, _distill, _precision, _run, _times

torch.set_num_threads(1)

def get_ms(program):
    # That of ONNX Runtime has no text.
    text, weights = str(getattr(program, "module", "")), getattr(program, "weights", [])
    return 0.1 + 1e-6 * len(text) + 1e-5 * sum(weight.numel() for weight in weights)

def time_calls(calls, rounds=0):
    return [get_ms(call.__self__) for call in calls]

for module in (_contest, _precision, _run, _times):
    module.time_calls = time_calls
_distill.Steps.measure = lambda self, teacher, count=3: 1e-3
# None of the decisions is one about time: there is enough, and what is done with it is little.
_run.MOST_EPOCHS, _run.FIRST, _run.SECOND, _run.KEPT, _baselines.WIDTHS = 0.5, 2, 1, 1, (0.5,)
folder, precision, size = sys.argv[1:]
if size == "small":
    from kas._accelerate import _files, _found, _library
    # Of what the search lists, a few sequences of operators.
    _found.list_spaces, _found.CANDIDATES, _found.MOST_OF_CLASS = lambda *_: {}, 40, 2
    _library.LEAST_SHARE = 0.3
    _files.write_files = lambda *_: []
    _contest.compile_steps = lambda network, data, task, schedule: _distill.TorchSteps(network, 64, task, schedule)
data = kas.evaluate.digits()
torch.manual_seed(0)
network = kas.evaluate.DigitsNetwork(16, blocks=1)
training = kas.evaluate.Training(network, data, kas.evaluate.Recipe(epochs=1))
training.advance(1)
training.evaluate()
options = {"max_drop": 100, "minutes": 1e6, "precision": precision, "progress": False}
kas.accelerate(training.network.eval(), data, out=folder, **options)
"""


def start(folder, *settings):
    command = [sys.executable, "-c", SCRIPT, str(folder), *settings]
    # In a group of its own: what it starts is killed with it.
    return subprocess.Popen(
        command, env={**os.environ, "KAS_LAYERS": ""}, stderr=subprocess.PIPE, start_new_session=True
    )


def finish(process):
    errors = process.communicate()[1].decode()
    assert process.returncode == 0, errors


def count_steps(folder):
    log = folder / "state" / "steps.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def kill_after(process, folder, steps, generator):
    """Kills it soon after so many steps were kept; whether it was not done before."""
    while process.poll() is None and count_steps(folder) < steps:
        time.sleep(0.005)
    time.sleep(0.2 * generator.random())
    is_killed = process.poll() is None
    if is_killed:
        os.killpg(process.pid, signal.SIGKILL)
    errors = process.communicate()[1].decode()
    assert is_killed or process.returncode == 0, errors
    return is_killed


def check(tmp_path, count, seed, *settings):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(start(whole, *settings))
    total, generator = count_steps(whole), random.Random(seed)
    assert total > 15 and ": sequence " in (whole / "state" / "steps.jsonl").read_text()
    instants = sorted(generator.sample(range(1, total), count))
    assert sum(kill_after(start(killed, *settings), killed, steps, generator) for steps in instants) >= count / 2
    finish(start(killed, *settings))
    results = [json.loads((folder / "results.json").read_text()) for folder in (whole, killed)]
    assert {"dense", "narrower", "ours"} <= {one["kind"] for one in results[0]["networks"]}
    assert results[0] == results[1]


def test_a_run_that_was_killed_goes_on(tmp_path):
    check(tmp_path, 2, 0, "f32", "small")


@pytest.mark.slow
def test_a_run_that_was_killed_at_ten_instants_goes_on(tmp_path):
    check(tmp_path, 10, 1, "auto", "whole")
