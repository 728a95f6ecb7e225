#!/usr/bin/env bash
# The main job: makes a trained network faster at its accuracy, beside what anybody would try first, and says what it is
# worth. Everything it prints is measured in this run.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/demo.sh [options]

Sets everything up, builds, trains a small residual network on Fashion-MNIST, and makes it faster: 'kas accelerate' with
at most half a point of accuracy to lose. Results are left in build/demo/: a page (report.html), the network for PyTorch,
ONNX and C (model.pt2, model.onnx, the folder c), and the numbers (results.json). It needs
packages of PyPI; with KAS_PYTHON=skip the demo is --search.

  --seconds=S      seconds to accelerate, or to search (default 180; with --search 110, with --latency-only 60)
  --seed=S         seed (default 1)
  --search         the search for one operator: for S seconds, layers of the network with at most half of their FLOPs are
                   searched for, training each; then the best one, the dense layer and the depthwise-separable one are
                   trained with several seeds, timed, and compared. Leaves the search (search.db, found.mlir) and its
                   page, the networks for one image (found-1.mlir, ...), their parameters (found-SEED.npz, ...) and the
                   numbers
  --latency-only   the faster search without training: puts the fastest of the operators with half of the FLOPs into a
                   ResNet-18, for S seconds, and times both networks
  --help           shows this text
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
seconds=
seed=1
demo=accelerate
for argument in "$@"; do
  case $argument in
    --seconds=*) seconds=${argument#*=} ;;
    --seed=*) seed=${argument#*=} ;;
    --search) demo=training ;;
    --latency-only) demo=latency ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
if [[ $demo == accelerate && ${KAS_PYTHON:-} == skip ]]; then
  echo "kas: without Python packages the demo is that of --search" >&2
  demo=training
fi
declare -A defaults=([accelerate]=180 [training]=110 [latency]=60)
seconds=${seconds:-${defaults[$demo]}}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "error: --seconds must be a whole number from 1 on, got '$seconds'" >&2; exit 2; }
[[ $seed =~ ^[0-9]+$ ]] || { echo "error: --seed must be a whole number, got '$seed'" >&2; exit 2; }

targets=(kas-opt kas-run)
[[ $demo != training ]] || targets+=(kas-search-db kas-train)
[[ $demo != accelerate ]] || targets=(kas-translate)
# Demos run on the CPU: a new build tree is one without GPUs, which takes less time. Packages do not count as that time.
"$root/tools/setup.sh" --without-gpu --packages-only
python_options=()
[[ $demo != training ]] || python_options=(--report)
with_python=1
if [[ $demo == latency || ${KAS_PYTHON:-} == skip ]]; then
  with_python=0
elif ! "$root/tools/python.sh" "${python_options[@]}" --environment-only >/dev/null; then
  [[ $demo == training ]] || exit 1
  echo "kas: there will be no page about the search" >&2
  with_python=0
fi
start=$SECONDS
"$root/tools/setup.sh" --without-gpu "${targets[@]}"
python=
[[ $with_python == 0 ]] || python=$("$root/tools/python.sh" "${python_options[@]}" | tail -1)
build_seconds=$((SECONDS - start))
export PATH="$root/build/bin:$PATH"
out=$root/build/demo
rm -rf "$out"
mkdir -p "$out"
start=$SECONDS
times="build $build_seconds s"

step() { printf '\n== %3d s  %s\n' $((SECONDS - start)) "$*"; }
# timed WHAT COMMAND...: how long it took is said in the end.
timed() {
  local start=$SECONDS what=$1
  "${@:2}"
  times+=", $what $((SECONDS - start)) s"
}
# search INPUT OPTIONS: searches, into found.mlir; the progress is printed as it comes.
search() { kas-opt "$1" -o "$out/found.mlir" -kas-search="$2 progress=true" 2>&1 | report progress; }
report() { python3 "$root/tools/demo/${demo}_report.py" "$out" "$@"; }

# shellcheck source=/dev/null
source "$root/tools/demo/$demo.sh"
printf '\nkas: %s, demo %d s, results in %s\n' "$times" $((SECONDS - start)) "$out"
