# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a layer is good for: its trained networks beside classical solvers at their error, on other grids, and for C.

A folder has all of it: trained networks (`EQUATION.pt`), folders for C, pictures, numbers and a page. The same command
goes on, and measures again.
"""

from __future__ import annotations

import functools
import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy
import torch

import kas.torch
from kas._accelerate._times import time_calls
from kas._c_folder import write_c_folder
from kas.evaluate._fields import get_relative_errors

from ..protocol._latency import describe_machine
from ..protocol._store import Store
from . import _pictures
from ._classical import Solver, get_error, list_solvers, resample, try_solvers
from ._families import Network, set_by_matrix
from ._protocol import Equation, Experiment, Job, Protocol
from ._stages import get_jobs
from ._train import Trainer

FIELDS = 32
"""Test fields that networks and solvers are compared on."""
SHOWN = 2
"""Of them in the pictures."""
TIMED = 3
"""Settings of a solver that are timed: of those with at most the network's error the fastest ones in a call of all."""
AT_ONCE = (1, 16)
"""Fields of a call that is timed."""


@dataclass
class Size:
    """A network and solvers on a grid."""

    size: int
    error: float
    """Percent, of the network on `FIELDS` test fields."""
    ms: dict[int, float]
    """Milliseconds of a field by fields in a call, on one thread."""
    solver: str | None
    """The fastest settings with at most that error; None where no settings reach it."""
    solver_error: float | None
    solver_ms: dict[int, float]
    best: str
    """The settings with the least error."""
    best_error: float
    best_ms: dict[int, float]


@dataclass
class Use:
    """What is found for an equation."""

    equation: str
    family: str
    width: int
    epochs: int
    parameters: int
    error: float
    """Percent, on all test fields."""
    sizes: list[Size]
    own_grid: str | None
    """Why the network is for no other grid; None where it is."""
    c_difference: float | None
    """Of the program's results in C from Python's, over the largest; None without a compiler."""


