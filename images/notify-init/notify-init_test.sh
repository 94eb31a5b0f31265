#!/bin/bash
# Tests of notify-init, with shells for daemons. Usage: notify-init_test.sh [NOTIFY-INIT]; compiles it where none is named.
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
init=${1:-$scratch/notify-init}
[[ -x $init ]] || g++ -std=c++20 -static -Os -o "$init" "$(dirname "$0")/notify-init.cpp" || exit 1

# What a daemon does to tell its parent something: notify MESSAGE [PID]; with a PID, as soon as that process has ended.
cat >"$scratch/notify" <<'END'
#!/usr/bin/perl
use Socket;
if (@ARGV > 1) {
  open(my $file, '>', $ENV{waits}) or die;
  select(undef, undef, undef, 0.01) while kill 0, $ARGV[1];
}
socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die;
send($s, $ARGV[0], 0, sockaddr_un($ENV{NOTIFY_SOCKET})) or die;
END
chmod +x "$scratch/notify"
export notify=$scratch/notify pids=$scratch/pids socket=$scratch/socket waits=$scratch/waits left=$scratch/left

failures=0
expect() { # NAME WANTED GOT
  if [[ $2 == "$3" ]]; then echo "ok   $1"; else echo "FAIL $1: wanted '$2', got '$3'"; failures=$((failures + 1)); fi
}
# in_background SCRIPT: runs a daemon under notify-init: $!. Signals may only follow once the daemon has written something.
in_background() {
  rm -f "$pids" "$socket" "$scratch/log"
  # Under nohup SIGHUP is ignored, which a shell cannot undo.
  env --default-signal=HUP "$init" bash -c "$1" 2>"$scratch/log" &
}
await() { for ((i = 0; i < 1500; i++)); do eval "$1" && return; sleep 0.02; done; echo "FAIL never: $1"; failures=$((failures + 1)); }
alive() { kill -0 "$1" 2>/dev/null; }

"$init" bash -c 'exit 7' 2>/dev/null
expect "passes on the exit code" 7 $?
"$init" bash -c 'kill -KILL $$' 2>/dev/null
expect "tells the signal that ended the daemon" 137 $?
"$init" /no/such/program 2>/dev/null
expect "no such program" 127 $?

in_background 'trap "exit 3" TERM; echo $$ >$pids; while :; do sleep 0.02; done'
await '[[ -s $pids ]]'
kill -TERM $!
wait $!
expect "passes on SIGTERM" 3 $?

in_background 'trap "echo hup >>$pids" HUP; trap "exit 0" TERM; echo up >$pids; while :; do sleep 0.02; done'
await '[[ -s $pids ]]'
kill -HUP $!
await 'grep -q hup $pids'
expect "lives on after SIGHUP" yes "$(alive $! && echo yes)"
kill -TERM $!
wait $!

successor='trap "exit 5" TERM; echo $$ >$pids; while :; do sleep 0.02; done'
in_background "echo \$NOTIFY_SOCKET >\$socket; setsid bash -c '$successor' & child=\$!; until [[ -s \$pids ]]; do sleep 0.02; done
  \$notify \$'READY=1\nMAINPID='\$child; exit 0"
await 'grep -q "takes over" $scratch/log'
sleep 1.3
expect "stays with the successor" yes "$(alive $! && echo yes)"
kill -TERM $!
wait $!
expect "ends with the successor's code" 5 $?
expect "removes its socket" no "$([[ -e $(<"$socket") || -e $(dirname "$(<"$socket")") ]] && echo yes || echo no)"

in_background "setsid bash -c '$successor' & child=\$!; until [[ -s \$pids ]]; do sleep 0.02; done
  \$notify MAINPID=\$child \$\$ & until [[ -e \$waits ]]; do sleep 0.02; done; exit 0"
await 'grep -q "takes over" $scratch/log'
expect "waits a moment for a late announcement" yes "$(alive $! && echo yes)"
kill -TERM $!
wait $!
expect "and follows it" 5 $?

in_background 'trap "exit 4" TERM; (exit 1); echo $$ >$pids; while :; do sleep 0.02; done'
await '[[ -s $pids ]]'
expect "a successor that failed changes nothing" yes "$(alive $! && echo yes)"
kill -TERM $!
wait $!
expect "and the old one still gets signals" 4 $?

in_background '$notify MAINPID=1; $notify MAINPID=999999999; $notify STATUS=hello; exit 6'
wait $!
expect "ignores nonsense" 6 $?
expect "logs what it ignored" 2 "$(grep -c ignored "$scratch/log")"
expect "logs the status" 1 "$(grep -c 'status: hello' "$scratch/log")"

in_background 'setsid sleep 600 & echo $! >$left; trap "exit 0" TERM; echo $$ >$pids; while :; do sleep 0.02; done'
await '[[ -s $pids ]]'
kill -TERM $!
wait $!
expect "does not wait for those that a stopped daemon left" yes "$(alive "$(<"$left")" && echo yes)"
kill "$(<"$left")"

# Each is left by a shell that ends at once, and is not the daemon's child any more.
in_background '>$left; for i in 1 2 3; do (setsid sh -c "echo \$\$ >>$left; sleep 0.05" &) done; echo $$ >$pids; exec sleep 600'
await '[[ -s $pids && $(wc -l <"$left") == 3 ]]'
init_pid=$!
await '(($(pgrep -c -P $init_pid) == 1))'
expect "reaps orphans" 1 "$(pgrep -c -P $init_pid)"
kill -TERM $init_pid
wait $init_pid

((failures == 0)) || { echo "$failures failed"; exit 1; }
