# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own tests of its operations and modules (op_db, module_db), run through torch.compile with kas.

Each entry is run by a worker, a process of its own: a signal or a time-out is what became of that entry. As a program
it is such a worker: it reads a task in JSON per line, and writes what became of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MODES = ("forward", "gradient", "extremal")
TOLERANCES = {
    "float32": 1e-4,
    "float64": 1e-10,
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "complex32": 4e-3,
    "complex64": 1e-4,
    "complex128": 1e-7,
}
"""Of the largest element of a result."""


@dataclasses.dataclass
class Task:
    """An entry of a suite on elements of one type."""

    suite: str
    """`op_db` or `module_db`."""
    name: str
    dtype: str
    mode: str
    """`forward` and `gradient` on PyTorch's samples, `extremal` on these with numbers at the edge."""
    samples: int
    """At most so many of them, chosen by the seed; 0: all."""
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.suite} {self.name} {self.dtype} {self.mode}"


@dataclasses.dataclass
class Outcome:
    """What became of a task."""

    status: str
    """`compiled`, `left` (parts or all are run by PyTorch), `refused` (an error before anything is computed), `none`
    (no sample, or nothing that differs between calls), or what is a failure: `wrong`, `raises`, `crash`, `time-out`."""
    detail: str = ""
    samples: int = 0
    values: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What else is known."""

    @property
    def is_failure(self) -> bool:
        return self.status in ("wrong", "raises", "crash", "time-out")


# ---- In the parent


class Workers:
    """Processes that work on tasks, started again where one is lost."""

    def __init__(self, count: int, time_limit: float, program: str | None = None):
        """`program` is what they run: one that reads tasks and writes outcomes as this file does."""
        self.count, self.time_limit, self.program = count, time_limit, program or __file__

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """The outcomes, in the order in which they come."""
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[Task, Outcome]] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        threads = [threading.Thread(target=self._work, args=(waiting, done), daemon=True) for _ in range(self.count)]
        for thread in threads:
            thread.start()
        for _ in tasks:
            yield done.get()
        for thread in threads:
            thread.join()

    def _work(self, waiting: queue.SimpleQueue[Task], done: queue.SimpleQueue[tuple[Task, Outcome]]) -> None:
        worker = None
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker = subprocess.Popen(
                    [sys.executable, self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                # What is imported does not count.
                assert worker.stdin and worker.stdout
                worker.stdout.readline()
            outcome = self._ask(worker, task)
            if outcome.status in ("crash", "time-out"):
                worker = None
            done.put((task, outcome))
        if worker is not None:
            assert worker.stdin
            worker.stdin.close()
            worker.wait()

    def _ask(self, worker: subprocess.Popen[str], task: Task) -> Outcome:
        assert worker.stdin and worker.stdout
        timer = threading.Timer(self.time_limit, worker.kill)
        timer.start()
        start = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(dataclasses.asdict(task)) + "\n")
            worker.stdin.flush()
        line = worker.stdout.readline()
        timer.cancel()
        if line:
            return Outcome(**json.loads(line))
        code = worker.wait()
        if time.monotonic() - start >= self.time_limit:
            return Outcome("time-out", f"{self.time_limit} s")
        return Outcome("crash", f"exit {code}")


# ---- In a worker


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _flatten(entry)
    else:
        yield value


def differ(expected: Any, found: Any, exact_zeros: bool = False, cancels: bool = False, noise: float = 0.0) -> str:
    """What is different, or nothing. `exact_zeros`: their signs count; `cancels`: what large numbers leave does not.

    `noise` is what may be off in any case.
    """
    import torch

    left, right = list(_flatten(expected)), list(_flatten(found))
    # Such as the gradient of a norm of two elements.
    largest = max((_get_largest(t) for t in left if isinstance(t, torch.Tensor)), default=0.0) if cancels else 0.0
    if len(left) != len(right):
        return f"{len(left)} results expected, {len(right)} got"
    for number, (a, b) in enumerate(zip(left, right)):
        if not isinstance(a, torch.Tensor):
            same = a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))
            if not same:
                return f"result {number}: {a!r} expected, {b!r} got"
            continue
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {number}: {a.dtype} {tuple(a.shape)} expected, {b.dtype} {tuple(b.shape)} got"
        a, b = (t.detach().to_dense() if t.layout != torch.strided else t.detach() for t in (a, b))
        if not (a.dtype.is_floating_point or a.dtype.is_complex):
            if not torch.equal(a, b):
                return f"result {number}: {_show(a)} expected, {_show(b)} got"
            continue
        if a.dtype.is_complex:
            # Halves have no complex numbers to compute with.
            wide = torch.complex128 if a.dtype == torch.complex128 else torch.complex64
            parts = [tuple(torch.view_as_real(t.to(wide).resolve_conj()) for t in (a, b))]
        else:
            parts = [(a, b)]
        for x, y in parts:
            least = 8 * torch.finfo(a.dtype).eps * largest + noise
            tolerance = TOLERANCES[str(a.dtype).removeprefix("torch.")]
            what = _differ_floats(x.double(), y.double(), tolerance, least, exact_zeros)
            if what:
                return f"result {number}: {what}: {_show(x)} expected, {_show(y)} got"
    return ""


def _show(tensor: Any) -> str:
    return str([float(f"{x:.5g}") if isinstance(x, float) else x for x in tensor.flatten()[:10].tolist()])


def _get_largest(tensor: Any) -> float:
    import torch

    if not tensor.dtype.is_floating_point or tensor.layout != torch.strided:
        return 0.0
    finite = tensor.detach()[tensor.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _differ_floats(a: Any, b: Any, tolerance: float, least: float, exact_zeros: bool) -> str:
    import torch

    if not torch.equal(a.isnan(), b.isnan()):
        return "NaN at other places"
    if not torch.equal(a.isinf(), b.isinf()) or not torch.equal(a[a.isinf()], b[b.isinf()]):
        return "other infinities"
    if exact_zeros and not torch.equal(a[a == 0].signbit(), b[a == 0].signbit()):
        return "other signs of zeros"
    finite = a.isfinite()
    if finite.any():
        a, b = a[finite], b[finite]
        largest = a.abs().max().item() or 1.0
        off = (a - b).abs().max().item()
        # Of numbers of all sizes, each counts for itself.
        allowed = tolerance * a.abs().clamp(min=min(largest, 1.0))
        if off > max(tolerance * largest, least) and bool(((a - b).abs() > allowed).any()):
            return f"off by {off:.3g} of {largest:.3g}"
    return ""


EXTREMAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3e4, -3e4, 1e-7, -1e-7)


def make_extremal(value: Any, generator: random.Random) -> Any:
    """The same with numbers at the edge in all tensors of floats."""
    import torch

    if isinstance(value, torch.Tensor):
        if not value.dtype.is_floating_point or not value.numel():
            return value
        numbers = [generator.choice(EXTREMAL) for _ in range(value.numel())]
        return torch.tensor(numbers, dtype=value.dtype).view(value.shape).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(make_extremal(entry, generator) for entry in value)
    return value


def copy(value: Any) -> Any:
    """Tensors with the same layout and memory of their own."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            return value.detach().clone().requires_grad_(value.requires_grad)
        if 0 in value.stride() or not value.numel():
            memory = value.detach().clone()
        else:
            memory = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value.detach())
        return memory.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {name: copy(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(copy(entry) for entry in value)
    return value


def _run(function: Callable[..., Any], args: Any, kwargs: Any, gradient: bool, parameters: Sequence[Any] = ()) -> Any:
    """Results; with `gradient` also the gradients of what the results are, weighted."""
    import torch

    torch.manual_seed(0)
    if not gradient:
        with torch.no_grad():
            return function(*args, **kwargs)
    results = function(*args, **kwargs)
    outputs = [r for r in _flatten(results) if isinstance(r, torch.Tensor) and r.requires_grad]
    given = [*_flatten(args), *_flatten(kwargs)]
    leaves = [t for t in given if isinstance(t, torch.Tensor) and t.requires_grad] + list(parameters)
    weights = [torch.arange(1, o.numel() + 1, dtype=torch.float64).cos().view(o.shape).to(o.dtype) for o in outputs]
    gradients = torch.autograd.grad(outputs, leaves, weights, allow_unused=True) if outputs and leaves else ()
    return list(_flatten(results)), [None if g is None else g.detach() for g in gradients]


@dataclasses.dataclass
class Sample:
    function: Callable[..., Any]
    args: Any
    kwargs: Any
    parameters: Sequence[Any] = ()


def list_entries(suite: str) -> list[str]:
    """The names of what a suite has."""
    return list(_get_entries(suite))


_entries: dict[str, dict[str, Any]] = {}


def _get_entries(suite: str) -> dict[str, Any]:
    if suite not in _entries:
        if suite == "op_db":
            from torch.testing._internal.common_methods_invocations import op_db

            _entries[suite] = {f"{op.name}{'.' * bool(op.variant_test_name)}{op.variant_test_name}": op for op in op_db}
        else:
            from torch.testing._internal.common_modules import module_db

            _entries[suite] = {info.name: info for info in module_db}
    return _entries[suite]


def supports(task: Task) -> bool:
    """Whether PyTorch has samples of an entry for the type and the mode."""
    if task.mode == "extremal" and task.name == "linalg.eigvals":
        return False  # NaN ends PyTorch's own process, in MKL.
    import torch

    entry, dtype = _get_entries(task.suite)[task.name], getattr(torch, task.dtype)
    if task.suite == "module_db":
        return dtype in entry.dtypes and not (task.mode == "gradient" and not entry.supports_gradgrad)
    if task.mode == "gradient":
        return bool(entry.supports_autograd) and dtype in entry.supported_backward_dtypes("cpu")
    return dtype in entry.supported_dtypes("cpu") and (task.mode == "forward" or dtype.is_floating_point)


def _get_samples(task: Task) -> Iterator[Sample]:
    import torch

    entry, dtype = _get_entries(task.suite)[task.name], getattr(torch, task.dtype)
    gradient = task.mode == "gradient"
    if task.suite == "module_db":
        for training in (False, True):
            for given in entry.module_inputs_func(entry, "cpu", dtype, gradient, training):
                if given.forward_input is None:
                    continue
                torch.manual_seed(0)
                module = entry.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs)
                module = module.to(dtype).train(training)
                if isinstance(module, torch.nn.modules.lazy.LazyModuleMixin):
                    module(*copy(given.forward_input.args), **copy(given.forward_input.kwargs))
                yield Sample(module, given.forward_input.args, given.forward_input.kwargs, list(module.parameters()))
        return
    for given in entry.sample_inputs("cpu", dtype, gradient):
        yield Sample(entry.op, (given.input, *given.args), given.kwargs)
    if entry.reference_inputs_func is not None and not gradient:
        for given in entry.reference_inputs("cpu", dtype, gradient):
            yield Sample(entry.op, (given.input, *given.args), given.kwargs)


def run_task(task: Task) -> Outcome:
    """Runs a task in this process."""
    import torch

    generator = random.Random(f"{task.seed} {task}")
    torch.manual_seed(task.seed)
    samples = list(_get_samples(task))
    if task.samples and len(samples) > task.samples:
        chosen = sorted(generator.sample(range(len(samples)), task.samples))
        samples = [samples[number] for number in chosen]
    if task.mode == "extremal":
        for sample in samples:
            # Whether a weight counts where there is no data is not the same in all of PyTorch's convolutions, nor
            # whether those of halves multiply it by zeros of their own.
            if "conv" in task.name:
                data = make_extremal(sample.args[0], generator)
                data = torch.where(data.isfinite(), data, data.new_ones(())) if "float16" in task.dtype else data
                sample.args = (data, *sample.args[1:])
            else:
                sample.args = make_extremal(sample.args, generator)
    outcomes = [_run_sample(task, sample) for sample in samples]
    outcomes = [outcome for outcome in outcomes if outcome.status != "none"]
    for status in ("wrong", "raises", "refused", "left", "compiled"):
        found = [outcome for outcome in outcomes if outcome.status == status]
        if found:
            return Outcome(status, found[0].detail, len(outcomes))
    return Outcome("none")


def _run_sample(task: Task, sample: Sample) -> Outcome:
    import torch

    import kas.torch

    torch._dynamo.reset()
    kas.torch.explain()
    gradient, kwargs = task.mode == "gradient", sample.kwargs
    is_module = isinstance(sample.function, torch.nn.Module)
    state = {k: v.clone() for k, v in sample.function.state_dict().items()} if is_module else {}

    def call(*args: Any, **options: Any) -> Any:
        return sample.function(*args, **options)

    theirs, mine = (copy(sample.args), copy(kwargs)), (copy(sample.args), copy(kwargs))
    reference = _in_double(sample.function) if task.name in _INEXACT and not gradient else sample.function
    try:
        expected = _run(reference, *theirs, gradient, sample.parameters)
    except Exception as error:
        return Outcome("none", f"PyTorch raises {type(error).__name__}")
    if is_module:
        sample.function.load_state_dict(state)
    try:
        compiled = torch.compile(call, backend=kas.torch.backend)
        found = _run(compiled, *mine, gradient, sample.parameters)
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Outcome("raises", f"{_describe(sample)}: {text}")
    graphs = kas.torch.explain()
    is_random = any(r in task.name.lower() for r in _RANDOM) or any("random" in (g.reason or "") for g in graphs)
    if task.mode == "extremal" and any(name in task.name for name in _INFINITE):
        expected, found = ([torch.where(t.isinf(), t * 0, t) for t in _flatten(r)] for r in (expected, found))
    if task.mode == "extremal" and task.name in _TIES:
        expected, found = ([t for t in _flatten(r) if t.dtype.is_floating_point] for r in (expected, found))
    elif task.name in _CHOICES and task.dtype not in ("float32", "float64"):
        # Elements of few bits are often the same: the values alone.
        expected, found = (list(_flatten(r))[:1] for r in (expected, found))
    # Of a norm of equal halves PyTorch has what rounding leaves, times 1 / sqrt(eps).
    noise = 1e-3 if "layer_norm" in task.name and "float16" in task.dtype else 0.0
    what = (
        ""
        if is_random
        else differ(expected, found, cancels=gradient, noise=noise) or differ(theirs, mine, cancels=gradient)
    )
    if what and differ(expected, _run(sample.function, copy(sample.args), copy(kwargs), gradient, sample.parameters)):
        return Outcome("none", "PyTorch gives other results each time")
    if what and not _is_traced_wrongly(call, sample, (copy(sample.args), copy(kwargs)), gradient, found):
        return Outcome("wrong", f"{_describe(sample)}: {what}")
    # A graph that passes its arguments on has nothing to compile.
    graphs = [g for g in graphs if g.reason != "requires a result that is computed, got none"]
    reasons = [g.reason for g in graphs if g.reason] + [f"{name}: {why}" for g in graphs for name, why in g.left]
    if reasons:
        return Outcome("left", reasons[0][:300])
    return Outcome("compiled" if graphs else "none")


def _is_traced_wrongly(call: Any, sample: Sample, given: Any, gradient: bool, found: Any) -> bool:
    """Whether what PyTorch runs of the traced function is the same: it traces some single numbers as rows."""
    import torch

    torch._dynamo.reset()
    try:
        traced = _run(torch.compile(call, backend="aot_eager"), *given, gradient, sample.parameters)
    except Exception:
        return False
    return not differ(traced, found)


_INEXACT = ("special.airy_ai",)
"""Of which PyTorch's float32 has no right digits from -1000 on."""


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return function(x.double()).to(x.dtype)

    return call


_TIES = ("argsort", "bucketize", "kthvalue", "median", "mode", "msort", "nanmedian", "searchsorted", "sort", "topk")
"""Of the same numbers, of which there are some at the edge, PyTorch chooses any; boundaries must be in order."""
_INFINITE = ("std_mean", "var_mean", "group_norm", "gelu")
"""Of infinities PyTorch makes infinities or NaN, by their order or type."""
_CHOICES = ("kthvalue", "median", "mode", "nanmedian", "topk")
"""Of the same numbers PyTorch chooses any."""
_RANDOM = (
    "dropout",
    "rand",
    "bernoulli",
    "multinomial",
    "normal",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "empty",
    "rrelu",
    "resize_",
    "svd",
    "eig",
    "qr",
    "lobpcg",
    "pca",
)


def _describe(sample: Sample) -> str:
    import torch

    def show(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            layout = "" if value.layout != torch.strided or value.is_contiguous() else f" {value.stride()}"
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{layout}"
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return [show(entry) for entry in value]
        return value

    text = f"{show(list(sample.args))} { {k: show(v) for k, v in sample.kwargs.items()} }"
    return text.replace("'", "")[:300]


def answer(run: Callable[[Task], Outcome]) -> None:
    """Reads tasks, and writes what becomes of each."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    import torch
    import torch_mlir.fx  # noqa: F401

    torch.set_num_threads(1)
    print("ready", file=output, flush=True)
    for line in sys.stdin:
        task = Task(**json.loads(line))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcome = run(task)
            except Exception as error:
                outcome = Outcome("raises", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        print(json.dumps(dataclasses.asdict(outcome)), file=output, flush=True)


def main() -> None:
    _get_entries("op_db")
    answer(lambda task: run_task(task) if supports(task) else Outcome("none"))


if __name__ == "__main__":
    # The test is beside it, not what it imports.
    sys.path = [entry for entry in sys.path if pathlib.Path(entry or ".").resolve() != pathlib.Path(__file__).parent]
    main()
