#!/usr/bin/env bash
# Runs clang-tidy on lib and tools; a finding is an error.
# usage: tools/tidy.sh [REGEX]       only the sources whose path matches REGEX
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
tools/setup.sh --package=clang-tidy-22 kas-headers
run-clang-tidy-22 -quiet -p build -warnings-as-errors='*' "^(?=.*(${1:-}))$root/(lib|tools)/"
