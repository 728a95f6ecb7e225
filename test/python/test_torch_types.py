# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of all types enter and leave what torch.compile makes, and are computed as PyTorch computes them."""

from __future__ import annotations

import math
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch.nn import functional  # noqa: E402

import kas.torch  # noqa: E402

HALVES = [torch.float16, torch.bfloat16]
FLOATS = [*HALVES, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
UNSIGNED = [torch.uint16, torch.uint32]
EDGES = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5),
    # Halfway between two halves, to even; the last that is rounded to a number, and the first that is not.
    *(1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 65519.0, 65520.0, 2.0**-25, 2.0**-24, 3.4e38, 1e-45),
    # That integers of some bits do not have.
    *(127.5, 128.0, 255.5, 256.5, -129.0, -1.5, 32768.0, 70000.0, -70000.0, 3e9, -3e9, 2.0**62, 1e20),
]


def compile_and_run(call, *tensors):
    """What the compiled function gives, and the graphs that it was compiled in."""
    torch._dynamo.reset()
    kas.torch.explain()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.compile(call, backend=kas.torch.backend)(*(x.clone() for x in tensors))
    return found, kas.torch.explain()


def check(call, *tensors, tolerance=0.0, absolute=0.0, is_compiled=True):
    """Compares bits, or with a tolerance relative to each element."""
    found, graphs = compile_and_run(call, *tensors)
    expected = call(*tensors)
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    for number, (a, b) in enumerate(zip(expected, found)):
        what = f"result {number}"
        if a.dtype.is_floating_point:
            assert torch.equal(a.isnan(), b.isnan()), what
            a, b = a.nan_to_num(0), b.nan_to_num(0)
            assert tolerance or torch.equal(a.signbit(), b.signbit()), what
            torch.testing.assert_close(
                b, a, rtol=tolerance, atol=absolute, msg=lambda text, what=what: f"{what}: {text}"
            )
        else:
            assert torch.equal(a, b), (what, a, b)
    if is_compiled:
        assert [(graph.reason, graph.left) for graph in graphs] == [(None, ())]
    return graphs


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, *UNSIGNED, torch.bool])
def test_each_type_becomes_each(source):
    numbers = torch.tensor(EDGES, dtype=torch.float64).to(source)
    # What PyTorch makes of floats beyond 32 bits depends on where they are.
    unsigned = [torch.uint16] if source.is_floating_point else UNSIGNED

    def convert(x):
        return tuple(x.to(dtype) for dtype in (*FLOATS, *INTEGERS, *unsigned, torch.bool))

    check(convert, numbers)
    # As many as vectors are made of.
    check(convert, numbers.repeat(9))


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_rounded_by_each_operation(dtype):
    x = torch.tensor(EDGES, dtype=torch.float64).to(dtype)
    y = torch.cat([x.roll(shift) for shift in range(len(EDGES))])
    x = x.repeat(len(EDGES))

    def compute(x, y):
        sums = (x + y) - y, x * 3 + y * y, (x + 1) / 3, torch.add(x, y, alpha=0.5), x.square().sqrt()
        sums = *sums, x.nan_to_num(), x.nan_to_num(posinf=2.0), x / 0.3, x // 0.3, x % 0.3, torch.fmod(x, 0.3)
        return *sums, -x, x.abs(), x.relu(), torch.maximum(x, y), x.clamp(-0.3, 0.1), torch.where(x > y, x, y)

    def compare(x, y):
        # Numbers beside tensors are rounded as these are.
        return x == y, x < y, x >= y, x > 0.1, x == 0.1, x.isnan(), x.bool()

    check(compute, x, y)
    check(lambda x, y: (x // y,), x, y, tolerance=torch.finfo(dtype).eps)
    check(compare, x, torch.cat([y[:-1], torch.tensor([0.1], dtype=dtype)]))
    check(compare, torch.full((3,), 0.1, dtype=dtype), y[:3])


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_of_halves_are_of_f32(dtype):
    x, y = torch.full((4, 3000), 1.01, dtype=dtype), torch.full((3000, 4), 0.99, dtype=dtype)
    epsilon = torch.finfo(dtype).eps
    check(lambda x, y: (x.sum(1), x.mean(1), x @ y, x.softmax(1), x.sum(dtype=torch.float32)), x, y, tolerance=epsilon)
    check(lambda x: (x.to(torch.float64).sum(dtype=dtype), x.cumsum(1)), x, tolerance=epsilon)


@pytest.mark.parametrize("dtype", HALVES)
def test_functions_of_halves(dtype):
    x = torch.linspace(-9, 9, 301).to(dtype)

    def call(x):
        activations = functional.gelu(x), functional.silu(x), functional.softplus(x), functional.elu(x), x.sigmoid()
        return *activations, x.exp(), x.tanh(), x.erf(), x.abs().log1p(), x.sin(), x.rsqrt(), x.abs() ** 0.3

    # What is next to it, but for what large numbers leave.
    check(call, x, tolerance=torch.finfo(dtype).eps, absolute=1e-6)


def test_doubles_are_computed_in_doubles():
    x = torch.linspace(-9, 9, 301, dtype=torch.float64)

    def call(x):
        activations = functional.gelu(x), functional.silu(x), functional.softplus(x), functional.elu(x), x.sigmoid()
        functions = x.exp(), x.tanh(), x.erf(), x.abs().log1p(), x.expm1(), x.sin(), x.atan(), x.abs().rsqrt()
        numbers = 0.1 - x, 0.1 / x, x.abs() ** 0.3, x * 0.1, x.clamp(-0.1, 0.1)
        return *activations, *functions, *numbers, x.abs().log(), x.softmax(0), (x - 700).sigmoid()

    check(call, x, tolerance=1e-13, absolute=1e-15)
    image = torch.rand(2, 3, 9, 9, dtype=torch.float64)
    weight = torch.rand(4, 3, 3, 3, dtype=torch.float64)

    def convolve(image, weight):
        pooled = functional.avg_pool2d(image, 3, 2, 1, count_include_pad=False), functional.max_pool2d(image, 3, 2)
        return *pooled, functional.conv2d(image, weight, padding=1), functional.layer_norm(image, (9, 9)) + 3

    check(convolve, image, weight, tolerance=1e-13)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype):
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([least, least + 1, 0, 1, 2, 3, 5, 100, most - 1, most], dtype=dtype)
    y = x.flip(0).contiguous()

    def compute(x, y):
        products = x + y, x - y, x * y, x * x * x, -x, x.abs(), x + 100, x.square(), x.cumsum(0), x.sum(), x.prod()
        bits = x & y, x | y, x ^ y, ~x, x << 3, x >> 2
        return *products, *bits, x.sum(dtype=dtype), torch.add(x, y, alpha=3)

    def order(x, y):
        compared = x < y, x == y, x > 3, torch.maximum(x, y), x.amin(), x.argmax(), x.sort()[0], x.clamp(1, 100)
        quotients = x / y.clamp(1, 9), x // 7, x % 7, torch.div(x, 3, rounding_mode="trunc"), x.float() / 3
        return *compared, *quotients, torch.where(x > y, x, y), x.sign(), x.bool(), x.cummax(0)[0]

    check(compute, x, y)
    check(order, x, y)
    with torch.no_grad(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compile_and_run(lambda x, y: x // y, x, y)
    matrix = torch.arange(35).view(5, 7).to(dtype)
    check(lambda a: (a @ a.t(),), matrix)


def test_integers_that_doubles_do_not_have():
    most = 2**63 - 1
    x = torch.tensor([most, -most, -most - 1, most - 1, 2**60 + 1, -(2**60) - 1, 7, -7, 0])

    def compute(x):
        quotients = x // 3, x // -3, x % 3, x % -3, torch.div(x, 5, rounding_mode="trunc")
        return *quotients, -x, 5 - x, x.abs(), x**3, x.sign(), x == 2**60 + 1, torch.maximum(x, -x), x.sort()[0]

    check(compute, x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32])
def test_what_is_not_the_same_in_a_wider_type(dtype):
    if dtype.is_floating_point:
        call, reason = torch.nextafter, "requires an operation that is the same in wider types, got aten.nextafter"
    else:
        call, reason = lambda x, _: functional.max_pool2d(x, 2), "torch-mlir has no maxima of windows of integers"
    x = torch.randint(0, 9, (1, 2, 4, 4)).to(dtype)
    (graph,) = check(lambda x, y: (call(x, y),), x, x + 1, is_compiled=False)
    assert reason in graph.reason


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_numbers_that_the_type_does_not_have(dtype):
    x = torch.tensor([50, 100, 127], dtype=dtype)
    (graph,) = check(lambda x: (x > 300, x + 300), x, is_compiled=False)
    assert "requires numbers of" in graph.reason and "got 300" in graph.reason
    with pytest.raises(RuntimeError, match="overflow"):
        compile_and_run(lambda x: x.clamp(max=300), x)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_what_has_a_type_of_its_own(dtype):
    x = torch.tensor([0.5, -1.5, 3.0])

    def make(x):
        filled = x.new_full((2, 3), 1, dtype=dtype), torch.ones_like(x, dtype=dtype), torch.full_like(x, 2, dtype=dtype)
        if dtype == torch.bool:
            return filled
        return *filled, x.sum(dtype=dtype), x.cumsum(0, dtype=dtype), torch.arange(3, dtype=dtype)

    check(make, x)
    if dtype.is_floating_point:
        epsilon = torch.finfo(dtype).eps
        check(
            lambda x: (x.softmax(0, dtype=dtype), x.log_softmax(0, dtype=dtype)),
            x,
            tolerance=max(epsilon, 1e-14),
            absolute=4 * epsilon,
        )


def test_flags_have_no_carry():
    x, y = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])

    def call(x, y):
        sums = x + y, x + True, x + False, x.sum(), x.cumsum(0), x.sum(dtype=torch.bool), x + 1, x.float() + y
        return *sums, x * y, x | y, x & y, x ^ y, ~x, x.any(), x.all(), x.amax(), torch.maximum(x, y), x > y

    check(call, x, y)
    check(lambda x: (x + True,), torch.tensor(True))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_integers_from_numbers_that_are_none(dtype):
    x = torch.ones(3, dtype=dtype)
    check(lambda x: (torch.arange(-0.9, 2.1, 2.0, dtype=dtype), torch.arange(0.5, 7.9, 1.7, dtype=dtype), x + 1), x)


