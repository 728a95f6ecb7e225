# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles cases with the tools of kas to shared objects, and the kernel that measures the machine."""

import functools
import hashlib
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILER = os.environ.get("CC", "clang-22")


@functools.cache
def file_hash(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def run(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, **options)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.decode(errors='replace').strip()[:2000]}")
    return done.stdout


def build_kas(tools, case, directory, threads):
    """directory/kas.so for the case, and kas-NAME.so for what else it has."""
    build_object(tools, case.mlir, directory, "kas", threads)
    for name, (text, _) in case.others.items():
        build_object(tools, text, directory, f"kas-{name}", threads)


def build_object(tools, text, directory, name, threads):
    """Nothing is done where it is there for the same text and the same tools."""
    # The pipeline may change: what it makes of the text is the key.
    options = f"-kas-cpu-pipeline=threads={threads} prepack-weights=true"
    key = hashlib.sha256(
        "|".join([text, options, file_hash(tools / "kas-opt"), file_hash(tools / "kas-translate")]).encode()
    ).hexdigest()
    stamp, target = directory / f"{name}-{threads}.key", directory / f"{name}-{threads}.so"
    if target.exists() and stamp.exists() and stamp.read_text() == key:
        return
    stamp.unlink(missing_ok=True)
    source, lowered, module = directory / f"{name}.mlir", directory / f"{name}.llvm.mlir", directory / f"{name}.o"
    source.write_text(text)
    run([tools / "kas-opt", source, options, "-o", lowered])
    run([tools / "kas-translate", "-kas-to-object", lowered, "-o", module])
    # A new name: a process may have the old file open.
    target.unlink(missing_ok=True)
    run([COMPILER, "-shared", module, "-o", target, "-lm", *(["-fopenmp"] if threads != 1 else [])])
    stamp.write_text(key)


def build_machine(work):
    source, target = HERE / "machine.c", work / "machine.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        run([COMPILER, "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", target])
    return target
