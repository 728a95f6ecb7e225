# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of research/peers/peers.py: what is measured (cases, searched, networks), by whom (workers), and how."""
