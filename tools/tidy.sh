#!/usr/bin/env bash
# Runs clang-tidy on lib and tools; a finding is an error.
# usage: tools/tidy.sh [REGEX]       only the sources whose path matches REGEX
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# The preset without precompiled headers: a source that relies on them is a finding.
tools/setup.sh --package=clang-tidy-22 --preset=asan kas-headers
run-clang-tidy-22 -quiet -p build-asan -warnings-as-errors='*' "^(?=.*(${1:-}))$root/(lib|tools)/"
