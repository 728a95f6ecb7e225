# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of ONNX by PyTorch's functions: `_node.DEFINITIONS` has them once this is imported."""

from . import (
    _control,
    _elements,
    _images,
    _norms,
    _products,
    _quantized,
    _recurrent,
    _reductions,
    _scatter,
    _sequences,
    _shapes,
)

__all__ = [
    "_control",
    "_elements",
    "_images",
    "_norms",
    "_products",
    "_quantized",
    "_recurrent",
    "_reductions",
    "_scatter",
    "_sequences",
    "_shapes",
]
