#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of linear layers with structured weights, beside dense ones and PyTorch: research/reports/structured-linear.md.

usage: PYTHONPATH=build/python $(tools/python.sh) research/structured-linear/times.py [options] > times.jsonl

Draws operators of the complete list by seed, those that reach all inputs and share no parameters, and for each the
sizes of blocks and of the rank at which its weights have as many bytes as they may: a quarter or an eighth of the dense
layer's, not below 0.8 of that, each weight being used once for a token. With --by=prediction all such operators, at all
such sizes at which ranks save elements, are predicted for the number of tokens, and the fastest is taken of each of the
best patterns. Each is compiled as a layer whose weights are known before, for one thread, compared with its plain
loops, and timed in turn with the dense layer of kas, that of PyTorch, and PyTorch's code for the same sum of products:
one einsum, and one for each step of the cheapest order (products of weights made ahead), eager, and with --compiled by
torch.compile, too. Prints a line of JSON for each operator and number of tokens, and at the end a summary of each kind.
"""

import argparse
import itertools
import json
import math
import random
import re
import statistics
import sys
from collections import defaultdict
from fractions import Fraction

import numpy
import torch
import torch.utils.benchmark
from structured_linear import POWERS, ROOT, SPACE, get_families, get_titles

import kas
from kas._pipelines import CPUPipeline
from kas_research.structured import Structure

sys.path.insert(0, str(ROOT / "research" / "peers"))
from option_values import read_positive, read_positives

LAYERS = ((768, 3072), (3072, 768))
PARTS = (Fraction(1, 4), Fraction(1, 8))
BLOCKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
RANK_STEP = 4
# A tenth of a second, or less.
EINSUM_POINTS = 1 << 27


def list_bindings(structure, inputs, outputs, part, least=0.8):
    """The sizes that are allowed, those with the most elements of weights first.

    They have at most `part` of the elements of the dense layer, and at least `least` times that.
    """
    most = part * inputs * outputs
    found = []
    text = " ".join(index.size for index in structure.indices)
    for b in BLOCKS if "b" in text else (1,):
        binding = {"Cin": inputs, "Cout": outputs, "R": 0, "b": b}
        try:
            # Each weight has a rank or has none: elements are linear in it.
            fixed, slope = structure.parameters(binding), structure.parameters({**binding, "R": 1})
            slope -= fixed
            binding["R"] = min((most - fixed) // slope, inputs - 1) // RANK_STEP * RANK_STEP if slope else 1
            parameters = structure.parameters(binding)
        except ValueError:
            # Blocks that do not divide the channels.
            continue
        if binding["R"] > 0 and least * most <= parameters <= most:
            found.append((parameters, -b, binding))
    found.sort(key=lambda entry: entry[:2], reverse=True)
    return [binding for *_, binding in found]


def uses_weights_once(structure, binding):
    return 1.9 <= structure.flops(binding) / structure.parameters(binding) <= 2.1


def saves(structure, binding):
    """The weights that have a rank have fewer elements than the one that they are together (rule W15)."""

    def count(indices):
        return math.prod(evaluate_size(index.size, binding) for index in indices)

    for rank in structure.indices:
        if rank.in_data or rank.in_output:
            continue
        own = [index for index in structure.indices if index.weights & rank.weights]
        apart = sum(count(index for index in own if number in index.weights) for number in rank.weights)
        together = count(i for i in own if i.in_data or i.in_output or not i.weights <= rank.weights)
        if apart >= together:
            return False
    return True


def list_candidates(seed):
    """Candidate and structure of each operator that reaches all inputs and shares no parameters, in a random order."""
    candidates = list(kas.SearchSpace.parse(SPACE.read_text()).list())
    random.Random(seed).shuffle(candidates)
    for candidate in candidates:
        structure = Structure.of(candidate.operator)
        if structure.reaches and not structure.exponents(POWERS).sharing:
            yield candidate, structure


def draw(layer, part, candidates):
    """(candidate, structure, binding), in the order of the candidates, at the sizes with the most elements."""
    for candidate, structure in candidates:
        bindings = list_bindings(structure, *layer, part)
        if bindings and uses_weights_once(structure, bindings[0]):
            yield candidate, structure, bindings[0]


def choose_fastest(layer, part, candidates, tokens):
    """The same by predicted time, the least first: the fastest operator of each pattern, at its fastest sizes."""
    best = {}
    for candidate, structure in candidates:
        for binding in list_bindings(structure, *layer, part):
            if not uses_weights_once(structure, binding) or not saves(structure, binding):
                continue
            own = {name: {**binding, "N": tokens}[name] for name in itertools.chain(*candidate.operator.symbols)}
            time = candidate.operator.predict_milliseconds(own)
            known = best.get(structure.pattern)
            if known is None or time < known[0]:
                best[structure.pattern] = (time, candidate, structure, binding)
    for _, candidate, structure, binding in sorted(best.values(), key=lambda entry: entry[0]):
        yield candidate, structure, binding


class Layer:
    """A layer of kas with its weights packed ahead, as an object file would have it."""

    def __init__(self, operator, binding, arrays=None, prepack_weights=True):
        own = {name: binding[name] for name in (*operator.symbols[0], *operator.symbols[1])}
        shapes = operator.shapes(own)
        tensors = [shapes.data, *shapes.weights]
        types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (*tensors, shapes.output)]
        names = [f"%a{number}" for number in range(len(tensors))]
        module = kas.Module(
            f"{operator.alone()}\n"
            f"func.func @forward({', '.join(map(': '.join, zip(names, types)))}) -> {types[-1]} {{\n"
            f"  %r = kas.apply @{operator.name}<{', '.join(f'{name} = {value}' for name, value in own.items())}>"
            f"({', '.join(names)}) : ({', '.join(types[:-1])}) -> {types[-1]}\n"
            f"  return %r : {types[-1]}\n}}\n",
            f"<{operator.name}>",
        )
        module.run(str(CPUPipeline(threads=1, prepack_weights=prepack_weights or None)))
        self.program = module._handle.load(2)
        generator = numpy.random.default_rng(0)
        if arrays is None:
            arrays = [generator.standard_normal(shape, dtype=numpy.float32) for shape in tensors]
        self.arrays = arrays
        self.output = numpy.zeros(shapes.output, numpy.float32)
        self.given = [*arrays, self.output]
        if count := self.program.get_num_prepacked_elements("forward"):
            memory = numpy.zeros(count + 16, numpy.float32)
            packed = memory[-(memory.ctypes.data // 4) % 16 :][:count]
            self.program.call("forward_prepack", [*arrays[1:], packed], 1)
            self.given.append(packed)
        self.time(1)

    def time(self, calls):
        """Microseconds of a call."""
        return self.program.call("forward", self.given, calls) * 1e3


class PyTorchLayer:
    """A function of PyTorch on a tensor."""

    def __init__(self, function, example):
        self.function, self.example = function, example
        self.time(2)

    def time(self, calls):
        timer = torch.utils.benchmark.Timer("f(x)", globals={"f": self.function, "x": self.example})
        with torch.inference_mode():
            return timer.timeit(calls).mean * 1e6


def evaluate_size(text, binding):
    """The value of a size as a structure writes it, such as Cin/b**2."""
    above, _, below = text.partition("/")

    def product(factors):
        value = 1
        for factor in re.findall(r"(\w+)(?:\*\*(\d+))?", factors):
            base = int(factor[0]) if factor[0].isdigit() else binding[factor[0]]
            value *= base ** int(factor[1] or 1)
        return value

    return product(above) // product(below)


def count_left_to_right(structure, binding):
    """The points of the largest step of one einsum, which takes the weights in turn."""
    most, live = 0, {index for index in structure.indices if index.in_data}
    for number in range(structure.num_weights):
        live |= {index for index in structure.indices if number in index.weights}
        most = max(most, math.prod(evaluate_size(index.size, binding) for index in live))
        live = {index for index in live if index.in_output or max(index.weights) > number}
    return most


def make_einsums(structure, binding, tokens):
    """PyTorch's code for a structure: one einsum, and one for each step of the cheapest order."""
    letters = dict(zip(structure.indices, "abcdefghijklm"))
    sizes = {index: evaluate_size(index.size, binding) for index in structure.indices}
    weights = [
        [index for index in structure.indices if number in index.weights] for number in range(structure.num_weights)
    ]
    values = [torch.randn([sizes[index] for index in own]) for own in weights]

    def write(indices):
        return "".join(letters[index] for index in indices)

    inputs = [index for index in structure.indices if index.in_data]
    outputs = [index for index in structure.indices if index.in_output]
    whole = f"n{write(inputs)},{','.join(map(write, weights))}->n{write(outputs)}"

    def at_once(data):
        return torch.einsum(whole, data, *values)

    steps = []
    live = inputs
    order = structure.order(binding)
    for number, group in enumerate(order):
        later = frozenset().union(*order[number + 1 :])
        own = [
            index
            for index in structure.indices
            if index.weights & group and (index.in_data or index.in_output or not index.weights <= group)
        ]
        made = torch.einsum(
            f"{','.join(write(weights[weight]) for weight in sorted(group))}->{write(own)}",
            *(values[weight] for weight in sorted(group)),
        ).contiguous()
        left = [
            index
            for index in structure.indices
            if (index in live or index in own) and (index.in_output or index.weights & later)
        ]
        steps.append((f"n{write(live)},{write(own)}->n{write(left)}", made))
        live = left
    steps[-1] = (steps[-1][0].split("->")[0] + f"->n{write(outputs)}", steps[-1][1])

    def step_by_step(data):
        for equation, weight in steps:
            data = torch.einsum(equation, data, weight)
        return data

    example = torch.randn([tokens, *(sizes[index] for index in inputs)])
    return at_once, step_by_step, example


