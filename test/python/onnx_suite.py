# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own tests, which its package has: each model through `kas.onnx` against the results that are stored with it.

    python test/python/onnx_suite.py --output=results.jsonl [--only=TEXT] [--jobs=N] [--limit=SECONDS]

Models run in worker processes, so that whatever ends one is a result as well: `right`; `refused` by a message that
names an operation of the model; `wrong`; `unclear`, refused by another message; `crash`; `timeout`. What `kas.onnx` is
not for is `excluded`, by its category (EXCLUDED).
"""

import argparse
import json
import os
import pathlib
import selectors
import subprocess
import sys
import time

import numpy

FOLDERS = ("node", "simple", "pytorch-operator", "pytorch-converted", "light")
LIMITS = {"node": 60, "light": 600}
"""Seconds that a model of a folder may take; 120 for others."""
START = 60
"""What a worker that is new may take to import everything, in seconds."""

EXCLUDED = {
    "strings": "tensors of text",
    "sequences": "sequences of tensors as inputs or results",
    "optionals": "optional values as inputs or results",
    "float8": "floating-point numbers of 8 bits",
    "4 bits": "numbers of 4 bits and less",
    "random numbers": "results that are drawn",
}
_RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

SETTINGS = {
    **dict.fromkeys(("Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "OneHot", "TopK", "CumSum"), (1,)),
    **dict.fromkeys(("CumProd", "CenterCropPad", "AffineGrid", "Trilu", "SplitToSequence", "SequenceAt"), (1,)),
    **dict.fromkeys(("SequenceErase", "Upsample"), (1,)),
    **dict.fromkeys(("SequenceInsert", "MaxUnpool"), (2,)),
    **dict.fromkeys(("Dropout", "DFT", "Col2Im"), (1, 2)),
    **dict.fromkeys(("Resize", "Pad"), (1, 2, 3)),
    **dict.fromkeys(("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow"), (0,)),
    **dict.fromkeys(("Range", "MelWeightMatrix"), (0, 1, 2, 3, 4)),
    "Slice": (1, 2, 3, 4),
    "STFT": (1, 3),
    "Loop": (0, 1),
}
"""The inputs of operations that say shapes, axes and the like: `constants` of `kas.onnx.load`."""


def find_data():
    import onnx.backend.test

    return pathlib.Path(onnx.backend.test.__file__).parent / "data"


def list_models():
    """The names of all models, `folder/model`."""
    data = find_data()
    names = []
    for folder in FOLDERS:
        if folder == "light":
            names += [f"light/{path.stem}" for path in sorted((data / folder).glob("*.onnx"))]
        else:
            names += [f"{folder}/{path.parent.name}" for path in sorted((data / folder).glob("*/model.onnx"))]
    return names


def read_value(path):
    """A tensor, or None for another value."""
    import onnx

    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def find_category(model):
    """Why `kas.onnx` is not for a model; None where it is."""
    from onnx import TensorProto

    operations = set()

    def visit(graph):
        for node in graph.node:
            operations.add(node.op_type)
            for attribute in node.attribute:
                if attribute.g.node:
                    visit(attribute.g)

    visit(model.graph)
    for function in model.functions:
        operations.update(node.op_type for node in function.node)
    values = [*model.graph.input, *model.graph.output]
    kinds = {value.type.tensor_type.elem_type for value in values} | {t.data_type for t in model.graph.initializer}
    for node in model.graph.node:
        kinds.update(a.t.data_type for a in node.attribute if a.name == "value")
        kinds.update(a.i for a in node.attribute if a.name in ("to", "output_dtype", "dtype"))
    names = {TensorProto.DataType.Name(kind) for kind in kinds if kind in TensorProto.DataType.values()}
    forms = {value.type.WhichOneof("value") for value in values}
    if "STRING" in names or any(operation.startswith("String") for operation in operations):
        return "strings"
    if "optional_type" in forms:
        return "optionals"
    if "sequence_type" in forms:
        return "sequences"
    if any(name.startswith("FLOAT8") for name in names):
        return "float8"
    if any(name.endswith(("INT4", "INT2", "E2M1")) for name in names):
        return "4 bits"
    if operations & _RANDOM:
        return "random numbers"
    return None


def to_array(tensor):
    """A tensor for a compiled function: bfloat16 as PyTorch has it, for NumPy has none."""
    import onnx
    import torch
    from onnx import numpy_helper

    array = numpy_helper.to_array(tensor)
    if tensor.data_type == onnx.TensorProto.BFLOAT16:
        return (
            torch.from_numpy(numpy.ascontiguousarray(array).view(numpy.int16).copy())
            .view(torch.bfloat16)
            .reshape(array.shape)
        )
    return numpy.ascontiguousarray(array).reshape(array.shape)


def to_double(array):
    import torch

    if isinstance(array, torch.Tensor):
        return array.to(torch.float64).numpy()
    return array.astype(numpy.complex128 if numpy.iscomplexobj(array) else numpy.float64)


def compare(number, expected, got):
    """What is wrong with a result, or ''."""
    kinds = [str(array.dtype).removeprefix("torch.") for array in (expected, got)]
    if kinds[0] != kinds[1]:
        return f"result {number}: type {kinds[0]} expected, {kinds[1]} got"
    if tuple(expected.shape) != tuple(got.shape):
        return f"result {number}: shape {tuple(expected.shape)} expected, {tuple(got.shape)} got"
    share = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(kinds[0], 1e-3)
    a, b = to_double(expected), to_double(got)
    # A byte that is rounded the other way is one step.
    if numpy.allclose(a, b, rtol=share if "float" in kinds[0] else 0, atol=1e-6, equal_nan=True):
        return ""
    bad = ~numpy.isclose(a, b, rtol=share, atol=1e-6, equal_nan=True)
    return f"result {number}: {int(bad.sum())} of {a.size} elements differ: {a[bad][:4]} expected, {b[bad][:4]} got"


def find_settings(model):
    """The inputs of a model that settings of its operations are made of."""
    wanted = set()
    for node in reversed(model.graph.node):
        if node.op_type in ("Shape", "Size"):
            continue
        places = (1,) if node.op_type.startswith("Reduce") else SETTINGS.get(node.op_type, ())
        makes_one = bool(wanted.intersection(node.output))
        wanted.update(name for place, name in enumerate(node.input) if name and (makes_one or place in places))
        for attribute in node.attribute if makes_one else ():
            # What branches read of the graph around them.
            wanted.update(name for inner in attribute.g.node for name in inner.input)
    return {value.name for value in model.graph.input if value.name in wanted}


def name_operations(model):
    names = set()

    def visit(graph):
        for node in graph.node:
            names.add(node.op_type)
            for attribute in node.attribute:
                if attribute.g.node:
                    visit(attribute.g)

    visit(model.graph)
    return names


def check(name):
    """What becomes of a model: its outcome, and why."""
    import onnx

    folder, _, stem = name.partition("/")
    data = find_data() / folder
    if folder == "light":
        model = onnx.load(data / f"{stem}.onnx")
        return check_light(model, data / f"{stem}_output_0.pb")
    model = onnx.load(data / stem / "model.onnx")
    if category := find_category(model):
        return "excluded", category
    sets = []
    for path in sorted((data / stem).glob("test_data_set_*")):
        files = [
            sorted(path.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.split("_")[1])) for kind in ("input", "output")
        ]
        sets.append([[read_value(file) for file in kind] for kind in files])
    return run(model, sets)


def check_light(model, path):
    from onnx import helper, numpy_helper

    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name not in initialized:
            shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
            array = numpy.ones(shape, helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
            # As the runner of onnx fills them.
            array = (numpy.arange(array.size).reshape(shape) / max(array.size, 1)).astype(array.dtype)
            inputs.append(numpy_helper.from_array(array))
    return run(model, [[inputs, [read_value(path)]]])


def run(model, sets):
    import kas
    import kas.onnx

    operations = name_operations(model)
    initialized = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initialized]
    settings = find_settings(model)
    for given, results in sets:
        values = dict(zip(names, map(to_array, given)))
        shapes = {name: tuple(values[name].shape) for name in names if name in values and name not in settings}
        constants = {name: value for name, value in values.items() if name in settings}
        try:
            loaded = kas.onnx.load(model, shapes, constants)
            arguments = [values[name] for name in names if name not in settings]
            function = loaded.module.compile("forward", threads=1)
            got = function(*arguments, *loaded.tensors.values())
        except (ValueError, kas.Error) as error:
            said = " ".join(str(error).split())
            return "refused" if any(name in said for name in operations) else "unclear", said[:600]
        got = got if isinstance(got, (list, tuple)) else [got]
        if len(got) != len(results):
            return "wrong", f"{len(results)} results expected, {len(got)} got"
        for number, (expected, array) in enumerate(zip(results, got)):
            if why := compare(number, to_array(expected), array):
                return "wrong", why
    return "right", ""


def work():
    """A worker: takes names, gives outcomes, a line each."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            outcome, why = check(line.strip())
        except Exception as error:
            outcome, why = "unclear", f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
        json.dump({"outcome": outcome, "why": why, "seconds": round(time.perf_counter() - start, 2)}, output)
        output.write("\n")
        output.flush()


