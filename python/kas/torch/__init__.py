# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators in PyTorch: as modules, and in place of the layers of networks.

>>> import kas.torch
>>> module = kas.torch.KasModule(kas.operator("conv2d"), {"N": 8, "Cin": 3, "Cout": 16, "H": 32, "W": 32, "k": 3})
>>> y = module(x)                                               # differentiable
>>> sites = kas.torch.extract(network, x)                       # the layers, and search problems for them
>>> other = kas.torch.substitute(network, operator, sites)      # a copy with the operator in their place
>>> kas.torch.fit(other, network, x)                            # weights that come close to those of the layers
>>> compiled = torch.compile(network, backend="kas")            # compiled by kas
"""

from .._errors import need

need("torch", "torch")

from importlib.metadata import entry_points

from torch._dynamo import register_backend

from .._module import parse_binding
from ._backend import CompiledGraph, backend, explain
from ._export import Exported, to_mlir
from ._fit import fit
from ._kernels import KernelModule
from ._modules import KasModule
from ._scales import WeightScale, parameter_groups, scale_weights, weight_scales
from ._sequences import SequenceModule
from ._sites import Site, Sites, extract, substitute

# For torch.compile(network, backend="kas") in a build tree; where the package is installed PyTorch finds it by itself.
if not entry_points(group="torch_dynamo_backends", name="kas"):
    register_backend(backend, name="kas")

__all__ = [
    "CompiledGraph",
    "Exported",
    "KasModule",
    "KernelModule",
    "SequenceModule",
    "Site",
    "Sites",
    "WeightScale",
    "backend",
    "explain",
    "extract",
    "fit",
    "parameter_groups",
    "parse_binding",
    "scale_weights",
    "substitute",
    "to_mlir",
    "weight_scales",
]
