# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR modules and the operators in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

from . import _kas
from ._deprecated import renamed_keyword
from ._errors import Diagnostic
from ._exact import check_function
from ._function import Function, as_plain_array
from ._profile import Profile, profile

if TYPE_CHECKING:
    import numpy

    from ._kernel import Kernel
    from ._search import SearchSpace
    from ._sequence import OperatorSequence

Binding: TypeAlias = str | Mapping[str, int] | None

_PRECISIONS = {kind.name.lower(): kind for kind in _kas.Precision}
_GRADIENT_LOWERINGS = {kind.name.lower(): kind for kind in _kas.GradientStrategy}


def _check_precision(precision: str) -> None:
    if precision not in _PRECISIONS:
        raise ValueError(f"precision requires {' or '.join(map(repr, _PRECISIONS))}, got {precision!r}")


def binding_to_text(binding: Binding) -> str:
    """`N=1,C=64` for a dictionary, or the text itself."""
    if binding is None:
        return ""
    if isinstance(binding, str):
        return binding
    if not isinstance(binding, Mapping):
        raise TypeError(f"a binding must be a dictionary such as {{'N': 1}} or text such as 'N=1', got {binding!r}")
    for name, value in binding.items():
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"the symbol '{name}' must be bound to an integer, got {value!r}")
    return ",".join(f"{name}={value.__index__()}" for name, value in binding.items())


def parse_binding(binding: Binding) -> dict[str, int]:
    """A binding as a dictionary."""
    if isinstance(binding, Mapping):
        binding_to_text(binding)
        return {name: value.__index__() for name, value in binding.items()}
    result = {}
    for entry in filter(None, (part.strip() for part in binding_to_text(binding).split(","))):
        name, _, value = entry.partition("=")
        if not value.strip().isdigit():
            raise ValueError(f"a binding must be text such as 'N=1,C=64', got {binding!r}")
        result[name.strip()] = int(value)
    return result


class Sizes(TypedDict):
    """The symbolic sizes of an operator's tensors."""

    data: list[str]
    weights: list[list[str]]
    output: list[str]


class _Description(Sizes):
    """What the extension reports about an operator, as JSON."""

    primaries: list[str]
    coefficients: list[str]
    weight_outputs: list[list[int]]
    batch: bool
    unordered_output: list[bool]
    macs: str | None
    flops: str | None
    flops_unprepared: str | None
    training_flops: str | None
    parameters: str | None
    bytes: str | None


class Cost(NamedTuple):
    """The cost of one evaluation of an operator.

    ``macs`` are the fewest multiply-adds when all that depends on weights alone was computed before, as for inference;
    ``flops`` are 2 for each. ``flops_unprepared`` are the fewest with new weights, ``training_flops`` the fewest for
    that and the gradients of the data and of all weights. ``parameters`` are the elements of the weights, ``bytes``
    those of data, weights and output in f32.
    """

    macs: int
    flops: int
    flops_unprepared: int
    training_flops: int
    parameters: int
    bytes: int


class SymbolicCost(NamedTuple):
    """The same over the symbols, as text; None where an exponent does not fit."""

    macs: str | None
    flops: str | None
    flops_unprepared: str | None
    training_flops: str | None
    parameters: str | None
    bytes: str | None


class Shapes(NamedTuple):
    """The shapes of an operator's tensors."""

    data: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]


class AxisProperties(NamedTuple):
    """What an operator does along an axis (docs/reference/properties.md).

    ``output`` and ``data`` are the dimensions of both that are the axis, ``size`` the positions of the data. An element
    of the output reads from ``fewest_read`` to ``most_read`` of them, all where its receptive field is global.
    ``translations`` of the data move the output: ``cyclic``, around the torus; ``zero_padded``, but for what windows
    miss at the borders; or ``none``. ``any_grid``: the weights fit grids of any size.
    """

    output: int
    data: int
    size: int
    fewest_read: int
    most_read: int
    translations: str
    any_grid: bool

    @property
    def reads_all(self) -> bool:
        """A global receptive field: each element of the output reads all positions."""
        return self.fewest_read == self.size


