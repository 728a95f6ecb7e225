# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of a case: read from the bundle, or made as `kas::RandomStream` and `kas::Initializer` make them."""

import functools
import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

MASK = (1 << 64) - 1
CHUNK = 1 << 20


def mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def hash_name(name: str) -> int:
    """FNV-1a of 64 bits."""
    result = 0xCBF29CE484222325
    for byte in name.encode():
        result = ((result ^ byte) * 0x100000001B3) & MASK
    return result


def draw_bits(state: int, first: int, count: int) -> np.ndarray:
    """Words `first` to `first + count - 1` of a stream."""
    with np.errstate(over="ignore"):
        index = np.arange(first + 1, first + count + 1, dtype=np.uint64)
        value = index * np.uint64(0x9E3779B97F4A7C15) + np.uint64(state)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return value ^ (value >> np.uint64(31))


def fill(values: np.ndarray, first: int, kind: str, factor: np.float32, state: int) -> None:
    if kind == "normal":
        parts = draw_bits(state, 3 * first, 3 * len(values)).view(np.uint16).reshape(len(values), 12)
        total = parts.sum(axis=1, dtype=np.int64) - 6 * 65535
        values[:] = factor * (total.astype(np.float32) * np.float32(2**-16))
        return
    uniform = (draw_bits(state, first, len(values)) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
    values[:] = factor * (2 * uniform - 1 if kind == "uniform" else np.float32(0.5) + uniform)


@functools.lru_cache(maxsize=4)
def make(shape: tuple[int, ...], kind: str, factor: float, seed: int, name: str) -> np.ndarray:
    values = np.empty(int(np.prod(shape, dtype=np.int64)), np.float32)
    if kind == "constant":
        values[:] = factor
        return values.reshape(shape)
    state = mix(seed ^ hash_name(name))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(values), CHUNK):
            pool.submit(fill, values[start : start + CHUNK], start, kind, np.float32(factor), state)
    return values.reshape(shape)


class Bundle:
    """The cases in a folder that kas-gpu-pack wrote."""

    def __init__(self, folder):
        self.cases = [json.loads(line) for line in (folder / "cases.jsonl").open()]
        self.data = np.memmap(folder / "data.bin", dtype=np.uint8, mode="r")

    def read(self, case: dict, offset: int, count: int, dtype=np.float32) -> np.ndarray:
        start = case["base"] + offset
        return np.frombuffer(self.data[start : start + count * np.dtype(dtype).itemsize].tobytes(), dtype)

    def get_binary(self, case: dict, program: dict) -> bytes:
        return self.read(case, program["offset"], program["bytes"], np.uint8).tobytes()

    def get_arguments(self, case: dict) -> list[np.ndarray]:
        tensors = []
        for argument in case["arguments"]:
            shape = tuple(argument["shape"])
            if "data" in argument:
                count = int(np.prod(shape, dtype=np.int64))
                tensors.append(self.read(case, argument["data"], count).reshape(shape))
            else:
                tensors.append(make(shape, argument["kind"], argument["factor"], argument["seed"], argument["name"]))
        return tensors

    def compare(self, case: dict, result: np.ndarray) -> tuple[float, bool]:
        """The largest error, relative to the case's scale, and whether it is small enough."""
        expected = case["expected"]
        values = result.reshape(-1)
        if "positions" in expected:
            values = values[self.read(case, expected["positions"], expected["count"], np.uint32)]
        wanted = self.read(case, expected["data"], len(values))
        if not np.isfinite(values).all():
            return float("inf"), False
        error = float(np.abs(values.astype(np.float64) - wanted).max(initial=0)) / (expected["scale"] or 1)
        return error, error <= expected["tolerance"]