class Worker:
    def __init__(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "KAS_CACHE_MB": "0"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.name = None

    def begin(self, name, limit):
        self.name, self.end = name, time.monotonic() + limit
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.wait()


def run_all(names, jobs=1, limit=None):
    """The outcome of each model, as they come: dictionaries with `name`, `outcome`, `why` and `seconds`."""
    waiting, busy, free = list(reversed(names)), {}, []
    selector = selectors.DefaultSelector()
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = free.pop() if free else Worker()
                name = waiting.pop()
                worker.begin(name, (limit or LIMITS.get(name.partition("/")[0], 120)) + START)
                busy[worker.process.stdout] = worker
                selector.register(worker.process.stdout, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select(1)}
            for stream, worker in list(busy.items()):
                if stream not in ready and time.monotonic() < worker.end:
                    continue
                line = stream.readline() if stream in ready else None
                selector.unregister(stream)
                del busy[stream]
                if line:
                    free.append(worker)
                    yield {"name": worker.name, **json.loads(line)}
                    continue
                worker.stop()
                code = worker.process.returncode
                outcome = "timeout" if line is None else "crash"
                yield {"name": worker.name, "outcome": outcome, "why": f"exit code {code}", "seconds": 0}
    finally:
        for worker in [*free, *busy.values()]:
            worker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--output")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float)
    options = parser.parse_args()
    if options.worker:
        return work()
    counts = {}
    names = [name for name in list_models() if options.only in name]
    with open(options.output or os.devnull, "w") as file:
        for number, result in enumerate(run_all(names, options.jobs, options.limit)):
            counts[result["outcome"]] = counts.get(result["outcome"], 0) + 1
            file.write(json.dumps(result) + "\n")
            file.flush()
            if result["outcome"] not in ("right", "excluded") and options.only:
                print(result["name"], result["outcome"], result["why"][:300])
            if number % 100 == 99:
                print(number + 1, counts, flush=True)
    print(counts)
    return None


if __name__ == "__main__":
    main()
