#!/usr/bin/env bash
# The main job: searches for a layer that makes a network on real images cheaper and keeps it accurate, trains what was
# found beside what people use, and says what it is worth. Everything it prints is measured in this run.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/demo.sh [options]

Sets everything up, builds, and searches for layers of a small residual network, training each candidate on
Fashion-MNIST. Then the best one, the dense layer and the depthwise-separable one are trained with several seeds,
timed, and compared. Results are left in build/demo/: the search (search.db, found.mlir) and its page (report.html),
the networks for one image (found-1.mlir, ...), their trained parameters (found-SEED.npz, ...) and the numbers
(results.json). KAS_PYTHON=skip leaves the page out, which needs packages of PyPI.

  --seconds=S      seconds to search (default 110)
  --seed=S         seed of the search (default 1)
  --latency-only   the faster search without training: puts the fastest of the operators with half of the FLOPs into a
                   ResNet-18, for --seconds=S seconds (default 60), and times both networks
  --help           shows this text
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
seconds=
seed=1
demo=training
for argument in "$@"; do
  case $argument in
    --seconds=*) seconds=${argument#*=} ;;
    --seed=*) seed=${argument#*=} ;;
    --latency-only) demo=latency ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
default=110
[[ $demo == training ]] || default=60
seconds=${seconds:-$default}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "error: --seconds must be a whole number from 1 on, got '$seconds'" >&2; exit 2; }
[[ $seed =~ ^[0-9]+$ ]] || { echo "error: --seed must be a whole number, got '$seed'" >&2; exit 2; }

targets=(kas-opt kas-run)
[[ $demo == latency ]] || targets+=(kas-search-db kas-train)
"$root/tools/setup.sh" "${targets[@]}"
python=
if [[ $demo == training && ${KAS_PYTHON:-} != skip ]]; then
  python=$("$root/tools/python.sh" --report) || echo "kas: there will be no page about the search" >&2
fi
export PATH="$root/build/bin:$PATH"
out=$root/build/demo
rm -rf "$out"
mkdir -p "$out"
start=$SECONDS

step() { printf '\n== %3d s  %s\n' $((SECONDS - start)) "$*"; }
report() { python3 "$root/tools/demo/${demo}_report.py" "$out" "$@"; }

# shellcheck source=/dev/null
source "$root/tools/demo/$demo.sh"
printf '\nkas: demo %d s, results in %s\n' $((SECONDS - start)) "$out"
