#!/usr/bin/env bash
# Writes docs/reference/passes.md from the descriptions of the passes, or with --check says whether it is up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/reference/passes.md
made=build/docs/reference/passes.md
cmake --build build --target kas-doc
case ${1:-} in
  "") cp "$made" "$page" ;;
  --check)
    if ! diff -u "$page" "$made"; then
      echo "error: $page is not what the pass descriptions give; run tools/docs.sh" >&2
      exit 1
    fi
    ;;
  *) echo "usage: tools/docs.sh [--check]" >&2; exit 2 ;;
esac
