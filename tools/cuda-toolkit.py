#!/usr/bin/env python3
"""Prints the folder of the CUDA toolkit that tests assemble kernels with.

That is what tools/cuda.sh installed, what CUDA_ROOT, CUDA_HOME or CUDA_PATH say, the one of ptxas in PATH, or
/usr/local/cuda. Exit code 1 where there is none.
"""

import os
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def find():
    """The first folder with a ptxas and libdevice, or None."""
    folders = [os.path.join(ROOT, "build", "cuda", "toolkit")]
    folders += [os.environ[name] for name in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    in_path = shutil.which("ptxas")
    if in_path:
        folders.append(os.path.dirname(os.path.dirname(os.path.realpath(in_path))))
    folders.append("/usr/local/cuda")
    for folder in folders:
        if all(os.path.exists(os.path.join(folder, file)) for file in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc")):
            return folder
    return None


if __name__ == "__main__":
    toolkit = find()
    if not toolkit:
        sys.exit(
            "no CUDA toolkit: looked in build/cuda/toolkit, CUDA_ROOT, CUDA_HOME, CUDA_PATH, PATH and /usr/local/cuda"
        )
    print(toolkit)
