#!/usr/bin/env python3
"""Writes what PyTorch computes for the ResNet-18s of this directory.

    python expected.py SEED Inputs/resnet18_cifar.mlir Inputs/resnet18_cifar.expected.npy
    python expected.py SEED Inputs/resnet18_224.mlir Inputs/resnet18_224.expected.npy

    python expected.py SEED --fisher Inputs/resnet18_small.mlir Inputs/resnet18_small.fisher.npz

    python expected.py SEED --proxies Inputs/resnet18_small.mlir Inputs/resnet18_small.proxies.npz

The last ones write the Fisher Potentials of its layers for two samples, and the
labels; and SNIP, the norm of the gradient and synaptic flow of each weight, and
how many rectifiers two samples share. The files under Inputs were made with SEED 7. The arguments are those that
`kas-run --args=SEED` makes, written here a second time; the network is written
with torch.nn.functional, not read from the .mlir file, which gives only the
names and shapes of the arguments. Needs torch.
"""

import re
import sys

import numpy as np
import torch
from torch.nn import functional


def mix_bits(value):
    """The finalizer of SplitMix64, on arrays of uint64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def normal(seed, name, count):
    """`count` values of RandomStream(seed, name).normal."""
    name_hash = 0xCBF29CE484222325
    for byte in name.encode():
        name_hash = (name_hash ^ byte) * 0x100000001B3 % 2**64
    state = mix_bits(np.array([seed ^ name_hash], np.uint64))
    index = np.arange(3 * count, dtype=np.uint64) + np.uint64(1)
    words = mix_bits(state + index * np.uint64(0x9E3779B97F4A7C15))
    parts = [(words >> np.uint64(16 * i)) & np.uint64(0xFFFF) for i in range(4)]
    sums = sum(p.astype(np.int64) for p in parts).reshape(count, 3).sum(1)
    return (sums - 6 * 65535).astype(np.float32) * np.float32(2.0**-16)


def make_arguments(seed, text):
    """Argument name -> tensor, by the rules of kas-run."""
    head = re.search(r"func\.func @forward\((.*?)\) ->", text, re.S)[1]
    arguments = {}
    for dims, name in re.findall(r'tensor<([0-9x]+)xf32> \{kas\.name = "([^"]*)"\}', head):
        shape = tuple(map(int, dims.split("x")))
        if not arguments:
            deviation = 1.0
        elif len(shape) >= 2:
            deviation = np.sqrt(2.0 / np.prod(shape[1:]))
        else:
            deviation = 0.1
        values = np.float32(deviation) * normal(seed, name, int(np.prod(shape)))
        arguments[name] = torch.from_numpy(values.reshape(shape))
    return arguments


def resnet18(a, record=lambda name, y: y):
    """ResNet-18 with the batch norms folded into the convolutions.

    `record(name, y)` gets the result of each convolution and gives what the
    network goes on with.
    """

    def conv(x, name, stride=1):
        weight = a[name + ".weight"]
        return record(name, functional.conv2d(x, weight, a[name + ".bias"], stride, weight.shape[2] // 2))

    large = a["conv1.weight"].shape[2] == 7
    x = functional.relu(conv(a["input"], "conv1", 2 if large else 1))
    if large:
        x = functional.max_pool2d(x, 3, 2, 1)
    for layer in range(1, 5):
        for block in range(2):
            name = f"layer{layer}.{block}"
            stride = 2 if layer > 1 and block == 0 else 1
            y = functional.relu(conv(x, name + ".conv1", stride))
            y = conv(y, name + ".conv2")
            if stride == 2:
                x = conv(x, name + ".downsample.0", stride)
            x = functional.relu(x + y)
    return functional.linear(x.mean((2, 3)), a["fc.weight"], a["fc.bias"])


def fisher(arguments, labels, normalize=False):
    """Name of a convolution -> its Fisher Potential (eq. 4 and 5 of NAS-PTE)."""
    activations = {}

    def record(name, y):
        y.retain_grad()
        activations[name] = y
        return functional.batch_norm(y, None, None, training=True) if normalize else y

    for name, value in arguments.items():
        value.requires_grad_(name != "input")
    functional.cross_entropy(resnet18(arguments, record), labels).backward()
    scores = {}
    for name, y in activations.items():
        samples = -(y * y.grad).sum((2, 3))
        scores[name] = 0.5 * (samples**2).mean(0).sum().item()
    return scores


def write_fisher(seed, source, target):
    with open(source) as file:
        arguments = make_arguments(seed, re.sub(r"tensor<1x(?=\d)", "tensor<2x", file.read()))
    labels = torch.tensor([3, 8])
    plain = fisher(arguments, labels)
    normalized = fisher(make_arguments_again(arguments), labels, normalize=True)
    names = list(plain)
    np.savez(
        target,
        labels=functional.one_hot(labels, 10).numpy().astype(np.float32),
        plain=np.array([plain[name] for name in names], np.float32),
        normalized=np.array([normalized[name] for name in names], np.float32),
    )


def proxies(arguments, labels):
    """Name of a weight -> sum |w g|, norm of g; and the kernel of the samples."""
    codes = []
    rectify = functional.relu

    def record(x):
        y = rectify(x)
        codes.append((y > 0).flatten(1).double())
        return y

    for name, value in arguments.items():
        value.requires_grad_(name != "input")
    functional.relu = record
    try:
        loss = functional.cross_entropy(resnet18(arguments), labels)
    finally:
        functional.relu = rectify
    loss.backward()
    weights = [value for name, value in arguments.items() if name != "input" and value.dim() >= 2]
    code = torch.cat(codes, 1)
    kernel = code @ code.T + (1 - code) @ (1 - code).T
    return (
        [(w * w.grad).abs().sum().item() for w in weights],
        [w.grad.norm().item() for w in weights],
        kernel.numpy(),
    )


def synflow(arguments):
    """Sum w dR/dw of each weight, for magnitudes and an input of ones."""
    taken = {
        name: (torch.ones_like(value) if name == "input" else value.detach().abs()).double().requires_grad_()
        for name, value in arguments.items()
    }
    resnet18(taken).sum().backward()
    return [(w * w.grad).sum().item() for name, w in taken.items() if name != "input" and w.dim() >= 2]


def write_proxies(seed, source, target):
    with open(source) as file:
        arguments = make_arguments(seed, re.sub(r"tensor<1x(?=\d)", "tensor<2x", file.read()))
    snip, norms, kernel = proxies(arguments, torch.tensor([3, 8]))

    def as_floats(values):
        return np.array(values, np.float32)

    np.savez(
        target,
        snip=as_floats(snip),
        norms=as_floats(norms),
        kernel=as_floats(kernel),
        synflow=as_floats(synflow(arguments)),
    )


def make_arguments_again(arguments):
    return {name: value.detach().clone() for name, value in arguments.items()}


def main():
    if len(sys.argv) == 5 and sys.argv[2] == "--fisher":
        return write_fisher(int(sys.argv[1]), sys.argv[3], sys.argv[4])
    if len(sys.argv) == 5 and sys.argv[2] == "--proxies":
        return write_proxies(int(sys.argv[1]), sys.argv[3], sys.argv[4])
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    seed, source, target = sys.argv[1:]
    with open(source) as file:
        arguments = make_arguments(int(seed), file.read())
    with torch.no_grad():
        np.save(target, resnet18(arguments).numpy())


if __name__ == "__main__":
    main()
