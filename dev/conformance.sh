#!/bin/bash
# Our models and clients against the real Kubernetes and the real Slurm: the same requests must have the same answers. And the Slurm
# images with manifests written by hand, so that what the operator makes is measured by something.
. "$(dirname "$0")/lib.sh"
. "$DEV/cluster.sh"
. "$DEV/env.sh"
. "$DEV/verdict.sh"
. "$DEV/machine.sh"

survivors_end
port_free 24306 "$HOST_IP" dev/conformance.sh # of the MariaDB of handmade/run.sh, which comes last
"$DEV/deps.sh" test
# It would write to the objects that are compared.
! helm status slurm-operator --namespace slurm-operator >/dev/null 2>&1 ||
  die "an operator is installed, and would act on the objects of these tests." "dev/operator.sh uninstall (which deletes all Slurm clusters)"
helm upgrade --install slurm-operator-crds "$TOP/charts/slurm-operator-crds" --wait >/dev/null
"$DEV/cpp.sh" asan kube_conformance sim_kube_conformance sim_nodes_conformance slurm_conformance accounting_conformance
bin=$TOP/build/asan
passed=0 failed=0
export NODE_SCRIPT=$DEV/node.sh

# The API server forgets what was before now, as it does by itself every five minutes: so that asking for it can be tested.
forget_history() {
  local etcd=(curl -fsS --cacert "$PKI/ca.crt" --cert "$PKI/apiserver-client.crt" --key "$PKI/apiserver-client.key") revision
  revision=$("${etcd[@]}" https://127.0.0.1:2379/v3/kv/range -d '{"key": "AA=="}' | sed -nE 's/.*"revision":"([0-9]+)".*/\1/p')
  "${etcd[@]}" https://127.0.0.1:2379/v3/kv/compaction -d "{\"revision\": $revision}" >/dev/null
}

# A suite, and what its closing line says.
log=$(mktemp) slurm=$(mktemp)
slurm_test=
clean() {
  # It would go on beside whatever comes next.
  [[ -z $slurm_test ]] || { kill $slurm_test && wait $slurm_test; } 2>/dev/null || true
  rm -f "$log" "$slurm" "$RUNTIME/survivor.slurm-test"
}
trap clean EXIT
suite() {
  local status=0 good bad
  "$@" 2>&1 | tee "$log" >&2 || status=$?
  read -r good bad < <(verdict $status "$log")
  passed=$((passed + good)) failed=$((failed + bad))
}

made=$(slurm_releases made)
# Beside the rest: it needs no Kubernetes.
# shellcheck disable=SC2086  # a release a line
"$TOP/tests/conformance/slurm_test.sh" "$bin/slurm_conformance" $made >"$slurm" 2>&1 &
slurm_test=$!
survivor_note slurm-test $slurm_test

"$DEV/images/build.sh" --database >&2
# shellcheck disable=SC2086  # a release a line
suite "$TOP/tests/conformance/accounting_test.sh" "$bin/accounting_conformance" $made
suite "$TOP/tests/conformance/crd_test.sh"
suite "$TOP/tests/conformance/policy_test.sh"
suite "$TOP/tests/conformance/bridge_policy_test.sh"
suite "$bin/kube_conformance"
forget_history
suite "$bin/sim_kube_conformance"
suite env SLURMD_IMAGE="local/slurmd:${made%%$'\n'*}" "$bin/sim_nodes_conformance"
for release in $made; do suite "$DEV/manifests/handmade/run.sh" "$release"; done
# Here, because a suite runs in a shell of its own, which cannot wait for it.
status=0
wait $slurm_test || status=$?
slurm_test=
# shellcheck disable=SC2016
suite bash -c 'cat "$1"; exit "$2"' - "$slurm" $status
slurm_releases skipped | sed 's/^/skipped Slurm /'
echo "$passed passed, $failed failed"
((failed == 0))
