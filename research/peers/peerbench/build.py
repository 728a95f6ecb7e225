# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles cases with the tools of kas to shared objects, and the kernel that measures the machine."""

import functools
import hashlib
import os
import subprocess
from pathlib import Path

from .isa import CPUS

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


def build_kas(tools, case, directory, threads, isa="native"):
    """directory/kas.so for the case, and kas-NAME.so for what else it has."""
    build_object(tools, case.mlir, directory, "kas", threads, isa)
    for name, (text, _) in case.others.items():
        build_object(tools, text, directory, f"kas-{name}", threads, isa)


def build_object(tools, text, directory, name, threads, isa):
    """Nothing is done where it is there for the same text and the same tools."""
    # The pipeline may change: what it makes of the text is the key.
    options = f"-kas-cpu-pipeline=threads={threads} prepack-weights=true"
    if CPUS[isa]:
        options += f" cpu={CPUS[isa]}"
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


def build_machine(work, isa):
    """The kernel that measures the machine, with the vectors of the set."""
    source, target, stamp = HERE / "machine.c", work / "machine.so", work / "machine.key"
    key = f"{file_hash(source)} {isa}"
    if not target.exists() or not stamp.exists() or stamp.read_text() != key:
        target.unlink(missing_ok=True)
        march = f"-march={CPUS[isa] or 'native'}"
        run([COMPILER, "-O3", march, "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", target])
        stamp.write_text(key)
    return target
