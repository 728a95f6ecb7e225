# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `peers.py --self-check` tries: all that works without the packages of the others."""

import ctypes
import importlib.util
import io
import json
import math
import subprocess
import sys
import types

from . import build, cases, groupedlayers, measure, networks, report, searched, torchcode


def expect(what, value, wanted):
    if value != wanted:
        raise SystemExit(f"peers.py: self-check: {what}: expected {wanted}, got {value}")


def check_object(options):
    """A convolution through a shared object, with weights prepacked once, against loops."""
    cin, cout, size = 8, 32, 7
    x, w, y = (1, cin, size, size), (cout, cin, 3, 3), (1, cout, size, size)
    case = types.SimpleNamespace(others={}, mlir=cases.single("conv2d", {"k": 3}, [x, w], y))
    build.build_kas(options.tools, case, options.work, 1)
    values = [math.sin(i + 1) for i in range(cases.product(x))]
    weights = [math.cos(i) for i in range(cases.product(w))]
    arrays = [(ctypes.c_float * len(part))(*part) for part in (values, weights, [0.0] * cases.product(y))]
    library = ctypes.CDLL(str(options.work / "kas-1.so"))
    library.run_prepacked_elements.restype = ctypes.c_int64
    arrays.append((ctypes.c_float * library.run_prepacked_elements())())
    pointers = [ctypes.byref(array) for array in arrays]
    library.run_prepack(pointers[1], pointers[3])
    library.run(*pointers)
    for o in range(0, cout, 5):
        for h in range(size):
            for v in range(size):
                total = 0.0
                for c in range(cin):
                    for i in range(3):
                        for j in range(3):
                            a, b = h + i - 1, v + j - 1
                            if 0 <= a < size and 0 <= b < size:
                                total += values[(c * size + a) * size + b] * weights[((o * cin + c) * 3 + i) * 3 + j]
                if abs(arrays[2][(o * size + h) * size + v] - total) > 1e-4:
                    raise SystemExit(
                        f"peers.py: self-check: output {o}, {h}, {v}: expected {total}, got "
                        f"{arrays[2][(o * size + h) * size + v]}"
                    )


def check_code(options):
    """The code for PyTorch of plain operators, and that it does what the case counts."""
    for name in (
        "c3_64_64@56",
        "g8_64_64@56",
        "dil2_64_64@56",
        "roll_64_64@56",
        "op1_64@56",
        "op2_64@56",
        "seq1_64@56",
        "dw3_64@56",
    ):
        case = cases.CASES[name]
        source, macs, shape, weights = torchcode.write_module(searched.stage(options.tools, case.mlir))
        expect(f"multiply-adds of {name}", macs, case.macs)
        expect(f"input of {name}", shape, case.shape)
        compile(source, name, "exec")
        if importlib.util.find_spec("torch"):
            run_code(name, case, source, weights)


def run_code(name, case, source, shapes):
    """Where PyTorch is there: the written code computes what the case's own does."""
    import torch

    scope = {"torch": torch, "F": torch.nn.functional}
    exec(source, scope)
    module = case.build(torch)
    written = scope["Model"](
        [torch.from_numpy(w.copy()).reshape(s).double() for w, s in zip(case.weights(module), shapes)]
    )
    x = torch.randn(case.shape, dtype=torch.float64)
    with torch.no_grad():
        error = (written(x) - module.double()(x)).abs().max().item()
    if error > 1e-9:
        raise SystemExit(f"peers.py: self-check: code of {name}: expected no difference, got {error}")


