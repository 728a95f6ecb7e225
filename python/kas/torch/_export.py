# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks as MLIR, by torch-mlir."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, NamedTuple

import torch
from torch import nn

from .._errors import need
from .._module import Module
from ._modules import KasModule


class Exported(NamedTuple):
    """A network as MLIR."""

    module: Module
    """A module with one function, `@forward`, in linalg on tensors: of the data and all parameters and buffers."""
    tensors: dict[str, torch.Tensor]
    """The arguments after the data, in their order, by their names (`kas.name`)."""


class _Lifted(nn.Module):
    """A network as a function of its data and of its parameters."""

    def __init__(self, network: nn.Module, names: list[str], count: int):
        super().__init__()
        # In a tuple, where PyTorch does not look for parameters.
        self.network = (network,)
        self.names = names
        self.count = count

    def forward(self, *arguments: torch.Tensor) -> Any:
        values = dict(zip(self.names, arguments[self.count :]))
        return torch.func.functional_call(self.network[0], values, arguments[: self.count])


def _prepare(model: nn.Module, fold_batch_norms: bool) -> nn.Module:
    """A copy in evaluation mode, operators as PyTorch code, batch norms folded into the weights before them."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        if isinstance(module, KasModule):
            module.backend = module.chosen = "pytorch"
            module._make_functions()
    if fold_batch_norms and any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in model.modules()):
        from torch.fx.experimental.optimization import fuse

        try:
            model = fuse(model)
        except Exception as error:
            raise ValueError(
                f"batch norms cannot be folded, since the network cannot be traced ({error}); use "
                "fold_batch_norms=False"
            ) from error
    return model


def to_mlir(model: nn.Module, example: Any, *, fold_batch_norms: bool = True) -> Exported:
    """The network in evaluation mode as MLIR (linalg on tensors), by torch-mlir, for data of the shapes of `example`.

    No weights are inside: parameters and buffers are arguments that say their names, so that `kas-extract` finds the
    layers: `exported.module.run("kas-extract")`. `exported.module.compile("forward")` compiles it; the function takes
    the data and `exported.tensors`.

    Raises `kas.MissingExtraError` without torch-mlir, `ValueError` when it cannot express the network.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, got {type(model).__name__}")
    need("torch_mlir", "torch-mlir")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch_mlir import fx as importer

    data = tuple(example) if isinstance(example, (list, tuple)) else (example,)
    network = _prepare(model, fold_batch_norms)
    tensors = {name: tensor.detach() for name, tensor in network.named_parameters()}
    # Evaluation never reads how many batches there were.
    tensors |= {name: value for name, value in network.named_buffers() if not name.endswith("num_batches_tracked")}
    lifted = _Lifted(network, list(tensors), len(data)).eval()
    fast_path = torch.backends.mha.get_fastpath_enabled()
    try:
        # Attention as products and a softmax.
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            text = str(
                importer.export_and_import(
                    lifted, *data, *tensors.values(), output_type="linalg-on-tensors", func_name="forward"
                )
            )
    except Exception as error:
        raise ValueError(f"torch-mlir cannot express this network: {type(error).__name__}: {error}") from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
    return Exported(Module(_name_arguments(text, len(data), list(tensors)), "<network>"), tensors)


def _name_arguments(text: str, num_data: int, names: list[str]) -> str:
    inputs = ["input"] + [f"input{index}" for index in range(1, num_data)]
    start = text.index("func.func @forward(")
    end = text.index("{", text.index("->", start))
    arguments, count = re.subn(
        r"(%arg(\d+): tensor<[^>]*>)",
        lambda match: f"{match[1]} {{kas.name = {json.dumps((inputs + names)[int(match[2])], ensure_ascii=False)}}}",
        text[start:end],
    )
    if count != len(inputs) + len(names):
        raise ValueError(f"torch-mlir made a function of {count} arguments, expected {len(inputs) + len(names)}")
    return text[:start] + arguments + text[end:]
