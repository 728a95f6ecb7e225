# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long whole networks take, each by the best of several compilers, all in turn in one run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

import numpy
import torch
from torch import nn

import kas.torch
from kas._errors import Error
from kas._kernel import Kernel
from kas._module import Module
from kas._pipelines import CPUPipeline
from kas.evaluate._native import substitute_sites
from kas.zoo._contenders import get_form, make_network

from ._protocol import Point, Protocol
from ._train import place

IMPLEMENTATIONS = ("kas", "pytorch", "onnxruntime", "openvino")


class _Timer(Interface):
    """A network that one implementation has compiled."""

    def time(self, calls: int) -> float:
        """The least microseconds of a call (kas: the mean of the calls)."""


def make_aligned(shape: Sequence[int], type: Any = numpy.float32) -> numpy.ndarray:
    """Zeros on a line of the cache, as PyTorch's tensors are: elsewhere vectors lie on two, and take longer."""
    size = math.prod(shape) * numpy.dtype(type).itemsize
    memory = numpy.zeros(size + 64, numpy.uint8)
    aligned: numpy.ndarray = memory[-memory.ctypes.data % 64 :][:size].view(type).reshape(shape)
    return aligned


def _align(tensor: numpy.ndarray) -> numpy.ndarray:
    if tensor.ctypes.data % 64 == 0 and tensor.flags.c_contiguous:
        return tensor
    aligned = make_aligned(tensor.shape, tensor.dtype)
    aligned[...] = tensor
    return aligned


