# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled operators on arrays."""

import os
import subprocess
import sys
import threading
import time

import numpy
import pytest

import kas


def random_arrays(shapes, seed=0):
    generator = numpy.random.default_rng(seed)
    return [generator.standard_normal(shape, dtype=numpy.float32) for shape in (shapes.data, *shapes.weights)]


def relative_error(actual, expected):
    return numpy.abs(actual - expected).max() / numpy.abs(expected).max()


@pytest.fixture
def conv(conv2d_binding):
    op = kas.operator("conv2d")
    return op, conv2d_binding, op.compile(conv2d_binding)


def test_equals_the_reference(conv):
    op, binding, function = conv
    arrays = random_arrays(op.shapes(binding))
    assert relative_error(function(*arrays), op.evaluate(binding, *arrays)) < 1e-5
    assert function.arguments == [("data", (2, 4, 7, 5)), ("weight0", (6, 4, 3, 3))]
    assert function.results == [("result0", (2, 6, 7, 5))]
    assert function.compile_milliseconds > 0


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize(
    ("rows", "columns", "window", "stride", "padding"),
    [(16, 16, 2, 2, 0), (9, 77, 3, 2, 1), (7, 40, 3, 1, 1), (12, 200, 2, 1, 0), (11, 23, 4, 2, 1), (9, 31, 3, 3, 1)],
)
def test_poolings_are_exact(kind, rows, columns, window, stride, padding):
    """In vectors, in loops of them, and what is left of lines."""
    start, init = ("0xFF800000", -numpy.inf) if kind == "max" else ("0.0", 0.0)
    padded = rows + 2 * padding, columns + 2 * padding
    counts = [(size - window) // stride + 1 for size in padded]
    data, image = f"tensor<2x3x{rows}x{columns}xf32>", f"tensor<2x3x{padded[0]}x{padded[1]}xf32>"
    result, shape = f"tensor<2x3x{counts[0]}x{counts[1]}xf32>", f"tensor<{window}x{window}xf32>"
    module = kas.Module(f"""
func.func @f(%x: {data}) -> {result} {{
  %start = arith.constant {start} : f32
  %padded = tensor.pad %x low[0, 0, {padding}, {padding}] high[0, 0, {padding}, {padding}] {{
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %start : f32
  }} : {data} to {image}
  %window = tensor.empty() : {shape}
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%start : f32) outs(%empty : {result}) -> {result}
  %y = linalg.pooling_nchw_{kind} {{strides = dense<{stride}> : vector<2xi64>}}
      ins(%padded, %window : {image}, {shape}) outs(%init : {result}) -> {result}
  return %y : {result}
}}""")
    x = numpy.random.default_rng(0).standard_normal((2, 3, rows, columns), dtype=numpy.float32)
    around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    outside = numpy.pad(x, around, constant_values=init)
    expected = numpy.full((2, 3, *counts), init, numpy.float32)
    for i in range(window):
        for j in range(window):
            ends = i + stride * (counts[0] - 1) + 1, j + stride * (counts[1] - 1) + 1
            points = outside[:, :, i : ends[0] : stride, j : ends[1] : stride]
            expected = numpy.maximum(expected, points) if kind == "max" else expected + points
    for threads in (1, 2):
        assert numpy.array_equal(module.clone().compile("f", threads=threads)(x), expected)


@pytest.mark.parametrize("seed", range(12))
def test_random_poolings(seed):
    """Windows, strides and paddings of both kinds, whole images, zeros of both signs and NaN."""
    random = numpy.random.default_rng(seed)
    is_sum = bool(seed % 2)
    rows, columns = (int(size) for size in random.integers(5, 60, 2))
    window, stride = int(random.integers(1, 5)), int(random.integers(1, 4))
    shape = (rows, columns) if seed % 3 == 0 and is_sum else (window, window)
    around = 0 if is_sum else int(random.integers(0, window))
    x = random.integers(-50, 50, (2, 3, rows, columns)).astype(numpy.float32)
    x[random.random(x.shape) < 0.1] = -0.0
    if not is_sum:
        x[random.random(x.shape) < 0.01] = numpy.nan
    least = 0.0 if is_sum else -numpy.inf
    padded = numpy.pad(x, [(0, 0), (0, 0), (around, around), (around, around)], constant_values=least)
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, shape, (2, 3))[:, :, ::stride, ::stride]
    expected = windows.sum((-1, -2)) if is_sum else windows.max((-1, -2))
    data, whole, result = ("tensor<" + "x".join(map(str, y.shape)) + "xf32>" for y in (x, padded, expected))
    size = f"tensor<{shape[0]}x{shape[1]}xf32>"
    module = kas.Module(
        f"""
        func.func @f(%x: {data}) -> {result} {{
          %least = arith.constant {"0.0" if is_sum else "0xFF800000"} : f32
          %padded = tensor.pad %x low[0, 0, {around}, {around}] high[0, 0, {around}, {around}] {{
          ^bb0(%n: index, %c: index, %h: index, %w: index):
            tensor.yield %least : f32
          }} : {data} to {whole}
          %window = tensor.empty() : {size}
          %empty = tensor.empty() : {result}
          %init = linalg.fill ins(%least : f32) outs(%empty : {result}) -> {result}
          %y = linalg.pooling_nchw_{"sum" if is_sum else "max"} {{strides = dense<{stride}> : vector<2xi64>}}
              ins(%padded, %window : {whole}, {size}) outs(%init : {result}) -> {result}
          return %y : {result}
        }}"""
    )
    for threads in (1, 2):
        y = module.clone().compile("f", threads=threads)(x)
        assert numpy.array_equal(y, expected, equal_nan=True)


