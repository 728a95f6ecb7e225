# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instruction sets to measure by on a processor that has more: what kas compiles for, and what limits the others.

ONNX Runtime cannot be limited, nor OpenVINO's linear layers: oneDNN, and with it PyTorch and OpenVINO's convolutions,
is what is to be compared with then.
"""

import os
import sys
from pathlib import Path

# As the option --isa names them: the CPU that kas compiles for (none: the host), and what oneDNN and PyTorch read.
CPUS = {"native": "", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}
LIMITS = {
    "native": {},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "DNNL_MAX_CPU_ISA": "AVX512_CORE", "ATEN_CPU_CAPABILITY": "avx512"},
}


def add_option(parser):
    parser.add_argument(
        "--isa",
        choices=list(CPUS),
        default="native",
        help="the widest instruction set of kas, PyTorch and OpenVINO's convolutions; others cannot be limited",
    )


def restart_limited(isa):
    """Starts this program again under the limits, which libraries read when they are loaded."""
    if any(os.environ.get(name) != value for name, value in LIMITS[isa].items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **LIMITS[isa]})


def list_unlimited(isa, linear_share, flags=None):
    """The peers that use more than `isa` on a processor with these flags; none: those of this one.

    `linear_share` is how much of a network's or operator's products are those of linear layers. These are MLAS's in
    OpenVINO (`gemm_mlas_f32` of its runtime model), as all are in ONNX Runtime: a tenth of them is enough to decide.
    """
    flags = read_flags() if flags is None else flags
    if isa != "avx2" or "avx512f" not in flags:
        return []
    return ["onnxruntime", "openvino"] if linear_share > 0.1 else ["onnxruntime"]


def read_flags():
    """The extensions that the processor has, as Linux names them; none on other systems."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
