#!/bin/bash
# clang-tidy over the sources (not the tests, nor the simulator), as the release compiles them: several at a time, for nearly all of its
# time goes into the headers of the system. What was clean is not looked at again until it, or a header that it reads, changes.
. "$(dirname "$0")/lib.sh"

build=$TOP/build/release
"$DEV/cpp.sh" release slurm-operator slurm-operator-gen kubectl-slurm
clean=$CACHE/tidy
mkdir -p "$clean"

check() { # FILE
  local file=$1 key
  # What the compiler sees of it, comments and places of macros aside, is what clang-tidy judges; the checks are part of the key.
  key=$({ cat "$TOP/.clang-tidy" "$file"; g++ -std=c++23 -I"$TOP/src" -I"$TOP" -MM "$file" 2>/dev/null | tr -d '\\' | xargs -n1 | grep '^/' |
    sort -u | xargs cat; } | sha256sum | cut -c1-32)
  if [[ -e $clean/$key ]]; then
    echo "ok ${file#"$TOP"/}"
  elif output=$(cd "$TOP" && clang-tidy-19 -quiet --extra-arg={-Wno-deprecated-declarations,-Wno-unknown-warning-option} -p "$build" "$file" 2>/dev/null); then
    : >"$clean/$key"
    echo "ok ${file#"$TOP"/}"
  else
    printf 'not ok %s\n%s\n' "${file#"$TOP"/}" "$output"
  fi
}
export -f check
export TOP build clean

results=$(jq -r '.[].file | select(test("/src/|/together/(?!sim)"))' "$build/compile_commands.json" | grep -v '_test\.cpp$' |
  xargs -P "$(nproc)" -I{} bash -c 'check {}' | tee >(cat >&2))
passed=$(grep -c '^ok ' <<<"$results") failed=$(grep -c '^not ok ' <<<"$results" || true)
echo "$passed passed, $failed failed"
((failed == 0))
