#!/bin/bash
# What a test that was killed leaves is ended by the next one, and nothing else is.
. "$(dirname "$0")/lib.sh"
scratch=$(mktemp -d)
RUNTIME=$scratch/runtime
begun=()
trap 'kill -KILL "${begun[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT

failed=0
check() { # WHAT COMMAND...
  if "${@:2}"; then echo "ok    $1"; else
    echo "not ok  $1"
    failed=1
  fi
}
begin() { # COMMAND...: its pid is $!
  "$@" &
  begun+=($!)
}
runs() { process_start "$1" >/dev/null; }
ends() { wait_for 30 "" eval "! runs $1"; }

begin sleep 600
owner=$!
begin sleep 600
kept=$!
survivor_note kept $kept $owner
begin sleep 600
others=$!
survivors_end
check "what has an owner stays" runs $kept

# Its number is another process's by now; and one that is deaf to SIGTERM.
echo "$others 1 $owner $(process_start $owner)" >"$RUNTIME/survivor.reused"
begin bash -c 'trap "" TERM; touch "$0"; while :; do sleep 1; done' "$scratch/deaf"
deaf=$!
wait_for 30 "" test -e "$scratch/deaf"
survivor_note deaf $deaf $owner
kill -KILL $owner
wait $owner 2>/dev/null || true
survivors_end 2>"$scratch/said"
check "what has none any more is ended" ends $kept
check "also what is deaf to SIGTERM" ends $deaf
check "and nobody else" runs $others
check "it is told" grep -q "has left kept (pid $kept)" "$scratch/said"
check "nothing is noted any more" test -z "$(ls "$RUNTIME")"
survivor_note gone $kept
check "nor what has ended already" test -z "$(ls "$RUNTIME")"
exit $failed
