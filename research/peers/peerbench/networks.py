# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole networks: ResNet-18 at 224x224 as it is, and with its 3x3 convolutions of stride 1 replaced by Operator 1 or 2.

kas compiles the model file of the tests, changed by kas-extract and kas-substitute; PyTorch has the same network by
hand. The parameters are drawn from their names, so that all have the same ones.
"""

import re
import subprocess
import zlib
from pathlib import Path

from . import cases

MODEL = Path(__file__).resolve().parents[3] / "test" / "Networks" / "Sites" / "Inputs" / "resnet18_224.mlir"
DENSE_MACS = 1814073344


def read_arguments(text):
    """Name -> shape of the arguments of @forward, in order."""
    head = re.search(r"func\.func @forward\((.*?)\) ->", text, re.S)[1]
    return {
        name: tuple(map(int, dims.split("x")))
        for dims, name in re.findall(r'tensor<([0-9x]+)xf32> \{[^}]*?kas\.name = "([^"]*)"', head)
    }


def make_parameter(numpy, name, shape):
    """Kaiming normal weights, small biases."""
    random = numpy.random.default_rng(zlib.crc32(name.encode()))
    if len(shape) == 1:
        deviation = 0.1
    elif name.endswith(
        ".weight.0"
    ):  # of two weights, the first: over the channels of a group and, in Operator 2, the window
        deviation = 0.5
    elif name.endswith(".weight.1"):
        deviation = (2 / (cases.product(shape) / shape[-2])) ** 0.5
    else:
        deviation = (2 / cases.product(shape[1:])) ** 0.5
    return (random.standard_normal(shape) * deviation).astype(numpy.float32)


def make_module(torch, operator, form):
    """ResNet-18 of torchvision's structure, batch norms folded; `operator` replaces the 3x3 ones of stride 1."""
    import numpy

    nn, F = torch.nn, torch.nn.functional

    def parameter(name, *shape):
        return nn.Parameter(torch.from_numpy(make_parameter(numpy, name, shape)))

    def convolution(name, cin, cout, size, kernel, stride=1):
        if operator and kernel == 3 and stride == 1:
            return replaced(name, cout, size)
        module = nn.Conv2d(cin, cout, kernel, stride, kernel // 2)
        module.weight = parameter(name + ".weight", cout, cin, kernel, kernel)
        module.bias = parameter(name + ".bias", cout)
        return module

    def replaced(name, c, size):
        _, modules, get_shapes = cases.OPERATORS[operator]
        plain, convolutions = modules(torch, c, size)
        module = plain()
        for i, shape in enumerate(get_shapes(c)):
            setattr(module, f"w{i + 1}", parameter(f"{name}.weight.{i}", *shape))
        if form == "by-hand":
            module = convolutions(module)

        class Biased(nn.Module):
            def __init__(self):
                super().__init__()
                self.operator = module
                self.bias = parameter(name + ".bias", c)

            def forward(self, x):
                return self.operator(x) + self.bias.view(1, -1, 1, 1)

        return Biased()

    class Block(nn.Module):
        def __init__(self, name, cin, cout, size, stride):
            super().__init__()
            self.conv1 = convolution(name + ".conv1", cin, cout, size, 3, stride)
            self.conv2 = convolution(name + ".conv2", cout, cout, size, 3)
            self.downsample = (
                convolution(name + ".downsample.0", cin, cout, size, 1, stride) if stride > 1 else nn.Identity()
            )

        def forward(self, x):
            return F.relu(self.conv2(F.relu(self.conv1(x))) + self.downsample(x))

    class ResNet18(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = convolution("conv1", 3, 64, 112, 7, 2)
            self.blocks = nn.Sequential(
                *(
                    Block(
                        f"layer{layer + 1}.{i}",
                        64 << max(0, layer - (i == 0)),
                        64 << layer,
                        56 >> layer,
                        2 if layer and not i else 1,
                    )
                    for layer in range(4)
                    for i in range(2)
                )
            )
            self.fc = nn.Linear(512, 1000)
            self.fc.weight, self.fc.bias = parameter("fc.weight", 1000, 512), parameter("fc.bias", 1000)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2, 1)
            return self.fc(self.blocks(x).mean((2, 3)))

    return ResNet18()


def substitute(tools, operator):
    """The text of the model with its layers replaced."""
    options = f"operator=kas.{cases.OPERATORS[operator][0]} space=@conv2d bind=g={cases.G},s={cases.S}"
    command = [str(tools / "kas-opt"), str(MODEL), "-kas-extract", f"-kas-substitute={options}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def replaced_macs(operator):
    """Of the network whose 3x3 convolutions of stride 1 are replaced: 4 at 64 channels, 3 at each other."""
    macs = DENSE_MACS
    for layer in range(4):
        c, h, count = 64 << layer, 56 >> layer, 4 if layer == 0 else 3
        macs += count * (cases.operator_macs(cases.OPERATORS[operator][2](c), h) - 9 * c * c * h * h)
    return macs


def make_cases(tools):
    """Name -> case; the changed models are made by kas-opt of the directory `tools`."""
    result = {}
    for name, operator in (("resnet18@224", None), ("resnet18-op1@224", "op1"), ("resnet18-op2@224", "op2")):
        text = substitute(tools, operator) if operator else MODEL.read_text()
        arguments = read_arguments(text)

        def weights(module, arguments=arguments):
            import numpy

            return [make_parameter(numpy, name, shape) for name, shape in list(arguments.items())[1:]]

        forms = {"written": lambda torch, operator=operator: make_module(torch, operator, "written")}
        if operator:
            forms["by-hand"] = lambda torch, operator=operator: make_module(torch, operator, "by-hand")
        result[name] = cases.Case(
            name,
            "network",
            "network",
            arguments["input"],
            text,
            replaced_macs(operator) if operator else DENSE_MACS,
            1.0,
            forms,
            weights,
            sum(map(cases.product, arguments.values())),
            entry="forward",
        )
    return result
