# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A part of the work, for one of several machines or processes."""

import argparse


def read_part(text: str) -> tuple[int, int]:
    """I and N of the text I/N; an error of the command line where there is no such part."""
    first, _, count = text.partition("/")
    if not (first.isdigit() and count.isdigit() and 1 <= int(first) <= int(count)):
        raise argparse.ArgumentTypeError(f"requires I/N with 1 <= I <= N, got '{text}'")
    return int(first), int(count)
