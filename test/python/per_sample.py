# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that compute the samples of a batch one by one, for the tests of parts and of any size."""

from __future__ import annotations

import torch

ASSERTION = """
#row = affine_map<(n, c) -> (n, c)>
func.func @forward(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %y = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %large = arith.cmpf oge, %a, %zero : f32
    cf.assert %large, "requires numbers of at least 0"
    linalg.yield %a : f32
  } -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
"""


class Tokens(torch.nn.Module):
    """Attention over the pixels of an image, and norms of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        scores = torch.softmax(q @ k.transpose(1, 2), dim=-1)
        return x + self.out(scores @ v)
