#!/usr/bin/env bash
# The checks that read the code and run nothing of it.
set -uo pipefail

usage() {
  cat <<'END_OF_USAGE'
usage: tools/lint.sh [CHECK...] [options] [FILE...]

Runs the checks that are named, or format, ruff and mypy, and closes with the line 'lint: N passed, N failed, N left
out'. A check that could not run has failed; one without a file to look at, or that KAS_PYTHON=skip turns off, is left
out.

  --format              clang-format: the C++ files are formatted
  --ruff                ruff: the Python files are formatted and follow the rules of pyproject.toml
  --mypy                mypy --strict: the types of the Python packages; builds the extension for its stub
  --words               the terms of the field are used, in texts and names (tools/words.py)
  --docs                the pages that are generated are up to date; needs a build tree
  --tidy[=REV]          clang-tidy: the C++ sources of lib and tools, those that changed since the commit REV; needs a
                        build tree
  --plain-headers[=REV] the C++ sources compile without precompiled headers, those that changed since REV; needs a
                        build tree

  FILE                  only these files, for all checks but mypy, words and docs
  --changed-since=REV   only files that changed since REV, for all checks but mypy, words and docs
  --only=REGEX          only sources whose path matches, for tidy and plain-headers
  --at-most=COUNT       only so many sources, those that changed last, for tidy and plain-headers
  --jobs=COUNT          so many processes at a time, for format, tidy and plain-headers (default: as processors)
  --fix                 format and ruff mend what they can, instead of failing
  --help                shows this text

What changed since REV: the files of the commits after REV, of those after it all where there is no REV in the history
(a shallow clone), and those that are not committed.
END_OF_USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
build=build
checks=() given=()
since= only= at_most= fix= jobs=$(nproc)
declare -A since_of
for argument in "$@"; do
  case $argument in
    --format | --ruff | --mypy | --words | --docs) checks+=("${argument#--}") ;;
    --tidy | --plain-headers) checks+=("${argument#--}") ;;
    --tidy=* | --plain-headers=*)
      name=${argument%%=*} name=${name#--}
      checks+=("$name") since_of[$name]=${argument#*=}
      ;;
    --changed-since=*) since=${argument#*=} ;;
    --only=*) only=${argument#*=} ;;
    --at-most=*) at_most=${argument#*=} ;;
    --jobs=*) jobs=${argument#*=} ;;
    --fix) fix=1 ;;
    --help) usage; exit 0 ;;
    [!-]*) given+=("$argument") ;;
    *) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
if [[ -n $at_most && ! $at_most =~ ^[1-9][0-9]*$ ]]; then
  echo "error: --at-most must be a positive number, got '$at_most'" >&2
  exit 2
fi
if [[ ! $jobs =~ ^[1-9][0-9]*$ ]]; then
  echo "error: --jobs must be a positive number, got '$jobs'" >&2
  exit 2
