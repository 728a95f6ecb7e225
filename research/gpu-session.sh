#!/usr/bin/env bash
# What a machine with an NVIDIA GPU is used for, whenever one is at hand: all kernels are compiled here, into a bundle
# that needs no LLVM and no network where it runs.
set -euo pipefail

usage() {
  cat <<'END_USAGE'
usage: research/gpu-session.sh pack [FILE.tar.xz]
       research/gpu-session.sh run FILE.tar.xz [options of session.py]
       research/gpu-session.sh --rehearse

pack: compiles named and random operators, layers with several schedules, and
ResNet-18 for sm_80, sm_90 and sm_90a, with inputs and what must come out
(default: build/gpu-session.tar.xz).
run: unpacks it into a folder of its name and runs what is left, for 9 minutes
at most (--minutes=N), or all of these with --fill, which measures times again
in what is left; to be called until nothing is left. There,
`python3 session.py report` writes the tables. Needs Python with NumPy and the
driver; PyTorch with CUDA is measured beside kas where it is installed.
--rehearse: packs a little, and runs it on Vulkan, which computes, and on
stand-ins for CUDA's driver, cuBLASLt and cuDNN, which check the calls.
END_USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${KAS_BUILD:-$root/build}
python=${PYTHON:-python3}
inputs=$root/test/Networks/Sites/Inputs
# Operators that searches found.
found=("$root"/research/data/operators/found-*.mlir)
found=("${found[@]/#/--operators=}")

# pack FOLDER OPTIONS...: the cases, the driver and the runtime.
pack() {
  local folder=$1
  shift
  CUDA_ROOT=${CUDA_ROOT:-$build/cuda/toolkit} "$build/bin/kas-gpu-pack" "$folder" "$@"
  cp "$root"/research/gpu-session/*.py "$build/lib/libkas-rt.so" "$folder"
}

# refuse PATTERN FILE: fails where a line of the file has it.
refuse() {
  if grep -E "$1" "$2" >&2; then
    return 1
  fi
}

# check FOLDER OPTIONS...: runs a bundle; nothing may fail.
check() {
  local folder=$1
  shift
  (cd "$folder" && "$python" session.py run --no-peers --seconds=0.01 "$@")
  refuse '"status": "(error|lost)"' "$folder/results.jsonl"
}

rehearse() {
  pack "$folder/vulkan" --chips=vulkan --kinds=values,time --stride=40 --schedules=3
  check "$folder/vulkan" --device=vulkan --cases='values|M=64'
  refuse '"ok": false' "$folder/vulkan/results.jsonl"
  pack "$folder/cuda" --format=ptx --stride=60 --schedules=2 --network="$inputs/resnet18_small.mlir"
  KAS_RT_LIBCUDA=$build/lib/libkas-cuda-stand-in.so KAS_RT_LIBCUBLASLT=$build/lib/libkas-cublaslt-stand-in.so \
    KAS_RT_LIBCUDNN=$build/lib/libkas-cudnn-stand-in.so check "$folder/cuda" --architecture=sm_90 \
    --cases='values|resnet|M=64'
  # Of the network, in one precision at least, and of the product.
  grep -q '"libraries/resnet.*"libraries": {"cu' "$folder/cuda/results.jsonl"
  (cd "$folder/cuda" && "$python" session.py report >report.md)
  grep -q '^## Times' "$folder/cuda/report.md"
  echo "gpu-session: $(grep -c '"done"' "$folder/vulkan/results.jsonl") cases on Vulkan," \
    "$(grep -c '"done"' "$folder/cuda/results.jsonl") on the stand-in: ok"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case ${1:-} in
  pack)
    output=${2:-$build/gpu-session.tar.xz}
    bash "$root/tools/cuda.sh"
    ninja -C "$build" kas-gpu-pack kas-rt
    pack "$folder/kas-gpu-session" --network="$inputs/resnet18_224.mlir" --network="$inputs/resnet18_cifar.mlir" \
      "${found[@]/%/:N=8,Cin=64,Cout=64,H=56,W=56,k=3,g=4}"
    tar -C "$folder" --sort=name --mtime=@0 --owner=0 --group=0 -c kas-gpu-session | xz -6 -T0 >"$output"
    echo "gpu-session: $output, $(($(stat -c %s "$output") >> 20)) MiB"
    ;;
  run)
    file=${2:?the bundle}
    shift 2
    [[ -d kas-gpu-session ]] || tar -xf "$file"
    cd kas-gpu-session
    "$python" session.py run "$@"
    ;;
  --rehearse) rehearse ;;
  --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
