# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's form of what is timed: cuBLAS, cuDNN and torch.compile on the same inputs."""

import re
import statistics

import numpy as np

COPIES = 3
PEERS = ("eager", "channels_last", "composite", "convolution", "compiled")
"""Forms that PyTorch has of an operator, or of a network."""
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


def load_composite(torch, source: str):
    """The function of a file that `kas-translate -kas-to-pytorch` wrote: views, pads and one einsum for each stage."""
    scope: dict = {}
    exec(compile(source, "<composite>", "exec"), scope)
    (function,) = (value for value in scope.values() if getattr(value, "__module__", "") is None and callable(value))
    return function


def find_window(torch, composite, x, weights):
    """The weight of the one convolution of stride 1 that an operator is, from its values at units; None if it is none.

    Libraries have their fastest kernels for it, however the operator saves multiplications.
    """
    if x.dim() != 4 or min(x.shape[2:]) < 8:
        return None
    channels, rows, columns = x.shape[1], *x.shape[2:]
    middle = (rows // 2, columns // 2)
    units = torch.zeros(channels, channels, rows, columns, dtype=torch.float32, device=x.device)
    units[torch.arange(channels), torch.arange(channels), middle[0], middle[1]] = 1
    # In the batch of the operator, so many units at once.
    batch, results = len(x), []
    for start in range(0, channels, batch):
        part = units[start : start + batch]
        padded = torch.cat([part, part.new_zeros(batch - len(part), *part.shape[1:])])
        results.append(composite(padded, *(weight.float() for weight in weights))[: len(part)])
    answers = torch.cat(results)
    if answers.dim() != 4 or answers.shape[2:] != x.shape[2:]:
        return None
    reach = 3
    rows_at, columns_at = (slice(at - reach, at + reach + 1) for at in middle)
    weight = answers[:, :, rows_at, columns_at].flip(2, 3).transpose(0, 1).contiguous()
    data = x.float()
    wanted = composite(data, *(one.float() for one in weights))
    found = torch.nn.functional.conv2d(data, weight, padding=reach)
    if (found - wanted).abs().max() > 1e-3 * wanted.abs().max():
        return None
    while weight.shape[2] > 1 and not (weight[:, :, [0, -1]].any() or weight[:, :, :, [0, -1]].any()):
        weight = weight[:, :, 1:-1, 1:-1]
    return weight.contiguous()


def make_composites(torch, name: str, source: str, tensors: list[np.ndarray], device: str = "cuda") -> dict:
    """An operator that PyTorch has no layer for: by PyTorch's operations, and, where it is one, as a convolution."""
    dtype = get_dtype(torch, name.rsplit("/")[-1])
    x, *weights = (torch.from_numpy(np.array(values)).to(device, dtype) for values in tensors)
    inputs = [x, *(x.clone() for _ in range(COPIES - 1))]
    composite = load_composite(torch, source)
    layers = {"composite": (lambda value: composite(value, *weights), inputs)}
    window = find_window(torch, composite, x, weights)
    if window is not None:
        window, padding = window.to(dtype), window.shape[2] // 2
        last = window.contiguous(memory_format=torch.channels_last)
        layers["convolution"] = (
            lambda value: torch.nn.functional.conv2d(value, last, padding=padding),
            [value.contiguous(memory_format=torch.channels_last) for value in inputs],
        )
    return layers


def make_layers(torch, case: dict, tensors: list[np.ndarray]) -> dict:
    """Functions of one input by name, and their inputs."""
    name = case["name"]
    parts = read_case(name)
    if not parts or parts[0] not in ("matmul", *CONVOLUTIONS):
        return make_composites(torch, name, case["composite"], tensors)
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
