# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Former names, which work for one release with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed_keyword(former: str, name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the argument `name` may still be given as `former`, with a DeprecationWarning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            if former in named:
                if name in named:
                    raise TypeError(f"'{former}' is the former name of '{name}': expected one of them, got both")
                warnings.warn(f"the argument '{former}' is now called '{name}'", DeprecationWarning, stacklevel=2)
                named[name] = named.pop(former)
            return function(*arguments, **named)

        return call

    return decorate


def renamed_method(former: str, method: Callable[P, R]) -> Callable[P, R]:
    """`method` by its name `former`, with a DeprecationWarning."""

    @functools.wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        warnings.warn(f"'{former}' is now called '{method.__name__}'", DeprecationWarning, stacklevel=2)
        return method(*arguments, **named)

    return call
