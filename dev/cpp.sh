#!/bin/bash
# Configures and builds C++ targets. Usage: dev/cpp.sh release|debug|asan|tsan TARGET...
# The release is built by g++, whose code is smaller; all else by clang, whose sanitizers see more. The asan variant, which developers build
# again and again, compiles each source by itself; release and tsan six of a room at a time, which is half of the work in all.
# Objects are cached by content outside of the clone (ccache), so that a second clone builds in seconds.
. "$(dirname "$0")/lib.sh"

variant=$1
shift
compiler=clang++-19
case $variant in
  release)
    compiler=g++
    options=(-DCMAKE_BUILD_TYPE=Release -DTOGETHER=ON)
    ;;
  debug) options=(-DCMAKE_BUILD_TYPE=Debug) ;;
  asan) options=(-DCMAKE_BUILD_TYPE=Debug "-DSANITIZE=address,undefined") ;;
  tsan) options=(-DCMAKE_BUILD_TYPE=Debug -DSANITIZE=thread -DTOGETHER=ON) ;;
  *) die "unknown variant: $variant" "dev/cpp.sh release|debug|asan|tsan TARGET..." ;;
esac

"$DEV/deps.sh" build
[[ $compiler == g++ ]] || "$DEV/deps.sh" clang
export CCACHE_DIR=$CACHE/ccache CCACHE_BASEDIR=$TOP CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=5G CCACHE_SLOPPINESS=pch_defines,time_macros
build=$TOP/build/$variant
log=$TOP/build/$variant.log
mkdir -p "$build"
# One at a time: ninja would not notice another.
exec 9>"$build/lock"
flock -n 9 || { say "               waiting for another build ($variant)"; flock 9; }
# cmake forgets its settings when the compiler changes.
[[ ! -e $build/CMakeCache.txt ]] || grep -q "^CMAKE_CXX_COMPILER:.*/$compiler$" "$build/CMakeCache.txt" || rm -rf "$build"/CMake*
cmake -S "$TOP" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$(command -v $compiler)" -DPRECOMPILED="$CACHE/precompiled" "${options[@]}" >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "cmake failed" "see $log"; }
# A line every ten seconds: a first build takes minutes.
NINJA_STATUS='[%f/%t] ' ninja -C "$build" "$@" >"$log" 2>&1 &
ninja=$!
trap 'kill $ninja 2>/dev/null || true' INT TERM
seconds=0
while kill -0 $ninja 2>/dev/null; do
  sleep 1
  seconds=$((seconds + 1))
  ((seconds % 10)) || say "               building ($variant) $(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1)"
done
wait $ninja || { grep -A 15 -m 1 -E '(error|multiple definition|undefined reference): |^FAILED' "$log" >&2; die "the build failed" "see $log"; }
