#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what int8 costs the networks by name in accuracy on Fashion-MNIST.

    bytes-accuracy.py > bytes-accuracy.jsonl

A program for the Python of the build (`tools/python.sh`) and Debian's `dataset-fashion-mnist`. Each network of
`kas.zoo` is calibrated by the first 500 training images and computes the 10 000 test images as f32 and with its layers
in int8. One line of JSON for each: both accuracies in percent, and the share of images whose class differs.
"""

from __future__ import annotations

import json

import torch
from torch.nn import functional

import kas
import kas.torch
import kas.zoo
from peerbench.fashionmnist import read_part

BATCH = 500


def classify(module: kas.Module, batches: list[torch.Tensor], weights: list[torch.Tensor]) -> torch.Tensor:
    x, scores = torch.empty_like(batches[0]), torch.empty(BATCH, 10)
    call = module.compile("forward", prepack_weights=True).bind(x, *weights, out=scores)
    call.prepack()
    classes = []
    for batch in batches:
        x.copy_(batch)
        call()
        classes.append(scores.argmax(1))
    return torch.cat(classes)


def measure(name: str) -> dict[str, object]:
    card, network = kas.zoo.card(name), kas.zoo.create(name).eval()
    (calibration, _), (images, labels) = read_part("train"), read_part("t10k")

    def split(pixels: torch.Tensor) -> list[torch.Tensor]:
        return list(card.normalize(functional.pad(pixels * 255, (2, 2, 2, 2))).split(BATCH))

    batches = split(images)
    exported = kas.torch.to_mlir(network, batches[0])
    weights = list(exported.tensors.values())
    f32 = classify(exported.module, batches, weights)
    int8 = classify(kas.quantize(exported.module, split(calibration[:BATCH]), weights), batches, weights)

    def percent(matches: torch.Tensor) -> float:
        return round(100 * matches.float().mean().item(), 2)

    return {
        "network": name,
        "f32": percent(f32 == labels),
        "int8": percent(int8 == labels),
        "differ": percent(f32 != int8),
    }


def main() -> None:
    for name in kas.zoo.list_models("*fashion*"):
        print(json.dumps(measure(name)), flush=True)


if __name__ == "__main__":
    main()