fi
[[ ${#checks[@]} -gt 0 ]] || checks=(format ruff mypy)

if ! git rev-parse --git-dir >/dev/null; then
  echo "error: expected a git repository, which says what the files are" >&2
  exit 1
fi

# A check returns this when there is nothing to look at.
left_out=77

# The files that match the patterns, one per line: those that were named, else those in git, or those of them that changed
# since $1, the last changed first.
list_files() {
  local revision=$1 range=HEAD file pattern
  shift
  if [[ ${#given[@]} -gt 0 ]]; then
    for file in "${given[@]}"; do
      for pattern in "$@"; do
        # shellcheck disable=SC2053
        [[ $file != $pattern ]] || echo "$file"
      done
    done
    return
  fi
  if [[ -z $revision ]]; then
    git ls-files -- "$@"
    return
  fi
  ! git rev-parse -q --verify "$revision^{commit}" >/dev/null || range=$revision..HEAD
  {
    git ls-files --others --exclude-standard -- "$@"
    git diff --name-only HEAD -- "$@"
    git log --format= --name-only "$range" -- "$@"
  } | awk '!seen[$0]++' | while IFS= read -r file; do [[ ! -f $file ]] || echo "$file"; done
}

# The sources of tidy and plain-headers in the array `sources`: of those that the build compiles.
list_sources() {
  local name=$1
  shift
  if [[ ! -e $build/compile_commands.json ]]; then
    echo "error: there is no build tree in '$build': run tools/setup.sh first" >&2
    return 1
  fi
  tools/plain-commands.py "$build" "$build/lint" || return 1
  mapfile -t sources < <(list_files "${since_of[$name]:-$since}" "$@" | grep -E -- "${only:-.}" |
    grep -Fx -f "$build/lint/sources.txt" | head -n "${at_most:-1000000}")
  [[ ${#sources[@]} -gt 0 ]] || return "$left_out"
}

# Sets `python` to the interpreter of the environment of the tests. $@: options of tools/python.sh.
find_python() {
  [[ ${KAS_PYTHON:-} != skip ]] || return "$left_out"
  python=$(tools/python.sh "$@") || return 1
}

check_format() {
  mapfile -t files < <(list_files "$since" '*.h' '*.cpp')
  [[ ${#files[@]} -gt 0 ]] || return "$left_out"
  if [[ -n $fix ]]; then
    clang-format-22 -i "${files[@]}"
  else
    printf '%s\0' "${files[@]}" | xargs -0 -n 64 -P "$jobs" clang-format-22 --dry-run -Werror
  fi
}

check_ruff() {
  local result=0
  mapfile -t files < <(list_files "$since" '*.py')
  [[ ${#files[@]} -gt 0 ]] || return "$left_out"
  find_python --environment-only || return
  if [[ -n $fix ]]; then
    "$python" -m ruff check -q --fix "${files[@]}" || result=1
    "$python" -m ruff format -q "${files[@]}" || result=1
  else
    "$python" -m ruff check -q "${files[@]}" || result=1
    "$python" -m ruff format -q --diff "${files[@]}" || result=1
  fi
  return "$result"
}

# On a copy of the package by links: the stub of the extension is in the build tree, and links of files that are gone
# would stay there.
check_mypy() {
  local package=$build/lint/mypy
  find_python || return
  rm -rf "$package"
  mkdir -p "$package" && cp -rs "$root/python/kas" "$package/kas" && cp -rs "$root/research/kas_research" "$package/" &&
    ln -s "$root/$build/python/kas/_kas.pyi" "$package/kas/" &&
    (cd "$package" && "$python" -m mypy --config-file "$root/pyproject.toml" --cache-dir "$root/$build/lint/mypy-cache" -p kas -p kas_research) |
    sed 's/^kas\//python\/kas\//; s/^kas_research\//research\/kas_research\//'
}

check_words() { python3 tools/words.py .; }

check_docs() { tools/docs.sh --check; }

# Without the precompiled headers: a source that relies on them is a finding.
check_tidy() {
  list_sources tidy 'lib/*.cpp' 'tools/*.cpp' || return
  tools/setup.sh --package=clang-tidy-22 --packages-only &&
    printf '%s\0' "${sources[@]}" |
    xargs -0 -n 1 -P "$jobs" clang-tidy-22 --quiet -p "$build/lint" --warnings-as-errors='*'
}

check_plain-headers() {
  list_sources plain-headers '*.cpp' || return
  tools/plain-commands.py "$build" "$build/lint" "${sources[@]}" | xargs -0 -r -n 1 -P "$jobs" bash -c
}

passed=0 failed=0 skipped=0
for check in "${checks[@]}"; do
  start=$SECONDS
  "check_$check"
  result=$?
  case $result in
    0) passed=$((passed + 1)) outcome=passed ;;
    "$left_out") skipped=$((skipped + 1)) outcome='left out' ;;
    *) failed=$((failed + 1)) outcome=failed ;;
  esac
  echo "lint: $check: $outcome ($((SECONDS - start)) s)"
done
echo "lint: $passed passed, $failed failed, $skipped left out"
[[ $failed == 0 ]]
