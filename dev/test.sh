#!/bin/bash
# Runs tests, one suite at a time, and ends with the sum. Stops at the first suite that fails, unless KEEP_GOING=1.
#   dev/test.sh [SUITE...]              the gate, what each change has to pass (default: all of its suites); or any suite by its name
#   dev/test.sh --cluster [SUITE...]    what takes longer: each part of the local cluster, more histories, other seeds
#   dev/test.sh --long [SUITE...]       both, with what takes hours: each Slurm release, every fault at every write
. "$(dirname "$0")/lib.sh"
. "$DEV/verdict.sh"
. "$DEV/cluster.sh"
. "$DEV/machine.sh"

# Builds come first, so that no test with a real clock runs beside one.
gate=(shell format build unit charts sim simasan main)
beside=(tidy tsan properties histories enlist packages charms lifecycle cluster conformance e2e upgrade)
declare -A suites=(
  [shell]="the scripts' own tests"
  [format]="clang-format"
  [build]="everything that the gate needs, and the borders between rooms"
  [unit]="unit tests and scenario files, under ASan and UBSan"
  [charts]="the charts, without a cluster"
  [sim]="the simulator: histories from a seed, and a fixed one with faults at its writes"
  [simasan]="the simulator under ASan and UBSan"
  [main]="the main job on a local cluster: make demo, a scale-in under a job, make down"
  [tidy]="clang-tidy"
  [tsan]="the program under TSan, against the simulators behind HTTP servers"
  [properties]="the property tests, with a random seed"
  [histories]="the simulator: 200 histories, and every fault at every fourth write"
  [enlist]="slurm-enlist with hosts in namespaces, each Slurm release that there are images of"
  [packages]="slurm-enlist's packages on a plain Debian, and its services under systemd, with each Slurm release that there are images of"
  [charms]="the charms of Juju, packed, as Juju's own parser reads them"
  [lifecycle]="the local cluster itself: refusals, interrupted and unclean stops, nothing left, no WatchList"
  [cluster]="a local Kubernetes: pods, network, DNS, volumes"
  [conformance]="clients and simulators against the real Kubernetes and the real Slurm"
  [e2e]="end to end on the local cluster, each Slurm release that there are images of"
  [upgrade]="the operator's own upgrade from an earlier commit, and back, under busy workers"
)
# Seconds after which a suite hangs, and never a verdict about speed: many times what it takes once all is built.
declare -A limits=([shell]=600 [format]=600 [build]=5400 [unit]=5400 [charts]=1800 [sim]=3600 [simasan]=3600 [main]=3600 [e2e]=28800)
on_the_cluster=" main lifecycle cluster conformance e2e upgrade "

logs=$LOCAL/test
mkdir -p "$logs"
# With it the sanitizers name functions and lines.
export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 TSAN_OPTIONS=external_symbolizer_path=/usr/bin/llvm-symbolizer-19
# What UBSan finds ends the program, as what ASan finds does.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Property tests do the same in each run; the suite `properties` has other seeds.
export RC_PARAMS=${RC_PARAMS-seed=1}

run_shell() {
  local status=0 script
  for script in "$DEV"/*_test.sh "$TOP"/images/*/*_test.sh; do
    echo "== ${script#"$TOP/"}"
    "$script" || { echo "not ok  ${script#"$TOP/"}"; status=1; }
  done
  return $status
}

run_format() {
  "$DEV/deps.sh" lint
  (cd "$TOP" && git ls-files -z 'src/*.[ch]pp' 'sim/*.[ch]pp' 'tests/*.[ch]pp' 'bench/*.[ch]pp') >"$logs/formatted"
  (cd "$TOP" && xargs -0 -n 20 -P "$(nproc)" clang-format --dry-run --Werror <"$logs/formatted") || return
  echo "$(tr -cd '\0' <"$logs/formatted" | wc -c) passed, 0 failed"
}

