# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What options of command lines take: types for argparse."""

import argparse


def read_part(text: str) -> tuple[int, int]:
    """Part I of N, for one of several machines or processes, of the text I/N, else an error of the command line."""
    first, _, count = text.partition("/")
    if not (first.isdigit() and count.isdigit() and 1 <= int(first) <= int(count)):
        raise argparse.ArgumentTypeError(f"requires I/N with 1 <= I <= N, got '{text}'")
    return int(first), int(count)


def read_positive(text: str) -> int:
    """An integer of at least 1, else an error of the command line."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"requires an integer of at least 1, got '{text}'")
    return int(text)


def read_positives(text: str) -> list[int]:
    """Integers of at least 1, with commas between them."""
    return [read_positive(part) for part in text.split(",")]
