# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stand-in for CUDA's driver (test/unittests/Runtime) in this process, and tensors that say they are on a GPU.

Its memory is that of the host, so tensors of the host with the face of CUDA tensors are where the driver would look.
Nothing of this has run on a GPU.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import re

import torch

FILE = pathlib.Path(os.environ.get("KAS_BUILD", "build"), "lib/libkas-cuda-stand-in.so").resolve()
_TEXT, _INT = ctypes.CFUNCTYPE(ctypes.c_char_p), ctypes.CFUNCTYPE(ctypes.c_int)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)


class _Controls(ctypes.Structure):
    """The beginning of `StandInControls` in test/unittests/Runtime/StandIn.h."""

    _fields_ = (
        ("reset", ctypes.CFUNCTYPE(None)),
        ("fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)),
        ("has_failed", ctypes.CFUNCTYPE(ctypes.c_bool)),
        ("hide", ctypes.CFUNCTYPE(None, ctypes.c_char_p)),
        ("count_calls", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)),
        ("get_log", _TEXT),
        ("get_violations", _TEXT),
        ("count_live", _INT),
        ("set_kernel", ctypes.CFUNCTYPE(None, ctypes.c_char_p, _KERNEL)),
        ("add_stream", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("add_memory", ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_size_t)),
    )


class StandIn:
    """The driver of this process, from now on."""

    def __init__(self) -> None:
        os.environ["KAS_RT_LIBCUDA"] = str(FILE)
        library = ctypes.CDLL(str(FILE))
        self.controls = ctypes.POINTER(_Controls).in_dll(library, "standInControls").contents
        self.controls.reset()
        self._kernels: list[object] = []

    def add_stream(self, handle: int) -> None:
        self.controls.add_stream(handle)

    def set_kernel(self, name: str, compute) -> None:
        """`compute` takes the addresses of the kernel's buffers."""

        def call(parameters, grid, block) -> None:
            compute(lambda position: ctypes.c_uint64.from_address(parameters[position]).value)

        self._kernels.append(_KERNEL(call))
        self.controls.set_kernel(name.encode(), self._kernels[-1])

    def find_calls(self, function: str) -> list[str]:
        """The arguments of the calls of a function, in order."""
        log = self.controls.get_log().decode()
        return re.findall(rf"^{function}\((.*?)\)", log, re.MULTILINE)

    @property
    def violations(self) -> str:
        return self.controls.get_violations().decode()


def read(address: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The elements at an address, as a tensor with the same memory."""
    width = torch.empty((), dtype=dtype).element_size()
    return torch.frombuffer((ctypes.c_char * (count * width)).from_address(address), dtype=dtype)


class CudaTensor(torch.Tensor):
    """A tensor of the host that says it is on `cuda:0`."""

    host: torch.Tensor

    @staticmethod
    def __new__(cls, host: torch.Tensor, device: str = "cuda:0") -> CudaTensor:
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, host.shape, strides=host.stride(), dtype=host.dtype, device=device
        )
        tensor.host = host
        return tensor

    def data_ptr(self) -> int:
        return self.host.data_ptr()

    def is_contiguous(self, *arguments, **named) -> bool:
        return self.host.is_contiguous()

    def __repr__(self, **named) -> str:
        return f"CudaTensor({self.host})"

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        def to_host(value):
            return value.host if isinstance(value, CudaTensor) else value

        named = {name: value for name, value in (named or {}).items() if name != "device"}
        flat = torch.utils._pytree.tree_map(to_host, (arguments, named))
        found = function(*flat[0], **flat[1])
        if torch.Tag.inplace_view in function.tags or function._schema.is_mutable:
            return arguments[0]
        return torch.utils._pytree.tree_map(lambda v: CudaTensor(v) if isinstance(v, torch.Tensor) else v, found)
