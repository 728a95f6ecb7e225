#!/usr/bin/env bash
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Measures what research/reports/cpu-avx512.md and cpu-avx2.md show and writes it there. Run it on a machine that does nothing else.
set -euo pipefail

usage() {
  cat <<'END'
usage: research/peers/peers-all.sh [options]

Measures operators and sixteen networks in two instruction sets; results are left in build/peers/*.jsonl, and
research/reports/cpu-avx512.md, cpu-avx2.md and their rooflines are written again.

  --tools=DIR       where kas-opt and kas-translate are (default build/bin)
  --python=PROGRAM  for the sixteen networks: the Python of the build, with torchvision (default: they are left out)
  --warm            compiles operators, measures nothing
  --report          writes the pages from what was measured before
  --help            shows this text
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
warm=()
tools=$root/build/bin
python=
report_only=0
for argument in "$@"; do
  case $argument in
    --tools=*) tools=${argument#*=} ;;
    --python=*) python=${argument#*=} ;;
    --warm) warm=(--warm) ;;
    --report) report_only=1 ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

out=$root/build/peers
peers=("$root/research/peers/peers.py" "--tools=$tools" ${warm[@]+"${warm[@]}"})
mkdir -p "$out"

# measure NAME COMMAND...: a file is whole or as it was.
measure() {
  local name=$1
  shift
  echo "== $name" >&2
  "$@" >"$out/$name.part.jsonl"
  [[ ${#warm[@]} -gt 0 ]] || mv "$out/$name.part.jsonl" "$out/$name.jsonl"
}

measure_networks() {
  PYTHONPATH=$root/build/python:$root/research${PYTHONPATH:+:$PYTHONPATH} \
    measure "sixteen-$1-$2" "$python" "$root/research/peers/networks.py" "--isa=$1" "--threads=$2" --rounds=5
}

if [[ $report_only == 0 ]]; then
  for isa in native avx2; do
    measure "operators-$isa" "${peers[@]}" "--isa=$isa" --rounds=5
    if [[ -n $python && ${#warm[@]} -eq 0 ]]; then
      measure_networks "$isa" 1
      measure_networks "$isa" 2
    fi
  done
fi

# write_page NAME MEASUREMENT...: the tables of cpu-NAME.md from those that are there.
write_page() {
  local page=$root/research/reports/cpu-$1.md files=() name
  shift
  for name in "$@"; do
    [[ ! -s $out/$name.jsonl ]] || files+=("$out/$name.jsonl")
  done
  [[ ${#files[@]} -eq 0 ]] || "$root/research/peers/plot-peers.py" --tables="$page" "${files[@]}"
}

draw_roofline() {
  local picture=$root/research/reports/roofline-$1.svg
  "$root/research/peers/plot-peers.py" --roofline "$out/$2.jsonl" >"$picture.part"
  mv "$picture.part" "$picture"
}

if [[ ${#warm[@]} -eq 0 ]]; then
  write_page avx512 operators-native sixteen-native-1 sixteen-native-2
  write_page avx2 operators-avx2 sixteen-avx2-1 sixteen-avx2-2
  draw_roofline avx512 operators-native
  draw_roofline avx2 operators-avx2
fi