def make_variant(worker, name, times, error=1e-7):
    middle = sorted(times)[len(times) // 2]
    return types.SimpleNamespace(
        worker=types.SimpleNamespace(name=worker), name=name, times=times, median=middle, error=error
    )


def check_report():
    """Ratios, shares and means of made-up times."""
    variant = make_variant
    stream = io.StringIO()
    lines = report.Report(stream, 1)
    case = cases.CASES["op1_64@56"]
    lines.case(
        case,
        [
            variant("machine", "peak", [0.2]),
            variant("machine", "copy", [0.1]),
            variant("kas", "kas", [0.9, 1.0, 1.1]),
            variant("iree", "iree", [3.0]),
            variant("pytorch", "pytorch-eager", [2.0]),
            variant("pytorch", "pytorch-eager/by-hand", [1.5]),
            variant("pytorch", "pytorch-compiled", [0.1], error=1e-2),
        ],
    )
    lines.finish([case])
    numbers = {
        (entry["case"], entry["impl"], entry["metric"]): entry["value"]
        for entry in map(json.loads, stream.getvalue().splitlines())
    }
    expect("ratio to the best peer", numbers["op1_64@56", "kas", "ratio_to_best_peer"], 2.0)
    expect("ratio to the best rewrite", numbers["op1_64@56", "kas", "ratio_to_best_rewrite"], 1.5)
    expect("share of the copy", numbers["op1_64@56", "kas", "share_of_copy_bandwidth"], 0.1)
    expect("mean of the class", numbers["geomean/op1", "kas", "ratio_to_best_peer"], 2.0)


def check_grouped():
    """A grouped layer with its dense one, and a run that goes on where another was stopped."""
    known = groupedlayers.make_cases()
    grouped, other = known["64@56_g4"], known["64@56_g8"]
    stream = io.StringIO()
    lines = report.Report(stream, 1)
    for case in (grouped, other):
        lines.case(
            case,
            [
                make_variant("kas", "kas", [0.5]),
                make_variant("kas", "kas-from-c", [0.5]),
                make_variant("kas", "kas-dense-from-c", [1.6]),
                make_variant("iree", "iree", [1.5]),
            ],
        )
    rest = io.StringIO()
    again = report.Report(rest, 1)
    expect(
        "cases of a run that was stopped",
        again.restore(stream.getvalue().splitlines(keepends=True), known),
        {grouped.name},
    )
    again.finish([])
    numbers = {
        (entry["case"], entry["metric"]): entry["value"] for entry in map(json.loads, rest.getvalue().splitlines())
    }
    expect("achieved over expected", numbers["geomean/grouped layers", "achieved_over_expected"], 0.8)
    expect("ratio of grouped layers", numbers["geomean/grouped layers", "ratio_to_best_peer"], 3.0)


def check_sizes():
    expect("a size", torchcode.make_size("3*C*k/(2*s)", {"C": 8, "k": 3, "s": 4}), 9)
    arguments = networks.read_arguments(networks.MODEL.read_text())
    expect("arguments of the network", len(arguments), 43)
    # 16 convolutions of 3x3, 13 of them of stride 1, as the file counts them.
    expect("multiply-adds with Operator 1", networks.replaced_macs("op1") < networks.DENSE_MACS / 1.5, True)


class Stubborn(measure.Worker):
    """A worker one of whose variants hangs and one of which ends it."""

    code = """
import json, sys, time
live = set()
print(json.dumps({"versions": {}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    answer = {"error": 0.0}
    if request["do"] == "begin":
        live.clear()
        answer = {"variants": ["first", "hangs", "second", "ends", "last"]}
    elif request["do"] == "time":
        answer = {"times": [1e6]} if request["variant"] in live else {"failure": "not loaded"}
    elif request["variant"] == "hangs":
        time.sleep(60)
    elif request["variant"] == "ends":
        sys.exit(3)
    else:
        live.add(request["variant"])
    print(json.dumps(answer), flush=True)
"""

    def __init__(self):
        self.name = "stubborn"
        self.open = lambda: subprocess.Popen(
            [sys.executable, "-c", self.code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self.start()


def check_workers():
    """A variant that hangs or ends its worker is a failure, and the others are timed."""
    worker, grace, measure.GRACE = Stubborn(), measure.GRACE, 0.2
    settings = types.SimpleNamespace(limit=0.3, variants=".", rounds=2, repetitions=1, budget=1, warm=False)
    case = types.SimpleNamespace(name="case", forms=["written"])
    variants, failures = measure.measure([worker], case, settings)
    worker.stop()
    measure.GRACE = grace
    expect(
        "variants next to stubborn ones",
        [(variant.name, variant.times) for variant in variants],
        [(name, [1.0, 1.0]) for name in ("first", "second", "last")],
    )
    expect(
        "stubborn variants",
        failures,
        [("hangs", "the worker said nothing for 0.5 s"), ("ends", "the worker ended with 3")],
    )


def run(options):
    options.work.mkdir(parents=True, exist_ok=True)
    check_sizes()
    check_report()
    check_grouped()
    check_workers()
    check_code(options)
    check_object(options)
    print(
        "peers.py: self-check passed"
        + ("" if importlib.util.find_spec("torch") else "; PyTorch is not here, its code was not run")
    )
