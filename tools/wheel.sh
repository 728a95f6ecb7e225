#!/usr/bin/env bash
# Makes a wheel that needs nothing but Python: the package, the programs, and MLIR and LLVM in one library.
set -euo pipefail

usage() {
  cat <<'END_OF_USAGE'
usage: tools/wheel.sh [--test | --imports | --help]

Builds the package and the programs in build/ (tools/setup.sh is to have run before), links what they use of MLIR and
LLVM from the archives of Debian's packages into one library, and packs all of that in build/wheel/kas-*.whl: for CPython
3.10 and later on x86-64, with the glibc of this system or a later one. The same sources and tools give the same file,
bit by bit.

  --test     installs the wheel that was made in a fresh environment, and compiles and runs operators there
  --imports  imports the package beside torch, torch-mlir and jax in each order, and uses all of them (1.5 GB are installed)
  --help     shows this text
END_OF_USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
case ${1:-} in
  "") ;;
  --test) exec tools/wheel/test.sh ;;
  --imports)
    # Its own environment, kept: the wheel is installed again in each call.
    [[ -e $(echo build/wheel/kas-*.whl) ]] ||
      { echo "error: requires build/wheel/kas-*.whl, got none: run tools/wheel.sh first" >&2; exit 1; }
    python=$(tools/python.sh --requirements=tools/wheel/requirements-imports.txt | tail -n 1)
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps build/wheel/kas-*.whl
    "$python" -m pip install --quiet --disable-pip-version-check build/wheel/kas-*.whl
    exec env -u PYTHONPATH "$python" tools/wheel/imports.py
    ;;
  --help) usage; exit 0 ;;
  *) echo "error: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac

[[ -e build/build.ninja ]] || { echo "error: there is no build tree in 'build': run tools/setup.sh first" >&2; exit 1; }
tools/python.sh >/dev/null
packers=$(tools/python.sh --requirements=tools/wheel/requirements.txt | tail -n 1)
mapfile -t programs < <("$packers" tools/wheel/make.py --list-programs)
cmake --build build --target kas-python KasStableExtension "${programs[@]}" >&2
# Of the last commit, so that the same sources give the same file.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
PATH=$(dirname "$packers"):$PATH "$packers" tools/wheel/make.py
