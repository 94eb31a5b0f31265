#!/bin/bash
# clang-tidy over the sources (not the tests). A file that was clean is not looked at again until it, or a header that it reads, changes.
. "$(dirname "$0")/lib.sh"

build=$TOP/build/release
[[ -f $build/compile_commands.json ]] || "$DEV/cpp.sh" release slurm-operator
clean=$CACHE/tidy
mkdir -p "$clean"

check() { # FILE, from the root of the tree
  local file=$1 key
  # What the compiler sees of it, comments and places of macros aside, is what clang-tidy judges; the checks are part of the key.
  key=$({ cat "$TOP/.clang-tidy" "$TOP/$file"; g++ -std=c++23 -I"$TOP/src" -I"$TOP" -MM "$TOP/$file" 2>/dev/null | tr -d '\\' | xargs -n1 | grep '^/' |
    sort -u | xargs cat; } | sha256sum | cut -c1-32)
  [[ ! -e $clean/$key ]] || { echo "ok $file"; return; }
  if output=$(cd "$TOP" && clang-tidy-19 -quiet --extra-arg=-Wno-deprecated-declarations -p "$build" "$file" 2>/dev/null); then
    : >"$clean/$key"
    echo "ok $file"
  else
    printf 'not ok %s\n%s\n' "$file" "$output"
  fi
}
export -f check
export TOP build clean

results=$(cd "$TOP" && git ls-files 'src/*.cpp' | grep -v '_test\.cpp$' | xargs -P "$(nproc)" -I{} bash -c 'check {}' | tee >(cat >&2))
passed=$(grep -c '^ok ' <<<"$results") failed=$(grep -c '^not ok ' <<<"$results" || true)
echo "$passed passed, $failed failed"
((failed == 0))
