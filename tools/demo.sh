#!/usr/bin/env bash
# The main job on ResNet-18: finds its convolutions, searches for cheaper operators, puts the fastest one in, compiles
# both networks and compares them. Everything it prints is measured in this run.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/demo.sh [options]

Sets everything up, builds, and changes a ResNet-18. Results are left in build/demo/: the model with its search
problems (sites.mlir), all that was found (operators.mlir, search.log), the changed model (changed.mlir) and the
numbers (results.json).

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
model=$root/test/Networks/Sites/Inputs/resnet18_224.mlir
space=conv2d
# What was promised for a minute is not required of a shorter search.
wanted=20 rounds=3 runs=7
if ((seconds < 60)); then wanted=1 rounds=2 runs=2; fi
rm -rf "$out"
mkdir -p "$out"
start=$SECONDS

step() { printf '\n== %3d s  %s\n' $((SECONDS - start)) "$*"; }
report() { python3 "$root/tools/demo-report.py" "$out" "$@"; }

step "the layers of ResNet-18 at 224x224"
kas-opt "$model" -kas-extract -o "$out/sites.mlir"
report sites "$space"

step "searching $seconds s for operators with at most half of the FLOPs (seed $seed, $(nproc) threads)"
options="space=@$space seed=$seed seconds=$seconds evaluations=1000000 threads=$(nproc)"
kas-opt "$out/sites.mlir" -o "$out/found.mlir" \
  -kas-search="$options evaluators=flops,params,latency progress=true" 2> >(report progress)
report operators "$space" "$wanted"

step "putting the fastest one in"
kas-opt "$out/found.mlir" -kas-substitute="operator=@${space}_0 space=@$space" -o "$out/changed.mlir"
report substituted "$space"

step "compiling and timing both networks, in turn"
for ((round = 0; round < rounds; round++)); do
  for network in original changed; do
    file=$model
    [[ $network == original ]] || file=$out/changed.mlir
    kas-run "$file" --function=forward --args="$seed" --time --runs="$runs" --json --cache="$out/cache" \
      --output="$out/$network.npy" >>"$out/$network.jsonl"
  done
done
step "done"
report table "$space"
printf '\nkas: demo %d s, results in %s\n' $((SECONDS - start)) "$out"
