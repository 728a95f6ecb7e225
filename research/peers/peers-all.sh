#!/usr/bin/env bash
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Measures all that research/reports/cpu-benchmarks.md shows and writes it there. Run it on a machine that does nothing else.
set -euo pipefail

usage() {
  cat <<'END'
usage: research/peers/peers-all.sh [options]

Measures operators, what a search finds, and networks on one and two threads; results are left in build/peers/*.jsonl, and
research/reports/cpu-benchmarks.md and research/reports/roofline.svg are written again.

  --tools=DIR where kas-opt and kas-translate are (default build/bin)
  --warm      compiles everything, measures nothing
  --report    writes the page from what was measured before
  --help      shows this text
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
warm=()
tools=$root/build/bin
report_only=0
for argument in "$@"; do
  case $argument in
    --tools=*) tools=${argument#*=} ;;
    --warm) warm=(--warm) ;;
    --report) report_only=1 ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

out=$root/build/peers
peers=("$root/research/peers/peers.py" "--tools=$tools" ${warm[@]+"${warm[@]}"})
model=$root/test/Networks/Sites/Inputs/resnet18_224.mlir
found=$out/found.mlir
mkdir -p "$out"

measure() {
  local name=$1
  shift
  echo "== $name" >&2
  "${peers[@]}" "$@" >"$out/$name.part.jsonl"
  [[ ${#warm[@]} -gt 0 ]] || mv "$out/$name.part.jsonl" "$out/$name.jsonl"
}

if [[ $report_only == 0 ]]; then
  if [[ ! -s $found ]]; then
    "$tools/kas-opt" "$model" -kas-extract -kas-search="space=@conv2d seed=1 evaluations=400 evaluators=flops,params" -o "$found.part"
    mv "$found.part" "$found"
  fi
  measure operators
  measure searched --searched="$found" --peers=pytorch --rounds=3
  measure networks --networks --rounds=4 --repetitions=6
  measure networks-2 --networks --threads=2 --core=0 --rounds=4 --repetitions=6
fi
if [[ ${#warm[@]} -eq 0 ]]; then
  files=()
  for name in operators searched networks networks-2; do
    [[ ! -s $out/$name.jsonl ]] || files+=("$out/$name.jsonl")
  done
  "$root/research/peers/plot-peers.py" --tables="$root/research/reports/cpu-benchmarks.md" "${files[@]}"
  "$root/research/peers/plot-peers.py" --roofline "${files[@]}" >"$root/research/reports/roofline.svg.part"
  mv "$root/research/reports/roofline.svg.part" "$root/research/reports/roofline.svg"
fi
