# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m kas_research`: the command `kas-research`."""

import sys

from .cli import main

sys.exit(main())
