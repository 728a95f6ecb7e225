# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C compiler of the tests: the one that kas is built with, which tools/setup.sh installs, or the system's."""

import shutil

C_COMPILER = shutil.which("clang-22") or "cc"
