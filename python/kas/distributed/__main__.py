# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m kas.distributed`: the table of research/reports/distributed-search.md."""

from ._simulation import main

main()
