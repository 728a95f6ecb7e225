# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's form of what is timed: cuBLAS, cuDNN and torch.compile on the same inputs."""

import re
import statistics

import numpy as np

COPIES = 3
CONVOLUTIONS = ("conv2d", "conv2d_strided", "conv1x1", "conv2d_grouped", "conv2d_depthwise", "conv2d_dilated")


def load_torch():
    """PyTorch where it is installed and finds a GPU, else None."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def get_dtype(torch, precision: str):
    return {"f16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)


def set_precision(torch, precision: str) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True


def read_case(name: str):
    """`kas.conv2d<N=1,k=3>/f16` -> ("conv2d", {"N": 1, "k": 3}, "f16")."""
    match = re.fullmatch(r"kas\.(\w+)<([^>]*)>/(\w+)", name)
    if not match:
        return None
    sizes = {key: int(value) for key, value in (part.split("=") for part in match[2].split(","))}
    return match[1], sizes, match[3]


def make_layers(torch, name: str, tensors: list[np.ndarray]) -> dict:
    """Functions of one input by name, and their inputs; empty where PyTorch has no such layer."""
    parts = read_case(name)
    if not parts or parts[0] not in ("matmul", *CONVOLUTIONS):
        return {}
    operator, size, precision = parts
    dtype = get_dtype(torch, precision)
    x, weight = (torch.from_numpy(np.array(values)).cuda().to(dtype) for values in tensors)
    inputs = [x, *(x.clone() for _ in range(COPIES - 1))]
    if operator == "matmul":
        return {"eager": (lambda value: value @ weight, inputs)}
    k, channels = size.get("k", 1), size.get("Cin", size.get("C"))
    groups = channels if operator == "conv2d_depthwise" else size.get("g", 1)
    weight = weight.reshape(size.get("Cout", channels), channels // groups, k, k)
    dilation = size.get("d", 1)
    settings = {"stride": size.get("s", 1), "padding": dilation * (k // 2), "dilation": dilation, "groups": groups}
    last = weight.contiguous(memory_format=torch.channels_last)
    return {
        "eager": (lambda value: torch.nn.functional.conv2d(value, weight, **settings), inputs),
        "channels_last": (
            lambda value: torch.nn.functional.conv2d(value, last, **settings),
            [value.contiguous(memory_format=torch.channels_last) for value in inputs],
        ),
    }


def make_network(torch, name: str):
    """ResNet-18 as PyTorch has it, with batch norms and random weights: for times alone."""
    network, precision = name.split("/")
    if network != "resnet18_224":
        return {}
    import torchvision

    dtype = get_dtype(torch, precision)
    model = torchvision.models.resnet18().eval().cuda().to(dtype)
    last = torchvision.models.resnet18().eval().cuda().to(dtype, memory_format=torch.channels_last)
    inputs = [torch.randn(1, 3, 224, 224, device="cuda", dtype=dtype) for _ in range(COPIES)]
    return {
        "eager": (model, inputs),
        "channels_last": (last, [value.contiguous(memory_format=torch.channels_last) for value in inputs]),
    }


def measure(torch, function, inputs, seconds: float, rounds: int = 7) -> float:
    """Milliseconds of a call in a CUDA graph of several, by the device's clock."""
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for value in inputs * 2:
                function(value)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        calls = 4 * len(inputs)
        with torch.cuda.graph(graph):
            for index in range(calls):
                function(inputs[index % len(inputs)])

    def run(count: int) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / (count * calls)

    run(1)
    once = max(run(1), 1e-3)
    count = max(1, min(500, int(seconds * 1e3 / rounds / once / calls)))
    return statistics.median(run(count) for _ in range(rounds))