class Module:
    """An MLIR module: operators, kernels, spaces, functions. Safe to use from several threads.

    Copies and pickles hold its text.
    """

    def __init__(self, text: str, name: str = "<string>"):
        if not isinstance(text, str):
            raise TypeError(f"the text of a module must be a str, got {type(text).__name__}")
        self._handle = _kas.Module(text, name)
        self.remarks: list[Diagnostic] = []
        """The remarks and warnings of the passes of the last `run`."""

    def __str__(self) -> str:
        return self._handle.print(False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Module, (str(self),), {"remarks": self.remarks}

    def to_generic(self) -> str:
        """The module in MLIR's generic form."""
        return self._handle.print(True)

    def verify(self) -> None:
        """Raises `kas.Error` when the module is not valid."""
        self._handle.verify()

    def run(self, pipeline: str, *, verify_each: bool = True) -> Module:
        """Runs passes, such as `kas-canonicalize,cse`. The module stays as it was when they fail. Returns itself.

        With `verify_each` it is verified after each pass and not only after the last one, which takes up to half of
        the time; without it a pass may get what one before it should not have made.
        """
        self.remarks = [Diagnostic(*entry) for entry in self._handle.run_passes(pipeline, verify_each)]
        return self

    def clone(self) -> Module:
        """A copy that shares nothing with this module."""
        return Module(str(self))

    @property
    def symbols(self) -> dict[str, str]:
        """The kind of each symbol, such as `kas.operator`, by its name."""
        return {entry["name"]: entry["kind"] for entry in json.loads(self._handle.list_symbols())}

    @property
    def operators(self) -> list[str]:
        """The names of the operators."""
        return [name for name, kind in self.symbols.items() if kind == "kas.operator"]

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels of the tensor level by name."""
        from ._kernel import Kernel

        return {name: Kernel(self, name) for name, kind in self.symbols.items() if kind == "kas.kernel"}

    @property
    def sequences(self) -> dict[str, OperatorSequence]:
        """The sequences of operators by name."""
        from ._sequence import OperatorSequence

        names = [name for name, kind in self.symbols.items() if kind == "kas.sequence"]
        return {name: OperatorSequence(self, name) for name in names}

    @property
    def spaces(self) -> dict[str, SearchSpace]:
        """The search problems by name."""
        from ._search import SearchSpace

        return {name: SearchSpace(self, name) for name, kind in self.symbols.items() if kind == "kas.space"}

    def text_of(self, name: str) -> str:
        """The text of the symbol `name` alone: a space, a kernel, a function."""
        return self._handle.get_symbol_text(name)

    def __getitem__(self, name: str) -> Operator:
        return Operator(self, name)

    def __iter__(self) -> Iterator[Operator]:
        return (Operator(self, name) for name in self.operators)

    @renamed_keyword("prepare_weights", "prepack_weights")
    def compile(
        self,
        function: str,
        device: str = "cpu",
        *,
        threads: int = 0,
        opt_level: int = 2,
        prepack_weights: bool = False,
        any_batch: bool = False,
        precision: str = "f32",
        libraries: str = "auto",
        check: str | None = None,
        seed: int = 0,
        draws: int = 0,
    ) -> Function:
        """Compiles a `func.func` on tensors of static shape, of floats or integers, for the CPU or for a CUDA device.

        With `prepack_weights` all arguments but the first and those with the attribute `kas.data` are weights, which
        `Function.bind(...).prepack()` packs before the first call, with all that depends on them alone; calls are
        faster then.
        With `any_batch` the first dimension of the first argument and of all results may have any size; that of the
        module, 2 to 4 096, is the largest that the function is fast for. Raises `kas.Error` where samples are not
        computed one by one, from the first argument and weights. Without `prepack_weights` parts of a batch pack the
        weights again.
        With `precision="bf16"` factors of products may be rounded to bf16 where the processor has instructions for that
        and it saves time; sums, arguments and results stay f32 (docs/guide/quantization.md).
        `check`, `seed` and `draws` as in `Operator.compile`, for functions that compute with `kas.apply` alone, whose
        weights are not prepacked.
        With `device="cuda"` or `"cuda:1"` the result is a `kas.DeviceFunction`, on tensors in the memory of that
        device. Of the options there are `precision` (also `"tf32"` and `"f16"`: tensor cores round factors so) and
        `libraries` (`"auto"` lets cuBLASLt and cuDNN compute what they are expected to be faster for, `"none"` does
        not). Weights are always prepacked there. Raises `kas.Error` where there is no such device, and says what would
        help.
        """
        if device != "cpu":
            given = {"threads": threads, "any_batch": any_batch, "check": check}
            return self._compile_for_device(function, device, precision, libraries, given)
        if check and prepack_weights:
            raise ValueError(f"check='{check}' requires prepack_weights=False, got True")
        if check and any_batch:
            raise ValueError(f"check='{check}' requires any_batch=False, got True")
        _check_precision(precision)
        if check and precision != "f32":
            raise ValueError(f"check='{check}' requires precision='f32', got '{precision}'")
        how = (threads, opt_level, prepack_weights, any_batch, _PRECISIONS[precision], False)
        # As text a step of a training would take longer than to find its code in the cache.
        source = self._handle.to_bytecode()
        compiled = Function(self._handle, source, "compile_function", function, *how)
        compiled.check = check_function(
            self._handle, function, None, check, threads=threads, opt_level=opt_level, seed=seed, draws=draws
        )
        return compiled

    def _compile_for_device(
        self, function: str, device: str, precision: str, libraries: str, given: Mapping[str, Any]
    ) -> Function:
        """`given` are options that only the CPU has."""
        from ._device_function import PRECISIONS, DeviceFunction

        if device.partition(":")[0] != "cuda":
            raise ValueError(f"the device must be 'cpu', 'cuda' or 'cuda:INDEX', got {device!r}")
        if wrong := [name for name, value in given.items() if value]:
            raise ValueError(f"{wrong[0]}= requires device='cpu', got {device!r}")
        if precision not in PRECISIONS:
            raise ValueError(f"precision requires {', '.join(map(repr, PRECISIONS))}, got {precision!r}")
        if libraries not in ("auto", "none"):
            raise ValueError(f"libraries requires 'auto' or 'none', got {libraries!r}")
        source = self._handle.to_bytecode()
        return DeviceFunction(self._handle, source, function, device, precision, libraries == "auto")

    def save(
        self,
        path: str | os.PathLike[str],
        function: str,
        weights: Iterable[Any] = (),
        *,
        threads: int = 0,
        opt_level: int = 2,
        prepack_weights: bool = True,
        any_batch: bool = False,
        precision: str = "f32",
    ) -> None:
        """Compiles a `func.func` as `compile` does, and writes it to a file for `kas.load_compiled`.

        `weights` are its last arguments, which become part of the file, prepacked unless `prepack_weights` is off: the
        function of the file takes the others. The file is for processors that have what this one has, and for this
        version of kas. Raises `kas.Error` as `compile` does, and where not all weights are there that are to be
        prepacked.
        """
        _check_precision(precision)
        how = (threads, opt_level, prepack_weights, any_batch, _PRECISIONS[precision], True)
        handle = self._handle.compile_function(function, *how)
        handle.save(os.fspath(path), [as_plain_array(weight) for weight in weights])

    def profile(
        self,
        function: str,
        *arguments: Any,
        threads: int = 0,
        opt_level: int = 2,
        runs: int = 0,
        seed: int = 0,
    ) -> Profile:
        """Says where the time of a `func.func` goes, operation by operation, and that of its compilation.

        Compiles it with its weights prepacked and runs it `runs` times (0: 20 times at least, and for 0.2 s) on the
        arguments, and on random ones from `seed` in place of those that are left out at the end (zeros where they are
        not of f32).
        """
        return profile(
            self._handle, function, None, arguments, threads=threads, opt_level=opt_level, runs=runs, seed=seed
        )


class Operator:
    """An operator of a module.

    A binding is a dictionary `{"N": 1, "C": 64}` or text `"N=1,C=64"`.
    """

    def __init__(self, module: Module, name: str):
        self.module = module
        self.name = name
        self._description: _Description = json.loads(module._handle.describe(name))

    def __repr__(self) -> str:
        return f"<kas.Operator {self.name}>"

    def __str__(self) -> str:
        return self._text(_kas.OperatorText.MLIR)

    def alone(self) -> Operator:
        """The same operator in a module of its own."""
        return Module(str(self))[self.name]

    @property
    def symbols(self) -> tuple[list[str], list[str]]:
        """The primary symbols and the coefficients."""
        return self._description["primaries"], self._description["coefficients"]

    @property
    def sizes(self) -> Sizes:
        """The symbolic sizes: `data`, `weights` (one list for each) and `output`."""
        description = self._description
        return {"data": description["data"], "weights": description["weights"], "output": description["output"]}

    @property
    def weight_outputs(self) -> list[list[int]]:
        """For each weight the output dimensions that its coordinates are made of."""
        return self._description["weight_outputs"]

    @property
    def has_batch(self) -> bool:
        """The first dimension of data and output is a batch: each example is computed by itself, in any batch."""
        return self._description["batch"]

    @property
    def weights_indexed_by_position(self) -> bool:
        """A weight depends on where in an image or a sequence the output is: the operator is no convolution.

        Positions are the output dimensions after the batch that are not `unordered`; where none is marked so, those
        after the batch and the channels.
        """
        unordered = self._description["unordered_output"]
        rank = len(unordered)
        positions = {dim for dim in range(1, rank) if not unordered[dim]} if any(unordered) else set(range(2, rank))
        return any(positions.intersection(outputs) for outputs in self.weight_outputs)

    def find_lookahead(
        self, binding: Binding = None, output: int = -1, data: int = -1, stride: int = 1
    ) -> tuple[int, int] | None:
        """A position of the output and a later one of the data that it depends on, along a sequence.

        `output` and `data` are the dimensions of the sequence in both, the last ones unless given. Later is what is
        after `stride` times the position of the output. The operator is causal along them at this binding when there
        is nothing: `None`. Decided exactly, for all elements and all weights. Raises `kas.Error` for a dimension that
        there is not and for a stride below 1.

        >>> kas.operator("conv1d_depthwise").find_lookahead("N=1,C=4,L=8,k=3")
        (6, 7)
        >>> kas.operator("conv1d_depthwise_causal").find_lookahead("N=1,C=4,L=8,k=3") is None
        True
        """
        ranks = len(self._description["output"]), len(self._description["data"])
        output, data = (dim + rank if dim < 0 else dim for dim, rank in zip((output, data), ranks))
        text = self.module._handle.find_lookahead(self.name, binding_to_text(binding), output, data, stride)
        found: list[int] | None = json.loads(text)
        return (found[0], found[1]) if found else None

    def axis_properties(self, binding: Binding = None) -> list[AxisProperties]:
        """What the operator does along each axis that output and data share, but for a batch, at a binding.

        Where no dimension is marked `unordered`, the second one is channels. Decided exactly, for all weights; with a
        maximum, `translations` may be too cautious. Raises `kas.Error` for operators with more than 2^22 points of
        loops that depend on each other.

        >>> [axis] = kas.operator("conv1d_depthwise").axis_properties("N=1,C=4,L=8,k=3")
        >>> axis.fewest_read, axis.most_read, axis.translations, axis.any_grid
        (2, 3, 'zero_padded', True)
        """
        text = self.module._handle.get_axes(self.name, binding_to_text(binding))
        return [AxisProperties(**axis) for axis in json.loads(text)]

    @property
    def num_weights(self) -> int:
        """How many weight tensors there are."""
        return len(self._description["weights"])

    @property
    def symbolic_cost(self) -> SymbolicCost:
        """The cost as one loop nest, over the symbols."""
        description = self._description
        return SymbolicCost(
            description["macs"],
            description["flops"],
            description["flops_unprepared"],
            description["training_flops"],
            description["parameters"],
            description["bytes"],
        )

    def cost(self, binding: Binding = None) -> Cost:
        """The cost at a binding, with the best stages."""
        return Cost(*self.module._handle.get_cost(self.name, binding_to_text(binding)))

    def existing_flops(self, binding: Binding = None) -> int:
        """The part of `cost(binding).flops` that has no zero of a padding: what rates are made of."""
        return self.module._handle.get_existing_flops(self.name, binding_to_text(binding))

    def fan_in(self, binding: Binding = None) -> float:
        """The F for which weights whose product has variance 2/F keep the mean square of rectified data."""
        return self.module._handle.get_fan_in(self.name, binding_to_text(binding))

    def predict_milliseconds(self, binding: Binding = None) -> float:
        """What a call on one core takes, weights packed ahead, as the machine model says without compiling.

        The model is that of this machine where `kas-bench calibrate` made one, else that of a usual machine with the
        same vectors; median errors are some 10 and some 25 % (docs/internals/predicted-times.md). Raises `kas.Error`
        for what no search could make, such as reductions other than sums.

        >>> dense, grouped = kas.operator("conv2d"), kas.operator("conv2d_grouped")
        >>> sizes = {"N": 1, "Cin": 64, "Cout": 64, "H": 56, "W": 56, "k": 3}
        >>> dense.predict_milliseconds(sizes) > grouped.predict_milliseconds({**sizes, "g": 4})
        True
        """
        return self.module._handle.predict_time(self.name, binding_to_text(binding))

    def shapes(self, binding: Binding = None) -> Shapes:
        """The shapes at a binding."""
        numbers = json.loads(self.module._handle.get_shapes(self.name, binding_to_text(binding)))
        return Shapes(tuple(numbers["data"]), tuple(map(tuple, numbers["weights"])), tuple(numbers["output"]))

    @property
    def formula(self) -> str:
        """What the operator computes, in one line."""
        return self._text(_kas.OperatorText.FORMULA)

    @property
    def graph(self) -> str:
        """The graph of the primitives in Graphviz's language."""
        return self._text(_kas.OperatorText.GRAPH)

    def loop_nest(self, binding: Binding = None) -> str:
        """The loops of the operator as a function in C."""
        return self._text(_kas.OperatorText.LOOP_NEST, binding)

    def to_pytorch(self, binding: Binding = None) -> str:
        """A Python file with the operator as torch.nn.Module; it needs no kas."""
        return self._text(_kas.OperatorText.PYTORCH, binding)

    def canonical(self) -> Operator:
        """The operator in canonical form, in a module of its own."""
        return Module(self._text(_kas.OperatorText.CANONICAL))[self.name]

    def compile(
        self,
        binding: Binding = None,
        device: str = "cpu",
        *,
        threads: int = 0,
        opt_level: int = 2,
        check: str | None = None,
        seed: int = 0,
        draws: int = 0,
    ) -> Function:
        """Compiles the operator: the result takes the data and the weights and gives the output.

        `threads`: 1 makes serial code, 0 leaves the number to OpenMP. `check="exact"` compares it with the evaluator
        first, bit by bit, on integers drawn `draws` times from `seed` for which no sum rounds (0: as often as needed);
        `Function.check` says what was drawn. Raises `kas.Error` where results differ and where there are no such
        integers.
        """
        if device != "cpu":
            raise ValueError(f"the device must be 'cpu', got {device!r}")
        text, handle = binding_to_text(binding), self.module._handle
        compiled = Function(handle, str(self), "compile", self.name, text, threads, opt_level)
        compiled.check = check_function(
            handle, self.name, text, check, threads=threads, opt_level=opt_level, seed=seed, draws=draws
        )
        return compiled

    def profile(
        self,
        binding: Binding = None,
        *arguments: Any,
        threads: int = 0,
        opt_level: int = 2,
        runs: int = 0,
        seed: int = 0,
    ) -> Profile:
        """Says where the time of the operator goes, stage by stage, as `Module.profile` does."""
        return profile(
            self.module._handle,
            self.name,
            binding_to_text(binding),
            arguments,
            threads=threads,
            opt_level=opt_level,
            runs=runs,
            seed=seed,
        )

    @renamed_keyword("road", "lowering")
    def compile_gradient(
        self,
        tensor: int,
        binding: Binding = None,
        device: str = "cpu",
        *,
        lowering: str = "auto",
        threads: int = 0,
        opt_level: int = 2,
    ) -> Function:
        """Compiles the gradient with respect to a tensor (0: the data, then the weights).

        The result takes the data, the weights and the gradient of the output. `lowering` is "structured" for the
        gradients of the operator's stages in register tiles, "loops" for one loop nest, which every operator has, or
        "auto": the first where it exists, that is, for operators without a maximum.
        """
        if lowering not in _GRADIENT_LOWERINGS:
            raise ValueError(f"the lowering must be 'auto', 'structured' or 'loops', got {lowering!r}")
        if device != "cpu":
            raise ValueError(f"the device must be 'cpu', got {device!r}")
        if not 0 <= tensor <= self.num_weights:
            raise ValueError(f"the tensor must be 0 (the data) to {self.num_weights}, got {tensor}")
        arguments = (binding_to_text(binding), tensor, _GRADIENT_LOWERINGS[lowering], threads, opt_level)
        return Function(self.module._handle, str(self), "compile_gradient", self.name, *arguments)

    def evaluate(self, binding: Binding, data: Any, *weights: Any) -> numpy.ndarray:
        """The output by the slow evaluator that defines what operators mean, for tests."""
        import numpy

        shapes = self.shapes(binding)
        wanted = [shapes.data, *shapes.weights]
        arrays = [numpy.ascontiguousarray(array, dtype=numpy.float32) for array in (data, *weights)]
        if len(arrays) != len(wanted):
            raise TypeError(f"expected the data and {len(wanted) - 1} weights, got {len(arrays)} arrays")
        for index, (array, shape) in enumerate(zip(arrays, wanted)):
            if array.shape != shape:
                name = f"weight{index - 1}" if index else "data"
                raise ValueError(f"'{name}' must have the shape {shape}, got {array.shape}")
        output = numpy.zeros(shapes.output, dtype=numpy.float32)
        self.module._handle.evaluate(self.name, binding_to_text(binding), [*arrays, output])
        return output

    def _text(self, kind: _kas.OperatorText, binding: Binding = None) -> str:
        return self.module._handle.get_text(self.name, kind, binding_to_text(binding))


def parse(text: str, name: str = "<string>") -> Module:
    """Parses and verifies MLIR text; `name` is what diagnostics call it."""
    return Module(text, name)


def load(path: str | os.PathLike[str]) -> Module:
    """Reads a file of MLIR."""
    with open(path, encoding="utf-8") as file:
        return Module(file.read(), os.fspath(path))


class Entry(NamedTuple):
    """A named operator or kernel of the library."""

    name: str
    title: str
    formula: str
    source: str
    text: str


def _entries(library: _kas.Library) -> dict[str, Entry]:
    return {name: Entry(name, *_kas.get_entry(library, index)) for index, name in enumerate(_kas.list_names(library))}


def named_operators() -> dict[str, Entry]:
    """The operators of the library by name."""
    return _entries(_kas.Library.OPERATORS)


def named_kernels() -> dict[str, Entry]:
    """The kernels of the library (of the tensor level) by name."""
    return _entries(_kas.Library.KERNELS)


def find_entry(kind: str, entries: dict[str, Entry], name: str) -> Entry:
    """The entry `name`, with or without the prefix `kas.`."""
    name = name.removeprefix("kas.")
    if name not in entries:
        import difflib

        close: Sequence[str] = difflib.get_close_matches(name, entries, 3)
        hint = f"; did you mean {', '.join(close)}?" if close else f"; kas.named_{kind}s() lists all"
        raise KeyError(f"no {kind} '{name}' in the library{hint}")
    return entries[name]


def operator(name: str) -> Operator:
    """The operator `name` of the library, in a module of its own."""
    entry = find_entry("operator", named_operators(), name)
    return Module(entry.text, f"kas.{entry.name}")[entry.name]
