#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures whole networks by kas, ONNX Runtime, OpenVINO and compiled PyTorch, in turn in one run.

    networks.py > networks.jsonl                        sixteen networks, one image, one thread
    networks.py --networks=swin_t,vit_b_32 --rounds=4   some of them
    networks.py --threads=2 --batch=16
    networks.py --backend --peers=                      torch.compile(backend="kas") beside kas alone
    networks.py --bytes --networks=resnet50             layers in int8, too
    networks.py --isa=avx2                              as on a processor without AVX-512
    networks.py --bf16                                  products of bf16, too

A program for the Python of the build (`tools/python.sh`), with torchvision beside it for all networks but the language
models. One line of JSON for each network: seconds to import and to compile it without a cache; the largest error of
kas beside PyTorch's output, over its largest value; the least and the median milliseconds of each implementation; and
`to_best_peer`, the least time of the fastest other one over ours (above 1 kas is faster). At the end the geometric
mean. Under `--isa=avx2` on a processor with AVX-512 ONNX Runtime uses that all the same, and so do OpenVINO's linear
layers: their times are in the record, which names such peers as `not_limited` (OpenVINO where linear layers have a
tenth of the products), and they are no best peer. With `--backend` also `backend_to_kas`, the least time of kas over
that of PyTorch with kas as its backend (below 1 PyTorch adds something), the number of graphs and what PyTorch runs in
them. With `--bytes` also networks whose layers compute in int8, calibrated on the same random images: of kas by
`kas.quantize`, of the peers by ONNX Runtime's static quantizer (QDQ, per channel), their errors, `bytes_to_f32`, the
least time of f32 by kas over that of bytes by kas, and `bytes_to_best_peer`; with `qdq_error`, `qdq_to_f32` and
`qdq_to_best_peer` the same of kas on the file of the peers. With `--bf16` also `bf16_error`, `bf16_to_f32` and
`bf16_to_best_peer` of networks whose products may be of bf16, by kas and by OpenVINO. Parameters are random, batch
norms have statistics of their own. Peers are given ONNX files by PyTorch's own exporter, PyTorch freezes its weights,
and kas packs them ahead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import kas.onnx
import kas.torch
from kas_research.protocol._latency import CompiledNetwork, Peers, _load_peer, _Peer, _PyTorch, describe_machine
from peerbench import isa

NETWORKS = [
    "mobilenet_v3_large",
    "mnasnet1_0",
    "efficientnet_b0",
    "regnet_y_400mf",
    "squeezenet1_1",
    "googlenet",
    "inception_v3",
    "densenet169",
    "wide_resnet50_2",
    "resnet50",
    "convnext_small",
    "swin_t",
    "vit_b_32",
    "maxvit_t",
    "gpt2",
    "bert",
]


# Threads of OpenMP wait in a loop for 200 ms after their work (KMP_BLOCKTIME): until then they would take cores from
# whoever is timed next.
REST_S = 0.3


