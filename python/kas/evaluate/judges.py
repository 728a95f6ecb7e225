# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The former name of `kas.evaluate.proxies`, for one release."""

import warnings
from typing import Any

from . import proxies

warnings.warn("kas.evaluate.judges is now called kas.evaluate.proxies", DeprecationWarning, stacklevel=2)


def __getattr__(name: str) -> Any:
    return getattr(proxies, name)