def find_uses(
    protocol: Protocol, experiment: Experiment, store: Store, family: str, folder: str, say: Callable[[str], None]
) -> list[Use]:
    """Trains what is missing and measures; writes the folder."""
    where = pathlib.Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(protocol, store, where / "checkpoints")
    uses = []
    for job in choose_jobs(protocol, experiment, store, family):
        say(f"{job.equation}: training {family}, width {job.width}, {job.epochs} epochs at {job.learning_rate:g}")
        network, record = get_network(trainer, job, where / f"{job.equation}.pt")
        say(f"{job.equation}: error {record['error']:.3f} %, beside solvers")
        uses.append(_measure(protocol, job, network, record, where))
    machine = describe_machine()
    document = {"machine": machine, "uses": [asdict(use) for use in uses]}
    (where / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (where / "page.md").write_text(write_page(uses, machine), encoding="utf-8")
    return uses


def choose_jobs(protocol: Protocol, experiment: Experiment, store: Store, family: str) -> list[Job]:
    """A training for each equation: of the largest budget, the first seed, the rate that is best by validation."""
    known, found = store.read_trainings(), []
    everything = get_jobs(protocol, experiment, store)

    def get_order(job: Job) -> tuple[int, int, float]:
        record = known.get(protocol.key(job))
        is_known = record is not None and not record["failure"]
        return -job.width, -job.epochs, record["validation"] if record and is_known else float("inf")

    for equation in experiment.equations:
        # Before anything is trained.
        list_solvers(protocol.equations[equation], protocol.equations[equation].size)
        jobs = [job for job in everything if (job.equation, job.family) == (equation, family)]
        if not jobs:
            raise ValueError(f"requires a family of '{experiment.name}' with a width for {equation}, got '{family}'")
        found.append(min((job for job in jobs if job.seed == jobs[0].seed), key=get_order))
    return found


def get_network(trainer: Trainer, job: Job, path: pathlib.Path) -> tuple[Network, dict[str, Any]]:
    """The trained network of a file, or trained into it, and its record."""
    key = trainer.protocol.key(job)
    if path.exists():
        content = torch.load(path, weights_only=True)
        if content["key"] == key:
            network = trainer.protocol.make_network(job.equation, job.family, job.width)
            network.load_state_dict(content["state"])
            return network.eval(), content["record"]
    network, record = trainer.train_network(job)
    new = path.with_suffix(".new")
    torch.save({"key": key, "state": network.state_dict(), "record": record}, new)
    new.replace(path)
    trainer.forget(job)
    return network.eval(), record


def bring(network: Network, protocol: Protocol, job: Job, size: int) -> Network:
    """The network for another grid. Raises `ValueError` where its weights belong to points of its own."""
    equation = replace(protocol.equations[job.equation], size=size)
    other = replace(protocol, equations={**protocol.equations, job.equation: equation})
    found = other.make_network(job.equation, job.family, job.width)
    state = dict(network.state_dict())
    state["middle"] = torch.from_numpy(resample(state["middle"].numpy(), size, equation.kind.periodic)).float()
    wanted = found.state_dict()
    for name, values in state.items():
        if values.shape != wanted[name].shape:
            raise ValueError(f"'{name}' has weights for each point: {list(values.shape)}, on {size}x{size} others")
    found.load_state_dict(state)
    return found.eval()


def _measure(protocol: Protocol, job: Job, network: Network, record: dict[str, Any], folder: pathlib.Path) -> Use:
    equation = protocol.equations[job.equation]
    set_by_matrix(network, True)
    sizes, own_grid = [], None
    for size in (equation.size // 2, equation.size, 2 * equation.size):
        try:
            here = network if size == equation.size else bring(network, protocol, job, size)
        except ValueError as error:
            own_grid = str(error)
            continue
        set_by_matrix(here, True)
        # Of other grids no more fields are made than are compared.
        few = replace(equation, size=size, train=1, validation=1, test=FIELDS)
        own = here is network
        sizes.append(_measure_size(equation if own else few, here, folder if own else None))
    return Use(
        job.equation,
        job.family,
        job.width,
        job.epochs,
        record["parameters"],
        record["error"],
        sizes,
        own_grid,
        write_c(network, _load_fields(equation)[0][:1], folder / f"{job.equation}-c"),
    )


def _load_fields(equation: Equation) -> tuple[torch.Tensor, torch.Tensor]:
    """Some test fields: those of the data where the grid is theirs."""
    test: tuple[torch.Tensor, torch.Tensor] = equation.load().test
    return test[0][:FIELDS], test[1][:FIELDS]


def _measure_size(equation: Equation, network: Network, folder: pathlib.Path | None) -> Size:
    inputs, targets = _load_fields(equation)
    with torch.no_grad():
        outputs = network(inputs)
    error = 100 * float(get_relative_errors(outputs, targets).mean())
    trials = try_solvers(list_solvers(equation, equation.size), inputs, targets)
    best = min(trials, key=lambda one: one.error)
    enough = sorted((one for one in trials if one.error <= error), key=lambda one: one.seconds)[:TIMED]
    timed = {one.solver.name: one.solver for one in (best, *enough)}
    times = _time(network, list(timed.values()), inputs)
    chosen = min(enough, key=lambda one: times[one.solver.name][1], default=None)
    if folder is not None:
        picture = draw_fields(inputs, targets, outputs, (chosen or best).solver)
        (folder / f"{equation.name}.svg").write_text(picture, encoding="utf-8")
    return Size(
        equation.size,
        error,
        times["network"],
        None if chosen is None else chosen.solver.name,
        None if chosen is None else chosen.error,
        {} if chosen is None else times[chosen.solver.name],
        best.solver.name,
        best.error,
        times[best.solver.name],
    )


def _time(network: Network, solvers: list[Solver], inputs: torch.Tensor) -> dict[str, dict[int, float]]:
    """The milliseconds of a field of all, in turns, on one thread; the network compiled by kas."""
    torch.set_num_threads(1)
    found: dict[str, dict[int, float]] = {name: {} for name in ("network", *(one.name for one in solvers))}
    for count in AT_ONCE:
        fields = inputs[:count].contiguous()
        module, weights = _export(network, fields)
        call = module.compile("forward", threads=1, prepack_weights=True).bind(fields, *weights)
        call.prepack()
        array = fields.numpy()
        calls: list[Callable[[], Any]] = [call, *(functools.partial(one.run, array) for one in solvers)]
        for name, ms in zip(found, time_calls(calls)):
            found[name][count] = ms / len(fields)
    return found


def _export(network: Network, fields: torch.Tensor) -> tuple[kas.Module, list[torch.Tensor]]:
    """The network for fields of this shape, and its weights."""
    exported = kas.torch.to_mlir(network, fields)
    return exported.module, [tensor.detach().contiguous() for tensor in exported.tensors.values()]


def write_c(network: Network, example: torch.Tensor, folder: pathlib.Path) -> float | None:
    """Writes a folder for C, and runs its program: the largest difference from the results here, over the largest."""
    module, weights = _export(network, example)
    with torch.no_grad():
        outputs = [network(example)]
    write_c_folder(module, weights, folder, inputs=[example], outputs=outputs)
    compiler = shutil.which("clang-22") or shutil.which("cc")
    if compiler is None:
        return None
    sources = [folder / name for name in ("main.c", "example.S", "model_weights.S", "model.o")]
    with tempfile.TemporaryDirectory(prefix="kas-fields-") as place:
        program = pathlib.Path(place, "main")
        subprocess.run([compiler, f"-I{folder}", *sources, "-lm", "-o", program], check=True)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return float(printed.split("from the example: ")[1].split()[0])


# ---- The page


def draw_fields(inputs: torch.Tensor, targets: torch.Tensor, outputs: torch.Tensor, solver: Solver) -> str:
    """Some fields: what is given, the solution, those of the network and the solver, and what they are off by."""
    solved = torch.from_numpy(solver.run(inputs[:SHOWN].numpy())).float()
    rows = []
    for place in range(min(SHOWN, len(inputs))):
        given, wanted = inputs[place, 0].numpy(), targets[place, 0].numpy()
        low, high = float(wanted.min()), float(wanted.max())
        found = {"network": outputs[place : place + 1], f"solver\n{solver.name}": solved[place : place + 1]}
        off = {name: field[0, 0].numpy() - wanted for name, field in found.items()}
        most = max(float(numpy.abs(field).max()) for field in off.values())
        row = [
            _pictures.Image("given", given, float(given.min()), float(given.max())),
            _pictures.Image(f"solution\n{low:.3g} to {high:.3g}", wanted, low, high),
        ]
        for name, field in found.items():
            error = get_error(field.numpy(), targets[place : place + 1])
            title = f"{name.splitlines()[0]}: off by {error:.2g} %\nup to {most:.2g}"
            row += [
                _pictures.Image(name, field[0, 0].numpy(), low, high),
                _pictures.Image(title, off[name], -most, most),
            ]
        rows.append(row)
    return _pictures.draw(rows)


def write_page(uses: list[Use], machine: str) -> str:
    """What was found, as markdown."""
    paragraphs = [
        "# A trained layer beside solvers",
        f"One thread of {machine}. Errors are means of the relative L2 error over {FIELDS} test fields, against the "
        "data: solutions on a finer grid. Networks are compiled by kas; solvers are those that make the data (NumPy, "
        "float64), with the fastest of their settings that has at most the error of the network. Times are "
        f"milliseconds of a field, {AT_ONCE[0]} or {AT_ONCE[1]} in a call, all in turns.",
    ]
    for use in uses:
        paragraphs += [
            f"## {use.equation}",
            f"`{use.family}` of width {use.width}, {use.parameters} parameters, {use.epochs} epochs: {use.error:.2f} % "
            "on all test fields.",
            "\n".join(_write_table(use.sizes)),
        ]
        if use.own_grid:
            paragraphs.append(f"The network is for its own grid alone: {use.own_grid}.")
        run = "which was not run: there is no compiler here"
        if use.c_difference is not None:
            run = f"whose results differ from Python's by up to {use.c_difference:.1g} of the largest"
        paragraphs += [
            f"For C: `{use.equation}-c`, {run}.",
            f"![Fields of {use.equation}, and what network and solver are off by]({use.equation}.svg)",
        ]
    return "\n\n".join(paragraphs) + "\n"


def _write_table(sizes: list[Size]) -> Iterator[str]:
    yield f"| grid | | error (%) | ms, {AT_ONCE[0]} | ms, {AT_ONCE[1]} |"
    yield "|---|---|---|---|---|"
    for one in sizes:
        grid = f"{one.size}x{one.size}"
        yield _write_row(grid, "network", one.error, one.ms)
        if one.solver is None or one.solver_error is None:
            yield f"| {grid} | no settings of the solver reach that error | | | |"
        else:
            yield _write_row(grid, f"solver, {one.solver}", one.solver_error, one.solver_ms)
        if one.best != one.solver:
            yield _write_row(grid, f"solver, {one.best}: the least error", one.best_error, one.best_ms)


def _write_row(grid: str, what: str, error: float, ms: dict[int, float]) -> str:
    times = " | ".join(f"{ms[count]:.4g}" for count in AT_ONCE)
    return f"| {grid} | {what} | {error:.3g} | {times} |"
