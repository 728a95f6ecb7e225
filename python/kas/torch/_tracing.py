# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recording what PyTorch computes, in processes with several threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def trace_alone() -> Iterator[None]:
    """While no other thread traces or compiles, be it by PyTorch.

    Tracing replaces methods of `nn.Module` for all threads, and PyTorch refuses compiled networks while it lasts but in
    a compilation. So its lock of compilations is taken, and that one goes on is said, as it does for its own backends.
    """
    from torch._dynamo.convert_frame import compile_lock

    # Of PyTorch 2.13; older ones do not ask.
    say = getattr(torch.compiler, "_compile_session_context", contextlib.nullcontext)
    with compile_lock, say():
        yield