# Kubernetes and the images beside the C++ programs: they wait for the network.
run_build() {
  "$DEV/deps.sh" cluster images build clang lint test monitoring
  { "$DEV/build.sh" cluster && "$DEV/images/build.sh" >"$logs/images" && echo "ok      Kubernetes, and images of Slurm"; } &
  local kubernetes=$!
  "$DEV/cpp.sh" asan
  echo "ok      the C++ programs, with sanitizers"
  "$DEV/rooms.sh" >"$logs/rooms" || { grep '^not ok' "$logs/rooms"; return 1; }
  echo "ok      the borders between rooms"
  "$DEV/cpp.sh" release slurm-operator kubectl-slurm slurm-operator-sim
  echo "ok      the operator and the simulator"
  wait $kubernetes
}

# Two processes, one a core, each with every second seed and fault. A history makes and drops JSON documents all the time: with
# jemalloc that takes a sixth less. (Sanitizers have an allocator of their own, and `--bench` asks the system's what is in use.)
simulate() { # VARIANT SEEDS [OPTION...]
  local sim=$TOP/build/$1/slurm-operator-sim part pids=() status=0 allocator=
  "$DEV/cpp.sh" "$1" slurm-operator-sim
  [[ $1 != release ]] || allocator=$(ldconfig -p | awk '/libjemalloc\.so\.2 / && !n++ { print $NF }')
  for part in 0 1; do
    LD_PRELOAD=$allocator "$sim" --seeds "$2" --seed-base "${SEED_BASE:-1}" --parts 2 --part $part "${@:3}" >"$logs/$1.$part" 2>&1 &
    pids+=($!)
  done
  for part in 0 1; do
    wait "${pids[part]}" || status=1
    cat "$logs/$1.$part"
  done
  awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0 " passed, " f + 0 " failed" }' "$logs/$1".[01]
  return $status
}

# programs NAME...: these tests, two at a time, from the top of the tree: they read files of it.
programs() {
  cd "$TOP"
  printf '%s\n' "$@" | xargs -P2 -I{} bash -c 'run_program {}'
}
# Its output in one piece.
run_program() {
  local status=0 out
  out=$("$1" 2>&1) || status=$?
  # One that ends early, or has no tests, is not covered by what the others say.
  if ! grep -qE '^\[  (PASSED|FAILED)  \] [1-9]' <<<"$out"; then
    echo "not ok  $1 did not run its tests to the end"
    ((status)) || status=1
  fi
  echo "== $1: exit status $status"
  grep -vE '^\[ (RUN      |      OK )\]|^\[-----' <<<"$out"
  return $status
}
export -f run_program

