# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of `kas.accelerate`."""

from .._errors import need

need("torch", "torch")

from ._outcome import Accelerated
from ._run import accelerate

__all__ = ["Accelerated", "accelerate"]
