#!/bin/bash
# How dev/test.sh runs suites: where it stops, what it says last, what a kill leaves. With suites that do nothing.
set -uo pipefail

scratch=$(TMPDIR=/tmp mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/clone"
cp -r "$(dirname "$0")" "$scratch/clone/dev"
cd "$scratch/clone" || exit 1
rm dev/*_test.sh
# The suite `shell` is this script's, `tidy` one that passes.
mkdir -p images/none
printf '#!/bin/bash\n' | tee dev/deps.sh dev/tidy.sh dev/planted_test.sh >images/none/none_test.sh
chmod +x dev/planted_test.sh images/none/none_test.sh
echo 'echo "3 passed, 0 failed"' >>dev/tidy.sh
plant() { printf '#!/bin/bash\n%s\n' "$1" >dev/planted_test.sh; }
unset KEEP_GOING SEEDS

failed=0
check() { # WHAT GOT PATTERN
  # shellcheck disable=SC2053
  if [[ $2 == $3 ]]; then echo "ok    $1"; else
    printf 'not ok  %s: got "%s", want "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}
run() { # ARGUMENT...: what it says, and its status
  local status=0
  dev/test.sh "$@" 2>&1 </dev/null || status=$?
  echo "status $status"
}

plant 'echo "ok one"'
check "what passes" "$(run shell tidy)" "*shell*1 passed, 0 failed*tidy*3 passed, 0 failed*4 passed, 0 failed*status 0"
plant 'echo "ok one"; echo "FAIL the planted fault"; exit 1'
check "a failure ends the run, and is told by name" "$(run shell tidy)" \
  $'*shell failed; *FAIL the planted fault*not ok  dev/planted_test.sh*not run: tidy*\n*1 passed, 1 failed\nstatus 1'
check "KEEP_GOING=1" "$(KEEP_GOING=1 run shell tidy)" "*tidy*3 passed, 0 failed*shell failed*FAIL the planted fault*4 passed, 1 failed*status 1"
plant 'exit 0'
check "a suite that ran nothing has failed" "$(run shell)" "*0 passed, 1 failed*status 1"
# Long enough for it to begin.
sed -i 's/\[shell\]=600/[shell]=10/' dev/test.sh
plant 'echo $$ >hangs; sleep 600'
check "a suite that hangs" "$(run shell tidy)" "*not ok  shell did not end within 10 s*not run: tidy*status 1"
check "it is gone" "$(kill -0 "$(<hangs)" 2>&1)" "*No such process*"
sed -i 's/\[shell\]=10/[shell]=600/' dev/test.sh
check "an unknown suite" "$(run units)" "*unknown suite: units*status 1"

# A kill leaves the suite; the next run ends it first.
rm hangs
setsid dev/test.sh shell >killed 2>&1 &
killed=$!
for ((i = 0; i < 600; i++)); do [[ ! -s hangs ]] || break; sleep 0.1; done
check "one run at a time" "$(run tidy)" "*tests of this clone run already (pid $killed)*kill $killed*status 1"
kill -KILL $killed
wait $killed 2>/dev/null
check "after a kill" "$(run tidy)" "*still runs: it is ended*3 passed, 0 failed*status 0"
check "what it left is gone" "$(kill -0 "$(<hangs)" 2>&1)" "*No such process*"

# The same seeds twice would say nothing new. The simulator is one that writes down what it is asked for.
mkdir -p build/release
cat >build/release/slurm-operator-sim <<'END'
#!/bin/bash
echo "$*" >>simulated
echo "1 passed, 0 failed"
END
chmod +x build/release/slurm-operator-sim
printf '#!/bin/bash\n' >dev/cpp.sh
SEEDS=7 SEED_BASE=5 run --long sim histories >/dev/null
check "histories go on where sim has ended" "$(sort -u simulated)" "--seeds 7 --seed-base 12 *--enumerate*--seeds 7 --seed-base 5 *"
exit $failed