class Block(nn.Module):
    """Of GPT-2 (norms before the layers, GELU by tanh, causal) or of BERT (norms after them)."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.activation = nn.GELU("tanh" if causal else "none")

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        samples, length, width = x.shape
        parts = (t.view(samples, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, 2))
        attended = nn.functional.scaled_dot_product_attention(*parts, is_causal=self.causal)
        return self.out(attended.transpose(1, 2).reshape(samples, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.causal:
            x = x + self.attend(self.norm1(x))
            return x + self.down(self.activation(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.down(self.activation(self.up(x))))


class LanguageModel(nn.Module):
    """Tokens to scores of words (GPT-2) or to features (BERT)."""

    def __init__(self, causal: bool, layers: int, width: int, words: int, length: int):
        super().__init__()
        self.causal = causal
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, width // 64, causal) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places
        if not self.causal:
            return self.blocks(self.norm(x))
        return self.norm(self.blocks(x)) @ self.words.weight.T


def import_torchvision() -> Any:
    try:
        import torchvision
    except RuntimeError:
        # Its native library, which no network needs, is for another build of PyTorch.
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules["torchvision._meta_registrations"] = types.ModuleType("torchvision._meta_registrations")
        import torchvision
    return torchvision


def make_language_model(name: str, batch: int) -> tuple[nn.Module, torch.Tensor]:
    layers, width, words, length = (2, 64, 100, 16) if name.startswith("tiny") else (12, 768, 50257, 128)
    network = LanguageModel(name.endswith("gpt2"), layers, width, words, length)
    return network.eval(), torch.randint(0, 64, (batch, length))


def make_network(name: str, batch: int) -> tuple[nn.Module, torch.Tensor]:
    """The network with random parameters, and its input."""
    torch.manual_seed(0)
    if name == "tiny-vision":
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 8, 1)]
        return nn.Sequential(*layers).eval(), torch.randn(batch, 3, 16, 16)
    if name.endswith(("gpt2", "bert")):
        return make_language_model(name, batch)
    extra = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    network = getattr(import_torchvision().models, name)(weights=None, **extra).eval()
    # Heads that begin at zero would hide everything before them.
    for parameter in network.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.02)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.normal_(module.running_mean, std=0.1)
    size = 299 if name == "inception_v3" else 224
    return network, torch.randn(batch, 3, size, size)


class Kas:
    """The exported network, compiled as a whole."""

    def __init__(
        self,
        network: nn.Module,
        example: torch.Tensor,
        expected: torch.Tensor,
        options: argparse.Namespace,
        precision: str = "f32",
    ):
        start = time.perf_counter()
        exported = kas.torch.to_mlir(network, example)
        imported = time.perf_counter()
        arrays = [tensor.detach().numpy() for tensor in (example, *exported.tensors.values())]
        self.compiled = CompiledNetwork(
            exported.module, arrays, tuple(expected.shape), options.threads, precision, isa.CPUS[options.isa]
        ).start()
        compiled = time.perf_counter()
        output = self.compiled.tensors[len(arrays)]
        error = float(numpy.abs(output - expected.numpy()).max() / expected.abs().max())
        self.facts = {
            "import_s": round(imported - start, 2),
            "compile_s": round(compiled - imported, 2),
            "error": float(f"{error:.2g}"),
        }

    def time(self, calls: int) -> float:
        compiled = self.compiled
        return min(1e3 * compiled.program.call("forward", compiled.tensors, 1) for _ in range(calls))


class KasBytes(Kas):
    """The same with layers in int8."""

    def __init__(
        self, network: nn.Module, batches: list[torch.Tensor], expected: torch.Tensor, options: argparse.Namespace
    ):
        exported = kas.torch.to_mlir(network, batches[0])
        weights = list(exported.tensors.values())
        module = kas.quantize(exported.module, batches, weights)
        arrays = [tensor.detach().numpy() for tensor in (batches[0], *weights)]
        self.compiled = CompiledNetwork(
            module, arrays, tuple(expected.shape), options.threads, cpu=isa.CPUS[options.isa]
        ).start()
        error = float(numpy.abs(self.compiled.tensors[len(arrays)] - expected.numpy()).max() / expected.abs().max())
        self.facts = {"bytes_error": float(f"{error:.2g}")}


class KasFile(Kas):
    """A network in an ONNX file, which may be quantized (QDQ)."""

    def __init__(self, path: str, example: torch.Tensor, expected: torch.Tensor, options: argparse.Namespace):
        loaded = kas.onnx.load(path)
        arrays = [example.numpy(), *loaded.tensors.values()]
        self.compiled = CompiledNetwork(
            loaded.module, arrays, tuple(expected.shape), options.threads, cpu=isa.CPUS[options.isa]
        ).start()
        error = float(numpy.abs(self.compiled.tensors[len(arrays)] - expected.numpy()).max() / expected.abs().max())
        self.facts = {"qdq_error": float(f"{error:.2g}")}


def quantize_onnx(path: str, batches: list[torch.Tensor]) -> str:
    """The path of the model at `path` with layers in int8, as ONNX Runtime quantizes it."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    name = onnx.load(path, load_external_data=False).graph.input[0].name

    class Batches(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(batches)

        def get_next(self) -> dict[str, Any] | None:
            batch = next(self.rest, None)
            return None if batch is None else {name: batch.numpy()}

    result = path.replace(".onnx", "-bytes.onnx")
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(path, result, Batches(), quant_format=QuantFormat.QDQ, per_channel=True, **types)
    return result


class PyTorch(_PyTorch):
    """Compiled by Inductor with frozen weights, as it is: not every network can be traced."""

    def __init__(self, network: nn.Module, example: torch.Tensor):
        import torch._inductor.config as inductor

        torch._dynamo.reset()
        with inductor.patch(freezing=True), torch.no_grad():
            self.function = torch.compile(network, dynamic=False)
            self.function(example)
        self.example = example


class Backend:
    """Compiled by `torch.compile` with kas as the backend."""

    def __init__(self, network: nn.Module, example: torch.Tensor, expected: torch.Tensor):
        torch._dynamo.reset()
        kas.torch.explain()
        self.function = torch.compile(network, backend=kas.torch.backend, dynamic=False)
        self.example = example
        with torch.no_grad():
            output = self.function(example)
        graphs = kas.torch.explain()
        self.facts = {
            "backend_error": float(f"{float((output - expected).abs().max() / expected.abs().max()):.2g}"),
            "backend_graphs": len(graphs),
            "backend_left": sorted({name for graph in graphs for name, _ in graph.left})
            + [graph.reason for graph in graphs if graph.reason],
        }

    def time(self, calls: int) -> float:
        least = float("inf")
        with torch.no_grad():
            for _ in range(calls):
                start = time.perf_counter_ns()
                self.function(self.example)
                least = min(least, (time.perf_counter_ns() - start) / 1e3)
        return least


def measure_linear_share(network: nn.Module, example: torch.Tensor) -> float:
    """How much of the products of a network are those of linear layers."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(example)
    counts = {str(op): count for op, count in counter.get_flop_counts()["Global"].items()}
    linear = sum(count for op, count in counts.items() if op in ("aten.mm", "aten.addmm"))
    return linear / max(1, sum(counts.values()))


def load(name: str, options: argparse.Namespace, record: dict[str, Any], peers: Peers) -> dict[str, Any]:
    """The implementations that have compiled the network; `record` names the others."""
    network, example = make_network(name, options.batch)
    with torch.no_grad():
        expected = network(example)
    unlimited = isa.list_unlimited(options.isa, measure_linear_share(network, example))
    if unlimited := sorted(options.peers & set(unlimited)):
        record["not_limited"] = unlimited
    timers: dict[str, Any] = {}

    def attempt(key: str, make: Callable[[], Any]) -> None:
        try:
            timers[key] = make()
        except Exception as error:
            record.setdefault("failures", {})[key] = " ".join(f"{type(error).__name__}: {error}".split())[:300]

    attempt("kas", lambda: Kas(network, example, expected, options))
    if "kas" in timers:
        record.update(timers["kas"].facts)
    if options.backend:
        attempt("backend", lambda: Backend(network, example, expected))
    if "backend" in timers:
        record.update(timers["backend"].facts)
    batches = [example, *(torch.randn_like(example) for _ in range(3))] if options.bytes else []
    if batches:
        attempt("kas_bytes", lambda: KasBytes(network, batches, expected, options))
    if "kas_bytes" in timers:
        record.update(timers["kas_bytes"].facts)
    if options.bf16:
        attempt("kas_bf16", lambda: Kas(network, example, expected, options, "bf16"))
    if "kas_bf16" in timers:
        record["bf16_error"] = timers["kas_bf16"].facts["error"]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "network.onnx")
        found = sorted(options.peers & set(peers.versions))
        for peer in found:
            attempt(peer, lambda peer=peer: _load_peer(peers, peer, network, example, path)[0])
        if batches and found:
            attempt("bytes", lambda: quantize_onnx(path, batches))
        if options.bf16 and "openvino" in found:
            attempt("openvino_bf16", lambda: _Peer(peers, "openvino", path, "bf16"))
        if quantized := timers.pop("bytes", None):
            attempt("kas_qdq", lambda: KasFile(quantized, example, expected, options))
            if "kas_qdq" in timers:
                record.update(timers["kas_qdq"].facts)
            for peer in found:
                attempt(f"{peer}_bytes", lambda peer=peer: _Peer(peers, peer, quantized))
    if "pytorch" in options.peers:
        attempt("pytorch", lambda: PyTorch(network, example))
    return timers


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    peers = Peers(sys.executable, options.threads)
    record: dict[str, Any] = {"network": name, "isa": options.isa, "batch": options.batch, "threads": options.threads}
    try:
        timers = load(name, options, record, peers)
        samples: dict[str, list[float]] = {key: [] for key in timers}
        for _ in range(options.rounds):
            for key, timer in timers.items():
                if options.threads > 1:
                    time.sleep(REST_S)
                samples[key].append(timer.time(options.calls) / 1e3)
    finally:
        peers.close()
    record["least_ms"] = {key: round(min(values), 3) for key, values in samples.items()}
    record["median_ms"] = {key: round(statistics.median(values), 3) for key, values in samples.items()}
    if "backend" in timers and "kas" in timers:
        record["backend_to_kas"] = round(record["least_ms"]["kas"] / record["least_ms"]["backend"], 3)
    for kind in ("", "bytes_", "qdq_", "bf16_"):
        ours, ratio = f"kas_{kind}".rstrip("_"), f"{kind}to_best_peer"
        ending = ours.removeprefix("kas").replace("qdq", "bytes")
        rivals = {peer + ending for peer in options.peers.difference(record.get("not_limited", []))}
        others = [least for key, least in record["least_ms"].items() if key in rivals]
        if others and ours in timers:
            record[ratio] = round(min(others) / record["least_ms"][ours], 3)
    for kind in ("bytes", "qdq", "bf16"):
        if f"kas_{kind}" in timers and "kas" in timers:
            record[f"{kind}_to_f32"] = round(record["least_ms"]["kas"] / record["least_ms"][f"kas_{kind}"], 3)
    return record


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures whole networks by several compilers",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    names = "torchvision's, gpt2, bert, tiny-gpt2, tiny-bert or tiny-vision, separated by commas"
    parser.add_argument("--networks", default=",".join(NETWORKS), help=names)
    parser.add_argument("--peers", default="onnxruntime,openvino,pytorch", help="with which to compare")
    parser.add_argument("--backend", action="store_true", help="time torch.compile with kas as its backend as well")
    parser.add_argument("--bytes", action="store_true", help="time layers in int8 as well")
    parser.add_argument("--bf16", action="store_true", help="time products of bf16 as well")
    isa.add_option(parser)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="of all implementations of a network in turn")
    parser.add_argument("--calls", type=int, default=4, help="in each round, of which the least counts")
    options = parser.parse_args()
    for name in ("threads", "batch", "rounds", "calls"):
        if getattr(options, name) < 1:
            parser.error(f"argument --{name}: expected at least 1, got {getattr(options, name)}")
    if options.backend and options.isa != "native":
        parser.error(f"argument --backend: expected --isa=native, got '{options.isa}'")
    options.networks = list(filter(None, options.networks.split(",")))
    if not options.networks:
        parser.error("argument --networks: expected at least one name, got none")
    options.peers = set(filter(None, options.peers.split(",")))
    if unknown := sorted(options.peers - {"onnxruntime", "openvino", "pytorch"}):
        parser.error(f"argument --peers: expected onnxruntime, openvino or pytorch, got '{unknown[0]}'")
    return options


def main() -> None:
    options = parse()
    isa.restart_limited(options.isa)
    torch.set_num_threads(options.threads)
    # ONNX has no attention as one operation that PyTorch's exporter knows.
    torch.backends.mha.set_fastpath_enabled(False)
    records = []
    for name in options.networks:
        records.append(measure(name, options))
        print(json.dumps(records[-1]), flush=True)
    summary = {"machine": describe_machine(), "torch": torch.__version__, "networks": len(records)}
    ratios_by_prefix = {
        "": "to_best_peer",
        "backend_": "backend_to_kas",
        "bytes_": "bytes_to_best_peer",
        "bytes_to_f32_": "bytes_to_f32",
        "qdq_": "qdq_to_best_peer",
        "qdq_to_f32_": "qdq_to_f32",
        "bf16_": "bf16_to_best_peer",
        "bf16_to_f32_": "bf16_to_f32",
    }
    for prefix, ratio in ratios_by_prefix.items():
        if ratios := [record[ratio] for record in records if ratio in record]:
            summary[f"{prefix}geometric_mean"] = round(statistics.geometric_mean(ratios), 3)
            summary[f"{prefix}least"] = min(ratios)
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
