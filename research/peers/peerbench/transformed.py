# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A residual network of test/Search/Networks/Inputs/cifar.py, and what -kas-search=network=@forward has made of it.

The others run the network as it was; kas runs it, too, and the transformed ones.
"""

import re

from . import cases
from .networks import make_parameter, read_arguments

DEPTHS = {2: 4, 16: 18, 32: 34}  # 3x3 convolutions of the blocks -> depth


def read_functions(text):
    """Name -> a module with that function alone, called @forward."""
    aliases = "".join(re.findall(r"^#.*\n", text, re.M))
    found = re.findall(r"^  (func\.func @(\w+)\(.*?^  \})$", text, re.S | re.M)
    return {name: f"{aliases}{source.replace(f'@{name}(', '@forward(', 1)}\n" for source, name in found}


def make_module(torch, arguments):
    """The network, batch normalizations folded; its parameters are drawn from their names."""
    import numpy

    nn, F = torch.nn, torch.nn.functional

    def parameter(name):
        return nn.Parameter(torch.from_numpy(make_parameter(numpy, name, arguments[name])))

    def convolution(name, stride=1):
        weight = parameter(name + ".weight")
        cout, cin, kernel, _ = weight.shape
        module = nn.Conv2d(cin, cout, kernel, stride, kernel // 2)
        module.weight, module.bias = weight, parameter(name + ".bias")
        return module

    class Block(nn.Module):
        def __init__(self, name):
            super().__init__()
            strided = name + ".downsample.weight" in arguments
            self.conv1, self.conv2 = convolution(name + ".conv1", 1 + strided), convolution(name + ".conv2")
            self.downsample = convolution(name + ".downsample", 2) if strided else nn.Identity()

        def forward(self, x):
            return F.relu(self.conv2(F.relu(self.conv1(x))) + self.downsample(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = convolution("conv1")
            self.blocks = nn.Sequential(
                *(
                    Block(name[: -len(".conv1.weight")])
                    for name in arguments
                    if re.fullmatch(r"layer.*\.conv1\.weight", name)
                )
            )
            self.fc = nn.Linear(*reversed(arguments["fc.weight"]))
            self.fc.weight, self.fc.bias = parameter("fc.weight"), parameter("fc.bias")

        def forward(self, x):
            return self.fc(self.blocks(F.relu(self.conv1(x))).mean((2, 3)))

    return Network()


def count_macs(text):
    """Of the convolutions; the classifier is next to nothing."""
    pattern = (
        r"linalg\.conv_2d_nchw_fchw.*?, tensor<(\d+)x(\d+)x(\d+)x(\d+)xf32>\) "
        r"outs\(.*?tensor<(\d+)x\d+x(\d+)x(\d+)xf32>"
    )
    return sum(cases.product(map(int, found)) for found in re.findall(pattern, text))


def make_cases(path):
    functions = read_functions(path.read_text())
    dense = functions.pop("forward")
    arguments = read_arguments(dense)

    def get_weights(shapes):
        def weights(module):
            import numpy

            return [make_parameter(numpy, name, shape) for name, shape in list(shapes.items())[1:]]

        return weights

    others = {
        name.removeprefix("forward_"): (text, get_weights(read_arguments(text)))
        for name, text in functions.items()
        if "kas.programs" in text
    }
    blocks = sum(len(shape) == 4 and shape[2] == 3 for shape in arguments.values()) - 1
    name = f"resnet{DEPTHS.get(blocks, blocks)}@{arguments['input'][-1]}"
    forms = {"written": lambda torch: make_module(torch, arguments)}
    elements = sum(map(cases.product, arguments.values()))
    return {
        name: cases.Case(
            name,
            "network",
            "network",
            arguments["input"],
            dense,
            count_macs(dense),
            1.0,
            forms,
            get_weights(arguments),
            elements,
            entry="forward",
            others=others,
        )
    }
