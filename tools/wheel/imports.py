#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports kas, torch, torch-mlir and jax in each order, and uses each of them after that; for tools/wheel.sh.

All have an LLVM of their own: where one takes another's symbols, the process ends.
"""

import itertools
import subprocess
import sys

USES = {
    "kas": '''
binding = {"N": 1, "Cin": 4, "Cout": 8, "H": 9, "W": 9, "k": 3}
conv = kas.operator("conv2d")
x = numpy.random.default_rng(0).standard_normal((1, 4, 9, 9), dtype=numpy.float32)
w = numpy.random.default_rng(1).standard_normal((8, 4, 3, 3), dtype=numpy.float32)
assert numpy.allclose(conv.compile(binding)(x, w), conv.evaluate(binding, x, w), atol=1e-4)
''',
    "torch": '''
assert torch.allclose(torch.relu(torch.full((3,), -1.0)), torch.zeros(3))
''',
    "torch_mlir.ir": '''
with torch_mlir.ir.Context(), torch_mlir.ir.Location.unknown():
    assert "module" in str(torch_mlir.ir.Module.parse("module {}"))
''',
    "jax": '''
assert numpy.allclose(jax.jit(lambda a: jax.numpy.tanh(a) @ a.T)(jax.numpy.ones((3, 4))), 4 * numpy.tanh(1.0))
''',
}  # fmt: skip


def main() -> None:
    failed = 0
    for order in itertools.permutations(USES):
        for uses in (order, order[::-1]):
            lines = ["import numpy", *(f"import {name}" for name in order), *(USES[name] for name in uses)]
            done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
            if done.returncode:
                failed += 1
                print(
                    f"{', '.join(order)}; used as {', '.join(uses)}: exit code {done.returncode}\n{done.stderr[-2000:]}"
                )
    print(f"kas: 24 orders of imports, 2 of uses each: {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
