# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators and networks as ONNX models.

>>> import kas.onnx
>>> binding = {"N": 1, "Cin": 3, "Cout": 16, "H": 32, "W": 32, "k": 3}
>>> model = kas.onnx.export(kas.operator("conv2d"), binding, "conv2d.onnx")     # ONNX Runtime and others run it
>>> model = kas.onnx.export_network(network, example, "network.onnx")           # with operators in its layers
"""

from .._errors import need

need("onnx", "onnx")

from typing import TYPE_CHECKING

from ._export import OPSETS, export
from ._import import Loaded, load
from ._session import InferenceSession

if TYPE_CHECKING:
    from ._network import export_network as export_network
else:

    def __getattr__(name):
        # PyTorch is imported when it is used: operators are exported without it.
        if name == "export_network":
            need("torch", "torch")
            from ._network import export_network

            return export_network
        raise AttributeError(f"module 'kas.onnx' has no attribute '{name}'")


__all__ = ["OPSETS", "InferenceSession", "Loaded", "export", "export_network", "load"]