def measure(contenders, rounds, calls):
    """The least microseconds of each, all in turn."""
    least = dict.fromkeys(contenders, math.inf)
    for _ in range(rounds):
        for name, contender in contenders.items():
            least[name] = min(least[name], contender.time(calls))
    return least


def check(layer, operator, binding):
    """The largest difference from plain loops, over the largest value."""
    plain = Layer(operator, binding, layer.arrays, "register-tiles=false pack-operators=false")
    return float(abs(plain.output - layer.output).max() / abs(plain.output).max())


def measure_operator(layer, operator, structure, binding, tokens, options):
    inputs, outputs = layer
    binding = {**binding, "N": tokens}
    compiled = Layer(operator, binding)
    error = check(compiled, operator, binding)
    at_once, step_by_step, example = make_einsums(structure, binding, tokens)
    linear = torch.nn.Linear(inputs, outputs, bias=False)
    calls = max(1, options.calls // tokens)
    contenders = {
        "kas": compiled,
        "dense": Layer(kas.operator("linear"), {"N": tokens, "Cin": inputs, "Cout": outputs}),
        "dense_pytorch": PyTorchLayer(linear, torch.randn(tokens, inputs)),
        "steps": PyTorchLayer(step_by_step, example),
    }
    # From left to right, whatever the order costs: that may take minutes and gigabytes.
    if tokens * count_left_to_right(structure, binding) <= EINSUM_POINTS:
        contenders["einsum"] = PyTorchLayer(at_once, example)
    if options.compiled:
        torch._dynamo.reset()
        contenders["steps_compiled"] = PyTorchLayer(torch.compile(step_by_step, dynamic=False), example)
    times = measure(contenders, options.rounds, calls)
    dense = min(times["dense"], times["dense_pytorch"])
    parameters, flops = structure.parameters(binding), structure.flops(binding)
    # What each token costs in memory is the same; weights count where there is one token.
    promised = inputs * outputs / parameters if tokens == 1 else 2 * inputs * outputs / flops
    pytorch = min(time for name, time in times.items() if name in ("einsum", "steps", "steps_compiled"))
    return {
        "parameters": parameters,
        "flops": flops,
        "error": error,
        "microseconds": {name: round(time, 2) for name, time in times.items()},
        "speed_up": round(dense / times["kas"], 3),
        "promised": round(promised, 3),
        "of_promised": round(dense / times["kas"] / promised, 3),
        "over_pytorch": round(pytorch / times["kas"], 3),
    }


def summarize(records):
    """A line for each kind."""
    kinds = defaultdict(list)
    for record in records:
        kinds[record["layer"], record["part"], record["tokens"]].append(record)
    for (layer, part, tokens), group in kinds.items():
        shares = sorted((record["of_promised"] for record in group), reverse=True)
        yield {
            "summary": f"{layer}, {part} of the bytes, {tokens} tokens",
            "operators": len(group),
            "best_of_promised": shares[0],
            "fifth_of_promised": shares[min(4, len(shares) - 1)],
            "median_of_promised": statistics.median(shares),
            "over_pytorch": round(math.exp(statistics.fmean(math.log(r["over_pytorch"]) for r in group)), 3),
            "error": max(record["error"] for record in group),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=read_positive, default=25, help="operators for each layer and part")
    parser.add_argument("--by", choices=("chance", "prediction"), default="chance", help="how they are chosen")
    parser.add_argument("--tokens", type=read_positives, default=[1, 16, 512])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=read_positive, default=4)
    parser.add_argument("--calls", type=read_positive, default=40, help="calls in a round, over the number of tokens")
    parser.add_argument("--compiled", action="store_true", help="PyTorch's code by torch.compile, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    titles = get_titles(get_families())
    records = []
    candidates = list(list_candidates(options.seed))
    for layer, part, tokens in itertools.product(LAYERS, PARTS, options.tokens):
        chosen = (
            choose_fastest(layer, part, candidates, tokens)
            if options.by == "prediction"
            else draw(layer, part, candidates)
        )
        for candidate, structure, binding in itertools.islice(chosen, options.count):
            record = {
                "layer": "x".join(map(str, layer)),
                "part": str(part),
                "tokens": tokens,
                "by": options.by,
                "operator": candidate.key,
                "family": titles.get(structure.pattern, ""),
                "structure": str(structure),
                "b": binding["b"],
                "R": binding["R"],
            }
            record |= measure_operator(layer, candidate.operator, structure, binding, tokens, options)
            print(json.dumps(record), flush=True)
            records.append(record)
    for summary in summarize(records):
        print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    sys.exit(main())
