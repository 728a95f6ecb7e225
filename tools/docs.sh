#!/usr/bin/env bash
# Writes the generated pages of docs/, or builds all pages as a site.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/docs.sh [--check | --site | --help]

Writes docs/reference/passes.md and ops.md from the descriptions of passes, ops and attributes, and docs/images/*.svg
from tools/docs, and the table of libraries in CONTRIBUTING.md from CMake's graph.

  --check  says whether they are up to date instead
  --site   builds the site in build/site from the pages as they are; installs MkDocs once (docs/requirements.txt)
  --help   shows this text

To read the site: python3 -m http.server --directory build/site --bind 127.0.0.1
END
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1:-} != --@(site|help) ]] && grep -qs '^KAS_ENABLE_GPU:BOOL=OFF$' build/CMakeCache.txt; then
  echo "error: the pages require a build tree with GPUs (tools/setup.sh --with-gpu), got one without" >&2
  exit 1
fi
case ${1:-} in
  "")
    cmake --build build --target kas-doc
    cp build/docs/passes.md build/docs/ops.md docs/reference/
    tools/docs/draw-pictures.py
    tools/libraries.py --table
    ;;
  --check)
    tools/docs/draw-pictures.py --check
    tools/libraries.py --table=check
    cmake --build build --target kas-doc
    for page in passes ops; do
      if ! diff -u "docs/reference/$page.md" "build/docs/$page.md"; then
        echo "error: docs/reference/$page.md is not what the descriptions give; run tools/docs.sh" >&2
        exit 1
      fi
    done
    ;;
  --site)
    python=$(tools/python.sh --requirements=docs/requirements.txt)
    # The theme announces its successor there; warnings about the pages are errors all the same.
    NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict
    echo "kas: the site is in build/site"
    ;;
  --help) usage ;;
  *) echo "error: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac
