# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile with kas packs weights ahead: whatever changes them, in whatever way, the next call sees it."""

from __future__ import annotations

import inspect
import os
import threading

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

from torch import nn  # noqa: E402
from torch.nn.utils import parametrizations, parametrize  # noqa: E402

import kas.torch  # noqa: E402
from kas.torch import _packed_weights  # noqa: E402


@pytest.fixture(autouse=True)
def begin():
    torch._dynamo.reset()
    kas.torch.explain()
    torch.manual_seed(0)


def make_network():
    """Weights of many pages and of a few bytes, a norm that is folded, statistics, and one weight twice."""
    network = nn.Sequential(
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2048, 64),
        nn.Linear(64, 64),
        nn.Linear(64, 64),
        nn.Linear(64, 10),
    )
    network[6].weight = network[5].weight
    network[1].running_mean.normal_()
    return network.eval()


class Compiled:
    """A network whose weights were packed."""

    def __init__(self, network, shape=(2, 16, 8, 8)):
        self.network, self.data = network, torch.randn(shape)
        self.compiled = torch.compile(network, backend=kas.torch.backend)
        self.check(is_changed=True)
        # That nothing changes is seen as well.
        self.check(is_changed=False)

    def check(self, is_changed=True):
        """Both agree, and give another result than before where the weights are others."""
        with torch.no_grad():
            expected, found = self.network(self.data), self.compiled(self.data)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
        assert is_changed != (hasattr(self, "last") and torch.equal(self.last, found))
        self.last = found


def change_data(network):
    network[4].weight.data.mul_(3)


def change_one_element(network):
    network[0].weight.data[31, 15, 2, 2] += 10


def change_small(network):
    network[7].bias.data.add_(1)


def fill_data(network):
    network[0].weight.data.fill_(0.01)


def change_statistics(network):
    network[1].running_var.data.mul_(4)


def change_mean(network):
    network[1].running_mean.data.sub_(4)


def average(network):
    for parameter in network.parameters():
        parameter.data.lerp_(torch.zeros_like(parameter), 0.5)


def assign_data(network):
    network[4].weight.data = torch.randn(64, 2048)


def set_in_place(network):
    with torch.no_grad():
        network[4].weight.set_(torch.randn(64, 2048))


def copy_in_a_thread(network):
    def copy():
        with torch.no_grad():
            network[4].weight.data.copy_(torch.randn(64, 2048))

    thread = threading.Thread(target=copy)
    thread.start()
    thread.join()


def write_by_numpy(network):
    network[4].weight.detach().numpy()[3] *= -2


def write_by_a_pointer(network):
    import ctypes

    ctypes.memset(network[0].weight.data_ptr(), 0, network[0].weight.nbytes)


def read_into(network):
    """By the kernel, as a file of weights is read."""
    memory = memoryview(network[4].weight.detach().numpy()).cast("B")
    reader, writer = os.pipe()
    os.write(writer, numpy.full(1000, 2, numpy.float32).tobytes())
    os.readv(reader, [memory[4000:8000]])
    os.close(reader)
    os.close(writer)


def load(network):
    network.load_state_dict({name: value * 2 for name, value in network.state_dict().items()})


def load_and_assign(network):
    network.load_state_dict({name: value * 2 for name, value in network.state_dict().items()}, assign=True)


def change_in_inference_mode(network):
    with torch.inference_mode():
        network[4].weight.mul_(2)


def change_without_gradients(network):
    with torch.no_grad():
        network[4].weight.mul_(2)


def change_tied(network):
    network[6].weight.data.mul_(2)


def untie(network):
    network[6].weight = nn.Parameter(torch.randn(64, 64))


def share_and_change(network):
    network[4].weight.data = network[4].weight.data.share_memory_()
    network[4].weight.data.mul_(2)


def replace_module(network):
    network[7] = nn.Linear(64, 10)


CHANGES = [v for v in list(globals().values()) if getattr(v, "__code__", None)]
CHANGES = [v for v in CHANGES if v.__code__.co_varnames[: v.__code__.co_argcount] == ("network",)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_weights_that_change_are_packed_again(change):
    compiled = Compiled(make_network())
    for repeated in (False, True):
        change(compiled.network)
        compiled.check(is_changed=not (repeated and change in (fill_data, write_by_a_pointer, read_into)))
        compiled.check(is_changed=False)


OPTIMIZERS = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {},
    "Adagrad": {},
    "RMSprop": {},
    "Adadelta": {"lr": 10.0},
    "NAdam": {},
    "Rprop": {},
}


FORMS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}}


@pytest.mark.parametrize(
    "name, kind",
    [
        (name, kind)
        for name in OPTIMIZERS
        for kind, options in FORMS.items()
        if options.keys() <= inspect.signature(getattr(torch.optim, name)).parameters.keys()
    ],
)
def test_steps_of_optimizers(name, kind):
    compiled = Compiled(make_network())
    optimizer = getattr(torch.optim, name)(
        compiled.network.parameters(), **{"lr": 0.01} | OPTIMIZERS[name], **FORMS[kind]
    )
    for _ in range(2):
        optimizer.zero_grad()
        compiled.network(compiled.data).square().mean().backward()
        optimizer.step()
        compiled.check()


def test_averaged_models():
    averaged = torch.optim.swa_utils.AveragedModel(make_network())
    compiled = Compiled(averaged)
    for _ in range(2):
        averaged.update_parameters(make_network())
        compiled.check()


def test_memory_that_numpy_shares():
    array = numpy.random.default_rng(0).standard_normal((512, 256)).astype(numpy.float32)
    network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4)).eval()
    network[0].weight.data = torch.from_numpy(array)
    compiled = Compiled(network, (3, 256))
    array[17:60] *= -3
    compiled.check()


def test_files_that_are_mapped(tmp_path):
    values = numpy.random.default_rng(0).standard_normal((512, 256)).astype(numpy.float32)
    for mode in ("c", "r+"):
        torch._dynamo.reset()
        numpy.save(tmp_path / "weight.npy", values)
        array = numpy.load(tmp_path / "weight.npy", mmap_mode=mode)
        network = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 4)).eval()
        network[0].weight.data = torch.from_numpy(array)
        compiled = Compiled(network, (3, 256))
        array[17:60] *= -3
        compiled.check()
        if mode == "r+":
            # What other processes write to the file is the same memory.
            with open(tmp_path / "weight.npy", "r+b") as file:
                file.seek(200_000)
                file.write(numpy.full(2000, 9, numpy.float32).tobytes())
            compiled.check()


def test_functional_calls():
    network = make_network()

    def call(parameters, x):
        return torch.func.functional_call(network, parameters, (x,))

    compiled, data = torch.compile(call, backend=kas.torch.backend), torch.randn(2, 16, 8, 8)
    for factor in (1, 2, 2, -1):
        parameters = {name: value.detach() * factor for name, value in network.named_parameters()}
        with torch.no_grad():
            expected, found = call(parameters, data), compiled(parameters, data)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
            parameters["4.weight"].data.mul_(3)
            expected, found = call(parameters, data), compiled(parameters, data)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


def test_parametrizations():
    network = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.Linear(256, 8))
    parametrizations.weight_norm(network[0])
    parametrizations.spectral_norm(network[2])
    parametrize.register_parametrization(network[3], "weight", Doubled())
    compiled = Compiled(network.eval(), (3, 128))
    for place in (0, 2, 3):
        for parameter in network[place].parametrizations.parameters():
            parameter.data.mul_(1.5)
            parameter.data[0] += 1
        compiled.check()


def test_weights_that_are_views():
    base = torch.randn(512, 512)
    network = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 8)).eval()
    network[0].weight.data = base[::2, ::2]
    compiled = Compiled(network, (3, 256))
    base[2, 4] += 100
    compiled.check()
    base[-2].mul_(30)
    compiled.check()


def test_programs_for_several_batches_have_the_same_weights():
    network = make_network()
    compiled = torch.compile(network, backend=kas.torch.backend)
    for round in range(2):
        for batch in (2, 5, 8, 9, 2):
            data = torch.randn(batch, 16, 8, 8)
            with torch.no_grad():
                expected, found = network(data), compiled(data)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())
            if round or batch == 9:
                network[4].weight.data.mul_(1.25)


def test_children_see_their_own_weights():
    compiled = Compiled(make_network())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            compiled.check(is_changed=False)
            change_data(compiled.network)
            compiled.check()
            compiled.check(is_changed=False)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    compiled.check(is_changed=False)


def test_several_threads_call_while_weights_change():
    compiled = Compiled(make_network())
    errors = []
    for factor in (2, 0.5, 3):
        compiled.network[4].weight.data.mul_(factor)
        with torch.no_grad():
            expected = compiled.network(compiled.data)

        def call(expected=expected):
            with torch.no_grad():
                found = compiled.compiled(compiled.data)
            errors.append((found - expected).abs().max().item() / expected.abs().max().item())

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(errors) == 12 and max(errors) < 1e-4


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])

    def forward(self, data, mask):
        return self.layers[1](torch.relu(self.layers[0](data)) * mask)


def test_weights_are_packed_beside_several_inputs(monkeypatch):
    """Data that is not the first argument is no weight: it is as it is in each call."""
    packed = []
    pack = _packed_weights.PackedWeights._pack
    monkeypatch.setattr(
        _packed_weights.PackedWeights, "_pack", lambda self, *rest: packed.append(self) or pack(self, *rest)
    )
    network = TwoInputs().eval()
    compiled = torch.compile(network, backend=kas.torch.backend)
    for change in (False, False, True):
        if change:
            network.layers[1].weight.data.mul_(3)
        data, mask = torch.randn(2, 64), torch.randn(2, 64)
        with torch.no_grad():
            torch.testing.assert_close(compiled(data, mask), network(data, mask), rtol=1e-4, atol=1e-4)
    assert len(packed) == 2
