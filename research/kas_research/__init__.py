# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Experiments with kas: benchmarks, studies, comparisons. Nothing of the package kas imports it."""