# The slowest programs first.
run_unit() {
  "$DEV/cpp.sh" asan || return
  [[ $kind != long ]] || export SIM_WHOLE=1
  local first=("$TOP"/build/asan/{sim_operator,kube,sim_bridge,operator_nodeset,operator_controller}_test) all
  mapfile -t all < <(printf '%s\n' "${first[@]}" "$TOP"/build/asan/*_test | awk '!seen[$0]++')
  programs "${all[@]}"
}
run_properties() {
  "$DEV/cpp.sh" asan || return
  RC_PARAMS="seed=$RANDOM$RANDOM"
  echo "RC_PARAMS=\"$RC_PARAMS\""
  local with
  mapfile -t with < <(for program in "$TOP"/build/asan/*_test; do ! grep -qa RC_PARAMS "$program" || echo "$program"; done)
  programs "${with[@]}"
}
run_sim() { simulate release "${SEEDS:-60}" $([[ -n ${SEEDS:-} ]] || echo --enumerate --stride 60); }
run_histories() {
  [[ $kind == long ]] || { simulate release 200 --enumerate --stride 4; return; }
  # On from where the suite sim has ended.
  SEED_BASE=$((${SEED_BASE:-1} + ${SIMULATED:-0})) simulate release "${SEEDS:-1000}" --enumerate
}
run_simasan() { simulate asan "$([[ $kind == long ]] && echo 60 || echo 2)" --no-enumerate; }
run_tsan() { "$DEV/cpp.sh" tsan runtime_tsan_test && "$TOP/build/tsan/runtime_tsan_test"; }
run_tidy() { "$DEV/deps.sh" lint && "$DEV/tidy.sh"; }
run_charts() { "$DEV/deps.sh" test monitoring && "$DEV/build.sh" cluster && "$TOP/tests/charts/charts_test.sh"; }
run_main() { "$DEV/main-job.sh"; }
run_enlist() {
  "$DEV/deps.sh" test
  "$DEV/images/build.sh" >/dev/null
  "$DEV/cpp.sh" release slurm-enlist
  python3 "$TOP/tests/enlist/enlist_test.py"
}
run_packages() {
  "$DEV/deps.sh" test
  "$DEV/images/build.sh" >/dev/null
  "$DEV/packages.sh"
  local tag
  for tag in debian $(slurm_releases made); do "$DEV/images/systemd.sh" "$tag"; done
  "$TOP/tests/enlist/packages_test.sh"
  python3 "$TOP/tests/enlist/systemd_test.py"
}
run_charms() { "$DEV/deps.sh" cluster && "$TOP/tests/charms/charms_test.sh"; }
run_lifecycle() { "$DEV/lifecycle.sh"; }
run_cluster() { "$DEV/up.sh" && "$DEV/smoke.sh"; }
run_conformance() { "$DEV/up.sh" && "$DEV/conformance.sh"; }
run_e2e() {
  "$DEV/up.sh"
  "$DEV/deps.sh" test monitoring smoke
  "$DEV/build.sh" metrics
  [[ $kind != long ]] || "$DEV/build.sh" keda
  "$DEV/cpp.sh" release kubectl-slurm
  "$DEV/operator.sh" install
  python3 "$TOP/tests/e2e/run.py" $([[ $kind != long ]] || echo --long)
}
run_upgrade() { "$DEV/up.sh" && "$DEV/deps.sh" test && "$DEV/operator.sh" install && python3 "$TOP/tests/e2e/upgrade.py"; }

kind=gate
case ${1:-} in
  --cluster | --long)
    kind=${1#--}
    shift
    ;;
  --suite) # what the script calls itself with: --suite KIND NAME
    kind=$2
    "run_$3"
    exit
    ;;
esac

if ((!$#)); then
  case $kind in
    gate) set -- "${gate[@]}" ;;
    cluster) set -- "${beside[@]}" ;;
    long) set -- "${gate[@]}" "${beside[@]}" ;;
  esac
fi
needs_cluster=
for suite in "$@"; do
  [[ -n ${suites[$suite]:-} ]] || die "unknown suite: $suite" "dev/test.sh [${gate[*]} ${beside[*]}]"
  if [[ $on_the_cluster == *" $suite "* || $suite == tsan || $suite == enlist || $suite == packages ]]; then
    need_root "make test; or, as you are: make test SUITES=\"shell format unit sim simasan\"" "suite $suite needs root: it makes namespaces."
  fi
  [[ $on_the_cluster != *" $suite "* ]] || needs_cluster=1
done

# ---- Can they work here? ---------------------------------------------------------------------------------------------

exec 8>"$logs/lock"
# A moment: what a killed run had begun has it open too.
if ! flock -w 3 8; then
  other=$(process_of "$logs/runner") || true
  die "tests of this clone run already${other:+ (pid $other)}." "wait for them, or end them${other:+: kill $other}"
fi
echo "$$ $(process_start $$)" >"$logs/runner"

job_gone() { ! kill -0 -- "-$job" 2>/dev/null; }
# A suite is a session of its own, so that all of it ends with it.
end_job() {
  local signal
  for signal in ${job:+INT TERM KILL}; do
    kill "-$signal" -- "-$job" 2>/dev/null || break
    wait_for 5 "" job_gone && break
  done
  job=
}
# A suite that outlived the script that ran it.
if job=$(process_of "$logs/suite"); then
  warn "a suite of a run that was killed still runs: it is ended"
  end_job
fi
rm -f "$logs/suite"
job=

if [[ $needs_cluster ]]; then
  check_owner
  memory_and_disk "$([[ -d $CACHE/built ]] && echo 6144 || echo 20480)"
  capsule_alive control || check_ports "make test"
fi

# ---- One after the other ---------------------------------------------------------------------------------------------

trap 'trap "" INT TERM HUP; end_job; exit 130' INT TERM HUP
tell() { printf '%6d s  %-12s %s\n' $SECONDS "$@"; }

# The lines that say what failed, and the end.
failing_lines() { # LOG
  {
    grep -nE -A 6 '^not ok|^FAIL|: Failure$|^(seed|fault|the fixed history) .*failed|^== .*: exit status [1-9]' "$1" | head -n 60
    grep -nE '^\[  FAILED  \]|error:|runtime error|(ERROR|WARNING): [A-Za-z]+Sanitizer' "$1" | head -n 30
  } || true
  tail -n 15 "$1" | sed 's/^/| /'
}

run() { # SUITE
  local name=$1 status=0 good=0 bad=0 seconds=0 begun=$SECONDS limit=${limits[$1]:-7200} log=$logs/$1.log
  [[ $kind != long ]] || limit=$((86400 * 2))
  tell "$name" "${suites[$name]}"
  # In the background of a script, SIGINT is ignored.
  setsid env --default-signal=INT,QUIT "$DEV/test.sh" --suite $kind "$name" >"$log" 2>&1 </dev/null 8>&- &
  job=$!
  echo "$job $(process_start $job)" >"$logs/suite"
  while kill -0 $job 2>/dev/null; do
    sleep 1 8>&-
    seconds=$((seconds + 1))
    if ((SECONDS - begun > limit)); then
      echo "not ok  $name did not end within $limit s" >>"$log"
      status=124
      kill -INT -- "-$job" 2>/dev/null || true
      wait_for 10 "" job_gone || kill -KILL -- "-$job" 2>/dev/null || true
      break
    fi
    ((seconds % 30)) || tell "$name" "... $(tail -n 1 "$log" | cut -c1-90)"
  done
  ((status)) || wait $job || status=$?
  kill -TERM -- "-$job" 2>/dev/null || true # what a suite that failed has left in the background
  job=
  rm -f "$logs/suite"
  read -r good bad < <(verdict $status "$log")
  passed=$((passed + good)) failed=$((failed + bad))
  tell "$name" "$good passed, $bad failed"
  summary+=("$(printf '%-12s %5d s  %5d passed, %d failed' "$name" $((SECONDS - begun)) "$good" "$bad")")
  sed -n 's/^skipped /                        skipped /p' "$log"
  ((bad == 0)) || red+=("$name")
}

[[ " $* " != *" sim "* ]] || export SIMULATED=${SEEDS:-60}
passed=0 failed=0 summary=() red=() rest=("$@")
for suite in "$@"; do
  rest=("${rest[@]:1}")
  run "$suite"
  if ((${#red[@]})) && [[ ! ${KEEP_GOING:-} ]]; then break; fi
done

echo
((!${#summary[@]})) || printf '%s\n' "${summary[@]}"
printf '%-12s %5d s\n' "in all" $SECONDS
for suite in "${red[@]}"; do
  printf '\n%s failed; the whole log: %s\n' "$suite" "$logs/$suite.log"
  failing_lines "$logs/$suite.log" | sed 's/^/   /'
done
((!${#rest[@]})) || printf '\nnot run: %s (KEEP_GOING=1 runs them all the same)\n' "${rest[*]}"
echo "$passed passed, $failed failed"
((failed == 0))
