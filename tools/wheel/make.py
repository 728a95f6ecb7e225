#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs package and programs of the build tree in a wheel, with what they use of MLIR and LLVM; for tools/wheel.sh."""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WHEEL = BUILD / "wheel"
PROGRAMS = ("kas-opt", "kas-run", "kas-train", "kas-tune", "kas-translate", "kas-search-db", "kas-lsp-server")
SHARED = ("libMLIR.so", "libLLVM.so")
"""What the build tree links to; `RUNTIME` takes its place."""
RUNTIME = "libkas_llvm.so"
EXTENSION = BUILD / "python-stable/kas/_kas.abi3.so"
TAG = f"cp310-abi3-linux_{platform.machine()}"
BACKEND = "nanobind-backend>=1.0,<2"
"""What depends on the version of Python."""
CONTENT = ("libMLIRIR.a", "libLLVMCore.a", "libomp.so.5")
"""Files of LLVM's folder that show from which Debian packages the wheel has code, beside those that auditwheel adds."""
ADDED = ("libsqlite3.so.0", "libzstd.so.1")
"""What auditwheel adds."""
TARGETS = ("AArch64", "NVPTX", "RISCV", "X86")
"""What kas compiles for, as LLVM calls it. MLIR asks for all of LLVM's targets, of which the others stay out."""
LAUNCHER = '''#!python
"""Runs {name} of the package."""
import importlib.util
import os
import sys

# Without importing the package, which would load all of it.
spec = importlib.util.find_spec("kas")
if spec is None or not spec.submodule_search_locations:
    sys.exit("error: requires the package kas, got none")
program = os.path.join(spec.submodule_search_locations[0], "bin", "{name}")
os.execv(program, ["{name}", *sys.argv[1:]])
'''


