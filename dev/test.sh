#!/bin/bash
# All tests, one suite after the other; ends with the sum. Usage: dev/test.sh [--long] [SUITE...]   (default: all, in this order)
# --long: what takes too long to be done at each change as well.
. "$(dirname "$0")/lib.sh"
. "$DEV/verdict.sh"

declare -A suites=(
  [shell]="the scripts' own tests"
  [format]="clang-format"
  [unit]="unit tests and scenario files, under ASan and UBSan"
  [sim]="the simulator: histories from a seed, and a fixed one with every fault at its writes"
  [simasan]="the simulator under ASan and UBSan"
  [tsan]="the program under TSan, against the simulators behind HTTP servers"
  [tidy]="clang-tidy"
  [lifecycle]="the local cluster itself: refusals, interrupted and unclean stops, nothing left, no WatchList"
  [cluster]="a local Kubernetes: pods, network, DNS, volumes"
  [charts]="the charts"
  [conformance]="clients and simulators against the real Kubernetes and the real Slurm"
  [e2e]="end to end on the local cluster, each Slurm release that there are images of"
  [upgrade]="the operator's own upgrade from an earlier commit, and back, under busy workers"
)
order=(shell format unit sim simasan tsan tidy lifecycle cluster charts conformance e2e upgrade)

logs=$LOCAL/test
mkdir -p "$logs"
# With it the sanitizers name functions and lines.
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 TSAN_OPTIONS=external_symbolizer_path=/usr/bin/llvm-symbolizer-19
passed=0 failed=0 failures=$logs/failures times=()
: >"$failures"

run_shell() {
  local status=0 script
  for script in "$DEV"/*_test.sh "$TOP"/images/*/*_test.sh; do "$script" || status=1; done
  return $status
}

run_format() {
  "$DEV/deps.sh" lint
  local files file bad=0 good=0
  files=$(cd "$TOP" && git ls-files 'src/*.[ch]pp' 'sim/*.[ch]pp' 'tests/*.[ch]pp' 'bench/*.[ch]pp') || return
  while read -r file; do
    if clang-format --dry-run --Werror "$TOP/$file" 2>&1; then good=$((good + 1)); else bad=$((bad + 1)); fi
  done <<<"$files"
  echo "$good passed, $bad failed"
}

# Two processes, one a core, each with every second seed and fault.
simulate() { # VARIANT SEEDS [OPTION...]
  local sim=$TOP/build/$1/slurm-operator-sim part pids=() status=0
  "$DEV/cpp.sh" "$1" slurm-operator-sim
  for part in 0 1; do
    "$sim" --seeds "$2" --seed-base "${SEED_BASE:-1}" --parts 2 --part $part "${@:3}" >"$logs/$1.$part" 2>&1 &
    pids+=($!)
  done
  # In the background of a script, SIGINT is ignored.
  trap 'kill "${pids[@]}" 2>/dev/null; exit 130' INT TERM
  for part in 0 1; do
    wait "${pids[part]}" || status=1
    cat "$logs/$1.$part"
  done
  awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed" }' "$logs/$1".[01]
  return $status
}

run_unit() { "$DEV/cpp.sh" asan && ctest --test-dir "$TOP/build/asan" --no-tests=error -j2 --timeout 300 --output-on-failure; }
# Every fault at every second write; the long run leaves none out.
run_sim() {
  if [[ $long ]]; then
    simulate release "${SEEDS:-1000}" --enumerate
  elif [[ -n ${SEEDS:-} ]]; then
    simulate release "$SEEDS"
  else
    simulate release 200 --enumerate --stride 2
  fi
}
run_simasan() { simulate asan "$([[ $long ]] && echo 60 || echo 6)" --no-enumerate; }
run_tsan() { "$DEV/cpp.sh" tsan runtime_tsan_test && "$TOP/build/tsan/runtime_tsan_test"; }
run_tidy() { "$DEV/deps.sh" lint && "$DEV/tidy.sh"; }
run_charts() { "$DEV/deps.sh" test && "$DEV/up.sh" && . "$DEV/env.sh" && "$TOP/tests/charts/charts_test.sh"; }
run_lifecycle() { "$DEV/lifecycle.sh"; }
run_cluster() { "$DEV/up.sh" && "$DEV/smoke.sh"; }
run_conformance() { "$DEV/up.sh" && "$DEV/conformance.sh"; }
run_e2e() {
  "$DEV/up.sh"
  "$DEV/deps.sh" test
  "$DEV/operator.sh" install
  python3 "$TOP/tests/e2e/run.py" ${long:+--long}
}
run_upgrade() { "$DEV/up.sh" && "$DEV/deps.sh" test && "$DEV/operator.sh" install && python3 "$TOP/tests/e2e/upgrade.py"; }

# A suite is a process group of its own, which does not ignore SIGINT as other jobs of scripts do: Ctrl-C ends all of it.
job=
interrupted() {
  trap '' INT TERM HUP
  local signal
  for signal in ${job:+INT TERM KILL}; do
    kill "-$signal" -- "-$job" 2>/dev/null || break
    wait_for 5 "" job_gone && break
  done
  exit 130
}
job_gone() { ! kill -0 -- "-$job"; }
trap interrupted INT TERM HUP

run() {
  local name=$1 status=0 good=0 bad=0 seconds=0 begun=$SECONDS
  step "$name: ${suites[$name]}"
  set -m
  ("run_$name") >"$logs/$name.log" 2>&1 </dev/null &
  job=$!
  set +m
  while kill -0 $job 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    ((seconds % 30)) || say "               ... ${seconds} s: $(tail -n 1 "$logs/$name.log" | cut -c1-90)"
  done
  wait $job || status=$?
  job=
  read -r good bad < <(verdict $status "$logs/$name.log")
  passed=$((passed + good)) failed=$((failed + bad))
  times+=("$(printf '%-12s %5d s' "$name" $((SECONDS - begun)))")
  say "               $good passed, $bad failed"
  sed -n 's/^skipped /               skipped /p' "$logs/$name.log"
  if ((bad)); then
    {
      echo "$name: $good passed, $bad failed, exit status $status; the whole log: $logs/$name.log"
      grep -E -A 4 '^not ok|: Failure$|seed .* failed' "$logs/$name.log" | head -n 40 || true
      grep -E 'FAILED|error:' "$logs/$name.log" | head -n 20 || true
      tail -n 15 "$logs/$name.log" | sed 's/^/| /'
    } | tee -a "$failures" | sed 's/^/               /'
  fi
}

long=
if [[ ${1:-} == --long ]]; then
  long=1
  shift
fi
(($#)) || set -- "${order[@]}"
for suite in "$@"; do
  [[ -n ${suites[$suite]:-} ]] || die "unknown suite: $suite" "dev/test.sh [${order[*]}]"
  # Told before an hour of others has passed.
  if [[ $suite =~ ^(tsan|lifecycle|cluster|charts|conformance|e2e|upgrade)$ ]]; then
    need_root "make test; or, as you are: make test SUITES=\"shell format unit sim simasan tidy\"" "suite $suite needs root: it makes namespaces."
  fi
done
for suite in "$@"; do run "$suite"; done
# Told again at the end, where a reader of a long log looks first.
((failed == 0)) || { echo; cat "$failures"; }
echo
printf '%s\n' "${times[@]}"
echo "$passed passed, $failed failed"
((failed == 0))
