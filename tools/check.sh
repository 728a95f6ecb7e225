#!/usr/bin/env bash
# Runs every test of kas: FileCheck tests in both orders of hash containers, GoogleTest programs, Python tests and, on
# request, the checks of tools/lint.sh, all in one pool of lit; then the demos, shortened.
set -uo pipefail

usage() {
  cat <<'END'
usage: tools/check.sh [options]

Sets everything up, builds, runs all tests, those that took longest the last time first, prints the slowest twenty and
closes with the line 'N passed, N failed'. Times are kept in the build tree and, for new clones, in kas/test-times of
$XDG_CACHE_HOME or ~/.cache.

  --slow           adds the slow tests
  --lint           adds the checks of tools/lint.sh that need a build tree, and ruff
  --preset=NAME    the build to test: release (default), debug, asan, or tsan (the search and the runtime library, which
                   have threads)
  --help           shows this text

The Python tests (presets release and debug) run in an environment that tools/python.sh makes once, since torch is
large; KAS_PYTHON=skip leaves them out.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=release
# Seconds, several times what the longest test takes on a slow machine: one that hangs fails, and its name is printed.
test_timeout=1500
lint=0
lit_options=()
for argument in "$@"; do
  case $argument in
    --slow) test_timeout=7200 lit_options+=(--param kas_slow=1) ;;
    --lint) lint=1 lit_options+=(--param kas_lint=1) ;;
    --preset=*) preset=${argument#*=} ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

[[ $preset == release ]] || test_timeout=7200

setup_options=(--preset="$preset" --with-gpu)
targets=(all kas-test-depends)
if [[ $preset == tsan ]]; then
  targets=(kas-bench kas-opt kas-run kas-search-db kas-train
    KASSearchOperatorsTests KASExecutionEngineTests KASSearchStoreTests KASSearchCoreTests KASSequenceTests)
  lit_options+=(--filter '^kas(-unit)? :: (ExecutionEngine|Search)/')
  # Lists of 13 000 operators and more, on one thread, take more than ten minutes each with this sanitizer.
  long=(CountsAreKnown DeeperSynoResnet18IsTheSameWithATable NamedOperatorsAreMembers SynoResnet18IsTheSameByAllAlgorithms)
  export GTEST_FILTER=-$(printf 'SpacesTest.%s:' "${long[@]}")
fi
if [[ $lint == 1 ]]; then
  targets+=(kas-doc)
  setup_options+=(--package=clang-tidy-22)
fi
# An interpreter that is not instrumented cannot load an instrumented extension.
with_python=0
[[ ($preset != release && $preset != debug) || ${KAS_PYTHON:-} == skip ]] || with_python=1

"$root/tools/setup.sh" "${setup_options[@]}" --packages-only || exit 1
# Its packages come from the network, which leaves processors to the compiler.
[[ $with_python == 0 ]] || "$root/tools/python.sh" --environment-only >/dev/null &
"$root/tools/setup.sh" "${setup_options[@]}" "${targets[@]}" || exit 1
wait
build=$root/build
[[ $preset == release ]] || build=$root/build-$preset
failed_steps=0
if [[ $with_python == 1 ]]; then
  if python=$("$root/tools/python.sh" --preset="$preset"); then
    lit_options+=(--param "kas_python=$python")
  else
    echo "FAIL: tools/python.sh --preset=$preset: the Python tests could not run"
    failed_steps=1
  fi
fi

# lit starts what took longest first, by the times of the suite's last run. A new build tree gets those of another one.
declare -A suites=([kas]=$build/test [kas-unit]=$build/test/unittests [kas-research]=$build/test/research)
# Once more with hash containers that go backwards, where the build knows how to.
[[ ! -e $build/test/reverse/lit.site.cfg.py ]] || suites[kas-reverse]=$build/test/reverse
kept_times=${XDG_CACHE_HOME:-${HOME:-$build}/.cache}/kas/test-times
for suite in "${!suites[@]}"; do
  times=${suites[$suite]}/.lit_test_times.txt
  [[ -e $times || ! -e $kept_times/$suite.txt ]] || cp "$kept_times/$suite.txt" "$times"
done

results=$build/test/results.json
rm -f "$results"
start=$SECONDS
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[A-Z]*=//p' "$build/CMakeCache.txt")
"$lit" -sv --timeout="$test_timeout" -o "$results" ${lit_options[@]+"${lit_options[@]}"} "${suites[@]}"
read -r passed failed < <("$root/tools/test-results.py" "$results" --counts || echo 0 1)
failed=$((failed + failed_steps))
echo "kas: tests $((SECONDS - start)) s"
if [[ $preset == release ]] && mkdir -p "$kept_times"; then
  for suite in "${!suites[@]}"; do
    cp "${suites[$suite]}/.lit_test_times.txt" "$kept_times/$suite.txt" || :
  done
fi
if ! "$root/tools/cuda-toolkit.py" >/dev/null; then
  echo "kas: there is no ptxas (tools/cuda.sh could not install it): no kernel for CUDA was assembled in these tests"
fi

# The demos measure time, so they run alone, and only in the build that is made for speed.
if [[ $preset == release && -x $root/tools/demo.sh ]]; then
  start=$SECONDS
  for options in "--seconds=5" "--search --seconds=5" "--latency-only --seconds=5"; do
    # shellcheck disable=SC2086
    if "$root/tools/demo.sh" $options; then
      passed=$((passed + 1))
    else
      echo "FAIL: tools/demo.sh $options"
      failed=$((failed + 1))
    fi
  done
  echo "kas: demo $((SECONDS - start)) s"
fi

echo "kas: the slowest tests"
"$root/tools/test-results.py" "$results" --slowest=20
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed -gt 0 ]]
