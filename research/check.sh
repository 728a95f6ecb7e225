#!/usr/bin/env bash
# Runs the tests of research, all of them, and its static checks. tools/check.sh runs them, too: with --slow all, else
# those that take seconds.
set -uo pipefail

usage() {
  cat <<'END'
usage: research/check.sh [options of lit]

Runs all tests of research/test on the build in build/ (tools/setup.sh --with-gpu all kas-test-depends), then ruff and
mypy on the package kas_research.
END
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
[[ ${1:-} != --help ]] || { usage; exit 0; }
[[ -e build/test/research/lit.site.cfg.py ]] ||
  { echo "error: there is no build tree in 'build': run tools/setup.sh --with-gpu all kas-test-depends first" >&2; exit 1; }
python=$(tools/python.sh) || exit 1
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[A-Z]*=//p' build/CMakeCache.txt)
result=0
"$lit" -sv --timeout=7200 --param kas_slow=1 --param "kas_python=$python" "$@" build/test/research || result=1
tools/lint.sh --ruff --mypy || result=1
exit "$result"
