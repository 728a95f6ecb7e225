# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is computed with the sums of convolutions, and layers of a network around them, equal PyTorch's values."""

import os
import pathlib
import subprocess

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_mlir")

import kas.torch  # noqa: E402

RUN = pathlib.Path(os.environ["KAS_BUILD"]) / "bin" / "kas-run"


class Depthwise(torch.nn.Module):
    """Depthwise convolutions on images of several widths, with what follows them in networks."""

    def __init__(self, channels, kernel, stride):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, kernel, stride, kernel // 2, groups=channels)
        self.second = torch.nn.Conv2d(channels, channels, kernel, 1, kernel // 2, groups=channels)
        self.third = torch.nn.Conv2d(channels, channels, kernel, 1, 0, groups=channels)

    def forward(self, x):
        x = torch.nn.functional.hardswish(self.first(x))
        x = torch.relu(self.second(x) + x)
        return torch.nn.functional.relu6(self.third(x))


class SqueezeAndExcitation(torch.nn.Module):
    """Dense layers as convolutions of one pixel."""

    def __init__(self, channels):
        super().__init__()
        self.down = torch.nn.Conv2d(channels, 24, 1)
        self.up = torch.nn.Conv2d(24, channels, 1, bias=False)

    def forward(self, x):
        scale = torch.nn.functional.adaptive_avg_pool2d(x, 1)
        scale = torch.nn.functional.hardsigmoid(self.up(torch.relu(self.down(scale))))
        return scale * x


class Norms(torch.nn.Module):
    """Sums along the last dimension."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        return torch.softmax(torch.nn.functional.gelu(self.norm(x)), -1)


class Gated(torch.nn.Module):
    """Convolutions with exponentials after them, as in efficient networks."""

    def __init__(self, channels, stride):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, 24, 3, stride, 1)
        self.wide = torch.nn.Conv2d(24, 40, 1)
        self.depthwise = torch.nn.Conv2d(40, 40, 3, 1, 1, groups=40, bias=False)
        self.last = torch.nn.Conv2d(40, 24, 1, stride)

    def forward(self, x):
        x = torch.nn.functional.silu(self.wide(torch.nn.functional.silu(self.first(x))))
        return torch.sigmoid(self.last(torch.nn.functional.silu(self.depthwise(x))))


def check(network, x, directory, threads, cpu=None):
    """Compares what `kas-run` computes, with weights prepacked, with PyTorch; for `cpu`, where it is given."""
    network.eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.uniform_(-1, 1)
        expected = network(x)
    exported = kas.torch.to_mlir(network, x)
    module = exported.module.clone()
    if cpu:
        module.run(f"kas-attach-cpu-target{{cpu={cpu}}}")
    (directory / "network.mlir").write_text(str(module))
    arrays = {name: tensor.detach().numpy() for name, tensor in exported.tensors.items()}
    data = kas.parse(str(exported.module)).compile("forward").arguments[0][0]
    numpy.savez(directory / "arguments.npz", **{data: x.numpy()}, **arrays)
    numpy.savez(directory / "expected.npz", output=expected.numpy())
    command = [RUN, directory / "network.mlir", "--function=forward", f"--args={directory}/arguments.npz"]
    command += [f"--check={directory}/expected.npz", "--tolerance=1e-5", f"--threads={threads}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "height", "width"),
    [(5, 3, 1, 7, 7), (4, 3, 2, 14, 14), (3, 5, 1, 9, 33), (2, 5, 2, 29, 17)],
)
def test_depthwise(channels, kernel, stride, height, width, tmp_path):
    torch.manual_seed(0)
    check(
        Depthwise(channels, kernel, stride), torch.randn(2, channels, height, width), tmp_path, threads=1 + stride % 2
    )


@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
@pytest.mark.parametrize(("stride", "height", "width"), [(1, 7, 7), (2, 28, 30), (1, 14, 14)])
def test_exponentials(stride, height, width, cpu, tmp_path):
    torch.manual_seed(0)
    check(Gated(5, stride), torch.randn(2, 5, height, width), tmp_path, threads=1, cpu=cpu)


def test_squeeze_and_excitation(tmp_path):
    torch.manual_seed(0)
    check(SqueezeAndExcitation(40), torch.randn(1, 40, 5, 6), tmp_path, threads=1)


def test_norms(tmp_path):
    torch.manual_seed(0)
    check(Norms(100), torch.randn(3, 7, 100), tmp_path, threads=1)