class CompiledNetwork:
    """The exported network, compiled as a whole; `start` packs its weights ahead."""

    def __init__(
        self,
        module: Module,
        tensors: Sequence[numpy.ndarray],
        output: tuple[int, ...],
        threads: int,
        precision: str = "f32",
        cpu: str = "",
    ):
        pipeline = CPUPipeline(threads, prepack_weights=True, precision=precision, cpu=cpu)
        module.run(str(pipeline), verify_each=False)
        self.program = module._handle.load(2)
        self.tensors: list[Any] = [*map(_align, tensors), make_aligned(output)]
        self.threads = threads

    def start(self) -> CompiledNetwork:
        """To be called once before `time`. What fails only when it runs is a failure of this network alone."""
        if count := self.program.get_num_prepacked_elements("forward"):
            packed = make_aligned((count,))
            self.program.call("forward_prepack", [*self.tensors[1:-1], packed], 1)
            self.tensors.append(packed)
        self.program.call("forward", self.tensors, 1)
        return self

    def time(self, calls: int, together: int = 4) -> float:
        """The least mean of so many calls `together`, of as many as `calls` and one time more."""
        return min(1e3 * self.program.call("forward", self.tensors, together) for _ in range(1 + calls // together))


class _PyTorch:
    """Compiled by Inductor, with frozen weights."""

    def __init__(self, network: nn.Module, example: torch.Tensor):
        import torch._inductor.config as inductor

        with inductor.patch(freezing=True), torch.no_grad():
            # As a module with code of its own: compiled networks of one class take each other's places, and with too
            # many of them PyTorch gives up. What is traced has less overhead than what is exported.
            try:
                own: nn.Module = torch.fx.symbolic_trace(network)
            except (torch.fx.proxy.TraceError, TypeError):
                own = torch.export.export(network, (example,)).module()
            self.function = torch.compile(own, dynamic=False)
            self.function(example)
        self.example = example

    def time(self, calls: int) -> float:
        least = float("inf")
        with torch.no_grad():
            for _ in range(calls):
                start = time.perf_counter_ns()
                self.function(self.example)
                least = min(least, (time.perf_counter_ns() - start) / 1e3)
        return least


class Peers:
    """A process with another interpreter, which has ONNX Runtime or OpenVINO; see `_peers.py`."""

    def __init__(self, python: str, threads: int):
        script = Path(__file__).with_name("_peers.py")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(
            [python, str(script), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.versions: dict[str, str] = self._read()["versions"]

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of the peers ended with code {self.process.wait()}")
        return json.loads(line)

    def ask(self, **request: Any) -> Any:
        """The answer; a `RuntimeError` where it is a failure."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        if failure := answer.get("failure"):
            raise RuntimeError(failure)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Peer:
    """A network that a peer has loaded."""

    def __init__(self, peers: Peers, name: str, path: str, precision: str = "f32"):
        self.peers = peers
        self.number = peers.ask(load=path, name=name, precision=precision)["number"]

    def time(self, calls: int) -> float:
        least: float = self.peers.ask(time=self.number, calls=calls)["microseconds"]
        return least


def _load_peer(peers: Peers, name: str, network: nn.Module, example: torch.Tensor, path: str) -> list[_Timer]:
    if not os.path.exists(path):
        # Only this needs the extra. OpenVINO takes no functions.
        from kas.onnx import export_network

        export_network(network, example, path, inline=True)
    return [_Peer(peers, name, path)]


def _with_operators(module: Module) -> list[Module]:
    """The network with named operators that compute the same for its layers: those with windows, and more of them.

    The pipeline compiles a layer and an operator in different ways, and which one is faster depends on the sizes.
    """
    marked = module.clone().run("kas-extract")
    windows = [name for name in marked.spaces if name.startswith("conv2d") and not name.endswith("stem")]
    found = []
    for spaces in (windows, [*windows, "conv1x1"], list(marked.spaces)):
        changed = marked.clone()
        for space in spaces:
            if space in marked.spaces:
                changed.run(f"kas-substitute{{same-weights=true space=@{space}}}")
        found.append(changed)
    return found


def export(protocol: Protocol, point: Point, example: torch.Tensor) -> list[tuple[Module, list[numpy.ndarray]]]:
    """The network as MLIR with its arguments, batch norms folded.

    As it is written; a network made by hand also with named operators that compute the same for its layers, one with
    an operator or a sequence also with that in the place of the dense layers.
    """
    contender = protocol[point.contender]
    batch = len(example)
    network = make_network(point.network, point.width, contender, batch).eval()
    forms = [get_form(stage) for stage in contender.stages or (contender,)]
    by_hand = not any(forms)
    found = []
    if not any(isinstance(form, Kernel) for form in forms):
        exported = kas.torch.to_mlir(network, example, fold_batch_norms=by_hand)
        arrays = [tensor.detach().numpy() for tensor in (example, *exported.tensors.values())]
        found.append((exported.module, arrays))
        if by_hand:
            # What an operator that was found may gain by, the same layer made by hand has to have as well.
            found += [(module, arrays) for module in _with_operators(exported.module)]
    model, replacements = place(protocol, point, as_sequences=True)
    if replacements:
        # A layer made by hand between sequences has its weights at random, too.
        module = substitute_sites(kas.torch.to_mlir(model.eval(), example).module, replacements)
        shapes = [shape for _, shape in module.clone().compile("forward", threads=1).arguments]
        generator = numpy.random.default_rng(0)
        # Above zero: some may be variances of batch norms.
        weights = [0.01 + 0.05 * generator.random(shape, dtype=numpy.float32) for shape in shapes[1:]]
        found.append((module, [example.numpy(), *weights]))
    if not found:
        raise ValueError(f"'{contender.name}' is a kernel, which is not compiled within a network")
    return found


def _compile(
    protocol: Protocol,
    point: Point,
    example: torch.Tensor,
    threads: int,
    names: Sequence[str],
    peers: Peers | None,
    folder: str,
) -> tuple[dict[str, list[_Timer]], dict[str, str]]:
    """The timers of a point by implementation, and why others failed."""
    timers: dict[str, list[_Timer]] = {}
    failures: dict[str, str] = {}

    def attempt(name: str, make: Callable[[], list[_Timer]]) -> None:
        if name not in names:
            return
        try:
            timers[name] = make()
        except (Error, ValueError, RuntimeError, ImportError) as error:
            failures[name] = " ".join(str(error).split())[:300]

    def compile_forms() -> list[_Timer]:
        # A form that fails takes no other with it.
        compiled: list[_Timer] = []
        reasons = []
        for number, (module, arrays) in enumerate(export(protocol, point, example), 1):
            try:
                compiled.append(CompiledNetwork(module, arrays, (len(example), 10), threads).start())
            except (Error, ValueError, RuntimeError) as error:
                reasons.append(f"form {number}: {error}")
        if not compiled:
            raise ValueError("; ".join(reasons))
        if reasons:
            failures["kas"] = " ".join("; ".join(reasons).split())[:300]
        return compiled

    network = make_network(point.network, point.width, protocol[point.contender], len(example)).eval()
    attempt("kas", compile_forms)
    attempt("pytorch", lambda: [_PyTorch(network, example)])
    if peers is not None:
        path = os.path.join(folder, f"{point.network}-{point.contender}-{point.width}.onnx")
        for name in peers.versions:
            attempt(name, partial(_load_peer, peers, name, network, example, path))
    return timers, failures


def describe_machine() -> str:
    """The processor, as the system names it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def measure(
    protocol: Protocol,
    points: Sequence[Point],
    *,
    batch: int = 1,
    threads: int = 1,
    names: Sequence[str] = IMPLEMENTATIONS,
    python: str | None = None,
    rounds: int = 20,
    calls: int = 40,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """A record for each point: the least microseconds of each implementation, and failures.

    `python` is an interpreter that has ONNX Runtime or OpenVINO, such as the one that
    `research/peers/peers.py --setup` makes; without one they are left out. It is given ONNX files, which the extra
    `onnx` writes. All points by all implementations are interleaved, in `rounds` rounds of `calls` calls, so that all
    see the same machine. Calls of kas are made by native code, the others from Python, which costs them a few
    microseconds.
    """
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(batch, 1, 32, 32, generator=generator)
    peers = Peers(python, threads) if python and any(name in names for name in ("onnxruntime", "openvino")) else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            ready = []
            for point in points:
                ready.append(_compile(protocol, point, example, threads, names, peers, folder))
                if progress is not None:
                    progress(f"{point.network}, {point.contender}, {point.width}: {', '.join(ready[-1][0])}")
        least: list[dict[str, float]] = [{} for _ in points]
        for _ in range(rounds):
            for (timers, _), row in zip(ready, least):
                for name, several in timers.items():
                    row[name] = min([row.get(name, float("inf")), *(timer.time(calls) for timer in several)])
        versions = {"pytorch": torch.__version__, "python": sys.version.split()[0], **(peers.versions if peers else {})}
    finally:
        if peers is not None:
            peers.close()
    run = {"machine": describe_machine(), "batch": batch, "threads": threads, "time": round(time.time())}
    return [
        {
            "kind": "latency",
            "key": protocol.latency_key(point, batch, threads),
            **point._asdict(),
            **run,
            "versions": versions,
            "microseconds": {name: round(value, 3) for name, value in row.items()},
            "failures": failures,
        }
        for point, row, (_, failures) in zip(points, least, ready)
    ]
