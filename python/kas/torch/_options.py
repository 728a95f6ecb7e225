# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of `mode=` and `options=` of `torch.compile` for kas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Options(NamedTuple):
    """How graphs are compiled."""

    threads: int = 0
    """Of compiled loops; 0: `torch.get_num_threads()` at each call."""
    precision: str = "f32"
    """What factors of products may be rounded to: `f32`, `bf16`, and on CUDA devices also `tf32` or `f16`."""
    algorithm: str = "auto"
    """How convolutions are computed."""
    bind_calls: bool = False
    """Whether results are written to the memory of earlier ones that nothing refers to any more."""
    tuning_seconds: float = 0.0
    """How long variants of a compiled function may be measured, of which the fastest stays; 0: none is."""
    strict: bool = False
    """Whether it is an error where PyTorch would run something."""
    libraries: str = "auto"
    """On CUDA devices: `auto` lets cuBLASLt and cuDNN compute what they are expected to be faster for, or `none`."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "precision": ("f32", "tf32", "f16", "bf16"),
    "algorithm": ("auto", "direct", "im2col", "spatial-pack", "winograd"),
    "libraries": ("auto", "none"),
}
_MODES: dict[str, dict[str, Any]] = {
    "reduce-overhead": {"bind_calls": True},
    "max-autotune": {"bind_calls": True, "tuning_seconds": 60.0},
    "max-autotune-no-cudagraphs": {"tuning_seconds": 60.0},
}


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _check(name: str, value: Any) -> Any:
    default = getattr(Options(), name)
    if name in _CHOICES:
        if value in _CHOICES[name]:
            return value
        required = f"one of {_quote(_CHOICES[name])}"
    elif isinstance(default, bool):
        if isinstance(value, bool):
            return value
        required = "True or False"
    elif isinstance(value, (int, type(default))) and not isinstance(value, bool) and value >= 0:
        return value
    else:
        required = "a whole number of at least 0" if isinstance(default, int) else "a number of at least 0"
    raise ValueError(f"option '{name}' of the backend kas requires {required}, got {value!r}")


def read_options(mode: str | None, options: Mapping[str, Any] | None) -> Options:
    """The options that a mode stands for, and those given instead; `ValueError` for others, which lists the known."""
    if mode is not None and mode not in MODES:
        raise ValueError(f"the backend kas requires a mode of {_quote(MODES)}, got {mode!r}")
    values = dict(_MODES.get(mode or "default", {}))
    for name, value in (options or {}).items():
        if name not in Options._fields:
            raise ValueError(f"the backend kas requires options of {_quote(Options._fields)}, got {name!r}")
        values[name] = _check(name, value)
    return Options(**values)
