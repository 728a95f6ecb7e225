# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors as exceptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

from . import _kas


class Diagnostic(NamedTuple):
    """One message of MLIR. `severity` is error, warning, remark or note; `location` may be empty."""

    severity: str
    location: str
    message: str

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.severity}: {self.message}"


class Error(Exception):
    """A call into the compiler failed. `diagnostics` says why, in the order of their occurrence."""

    def __init__(self, diagnostics: Sequence[tuple[str, str, str]] | str):
        if isinstance(diagnostics, str):
            diagnostics = [("error", "", diagnostics)]
        self.diagnostics = [Diagnostic(*entry) for entry in diagnostics]
        super().__init__("\n".join(str(entry) for entry in self.diagnostics) or "the call failed without a reason")

    def __reduce__(self) -> tuple[type[Error], tuple[list[Diagnostic]]]:
        return type(self), (self.diagnostics,)


@contextlib.contextmanager
def as_value_error() -> Iterator[None]:
    """Makes a `ValueError` of an `Error` about an argument."""
    try:
        yield
    except Error as error:
        raise ValueError(error.diagnostics[0].message) from error


class MissingExtraError(ImportError):
    """A part of kas needs a package that is not installed."""


def need(module: str, extra: str) -> ModuleType:
    """Imports `module`, which the extra `extra` installs."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this part of kas needs the package '{module}', which is not installed; "
            f"install it by: pip install 'kas[{extra}]'"
        ) from error


_kas.set_error_class(Error)
