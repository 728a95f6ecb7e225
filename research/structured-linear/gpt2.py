#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second of GPT-2 with dense and with structured projections: research/reports/structured-linear.md.

usage: PYTHONPATH=build/python $(tools/python.sh) research/structured-linear/gpt2.py [options] > gpt2.jsonl

GPT-2 (124 million random weights; `research/peers/networks.py` has it in plain PyTorch) as it is, by kas, ONNX Runtime
and OpenVINO, and with operators of the complete list in the place of its 48 projections, by kas: `extract` finds them,
`substitute` puts in each operator with the blocks and the rank at which its weights have as many bytes as they may, at
each of the four shapes. Embedding, attention, norms and the product with the words' vectors stay: these are what is not
made smaller. Each is run on prompts of several lengths from the first word on, without a cache of former words: one
token is what one step of generation computes but for its attention to them. Outputs are compared with PyTorch's. All
are timed in turn in one run; prints a line of JSON for each length and network.

With --fit=TOKENS the operators are first fitted to the dense projections on so many random words, and the error that is
left in the outputs of the projections is printed, too (random weights are as hard to come near as any).
"""

import argparse
import functools
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import torch
from structured_linear import ROOT, SPACE
from times import list_bindings

import kas.torch
from kas_research.protocol._latency import CompiledNetwork, Peers, _load_peer
from kas_research.structured import Structure

sys.path.insert(0, str(ROOT / "research" / "peers"))
from networks import LanguageModel
from option_values import read_positive, read_positives

LAYERS, WIDTH, WORDS = 12, 768, 50257
OPERATORS = "12f20b39,ff49fed1,2b14cf1b,2e06d08d"
"""Low rank, BLAST with b**2 blocks of outputs, and two that were fast at a quarter of the bytes: for one token, and
for 512."""


def make_network(options, length):
    torch.manual_seed(0)
    return LanguageModel(True, options.layers, options.width, options.words, length).eval()


@functools.cache
def list_candidates():
    return tuple(kas.SearchSpace.parse(SPACE.read_text()).list())


def find_operator(prefix):
    """The key that begins so, and its operator, of the complete list."""
    found = [candidate for candidate in list_candidates() if candidate.key.startswith(prefix)]
    if len(found) != 1:
        raise SystemExit(f"requires the beginning of one key of the list, got '{prefix}' of {len(found)}")
    return found[0].key, found[0].operator


def replace(network, operator, part, tokens, least=0.8, backend="pytorch"):
    """The network with the operator in its projections, and the parameters of these; nothing where it fits none."""
    structure = Structure.of(operator)
    shapes = defaultdict(list)
    for site in kas.torch.extract(network, tokens, sites="blocks.*").sites.values():
        shapes[site.data_shape[-1], site.output_shape[-1]].append(site)
    parameters = 0
    for (inputs, outputs), sites in shapes.items():
        bindings = list_bindings(structure, inputs, outputs, part, least)
        if not bindings:
            most = part * inputs * outputs
            wanted = f"with {float(least * most):.0f} to {float(most):.0f} elements of weights"
            raise ValueError(f"requires sizes of blocks for {inputs} inputs and {outputs} outputs {wanted}, got none")
        binding = bindings[0]
        parameters += len(sites) * structure.parameters(binding)
        own = {name: binding[name] for name in ("b", "R") if name in (*operator.symbols[0], *operator.symbols[1])}
        network = kas.torch.substitute(network, operator, sites, binding=own, backend=backend)
    return network, parameters


class Compiled:
    """A network by kas, with operators where it has some."""

    def __init__(self, network, tokens, threads):
        exported = kas.torch.to_mlir(network, tokens, keep_operators=True)
        with torch.no_grad():
            expected = network(tokens)
        arrays = [tensor.detach().numpy() for tensor in (tokens, *exported.tensors.values())]
        self.compiled = CompiledNetwork(exported.module, arrays, tuple(expected.shape), threads).start()
        output = torch.from_numpy(self.compiled.tensors[len(arrays)])
        self.error = float((output - expected).abs().max() / expected.abs().max())

    def time(self, calls):
        run = self.compiled
        return min(1e3 * run.program.call("forward", run.tensors, 1) for _ in range(calls))


def load(options, length, peers, folder):
    """Timers by name, and what is known of each."""
    tokens = torch.randint(0, options.words, (1, length), generator=torch.Generator().manual_seed(1))
    dense = make_network(options, length)
    timers, facts = {"dense": Compiled(dense, tokens, options.threads)}, {"dense": {}}
    for peer in sorted(options.peers & set(peers.versions)):
        timers[peer] = _load_peer(peers, peer, dense, tokens, str(Path(folder) / f"{length}.onnx"))[0]
        facts[peer] = {}
    for prefix in options.operators:
        key, operator = find_operator(prefix)
        network, parameters = replace(dense, operator, options.part, tokens)
        facts[key] = {"structure": str(Structure.of(operator)), "projection_parameters": parameters}
        if options.fit:
            words = torch.randint(0, options.words, (-(-options.fit // length), length))
            errors = kas.torch.fit(network, dense, words, rounds=10)
            facts[key]["fit_error"] = round(statistics.fmean(errors.values()), 3)
        timers[key] = Compiled(network, tokens, options.threads)
    return timers, facts


def measure(options, length):
    peers = Peers(sys.executable, options.threads)
    try:
        with tempfile.TemporaryDirectory() as folder:
            timers, facts = load(options, length, peers, folder)
        samples = defaultdict(list)
        for _ in range(options.rounds):
            for name, timer in timers.items():
                samples[name].append(timer.time(options.calls) / 1e3)
    finally:
        peers.close()
    best = min(min(samples[name]) for name in ("dense", *options.peers) if name in samples)
    for name, timer in timers.items():
        least = min(samples[name])
        record = {"tokens": length, "threads": options.threads, "network": name, **facts[name]}
        if isinstance(timer, Compiled):
            record["error"] = float(f"{timer.error:.2g}")
        record |= {
            "least_ms": round(least, 3),
            "median_ms": round(statistics.median(samples[name]), 3),
            "tokens_per_second": round(1e3 * length / least, 1),
            "to_best_dense": round(best / least, 3),
        }
        yield record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=read_positives, default=[1, 128, 512])
    parser.add_argument("--operators", default=OPERATORS, help="beginnings of keys of the list, separated by commas")
    parser.add_argument("--part", type=Fraction, default=Fraction(1, 4), help="of the bytes of the projections")
    parser.add_argument("--peers", default="onnxruntime,openvino", help="with which to compare")
    parser.add_argument("--threads", type=read_positive, default=1)
    parser.add_argument("--fit", type=read_positive, help="words to fit the operators on")
    parser.add_argument("--rounds", type=read_positive, default=4)
    parser.add_argument("--calls", type=read_positive, default=3, help="in each round, of which the least counts")
    parser.add_argument("--layers", type=read_positive, default=LAYERS)
    parser.add_argument("--width", type=read_positive, default=WIDTH)
    parser.add_argument("--words", type=read_positive, default=WORDS)
    options = parser.parse_args()
    options.peers = set(filter(None, options.peers.split(",")))
    options.operators = list(filter(None, options.operators.split(",")))
    torch.set_num_threads(options.threads)
    for length in options.tokens:
        for record in measure(options, length):
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