POOLINGS_BETWEEN_GUARD_PAGES = """
import ctypes, mmap, numpy, kas

libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE

def guard(count, at_end):
    size = -(-4 * count // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place in (start, start + page + size):
        assert libc.mprotect(ctypes.c_void_p(place), page, 0) == 0
    place = start + page + (size - 4 * count if at_end else 0)
    return memory, numpy.frombuffer((ctypes.c_float * count).from_address(place), numpy.float32)

for rows, columns, window, stride in [(16, 16, 2, 2), (9, 33, 3, 2), (7, 40, 3, 1), (5, 8, 3, 2), (3, 7, 1, 1)]:
    down, across = (rows - window) // stride + 1, (columns - window) // stride + 1
    data, result = f"tensor<1x1x{rows}x{columns}xf32>", f"tensor<1x1x{down}x{across}xf32>"
    shape = f"tensor<{window}x{window}xf32>"
    function = kas.Module(f'''
func.func @f(%x: {data}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %window = tensor.empty() : {shape}
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %y = linalg.pooling_nchw_sum {{strides = dense<{stride}> : vector<2xi64>}}
      ins(%x, %window : {data}, {shape}) outs(%init : {result}) -> {result}
  return %y : {result}
}}''').compile("f", threads=1)
    for at_end in (False, True):
        kept, x = guard(rows * columns, at_end)
        also_kept, y = guard(down * across, at_end)
        x[:] = 1
        function(x.reshape(1, 1, rows, columns), out=y.reshape(1, 1, down, across))
        assert (y == window * window).all()
print("nothing outside")
"""


