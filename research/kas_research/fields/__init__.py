# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers for fields, such as solutions of differential equations, at equal milliseconds.

The page research/guide/fields.md is the protocol.
"""
