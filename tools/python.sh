#!/usr/bin/env bash
# Makes the Python environment of the tests and builds the Python package in a build tree; or makes another environment.
set -euo pipefail

usage() {
  cat <<'END_OF_USAGE'
usage: tools/python.sh [--preset=NAME] [--environment-only] [--requirements=FILE] [--help]

Installs what python/requirements.txt names in a virtual environment, once: it is kept in the cache folder, which is
$KAS_PYTHON_CACHE, or kas in $XDG_CACHE_HOME or in ~/.cache. Then builds the package in python/ of the build tree, which
tools/setup.sh has made before. The last line that is printed is the environment's interpreter.

  --preset=NAME        the build tree: release (default, in build/) or debug (in build-debug/)
  --report             with what `kas report` needs alone, where the environment of all is not there yet
  --environment-only   stops after the environment
  --requirements=FILE  the environment of these packages instead, and nothing else
  --help               shows this text
END_OF_USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
environment_only=0
report=0
requirements=$root/python/requirements.txt
for argument in "$@"; do
  case $argument in
    --preset=release) ;;
    --preset=debug) build=$root/build-debug ;;
    --preset=*) echo "error: --preset must be release or debug, got '${argument#*=}'" >&2; exit 2 ;;
    --report) report=1 ;;
    --environment-only) environment_only=1 ;;
    --requirements=*) requirements=$(realpath -m -- "${argument#*=}") environment_only=1 ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

[[ -r $requirements ]] || { echo "error: --requirements must be a file that can be read, got '$requirements'" >&2; exit 2; }
cache=${KAS_PYTHON_CACHE:-${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/kas}
version=$(python3 -c 'import sys; print(f"{sys.version_info.major}.{sys.version_info.minor}")')

# The folder of the environment with the packages of a file.
get_environment() {
  local hash
  hash=$({ cat "$1"; python3 -c 'import sys; print(sys.version, sys.executable)'; } | sha256sum | cut -c 1-12)
  echo "$cache/python$version-$hash"
}

environment=$(get_environment "$requirements")
if [[ $report == 1 && ! -e $environment/complete ]]; then
  requirements=$root/python/requirements-report.txt
  environment=$(get_environment "$requirements")
fi

# Another process may make it at the same time; pip may go on after a script that was killed.
mkdir -p "$cache"
exec 9>"$cache/lock"
if ! flock -n 9; then
  echo "kas: waiting for another process that installs Python packages and holds $cache/lock" >&2
  flock 9
fi
if [[ ! -e $environment/complete ]]; then
  echo "kas: installing the Python packages of ${requirements#"$root/"} in $environment" >&2
  # What an interrupted call has left is of no use.
  rm -rf "$environment"
  start=$SECONDS
  python3 -m venv "$environment" >&2
  if ! "$environment/bin/python" -m pip install --disable-pip-version-check -q -r "$requirements" >&2; then
    {
      echo "error: the Python packages of ${requirements#"$root/"} could not be installed (see above)"
      echo "note: they come from the package index that pip is configured for (PyPI): is it reachable from here?"
      echo "note: KAS_PYTHON=skip lets tools/check.sh go on without the Python tests"
    } >&2
    rm -rf "$environment"
    exit 1
  fi
  touch "$environment/complete"
  echo "kas: Python packages $((SECONDS - start)) s" >&2
fi
flock -u 9

python=$environment/bin/python
if [[ $environment_only == 0 ]]; then
  if ! grep -qs "^Python_EXECUTABLE:[A-Z]*=$python\$" "$build/CMakeCache.txt" ||
    ! grep -qs '^KAS_ENABLE_PYTHON:BOOL=ON$' "$build/CMakeCache.txt"; then
    cmake -S "$root" -B "$build" -DKAS_ENABLE_PYTHON=ON "-DPython_EXECUTABLE=$python" >&2
  fi
  cmake --build "$build" --target kas-python >&2
fi
echo "$python"
