# shellcheck shell=bash
# What a suite of tests says at its end, whoever ran it. Sourced.

# verdict STATUS LOG: prints "PASSED FAILED". The log's closing lines count: "N passed, M failed" (the last of them), those of
# GoogleTest (all of them), or lines that begin with "ok " and "not ok ". A suite that broke off, or that ran nothing, has one failure,
# unless it ends well with "0 passed, 0 failed" and says in a line that begins with "skipped " what it left out.
verdict() {
  awk -v status="$1" '
    /^[0-9]+ passed, [0-9]+ failed/ { p = $1; f = $3; found = closed = 1 }
    /^\[  PASSED  \] [0-9]+ test/ { p += $4; found = 1 }
    /^\[  FAILED  \] [0-9]+ test/ { f += $4; found = 1 }
    /^skipped / { skipped = 1 }
    /^ok / { ok++ }
    /^not ok / { nok++ }
    END {
      if (!found) { p = ok; f = nok }
      if (f == 0 && (status != 0 || p == 0 && !(closed && skipped))) f = 1
      print p + 0, f + 0
    }' "$2"
}