def test_poolings_touch_nothing_outside():
    command = [sys.executable, "-c", POOLINGS_BETWEEN_GUARD_PAGES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "nothing outside\n", (done.returncode, done.stderr)


def test_takes_torch_tensors_without_copies(conv):
    torch = pytest.importorskip("torch")
    _, _, function = conv
    x = torch.randn(2, 4, 7, 5)
    w = torch.randn(6, 4, 3, 3, requires_grad=True)
    expected = torch.nn.functional.conv2d(x, w, padding=1)
    assert torch.allclose(function(x, w), expected, atol=1e-5)
    # The memory itself is read and written: mixed kinds, and an output that is there already.
    out = numpy.full((2, 6, 7, 5), numpy.nan, dtype=numpy.float32)
    result = function(x.numpy(), w, out=out)
    assert result is out
    assert numpy.allclose(out, expected.detach().numpy(), atol=1e-5)


def test_read_only_arrays(conv):
    op, binding, function = conv
    arrays = random_arrays(op.shapes(binding))
    for array in arrays:
        array.flags.writeable = False
    function(*arrays)
    frozen = numpy.zeros((2, 6, 7, 5), dtype=numpy.float32)
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        function(*arrays, out=frozen)


def test_many_threads():
    """Calls run at the same time and do not disturb each other."""
    op = kas.operator("matmul")
    binding = {name: 256 for name in op.symbols[0]}
    function = op.compile(binding, threads=1)
    inputs = [random_arrays(op.shapes(binding), seed) for seed in range(4)]
    expected = [function(*arrays) for arrays in inputs]
    wrong = []

    def work(index):
        for _ in range(20):
            if not numpy.array_equal(function(*inputs[index]), expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_loops_on_two_threads():
    """What OpenMP shares out equals serial code."""
    code = (
        "import numpy, kas\n"
        "op = kas.operator('conv2d')\n"
        "binding = {'N': 1, 'Cin': 16, 'Cout': 32, 'H': 32, 'W': 32, 'k': 3}\n"
        "shapes = op.shapes(binding)\n"
        "arrays = [numpy.random.default_rng(0).standard_normal(s, dtype='f4') for s in (shapes.data, "
        "*shapes.weights)]\n"
        "one, two = (op.compile(binding, threads=threads)(*arrays) for threads in (1, 0))\n"
        "assert numpy.array_equal(one, two)\n"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "2"}, check=True)


def test_releases_the_lock():
    """Python goes on while an operator is compiled."""
    op = kas.operator("conv2d")
    done = threading.Event()

    def compile_it():
        for k in (3, 5, 7):
            op.compile({"N": 1, "Cin": 16, "Cout": 16, "H": 16, "W": 16, "k": k})
        done.set()

    thread = threading.Thread(target=compile_it)
    steps = 0
    thread.start()
    while not done.wait(0):
        steps += 1
        time.sleep(0.001)
    thread.join()
    # With the lock held there would be a step between two compilations at most.
    assert steps > 10


def test_compiles_functions():
    module = kas.parse(
        """
        func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
          %e = tensor.empty() : tensor<4xf32>
          %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
          return %y : tensor<4xf32>
        }
        """
    )
    x = numpy.arange(4, dtype=numpy.float32)
    assert numpy.array_equal(module.compile("twice")(x), 2 * x)
    with pytest.raises(kas.Error, match="'thrice'"):
        module.compile("thrice")


def test_bad_input(conv):
    op, binding, function = conv
    x, w = random_arrays(op.shapes(binding))
    for call, error, message in [
        (lambda: function(x), TypeError, "expected 2 arguments, got 1"),
        (lambda: function(x, w, w), TypeError, "expected 2 arguments, got 3"),
        (lambda: function(x.astype("f8"), w), TypeError, "'data' must have elements of type float32, got float64$"),
        (lambda: function(x.astype("c8"), w), TypeError, "must have elements of type float32, got complex64$"),
        (lambda: function(x.astype(">f4"), w), TypeError, "argument 0 must be a plain array .* got >f4: .*byte"),
        (lambda: function(x, w.astype(object)), TypeError, "argument 1 must be a plain array .* got object: "),
        (lambda: function(w, x), ValueError, r"'data' must have the shape \(2, 4, 7, 5\), got \(6, 4, 3, 3\)"),
        (lambda: function(x, w[:, :, ::-1]), ValueError, "'weight0' must be contiguous"),
        (lambda: function(x, w, out=x), ValueError, "'result0' must have the shape"),
        (lambda: function(x, 3), TypeError, "must be a NumPy array, a torch tensor"),
        (lambda: op.compile({"N": 1}), kas.Error, "requires a value for symbol 'Cin'"),
        (lambda: op.compile(binding, device="tpu"), ValueError, "the device must be 'cpu', got 'tpu'"),
        (lambda: op.evaluate(binding, x), TypeError, "expected the data and 1 weights, got 1"),
        (lambda: op.evaluate(binding, w, x), ValueError, "'data' must have the shape"),
    ]:
        with pytest.raises(error, match=message):
            call()


ASSERTIONS = """#id = affine_map<(i) -> (i)>
func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %zero = arith.constant 0.0 : f32
      %holds = arith.cmpf oge, %a, %zero : f32
      cf.assert %holds, "requires elements of at least 0"
      %r = math.sqrt %a : f32
      linalg.yield %r : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_failing_assertions_raise(threads):
    function = kas.Module(ASSERTIONS, "model.mlir").compile("root", threads=threads)
    given = numpy.array([4, 9, -1, 16], dtype=numpy.float32)
    kept = given.copy()
    with pytest.raises(kas.Error) as raised:
        function(given)
    assert str(raised.value) == "error: model.mlir:9:7: requires elements of at least 0"
    assert (given == kept).all()
    # The process and the function go on.
    assert function(abs(given)).tolist() == [2, 3, 1, 4]


def test_is_checked_exactly(conv2d_binding):
    op = kas.operator("conv2d")
    assert op.compile(conv2d_binding).check is None
    check = op.compile(conv2d_binding, check="exact").check
    assert check.degree == 2 and check.bitwise and check.density == 1
    # 36 products each: 36 * 500^2 < 2^24.
    assert check.magnitudes == (500, 500)
    assert check.draws == 3 and check.miss_probability <= 1e-6
    assert check.summary.startswith("exact: degree 2, values -500..500, 3 draws, probability of missing a wrong kernel")
    assert op.compile(conv2d_binding, check="exact", seed=5, draws=1, threads=1).check.draws == 1
    maximum = kas.operator("max_pool2d").compile("N=1,C=2,H=4,W=4,k=3,s=2", check="exact").check
    assert maximum.miss_probability is None


APPLIES = """
kas.operator @sum<N, W>(%n: N) from [N, W] {
  %w = kas.reduce sum : W
  kas.yield data(%n, %w)
}
func.func @f(%x: tensor<3x4xf32>) -> tensor<3xf32> {
  %0 = kas.apply @sum(%x) : (tensor<3x4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func @g(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %0 = linalg.exp ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_functions_of_operators_are_checked_exactly(monkeypatch):
    module = kas.parse(APPLIES)
    assert module.compile("f", check="exact").check.degree == 1
    with pytest.raises(kas.Error, match=r"requires a function of 'kas\.apply' alone, got 'tensor\.empty'"):
        module.compile("g", check="exact")
    with pytest.raises(ValueError, match="the check must be 'exact' or None, got 'tolerance'"):
        module.compile("f", check="tolerance")
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        module["sum"].compile("N=3,W=4", check="exact", draws=-1)
    # No correct code differs: what a difference becomes.
    fields = {"difference": "1 of 3 elements differ", "summary": "exact: degree 1"}
    monkeypatch.setattr("kas._exact.json.loads", lambda _: fields)
    with pytest.raises(kas.Error, match="'f' is not computed as the reference defines it: 1 of 3 elements differ"):
        module.compile("f", check="exact")


def test_bound_calls_see_what_the_arrays_hold(conv):
    op, binding, function = conv
    arrays = random_arrays(op.shapes(binding))
    output = numpy.zeros((2, 6, 7, 5), numpy.float32)
    call = function.bind(*arrays, out=output)
    for seed in (1, 2):
        for array, other in zip(arrays, random_arrays(op.shapes(binding), seed)):
            array[:] = other
        assert call() is output
        assert relative_error(output, op.evaluate(binding, *arrays)) < 1e-5
    call.prepack()  # does nothing here
    with pytest.raises(ValueError, match="'data' must have the shape"):
        function.bind(arrays[1], arrays[0], out=output)


NETWORK = """
func.func @forward(%x: tensor<64x128xf32>, %w: tensor<256x128xf32> {kas.name = "w"}) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %columns = tensor.empty() : tensor<128x256xf32>
  %wt = linalg.transpose ins(%w : tensor<256x128xf32>) outs(%columns : tensor<128x256xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%x, %wt : tensor<64x128xf32>, tensor<128x256xf32>)
                     outs(%zeros : tensor<64x256xf32>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}
"""


def test_prepacked_weights():
    generator = numpy.random.default_rng(0)
    x, w = (generator.standard_normal(shape, numpy.float32) for shape in ((64, 128), (256, 128)))
    function = kas.parse(NETWORK).compile("forward", threads=1, prepack_weights=True)
    assert [name for name, _ in function.arguments] == ["arg0", "w"]
    call = function.bind(x, w)
    with pytest.raises(kas.Error, match="requires weights that were prepacked before the first call"):
        call()
    for _ in range(2):
        call.prepack()
        assert numpy.allclose(call(), x @ w.T, atol=1e-3)
        assert numpy.allclose(function(x, w), x @ w.T, atol=1e-3)
        w *= 2
    assert numpy.allclose(call(), x @ w.T / 2, atol=1e-3)  # those that were packed
    with pytest.raises(ValueError, match="check='exact' requires prepack_weights=False"):
        kas.parse(NETWORK).compile("forward", prepack_weights=True, check="exact")


def _one_row(inputs, outputs, groups, schedule=""):
    """One row of `groups` groups of inputs by a weight of its own for each, which is read as it is written."""
    types = [
        f"tensor<{groups}x{inputs}xf32>",
        f"tensor<{groups}x{outputs}x{inputs}xf32>",
        f"tensor<{groups}x{outputs}xf32>",
    ]
    return f"""
    func.func @forward(%x: {types[0]}, %w: {types[1]} {{kas.name = "w"}}) -> {types[2]} {{
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<{groups}x{inputs}x{outputs}xf32>
      %t = linalg.transpose ins(%w : {types[1]}) outs(%e : tensor<{groups}x{inputs}x{outputs}xf32>)
          permutation = [0, 2, 1]
      %o = tensor.empty() : {types[2]}
      %f = linalg.fill ins(%zero : f32) outs(%o : {types[2]}) -> {types[2]}
      %y = linalg.generic {{{schedule}indexing_maps = [
          affine_map<(g, o, i) -> (g, i)>, affine_map<(g, o, i) -> (g, i, o)>, affine_map<(g, o, i) -> (g, o)>],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%x, %t : {types[0]}, tensor<{groups}x{inputs}x{outputs}xf32>) outs(%f : {types[2]}) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        linalg.yield %s : f32
      }} -> {types[2]}
      return %y : {types[2]}
    }}"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("inputs", "outputs", "groups", "schedule"),
    [
        (768, 3072, 1, ""),
        (513, 2311, 1, ""),
        (1, 100, 1, ""),
        (512, 1031, 3, ""),
        (4096, 1030, 1, ""),
        (64, 80, 1, "kas_cpu.schedule = #kas_cpu.schedule<strategy = panels>, "),
        (96, 46, 2, "kas_cpu.schedule = #kas_cpu.schedule<strategy = panels, depth = 32>, "),
    ],
)
def test_one_row_of_prepacked_weights(inputs, outputs, groups, schedule, threads):
    generator = numpy.random.default_rng(inputs)
    # Sums of integers are exact in any order.
    x, w = (
        generator.integers(-4, 5, shape).astype(numpy.float32)
        for shape in ((groups, inputs), (groups, outputs, inputs))
    )
    module = kas.parse(_one_row(inputs, outputs, groups, schedule))
    function = module.compile("forward", threads=threads, prepack_weights=True)
    call = function.bind(x, w)
    call.prepack()
    assert (call() == numpy.einsum("gi,goi->go", x, w)).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((100, 512), (1, 0)),
        ((513, 101), (1, 0)),
        ((3, 130, 140), (0, 2, 1)),
        ((37, 5, 211), (1, 2, 0)),
        ((64, 1, 700), (2, 0, 1)),
        ((16, 16), (1, 0)),
        ((1, 1), (1, 0)),
        ((2, 3, 4), (2, 1, 0)),
    ],
)
def test_transposes(shape: tuple[int, ...], order: tuple[int, ...], threads: int) -> None:
    """Whole blocks and rests, one matrix and several, and what is copied one by one."""
    data = numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape)
    expected = data.transpose(order)
    source, result = (f"tensor<{'x'.join(map(str, sizes))}xf32>" for sizes in (shape, expected.shape))
    module = kas.Module(
        f"func.func @f(%x: {source}) -> {result} {{\n"
        f"  %e = tensor.empty() : {result}\n"
        f"  %t = linalg.transpose ins(%x : {source}) outs(%e : {result}) permutation = {list(order)}\n"
        f"  return %t : {result}\n}}\n"
    )
    numpy.testing.assert_array_equal(module.compile("f", threads=threads)(data), expected)


@pytest.mark.parametrize("operation", ["maximumf", "minimumf"])
@pytest.mark.parametrize("size", [1, 7, 16, 100, 1000])
def test_largest_of_lines(operation: str, size: int) -> None:
    """In vectors, with NaN and with zeros of both signs as IEEE 754 has it."""
    module = kas.parse(f"""
    func.func @forward(%x: tensor<6x{size}xf32>, %i: tensor<6xf32>) -> tensor<6xf32> {{
      %y = linalg.generic {{
          indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%x : tensor<6x{size}xf32>) outs(%i : tensor<6xf32>) {{
      ^bb0(%a: f32, %b: f32):
        %m = arith.{operation} %a, %b : f32
        linalg.yield %m : f32
      }} -> tensor<6xf32>
      return %y : tensor<6xf32>
    }}""")
    sign = 1 if operation == "maximumf" else -1
    data = numpy.random.default_rng(size).standard_normal((6, size)).astype(numpy.float32)
    start = numpy.full(6, -sign * numpy.inf, numpy.float32)
    data[1, size // 2] = numpy.nan
    data[2], data[2, size // 2] = -0.0 * sign, 0.0 * sign
    data[3], data[4, -1] = -sign * numpy.inf, sign * numpy.inf
    start[5] = numpy.nan
    actual = module.compile("forward", threads=1)(data, start)
    best = numpy.maximum if sign == 1 else numpy.minimum
    expected = best.reduce(numpy.concatenate([data, start[:, None]], 1), axis=1)
    expected[2] = 0.0 * sign
    assert numpy.array_equal(actual, expected, equal_nan=True)
    assert numpy.signbit(actual[2]) == (sign == -1)


TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
}


def make_copy(kind: str) -> kas.Function:
    """A function that takes two columns of one tensor and three of the other, which are of any type."""
    tensor = f"tensor<3x5x{kind}>"
    module = kas.parse(f"""
func.func @forward(%x: {tensor} {{kas.name = "x"}}, %y: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%x, %y : {tensor}, {tensor}) outs(%e : {tensor}) {{
  ^bb0(%a: {kind}, %b: {kind}, %c: {kind}):
    %i = linalg.index 1 : index
    %two = arith.constant 2 : index
    %isLeft = arith.cmpi ult, %i, %two : index
    %s = arith.select %isLeft, %a, %b : {kind}
    linalg.yield %s : {kind}
  }} -> {tensor}
  return %r : {tensor}
}}
""")
    return module.compile("forward")


@pytest.mark.parametrize("kind", TYPES)
def test_types_of_elements(kind: str) -> None:
    torch = pytest.importorskip("torch")
    function = make_copy(kind)
    assert function.types == [TYPES[kind]] * 3
    dtype = getattr(torch, TYPES[kind])
    torch.manual_seed(0)
    x, y = (torch.randint(-100, 100, (3, 5)).to(dtype) for _ in range(2))
    expected = torch.cat([x[:, :2], y[:, 2:]], 1)
    found = function(x, y)
    assert found.dtype == dtype
    assert torch.equal(found, expected)
    other = torch.int32 if kind != "i32" else torch.float32
    with pytest.raises(TypeError, match=f"'x' must have elements of type {TYPES[kind]}, got {str(other)[6:]}$"):
        function(x.to(other), y)
    if kind == "bf16":
        return
    found = function(x.numpy(), y.numpy())
    assert found.dtype == TYPES[kind]
    assert numpy.array_equal(found, expected.numpy())


def test_integers_have_no_sign() -> None:
    """Memory of unsigned elements is taken as it is."""
    function = make_copy("i8")
    x = numpy.arange(15, dtype=numpy.uint8).reshape(3, 5) + 200
    out = numpy.empty((3, 5), numpy.uint8)
    function(x, x, out=out)
    assert numpy.array_equal(out, x)
    assert function(x, x).dtype == numpy.int8


def test_other_types_of_elements() -> None:
    with pytest.raises(
        kas.Error, match=r"'x' must be a statically shaped tensor of floats or integers, got 'tensor<3x5xi4>'"
    ):
        make_copy("i4")


INT8_PRODUCTS = """
func.func @f(%x: tensor<{rows}x{depth}xi8>, %w: tensor<37x{depth}xi8>) -> tensor<{rows}x37xi32> {{
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<{rows}x37xi32>
  %zeros = linalg.fill ins(%zero : i32) outs(%empty : tensor<{rows}x37xi32>) -> tensor<{rows}x37xi32>
  %y = linalg.generic {{
      indexing_maps = [
        affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{rows}x{depth}xi8>, tensor<37x{depth}xi8>) outs(%zeros : tensor<{rows}x37xi32>) {{
  ^bb0(%a: i8, %b: i8, %sum: i32):
    %c = arith.{extend} %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %s = arith.addi %sum, %p : i32
    linalg.yield %s : i32
  }} -> tensor<{rows}x37xi32>
  return %y : tensor<{rows}x37xi32>
}}
"""


@pytest.mark.parametrize("cpu", ["host", "x86-64", "x86-64-v3"])
@pytest.mark.parametrize(("rows", "depth"), [(1, 64), (9, 70), (64, 512)])
def test_int8_products(cpu, rows, depth):
    """With and without instructions for dot products: the largest products do not overflow on the way."""
    generator = numpy.random.default_rng(rows)
    for extend, least, most in (("extui", 0, 256), ("extsi", -128, 128)):
        module = kas.Module(INT8_PRODUCTS.format(rows=rows, depth=depth, extend=extend))
        module.run(f"kas-attach-cpu-target{{cpu={cpu}}}")
        function = module.compile("f", threads=1)
        extremes = numpy.full((rows, depth), most - 1), numpy.full((37, depth), -128)
        numbers = generator.integers(least, most, (rows, depth)), generator.integers(-128, 128, (37, depth))
        for x, w in (extremes, numbers):
            result = function(x.astype(numpy.uint8).view(numpy.int8), w.astype(numpy.int8))
            numpy.testing.assert_array_equal(result, x @ w.T)
