#!/bin/bash
# How closing lines are read.
set -uo pipefail
. "$(dirname "$0")/verdict.sh"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

failed=0
says() { # WHAT STATUS LOG WANTED
  local got
  printf '%b' "$3" >"$log"
  got=$(verdict "$2" "$log")
  if [[ $got == "$4" ]]; then echo "ok    $1"; else
    echo "not ok  $1: got '$got', want '$4'"
    failed=1
  fi
}

says "a closing line" 0 '3 passed, 0 failed\n' "3 0"
says "the last closing line" 1 '3 passed, 0 failed\n7 passed, 2 failed\n' "7 2"
says "GoogleTest, several programs" 0 '[  PASSED  ] 4 tests.\n[  PASSED  ] 3 tests.\n' "7 0"
says "GoogleTest" 1 '[  PASSED  ] 4 tests.\n[  FAILED  ] 2 tests, listed below:\n' "4 2"
says "lines of ok" 1 'ok a\nnot ok b\nok c\n' "2 1"
says "a suite that ran nothing" 0 '' "0 1"
says "nothing passed" 0 '0 passed, 0 failed\n' "0 1"
says "nothing to do here" 0 'skipped upgrade: no such commit\n0 passed, 0 failed\n' "0 0"
says "a part skipped" 0 'skipped Slurm 24.11: no image\n3 passed, 0 failed\n' "3 0"
says "skipped, and failed" 0 'skipped Slurm 24.11: no image\n0 passed, 2 failed\n' "0 2"
says "skipped, and broken off" 1 'skipped upgrade: no such commit\n0 passed, 0 failed\n' "0 1"
says "skipped, without a closing line" 0 'skipped Slurm 24.11: no image\n' "0 1"
says "no line begins with it" 0 'ok to be skipped \n0 passed, 0 failed\n' "0 1"
says "all skipped" 0 '[  PASSED  ] 0 tests.\n' "0 1"
says "broken off after a good line" 1 '3 passed, 0 failed\n' "3 1"
says "broken off" 130 'ok a\n' "1 1"
exit $failed
