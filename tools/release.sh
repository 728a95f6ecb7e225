#!/usr/bin/env bash
# Makes the files of a release from a clean tree: the wheel, the sources, their checksums and a signature.
set -euo pipefail

usage() {
  cat <<'END_OF_USAGE'
usage: tools/release.sh [--sign=KEY] [--skip-tests] [--help]

Runs all tests, makes the wheel and the source package of the last commit, tries the wheel in a fresh environment, and
writes everything with SHA256SUMS into build/release. The version is that of pyproject.toml; CHANGELOG.md must have a
section for it, and the tree no changes. It publishes nothing, and sets no tag.

  --sign=KEY    signs SHA256SUMS with that key of gpg: SHA256SUMS.asc
  --skip-tests  leaves out tools/check.sh, where that has just been run
  --help        shows this text
END_OF_USAGE
}

fail() {
  echo "error: $*" >&2
  exit 1
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
key=
tests=1
for argument in "$@"; do
  case $argument in
    --sign=?*) key=${argument#*=} ;;
    --skip-tests) tests=0 ;;
    --help) usage; exit 0 ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
grep -q "^## $version\b" CHANGELOG.md || fail "requires a section '## $version' of CHANGELOG.md, got none"
changed=$(git status --porcelain)
[[ -z $changed ]] || fail "requires a tree without changes, got:"$'\n'"$changed"
[[ -z $key ]] || gpg --list-secret-keys "$key" >/dev/null 2>&1 || fail "requires a secret key of gpg, got '$key'"

tools/setup.sh --with-gpu
[[ $tests == 0 ]] || tools/check.sh
tools/wheel.sh
tools/wheel.sh --test
rm -rf build/release
mkdir -p build/release
python=$(tools/python.sh | tail -n 1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$python" -c \
  'from scikit_build_core.build import build_sdist; build_sdist("build/release")' >&2
cp build/wheel/kas-*.whl build/release/
(cd build/release && sha256sum kas-* >SHA256SUMS)
[[ -z $key ]] || gpg --batch --armor --detach-sign --local-user "$key" build/release/SHA256SUMS
echo "kas: kas $version is in build/release:"
ls -l build/release
