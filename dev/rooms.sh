#!/bin/bash
# Tries the borders between the rooms (CMakeLists.txt): of each, includes that must not compile, and some that must.
# Usage: dev/rooms.sh, after a build of the variant asan.
. "$(dirname "$0")/lib.sh"

commands=$TOP/build/asan/compile_commands.json
[[ -e $commands ]] || die "nothing is built" "dev/cpp.sh asan"
passed=0 failed=0

# By room, the folders of the headers that it sees.
declare -A folders
while read -r room flags; do
  folders[$room]=$flags
done < <(jq -r '.[].command' "$commands" |
  sed -nE 's|^(.*) -o CMakeFiles/([a-z_]+)\.dir/.*|\2 \1|p' | awk '!seen[$1]++ { printf "%s", $1; for (i = 2; i <= NF; ++i) if ($i ~ /^-I.*\/gates\//) printf " %s", $i; print "" }')

# includes ROOM HEADER: the room finds it, and all that it includes.
includes() {
  [[ ${folders[$1]:-} ]] || die "no room is called $1" "see CMakeLists.txt"
  # shellcheck disable=SC2086
  clang++-19 -std=c++23 ${folders[$1]} -E -x c++ - <<<"#include \"$2\"" 2>"$log" >/dev/null
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
sees() { # ROOM HEADER...
  local room=$1 header
  for header in "${@:2}"; do
    if includes "$room" "$header"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "not ok  $room does not see $header: $(head -n 1 "$log")"
    fi
  done
}
sees_no() { # ROOM HEADER...
  local room=$1 header
  for header in "${@:2}"; do
    [[ -e $TOP/src/$header || -e $TOP/$header ]] || die "there is no $header" "name another in dev/rooms.sh"
    if ! includes "$room" "$header" && grep -q "file not found" "$log"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "not ok  $room sees $header: $(head -n 1 "$log")"
    fi
  done
}

sees_no core net/http.hpp plan/plan.hpp
sees_no net plan/plan.hpp kube/object.hpp
sees_no plan net/http.hpp kube/object.hpp slurm/model.hpp run/key.hpp
sees_no run net/http.hpp kube/object.hpp slurm/model.hpp
sees_no run_shell kube/object.hpp kube/client/client.hpp slurm/model.hpp
sees_no api plan/plan.hpp net/http.hpp
sees_no kube slurm/model.hpp api/kinds.hpp slinky/names.hpp
sees_no slurm kube/object.hpp api/kinds.hpp slinky/names.hpp
sees_no slinky operator/common/children.hpp
sees_no example kube/object.hpp kube/app/app.hpp slurm/model.hpp api/kinds.hpp slinky/names.hpp run/shell/shell.hpp
sees_no enlist_wire enlist/store/store.hpp kube/object.hpp run/controller.hpp
sees_no enlist_store enlist/host/host.hpp kube/object.hpp run/controller.hpp
sees_no example_plan example/folder.hpp run/controller.hpp
sees_no enlist_coordinator kube/object.hpp api/kinds.hpp slinky/names.hpp enlist/cli/program.hpp
sees_no enlist_coordinator_plan enlist/store/store.hpp enlist/wire/messages.hpp enlist/coordinator/server.hpp
sees_no enlist_cli enlist/coordinator/server.hpp enlist/store/store.hpp run/controller.hpp
sees_no operator_common operator/nodeset/plan.hpp
sees_no bridge_jobs bridge/gangs/plan.hpp
sees_no bridge_gangs bridge/jobs/plan.hpp
sees_no bridge operator/common/children.hpp operator/nodeset/plan.hpp
sees_no bridge_jobs bridge/nodes/plan.hpp
sees_no bridge_nodes bridge/jobs/plan.hpp
sees_no enlist_host net/http.hpp run/controller.hpp
sees_no enlist_agent kube/object.hpp api/kinds.hpp slinky/names.hpp
sees_no enlist_agent_plan enlist/host/host.hpp enlist/wire/messages.hpp enlist/agent/machine.hpp run/controller.hpp net/http.hpp
sees_no enlist_juju kube/object.hpp api/kinds.hpp slinky/names.hpp enlist/cli/program.hpp
sees_no enlist_juju_plan enlist/host/host.hpp enlist/juju/hook_tools.hpp enlist/agent/machine.hpp enlist/store/store.hpp net/http.hpp
sees_no sim_kube slurm/model.hpp
sees_no sim_slurm slurm/model.hpp kube/object.hpp
sees_no sim_oracles operator/operator.hpp
sees_no sim operator/operator.hpp sim/programs/operator/program.hpp example/keeper.hpp
sees_no sim_example operator/operator.hpp
sees_no sim_bridge operator/operator.hpp sim/programs/operator/program.hpp
sees_no sim_enlist operator/operator.hpp bridge/bridge.hpp enlist/cli/program.hpp sim/programs/operator/program.hpp

# What plans are made of sees no cache, no client and nothing else that reads or writes.
for room in "${!folders[@]}"; do
  [[ $room == slinky_plan || $room == operator_*_plan || $room == bridge_*_plan ]] || continue
  sees "$room" plan/plan.hpp kube/object.hpp kube/acts.hpp slurm/acts.hpp slurm/snapshot/snapshot.hpp slinky/names.hpp
  sees_no "$room" kube/{cache/cache,client/client,app/manager}.hpp run/{controller,passes}.hpp net/http.hpp \
    slurm/{rest/client,snapshot/registry,accounting/lists}.hpp slinky/{caches,wiring}.hpp operator/common/{named_objects,watches}.hpp
  program=${room%%_*} controller=${room#*_} controller=${controller%_plan}
  [[ -e $TOP/src/$program/$controller/declaration.cpp ]] || continue
  sees "$room" "$program/$controller/observed.hpp"
  sees_no "$room" "$program/$controller/observe.hpp"
  sees "${program}_$controller" "$program/$controller/observe.hpp" kube/app/manager.hpp
done

echo "$passed passed, $failed failed"
((failed == 0))
