#!/bin/bash
# All tests; ends with the sum. Usage: dev/test.sh [--long] [SUITE...]   (default: all)
# --long: what takes too long to be done at each change as well.
# Two lanes at a time: the suites that use the local cluster mostly wait, and the others take what they leave of the cores.
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
# In an order in which neither waits for what the other builds.
work_lane=(shell format sim unit simasan tsan tidy)
cluster_lane=(lifecycle cluster charts conformance e2e upgrade)
order=("${work_lane[@]}" "${cluster_lane[@]}")

logs=$LOCAL/test
mkdir -p "$logs"
# With it the sanitizers name functions and lines.
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 TSAN_OPTIONS=external_symbolizer_path=/usr/bin/llvm-symbolizer-19
failures=$logs/failures

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
  trap 'kill "${pids[@]}" 2>/dev/null; exit 130' INT TERM
  for part in 0 1; do
    wait "${pids[part]}" || status=1
    cat "$logs/$1.$part"
  done
  awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed" }' "$logs/$1".[01]
  return $status
}

# The slowest programs first. From the top of the tree: tests read files of it.
run_unit() {
  "$DEV/cpp.sh" asan || return
  cd "$TOP"
  local first=(build/asan/{operator_nodeset,sim_kube,kube}_test)
  printf '%s\n' "${first[@]}" build/asan/*_test | awk '!seen[$0]++' | xargs -P2 -I{} bash -c 'run_program {}'
}
# Its output in one piece.
run_program() {
  local status=0 out
  out=$(timeout 900 "$1" 2>&1) || status=$?
  echo "== $1: exit status $status"
  grep -vE '^\[ (RUN      |      OK )\]|^\[-----' <<<"$out"
  return $status
}
export -f run_program
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

# A suite is a session of its own, so that all of it ends with it.
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

tell() { printf '%6d s  %-12s %s\n' $SECONDS "$@"; }

run() { # SUITE NICENESS
  local name=$1 status=0 good=0 bad=0 seconds=0 begun=$SECONDS
  tell "$name" "${suites[$name]}"
  # In the background of a script, SIGINT is ignored.
  setsid env --default-signal=INT,QUIT "$DEV/test.sh" ${long:+--long} --suite "$name" "$2" >"$logs/$name.log" 2>&1 </dev/null &
  job=$!
  while kill -0 $job 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    ((seconds % 30)) || tell "$name" "... $(tail -n 1 "$logs/$name.log" | cut -c1-90)"
  done
  wait $job || status=$?
  job=
  read -r good bad < <(verdict $status "$logs/$name.log")
  echo "$good $bad $((SECONDS - begun))" >"$logs/$name.result"
  tell "$name" "$good passed, $bad failed"
  sed -n 's/^skipped /                        skipped /p' "$logs/$name.log"
  if ((bad)); then
    {
      echo "$name: $good passed, $bad failed, exit status $status; the whole log: $logs/$name.log"
      grep -E -A 4 '^not ok|: Failure$|seed .* failed' "$logs/$name.log" | head -n 40 || true
      grep -E 'FAILED|error:' "$logs/$name.log" | head -n 20 || true
      tail -n 15 "$logs/$name.log" | sed 's/^/| /'
    } | tee -a "$failures" | sed 's/^/               /'
  fi
}

lane() { # NICENESS SUITE...
  trap interrupted INT TERM HUP
  local niceness=$1 suite
  shift
  for suite in "$@"; do run "$suite" "$niceness"; done
}

long=
if [[ ${1:-} == --long ]]; then
  long=1
  shift
fi
if [[ ${1:-} == --suite ]]; then
  renice -n "$3" $$ >/dev/null
  # Where the kernel shares the cores among sessions first, the niceness of this one counts.
  { echo "$3" >/proc/self/autogroup; } 2>/dev/null || true
  "run_$2"
  exit
fi

(($#)) || set -- "${order[@]}"
for suite in "$@"; do
  [[ -n ${suites[$suite]:-} ]] || die "unknown suite: $suite" "dev/test.sh [${order[*]}]"
  # Told before an hour of others has passed.
  if [[ $suite =~ ^(tsan|lifecycle|cluster|charts|conformance|e2e|upgrade)$ ]]; then
    need_root "make test; or, as you are: make test SUITES=\"shell format unit sim simasan tidy\"" "suite $suite needs root: it makes namespaces."
  fi
done

: >"$failures"
rm -f "$logs"/*.result
work=() cluster=()
for suite in "$@"; do
  if [[ " ${cluster_lane[*]} " == *" $suite "* ]]; then cluster+=("$suite"); else work+=("$suite"); fi
done
lanes=()
trap '((${#lanes[@]} == 0)) || { kill "${lanes[@]}"; wait "${lanes[@]}"; } 2>/dev/null; exit 130' INT TERM HUP
lane 0 "${cluster[@]}" &
lanes+=($!)
lane "$((${#cluster[@]} ? 19 : 0))" "${work[@]}" &
lanes+=($!)
wait "${lanes[@]}"

# Told again at the end, where a reader of a long log looks first.
[[ ! -s $failures ]] || { echo; cat "$failures"; }
echo
passed=0 failed=0
for suite in "${work[@]}" "${cluster[@]}"; do
  read -r good bad seconds <"$logs/$suite.result" || { good=0 bad=1 seconds=0; }
  printf '%-12s %5d s\n' "$suite" "$seconds"
  passed=$((passed + good)) failed=$((failed + bad))
done
printf '%-12s %5d s\n' "in all" $SECONDS
echo "$passed passed, $failed failed"
((failed == 0))
