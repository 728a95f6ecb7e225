# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`kas-research bench1`."""

import sys

from ._command import main

if __name__ == "__main__":
    sys.exit(main())
