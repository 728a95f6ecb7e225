#!/usr/bin/env bash
# Runs every test of kas: FileCheck tests, GoogleTest programs, Python tests and both demos, shortened.
set -uo pipefail

usage() {
  cat <<'END'
usage: tools/check.sh [options]

Sets everything up, builds, runs all tests and closes with the line 'N passed, N failed'.

  --slow           adds the slow tests
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
lit_options=()
pytest_options=()
for argument in "$@"; do
  case $argument in
    --slow) test_timeout=7200 lit_options+=(--param kas_slow=1) pytest_options+=(--slow) ;;
    --preset=*) preset=${argument#*=} ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

[[ $preset == release ]] || test_timeout=7200

targets=(all kas-test-depends)
if [[ $preset == tsan ]]; then
  targets=(kas-bench kas-opt kas-run kas-search-db kas-train
    KASSearchOperatorsTests KASExecutionEngineTests KASSearchStoreTests KASSearchCoreTests KASSequenceTests)
  lit_options+=(--filter '^kas(-unit)? :: (ExecutionEngine|Search)/')
  # Lists of 13 000 operators and more, on one thread, take more than ten minutes each with this sanitizer.
  long=(CountsAreKnown DeeperSynoResnet18IsTheSameWithATable NamedOperatorsAreMembers SynoResnet18IsTheSameByAllAlgorithms)
  export GTEST_FILTER=-$(printf 'SpacesTest.%s:' "${long[@]}")
fi
"$root/tools/setup.sh" --preset="$preset" "${targets[@]}" || exit 1
build=$root/build
[[ $preset == release ]] || build=$root/build-$preset

results=$build/test/results.json
rm -f "$results"
suites=("$build/test" "$build/test/unittests")
# Once more with hash containers that go backwards, where the build knows how to.
[[ ! -e $build/test/reverse/lit.site.cfg.py ]] || suites+=("$build/test/reverse")
start=$SECONDS
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[A-Z]*=//p' "$build/CMakeCache.txt")
"$lit" -sv --timeout="$test_timeout" -o "$results" ${lit_options[@]+"${lit_options[@]}"} \
  "${suites[@]}"
# Every outcome that lit counts as a failure counts as one here: a test that could not run has not passed.
read -r passed failed < <(python3 - "$results" <<'END' || echo 0 1
import collections, json, sys
codes = collections.Counter(test["code"] for test in json.load(open(sys.argv[1]))["tests"])
passed = sum(codes[code] for code in ("PASS", "FLAKYPASS"))
print(passed, sum(codes.values()) - passed - codes["UNSUPPORTED"])
END
)
echo "kas: tests $((SECONDS - start)) s"
if ! "$root/tools/cuda-toolkit.py" >/dev/null; then
  echo "kas: there is no ptxas (tools/cuda.sh could not install it): no kernel for CUDA was assembled in these tests"
fi

# An interpreter that is not instrumented cannot load an instrumented extension.
if [[ ($preset == release || $preset == debug) && ${KAS_PYTHON:-} != skip ]]; then
  start=$SECONDS
  # Two processes with every other file each: one alone leaves half of a small machine idle.
  results=("$build"/test/python-results-{0,1}.xml)
  rm -f "${results[@]}"
  if python=$("$root/tools/python.sh" --preset="$preset"); then
    run_python_tests() {
      # The networks are small: two threads of one training would mostly wait for each other.
      (cd "$root" && OMP_NUM_THREADS=1 KAS_BUILD=$build PYTHONPATH=$build/python "$python" -m pytest -q \
        -o "faulthandler_timeout=$test_timeout" -o faulthandler_exit_on_timeout=true \
        -p no:cacheprovider "--junit-xml=${results[$1]}" ${pytest_options[@]+"${pytest_options[@]}"} "${@:2}")
    }
    files=("$root"/test/python/test_*.py)
    halves=("" "")
    for number in "${!files[@]}"; do
      halves[number % 2]+="test/python/$(basename "${files[number]}") "
    done
    # shellcheck disable=SC2086
    run_python_tests 1 ${halves[1]} >"$build/test/python-tests.log" 2>&1 &
    # shellcheck disable=SC2086
    run_python_tests 0 ${halves[0]}
    wait "$!"
    cat "$build/test/python-tests.log"
  fi
  # A test that was skipped could not run: it has not passed.
  read -r python_passed python_failed < <(python3 - "${results[@]}" <<'END' || echo 0 1
import sys, xml.etree.ElementTree
parts = [list(xml.etree.ElementTree.parse(path).iter("testcase")) for path in sys.argv[1:]]
cases = sum(parts, [])
passed = sum(1 for case in cases if not any(child.tag in ("failure", "error", "skipped") for child in case))
print(passed, len(cases) - passed if all(parts) else 1)
END
)
  passed=$((passed + python_passed)) failed=$((failed + python_failed))
  echo "kas: Python tests $((SECONDS - start)) s"
fi

# The demos measure time, so they run alone, and only in the build that is made for speed.
if [[ $preset == release && -x $root/tools/demo.sh ]]; then
  start=$SECONDS
  for options in "--seconds=5" "--latency-only --seconds=5"; do
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

echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed -gt 0 ]]