def run(*command: object, **options: object) -> str:
    """The output of a command; ends the program where that fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"error: {command[0]} requires exit code 0, got {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def get_llvm_folder() -> Path:
    cache = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(r"^MLIR_DIR:\w+=(.*)/cmake/mlir$", cache, re.MULTILINE)
    if not found:
        sys.exit("error: requires MLIR_DIR in build/CMakeCache.txt, got none")
    return Path(found.group(1))


def list_symbols(kind: str, *files: Path) -> set[str]:
    lines = run("nm", "-D", kind, "--format=posix", *files).splitlines()
    return {line.split()[0].split("@")[0] for line in lines if " " in line}


def link_runtime(binaries: list[Path], output: Path) -> None:
    """One library with the sections of MLIR and LLVM that `binaries` need, under the versions of the shared ones.

    Seen are the symbols that the binaries need and those that they have, too, as type IDs have to be the same objects
    in it and in the binaries. No other LLVM in the process is meant by them: they have a version, and the file has a
    name of its own.
    """
    folder = get_llvm_folder()
    shared = [next(folder.glob(f"{name}.*")) for name in SHARED]
    defined = list_symbols("--defined-only", *shared)
    needed = sorted(list_symbols("--undefined-only", *binaries) & defined)
    exported = sorted({*needed, *(list_symbols("--defined-only", *binaries) & defined)})
    others = re.compile(rf"LLVMInitialize(?!{'|'.join(TARGETS)})\w+(Info|MC|Target|Printer|Parser|Disassembler)")
    targets = output.with_suffix(".cpp")
    targets.write_text(
        "".join(f'extern "C" void {name}() {{}}\n' for name in sorted(defined) if others.fullmatch(name))
    )
    archives = sorted(file for pattern in ("libMLIR*.a", "libLLVM*.a") for file in folder.glob(pattern))
    # With main functions, or needing what Debian does not ship.
    archives = [file for file in archives if not re.search(r"gtest|_main|Exegesis|TableGen|MLIRCAPI.*Test", file.name)]
    version = re.search(r"@@?(LLVM_[\d.]+)", run("nm", "-D", "--defined-only", shared[1]))
    if not version:
        sys.exit(f"error: requires versions of symbols in {shared[1]}, got none")
    script = output.with_suffix(".map")
    names = "".join(f'"{name}";\n' for name in exported)
    script.write_text(f"{version.group(1)} {{ global:\n{names}local: *; }};\n")
    response = output.with_suffix(".rsp")
    response.write_text("".join(f"-Wl,-u,{name}\n" for name in needed) + "".join(f"{file}\n" for file in archives))
    run(
        "clang++-22", "-shared", "-fuse-ld=lld", "-o", output, targets, f"@{response}",
        f"-Wl,--version-script={script}", f"-Wl,-soname,{output.name}", "-Wl,--gc-sections",
        "-Wl,-Bsymbolic-functions,--strip-all,--build-id=none,-z,defs",
        "-l:libz.so.1", "-l:libzstd.so.1", "-lm", "-ldl", "-lpthread",
    )  # fmt: skip


def use_runtime(binary: Path) -> None:
    """Lets a binary look for `RUNTIME` where it looked for the shared libraries, by no path of its own.

    The length of such a path would be seen in the file, in other folders in another one.
    """
    needed = run("patchelf", "--print-needed", binary).split()
    replace = [name for name in needed if name.startswith(SHARED)]
    options = [option for name in replace for option in ("--replace-needed", name, RUNTIME)]
    run("strip", "--strip-all", binary)
    run("patchelf", *options, "--remove-rpath", binary)


def stage(folder: Path) -> list[Path]:
    """Copies the package, the extension and the programs; the binaries among them."""
    shutil.copytree(BUILD / "python/kas", folder / "kas", ignore=shutil.ignore_patterns("__pycache__", "_kas*.so"))
    shutil.copy2(EXTENSION, folder / "kas")
    programs = folder / "kas/bin"
    programs.mkdir()
    for name in PROGRAMS:
        shutil.copy2(BUILD / "bin" / name, programs / name)
    # Compiled code with more than one thread loads it; it is no dependency that auditwheel could see.
    (folder / "kas/lib").mkdir()
    shutil.copy2(get_llvm_folder() / "libomp.so.5", folder / "kas/lib")
    return [*folder.glob("kas/_kas*.so"), *sorted(programs.iterdir())]


def write_metadata(folder: Path) -> Path:
    """The metadata of pyproject.toml, as pip would make them, and what starts the programs."""
    from scikit_build_core.build import prepare_metadata_for_build_wheel

    place = os.getcwd()
    os.chdir(ROOT)
    try:
        info = folder / prepare_metadata_for_build_wheel(str(folder))
    finally:
        os.chdir(place)
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: kas\nRoot-Is-Purelib: false\nTag: {TAG}\n")
    metadata = (info / "METADATA").read_text()
    (info / "METADATA").write_text(
        metadata.replace("\nRequires-Dist:", f"\nRequires-Dist: {BACKEND}\nRequires-Dist:", 1)
    )
    (info / "RECORD").unlink(missing_ok=True)
    scripts = folder / info.name.replace(".dist-info", ".data") / "scripts"
    scripts.mkdir(parents=True)
    for name in PROGRAMS:
        (scripts / name).write_text(LAUNCHER.format(name=name))
        (scripts / name).chmod(0o755)
    return info


def write_contents(info: Path) -> None:
    """Of which packages of Debian the wheel has code (CycloneDX, beside auditwheel's own list), and their licences."""
    folder = get_llvm_folder()
    added = (Path(run("clang++-22", f"-print-file-name={name}").strip()) for name in ADDED)
    components = []
    for file in (*(folder / name for name in CONTENT), *added):
        package = run("dpkg", "-S", os.path.realpath(file)).split(":")[0]
        version = run("dpkg-query", "--show", "--showformat=${Version}", package).strip()
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", info / "licenses" / f"{package}.txt")
        if file.name in CONTENT:
            name = {"name": package, "version": version, "purl": f"pkg:deb/debian/{package}@{version}"}
            components.append({"type": "library", **name})
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1, "components": components}
    (info / "sboms").mkdir(exist_ok=True)
    (info / "sboms/kas.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list-programs", action="store_true", help="print the programs that the wheel has")
    arguments = parser.parse_args()
    if arguments.list_programs:
        print("\n".join(PROGRAMS))
        return
    shutil.rmtree(WHEEL, ignore_errors=True)
    folder, libraries, plain = (WHEEL / name for name in ("stage", "libraries", "plain"))
    for directory in (folder, libraries, plain):
        directory.mkdir(parents=True)
    binaries = stage(folder)
    link_runtime(binaries, libraries / RUNTIME)
    for binary in binaries:
        use_runtime(binary)
    write_contents(write_metadata(folder))
    for directory, _, files in os.walk(folder):
        for name in (directory, *(os.path.join(directory, file) for file in files)):
            os.utime(name, (int(os.environ["SOURCE_DATE_EPOCH"]),) * 2)
    run("wheel", "pack", "--dest-dir", plain, folder)
    # Adds the other libraries of the system, and says from which glibc on all of it works.
    os.environ["LD_LIBRARY_PATH"] = str(libraries)
    run("auditwheel", "repair", "--wheel-dir", WHEEL, *plain.glob("*.whl"))
    (wheel,) = WHEEL.glob("*.whl")
    print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
