#!/usr/bin/env bash
# Installs what kernels for NVIDIA devices are assembled and read with (ptxas, fatbinary, libdevice and nvdisasm of CUDA), from PyPI, into
# build/cuda/toolkit. Tests look there first. No driver and no device is needed; when it is there already, this takes
# no time.
set -euo pipefail

usage() {
  cat <<'END_USAGE'
usage: tools/cuda.sh [--help]

Installs the CUDA toolkit's ptxas, fatbinary, libdevice and nvdisasm into build/cuda/toolkit. Without a network, the exit code is
1 and the last line says so; a toolkit that is installed otherwise is found through the environment variables
CUDA_ROOT, CUDA_HOME and CUDA_PATH, through ptxas in PATH, or in /usr/local/cuda.
END_USAGE
}

case ${1:-} in
  "") ;;
  --help) usage; exit 0 ;;
  *) echo "error: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac

# One version for all, as registers and spills that tests look at are this assembler's.
# The disassembler has no 13.0 there; it reads what older assemblers wrote.
packages=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-nvdisasm==13.2.86)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$root/build/cuda
[[ "$(cat "$folder/installed" 2>/dev/null)" != "${packages[*]}" ]] || exit 0

echo "kas: installing ${packages[*]}"
rm -rf "$folder"
mkdir -p "$folder"
# Debian's Python, which the packages of kas bring, and not another one that comes first in PATH.
python=/usr/bin/python3
[[ -x $python ]] || python=python3
if ! "$python" -m venv "$folder/venv" ||
  ! "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${packages[@]}"; then
  rm -rf "$folder"
  echo "kas: ptxas could not be installed from PyPI: is there a network?" >&2
  exit 1
fi
toolkit=$(echo "$folder"/venv/lib/python3*/site-packages/nvidia/cu13)
ln -s "${toolkit#"$folder/"}" "$folder/toolkit"
for file in bin/ptxas bin/fatbinary bin/nvdisasm nvvm/libdevice/libdevice.10.bc; do
  [[ -r $folder/toolkit/$file ]] || { echo "error: expected $file in the packages, got none" >&2; exit 1; }
done
"$folder/toolkit/bin/ptxas" --version | tail -n 2
echo "${packages[*]}" >"$folder/installed"
