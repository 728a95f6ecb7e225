# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small networks that the tests of several doors compile."""

from __future__ import annotations

from torch import nn
from torch.nn import functional


class Images(nn.Module):
    """Images `[N, 3, H, W]` to five scores: convolutions, one of them depthwise with a residual, and a batch norm."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x))), 2)
        return self.head((x + functional.gelu(self.depthwise(x))).mean((2, 3)))
