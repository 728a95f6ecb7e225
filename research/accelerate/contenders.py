# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The methods of the benchmark of `kas accelerate`: each makes networks of a trained one, in a time that is given.

All that is trained learns the outputs of the trained network by the same steps, as long as fits into the time. This is
that of the processor, so that what else runs on the machine takes nothing of it. A network counts by its least time of
kas, ONNX Runtime and OpenVINO; all networks of a trained one, of whatever method, are timed in turns.
"""

import contextlib
import copy
import os
import tempfile
import time
import unittest.mock

import torch

import kas
from kas._accelerate import _baselines, _contest, _distill, _found, _library, _peer, _progress, _run
from kas._accelerate._alternatives import list_forms
from kas._accelerate._contest import Contender, Job, Trainings, measure_times
from kas._accelerate._distill import draw_inputs
from kas._accelerate._imitation import imitate, observe_units
from kas._accelerate._problem import Options, Problem, check_inputs
from kas._accelerate._progress import Clock, Reporter
from kas._accelerate._statistics import compare, predict
from kas._accelerate._statistics import measure as get_metrics
from kas._accelerate._store import Store
from kas._accelerate._times import time_calls
from kas._accelerate._units import find_units, get_module, set_module
from kas._errors import Error
from kas.evaluate._probe import choose_task
from kas.onnx import export_network

SHARES = (0.75, 0.5, 0.34, 0.25)
"""Of channels that narrower and pruned networks keep."""
SWAPS = (1.0, 0.75, 0.5)
"""Of the multiply-adds of all layers that can be swapped; those with most come first."""
MOST_EPOCHS, LEAST_STEPS = 200.0, 8
ROUNDS = 8


class _ProcessorTime:
    """The clocks of the module `time`, by what this process has computed, over its workers."""

    def __init__(self, workers):
        self._workers = workers

    def monotonic(self):
        return time.process_time() / self._workers

    perf_counter = monotonic


class Case:
    """A trained network with its data, the effort for each method, and the threads of what is timed."""

    def __init__(self, model, data, limit, minutes, seed, workers, threads=1):
        self.model, self.data, self.task = model, data, choose_task(None, data)
        self.limit, self.minutes, self.seed, self.workers, self.threads = limit, minutes, seed, workers, threads

    @contextlib.contextmanager
    def counting(self):
        """Lets the minutes be those of the processor; single calls are timed as always."""
        with contextlib.ExitStack() as stack:
            for module in (_contest, _distill, _found, _library, _progress, _run):
                stack.enter_context(unittest.mock.patch.object(module, "time", _ProcessorTime(self.workers)))
            yield

    @contextlib.contextmanager
    def open(self):
        """The problem, as `kas accelerate` has it."""
        torch.set_num_threads(1)
        check_inputs(self.model, self.data, self.task)
        clock, store = Clock(self.minutes), Store(None, {})
        options = Options(minutes=self.minutes, threads=self.threads, seed=self.seed, workers=self.workers)
        try:
            problem = Problem(self.model, self.data, self.task, options, store, clock, Reporter(clock, True))
            problem.base_ms = problem.dense_ms = time_calls([problem.program.run])[0]
            yield problem
        finally:
            store.close()


# ---- Times and drops


class _OpenVINO:
    """A network of an ONNX file, with the calls of a `Program`."""

    def __init__(self, path, batch, threads):
        import openvino

        options = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(threads)}
        options |= {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": "NO"}
        self._batch = batch.numpy().copy()
        self._request = openvino.Core().compile_model(path, "CPU", options).create_infer_request()
        self._request.set_input_tensor(openvino.Tensor(self._batch, shared_memory=True))

    def run(self):
        self._request.infer()

    def predict(self, inputs):
        parts, size = [], len(self._batch)
        for start in range(0, len(inputs), size):
            part = inputs[start : start + size].numpy()
            self._batch[: len(part)] = part
            self.run()
            parts.append(torch.from_numpy(self._request.get_output_tensor(0).data[: len(part)].copy()))
        return torch.cat(parts)


def _open_all(problem, network, precision, folder, number):
    """What computes the network, by the name of the tool; without those that cannot."""
    found = {}
    with contextlib.suppress(Error, ValueError):
        found["kas"] = problem.compile(network, precision)
    path = os.path.join(folder, f"{number}.onnx")
    try:
        export_network(network, problem.batch, path, inline=True)
        if precision == "int8":
            path, plain = os.path.join(folder, f"{number}-int8.onnx"), path
            _peer.quantize(problem, plain, path)
    except Exception as error:
        # What ONNX and its quantizer raise has no class of its own; the tools of ONNX are left out then.
        problem.reporter.message(f"no ONNX file: {error}")
        return found
    for name, make in (("ONNX Runtime", _peer.PeerProgram), ("OpenVINO", _OpenVINO)):
        with contextlib.suppress(Exception):
            found[name] = make(path, problem.batch, problem.options.threads)
    return found


def _add_points(problem, networks, precision, folder, calls):
    """The points of networks in a precision; what computes them is added to `calls`.

    In f32 the numbers of tools are equal, so that their drop is that of the first.
    """
    points = []
    for label, network in networks:
        drop = None
        for tool, program in _open_all(problem, network, precision, folder, len(calls)).items():
            if drop is None or precision != "f32":
                outputs = predict(program.predict, problem.data, problem.data.test)
                drop = compare(problem.task, problem.test, outputs)
            points.append({"network": label, "tool": tool, "drop": drop.value, "error": drop.error})
            calls.append((points[-1], program.run))
    return points


def measure(case, made):
    """Points of the networks of all methods, by method and precision: drops on test data, and milliseconds in turns.

    `made` has the networks of each method, with the precision that they are for, None where that is any.
    """
    found, calls, dense = {}, [], {}
    with case.open() as problem, tempfile.TemporaryDirectory(prefix="kas-bench-") as folder:
        for tool, program in _open_all(problem, case.model, "f32", folder, "model").items():
            calls.append((dense.setdefault(tool, {}), program.run))
        for method, networks in made.items():
            for precision in ("f32", "int8"):
                own = [(label, network) for label, own, network in networks if own in (None, precision)]
                if own or method not in ALONE:
                    found.setdefault(method, {})[precision] = _add_points(problem, own, precision, folder, calls)
        times = time_calls([run for _, run in calls], ROUNDS)
        metric = get_metrics(problem.task, problem.test)[problem.task.metric]
    for (point, _), ms in zip(calls, times):
        point["ms"] = ms
    tools = {tool: point["ms"] for tool, point in dense.items()}
    whole = {"dense_ms": min(tools.values()), "dense_tools": tools, "metric": metric}
    return {
        method: {precision: {**whole, "points": points} for precision, points in parts.items()}
        for method, parts in found.items()
    }


# ---- Methods


def _train_all(problem, contenders):
    """All of them, as long as there is the time for."""
    measure_times(problem, contenders)
    trainings = Trainings(problem)
    trainings.prepare(contenders)
    jobs = [Job(one, problem.options.seed, 1.0) for one in contenders if one.failure is None]
    left, each = problem.clock.left, trainings.predict_seconds(jobs)
    epochs = min(MOST_EPOCHS, left / each if each > 0 else MOST_EPOCHS)
    jobs = [job._replace(epochs=max(epochs, LEAST_STEPS / trainings.steps_of_epoch)) for job in jobs]
    results = trainings.run(jobs, "training", max(left, 1.0))
    return [(job.one.name, result[0]) for job, result in zip(jobs, results) if result is not None]


def _swap(problem):
    """Layers become depthwise-separable, which learn to imitate them first."""
    units = find_units(problem.model, problem.example).layers
    forms = {unit: list_forms(get_module(problem.model, unit.name), unit) for unit in units}
    units = sorted((unit for unit in units if _baselines.SWAP in forms[unit]), key=lambda unit: -unit.macs)
    if not units:
        return []
    seen = observe_units(problem.model, units, draw_inputs(problem.data, 256, 64))

    def learn(unit):
        module = forms[unit][_baselines.SWAP]()
        imitate(module, seen[unit.name], 40, problem.options.seed)
        return module

    modules = problem.map(learn, units, "imitating layers")
    total, found = sum(unit.macs for unit in units), []
    for share in SWAPS:
        network, done = copy.deepcopy(problem.model), 0
        for unit, module in zip(units, modules):
            if done < share * total:
                set_module(network, unit.name, copy.deepcopy(module))
                done += unit.macs
        found.append(Contender(f"swap, {share:g} of the multiply-adds", "swap", network.requires_grad_(False)))
    return found


def run_baseline(case, make):
    """Trained networks, for any precision."""
    with case.counting(), case.open() as problem:
        return [(label, None, network) for label, network in _train_all(problem, make(problem))]


def run_kas(case, folder):
    """`kas accelerate` without its baselines, once for each precision."""
    found = []
    for precision in ("f32", "int8"):
        # What other runs have learnt, as on a new machine, is not known.
        alone = unittest.mock.patch.dict(os.environ, {"KAS_LAYERS": ""})
        with alone, case.counting(), unittest.mock.patch.object(_run, "make_baselines", lambda *_: []):
            outcome = kas.accelerate(
                case.model,
                case.data,
                task=case.task,
                max_drop=case.limit,
                minutes=case.minutes,
                threads=case.threads,
                precision=precision,
                seed=case.seed,
                workers=case.workers,
                out=os.path.join(folder, precision),
                progress=False,
            )
        if not outcome.is_complete:
            raise KeyboardInterrupt
        rows = [one for one in outcome.results if one.kind == "ours" and one.precision == precision]
        found += [(f"ours, {len(one.layers)} layers replaced", precision, one.network) for one in rows]
    return found


METHODS = {
    "kas accelerate": run_kas,
    "narrower": lambda case, _: run_baseline(case, lambda problem: _baselines.make_narrower(problem, SHARES)),
    "swap": lambda case, _: run_baseline(case, _swap),
    "pruned": lambda case, _: run_baseline(
        case, lambda problem: _baselines.make_pruned(problem, [1 - share for share in SHARES])
    ),
    # The trained network itself, which takes no time to train.
    "int8 of dense": lambda case, _: [("the model", "int8", case.model)],
}
ALONE = ("int8 of dense",)
"""Methods that have networks of one precision alone."""
