#!/bin/bash
# What the user's shell and the machine bring along, and must not matter.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failed=0
check() { # WHAT GOT WANT: a pattern
  # shellcheck disable=SC2053
  if [[ $2 == $3 ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

# ---- Locale ----------------------------------------------------------------------------------------------------------

# One of our own: those of Debian are a package of their own.
printf 'LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\nEND LC_NUMERIC\n' >"$scratch/german"
{
  printf '<code_set_name> ASCII\n<mb_cur_max> 1\nCHARMAP\n'
  for i in {0..127}; do printf '<U%04X> /x%02x\n' "$i" "$i"; done
  echo 'END CHARMAP'
} >"$scratch/ascii"
localedef -c -f "$scratch/ascii" -i "$scratch/german" "$scratch/comma" &>"$scratch/log"
german=(env -u LC_ALL LOCPATH="$scratch" LC_NUMERIC=comma)
# shellcheck disable=SC2016
check "the locale has a decimal comma" "$("${german[@]}" bash -c 'echo "$EPOCHREALTIME"' 2>&1)" '*,*'
# shellcheck disable=SC2016
check "times in it" "$("${german[@]}" bash -c '. dev/lib.sh; step one; wait_for 0 "" false || echo "$EPOCHREALTIME"' 2>&1)" $' 1      0.? s  one\n*.*'
exit $failed