def test_types_side_by_side():
    numbers = torch.tensor([3, -7, 2049, 32767], dtype=torch.int16)
    halves = torch.tensor([0.1, 2.5, 1.0, 4.0], dtype=torch.float16)
    singles = torch.tensor([1e-3, 70000.0, 2.0, -1.0])

    def mix(numbers, halves, singles):
        sums = numbers + halves, numbers * singles, halves + singles, halves * singles.double(), numbers + numbers[1]
        return (
            *sums,
            torch.cat([halves, halves.new_ones(1)]),
            torch.where(numbers > 0, halves, singles),
            numbers > halves,
        )

    check(mix, numbers, halves, singles)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients(dtype):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(7, 9), torch.nn.GELU(), torch.nn.LayerNorm(9), torch.nn.Linear(9, 3))
    network = network.to(dtype)
    x = torch.randn(5, 7).to(dtype)
    torch._dynamo.reset()
    kas.torch.explain()

    def get_gradients(call):
        network.zero_grad()
        given = x.clone().requires_grad_()
        result = call(given)
        result.float().square().sum().backward()
        return [result.detach(), given.grad, *(p.grad.clone() for p in network.parameters())]

    found = get_gradients(torch.compile(network, backend=kas.torch.backend))
    assert [(graph.kind, graph.reason, graph.left) for graph in kas.torch.explain()] == [
        ("forward", None, ()),
        ("backward", None, ()),
    ]
    for a, b in zip(get_gradients(network), found):
        torch.testing.assert_close(b, a, rtol=0, atol=20 * torch.finfo(dtype).eps * a.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_gradients_are_no_differences_of_large_numbers(dtype):
    x, target, gradients = torch.tensor([-15.0, 0.5, 15.0, 40.0], dtype=dtype), torch.ones(4, dtype=dtype), []
    torch._dynamo.reset()
    for call in (functional.soft_margin_loss, torch.compile(functional.soft_margin_loss, backend=kas.torch.backend)):
        given = x.clone().requires_grad_()
        call(given, target).backward()
        gradients.append(given.grad)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=8 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_weights_are_never_stale(dtype):
    network = torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.ReLU(), torch.nn.Linear(17, 5)).to(dtype).eval()
    x = torch.randn(4, 33).to(dtype)
    call = torch.compile(network, backend=kas.torch.backend)
    kas.torch.explain()
    tolerance = 4 * torch.finfo(dtype).eps
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(call(x), network(x), rtol=tolerance, atol=tolerance)
            network[0].weight.data.mul_(1.5)
            network[2].bias.data.add_(1)
    assert [(graph.reason, graph.left) for graph in kas.torch.explain()] == [(None, ())]


def test_types_between_parts():
    x = torch.randn(6, 6)

    def call(x):
        half = (x @ x).half() * 2
        places = (x * 10).to(torch.int16) + 3
        middle = torch.fft.irfft(torch.fft.rfft(half.float()), 6).half()
        return middle @ half, torch.special.i0(x.double()) * half, places * middle.to(torch.int16), middle > half

    (graph,) = check(call, x, tolerance=1e-2, is_compiled=False)
    left = {"aten._fft_c2r.default", "aten._fft_r2c.default", "aten.i0.default"}
    assert graph.reason is None and {name for name, _ in graph.left} == left, graph


def test_random_halves_are_those_of_pytorch():
    x = torch.ones(500, dtype=torch.bfloat16)

    def call(x):
        torch.manual_seed(3)
        return functional.dropout(x * 3, 0.3) * 2

    torch.testing.assert_close(compile_and_run(call, x)[0], call(x), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.uint64])
def test_other_types_are_left_to_pytorch(dtype):
    x = torch.ones(3, dtype=dtype)
    found, (graph,) = compile_and_run(lambda x: x.view(3, 1).expand(3, 2).clone(), x)
    assert found.dtype == dtype and "requires tensors of float64, float32, float16, bfloat16, int64" in graph.reason
