# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks that several threads trace, compile, call and train at once."""

import copy
import threading

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402

import kas.torch  # noqa: E402

THREADS = 6


def make_network(seed=0):
    torch.manual_seed(seed)
    layers = (nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    return nn.Sequential(*layers)


def run_at_once(work):
    """Calls `work` with the number of its thread in each, and raises what any of them raised."""
    errors = []
    barrier = threading.Barrier(THREADS)

    def call(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    # What PyTorch replaces while it traces is in its place again.
    assert not torch.fx._symbolic_trace.is_fx_symbolic_tracing()


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_each_thread_compiles_and_trains_its_own_network():
    networks = [make_network(number) for number in range(THREADS)]
    data = [torch.randn(4 + number % 2, 3, 6, 6) for number in range(THREADS)]

    def train(number):
        expected = copy.deepcopy(networks[number])
        compiled = torch.compile(networks[number], backend="kas")
        for network in (compiled, expected):
            optimizer = torch.optim.SGD(network.parameters(), 0.1)
            for batch in (data[number], data[number][:3], data[number]):
                optimizer.zero_grad()
                network(batch).square().mean().backward()
                optimizer.step()
        for got, wanted in zip(networks[number].parameters(), expected.parameters()):
            torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4)

    run_at_once(train)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_all_threads_call_one_network_with_batches_of_their_own(mode):
    network = make_network().eval()
    compiled = torch.compile(network, backend="kas", mode=mode)
    data = [torch.randn(1 + number % 3, 3, 6, 6) for number in range(THREADS)]
    with torch.no_grad():
        expected = [network(batch) for batch in data]

    def infer(number):
        with torch.no_grad():
            for _ in range(50):
                torch.testing.assert_close(compiled(data[number]), expected[number], rtol=1e-4, atol=1e-4)

    run_at_once(infer)


def test_threads_translate_networks_while_others_compile():
    networks = [make_network(number).eval() for number in range(THREADS)]
    batch = torch.randn(2, 3, 6, 6)

    def translate(number):
        with torch.no_grad():
            expected = networks[number](batch)
            if number % 2:
                torch.testing.assert_close(
                    torch.compile(networks[number], backend="kas")(batch), expected, rtol=1e-4, atol=1e-4
                )
                return
        exported = kas.torch.to_mlir(networks[number], batch)
        got = exported.module.compile("forward")(batch, *exported.tensors.values())
        assert numpy.allclose(got, expected, rtol=1e-4, atol=1e-4)

    run_at_once(translate)
