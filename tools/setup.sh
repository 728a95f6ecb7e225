#!/usr/bin/env bash
# Installs the packages that kas needs, configures a build tree and builds it. tools/demo.sh, tools/check.sh and
# the CI start with this; when nothing changed it takes less than a second.
set -euo pipefail

usage() {
  cat <<'END'
usage: tools/setup.sh [options] [TARGET...]

Installs what is missing of tools/packages.txt, configures the build tree and builds the targets (all by default).

  --preset=NAME       a preset of CMakePresets.json: release (default, in build/), debug, asan or tsan (in build-NAME/)
  --with-gpu          builds for GPUs, too (KAS_ENABLE_GPU=ON), also in a build tree that was configured without
  --without-gpu       configures a new build tree without GPUs and leaves out the packages for them; one that has GPUs
                      keeps them. Without either option a new tree has GPUs, and an old one is as it was.
  --package=PACKAGE   needs this Debian package as well; may be repeated
  --packages-only     stops after the packages
  --help              shows this text

The environment variable KAS_PACKAGES=skip leaves the packages alone, for a system that has them by other means.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=release
gpu=
packages_only=0
packages=()
targets=()
for argument in "$@"; do
  case $argument in
    --preset=*) preset=${argument#*=} ;;
    --with-gpu) gpu=ON ;;
    --without-gpu) gpu=OFF ;;
    --package=*) packages+=("${argument#*=}") ;;
    --packages-only) packages_only=1 ;;
    --help) usage; exit 0 ;;
    -*) echo "error: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
case $preset in
  release) build=$root/build ;;
  debug) build=$root/build-$preset ;;
  asan | tsan) build=$root/build-$preset packages+=(libclang-rt-22-dev) ;;
  *) echo "error: --preset must be release, debug, asan or tsan, got '$preset'" >&2; exit 2 ;;
esac
# What the build tree has; those that know nothing of the option were configured before there was one.
configured=
if [[ -e $build/CMakeCache.txt ]]; then
  configured=$(sed -n 's/^KAS_ENABLE_GPU:BOOL=//p' "$build/CMakeCache.txt")
  configured=${configured:-ON}
fi
[[ $gpu == ON ]] || gpu=${configured:-${gpu:-ON}}
left_out='^#'
[[ $gpu == ON ]] || left_out+='|# gpu$'
mapfile -t -O "${#packages[@]}" packages < <(grep -Ev "$left_out" "$root/tools/packages.txt" | sed 's/ *#.*//')

# Those of the arguments that are not installed, one per line.
missing_packages() {
  # dpkg-query fails when it knows nothing of one package, but still tells about the others.
  { dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || :; } |
    awk -v wanted="$*" '$2 == "installed" {found[$1] = 1}
      END {count = split(wanted, names, " "); for (i = 1; i <= count; i++) if (!(names[i] in found)) print names[i]}'
}

# Those of the arguments that apt knows no version of, one per line.
unknown_packages() {
  local package
  for package in "$@"; do
    [[ -n $(apt-cache madison "$package" 2>/dev/null) ]] || echo "$package"
  done
}

# A bare system may list only the main archive; the suite with the compiler is on the same mirror.
add_security_suite() {
  local uri list=/etc/apt/sources.list.d/kas-bookworm-security.list
  uri=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 'Created-By: Packages' |
    awk '$2 == "Debian" && $3 == "bookworm" && !uri {uri = $1} END {print uri}')
  [[ $uri == */debian/ || $uri == */debian ]] || return 1
  uri=${uri%/}-security
  echo "kas: adding the suite bookworm-security of the configured mirror in $list"
  echo "deb $uri bookworm-security main" | "${as_root[@]}" tee "$list" >/dev/null
  "${apt_get[@]}" update && return 0
  "${as_root[@]}" rm -f "$list"
  return 1
}

install_packages() {
  local missing unknown
  . /etc/os-release 2>/dev/null || :
  if [[ ${ID:-} != debian || ${VERSION_ID:-} != 12 ]]; then
    {
      echo "error: packages can be installed on Debian 12 only, this system is ${PRETTY_NAME:-unknown}"
      echo "note: kas needs what these Debian packages hold: ${packages[*]}"
      echo "note: where they are there by other means, KAS_PACKAGES=skip goes on without this check"
    } >&2
    exit 1
  fi
  missing=$(missing_packages "${packages[@]}")
  [[ -n $missing ]] || return 0
  mapfile -t missing <<<"$missing"

  echo "kas: installing ${missing[*]}"
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "error: these packages must be installed first: ${missing[*]}" >&2
      echo "note: run this script as root, or install sudo" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  "${apt_get[@]}" update
  mapfile -t unknown < <(unknown_packages "${missing[@]}")
  if [[ ${#unknown[@]} -gt 0 ]]; then
    add_security_suite || :
    mapfile -t unknown < <(unknown_packages "${missing[@]}")
  fi
  if [[ ${#unknown[@]} -gt 0 ]]; then
    echo "error: apt knows no package named: ${unknown[*]}" >&2
    echo "note: kas needs the suites bookworm and bookworm-security in the sources of apt" >&2
    exit 1
  fi
  "${apt_get[@]}" install -y --no-install-recommends "${missing[@]}"
}

seconds_since() { awk -v then="$1" -v now="$EPOCHREALTIME" 'BEGIN {printf "%.1f", now - then}'; }

start=$EPOCHREALTIME
[[ ${KAS_PACKAGES:-} == skip ]] || install_packages </dev/null
packages_time=$(seconds_since "$start")
[[ $packages_only == 0 ]] || exit 0

start=$EPOCHREALTIME
cd "$root"
if [[ ! -e $build/build.ninja || CMakePresets.json -nt $build/CMakeCache.txt || $configured != "$gpu" ]]; then
  cmake --preset "$preset" -DKAS_ENABLE_GPU="$gpu"
fi
[[ $gpu == ON ]] || echo "kas: building without GPUs (tools/setup.sh --with-gpu adds them)"
cmake --build "$build" ${targets[@]+--target "${targets[@]}"}
echo "kas: packages $packages_time s, build $(seconds_since "$start") s"
