#!/bin/bash
# What the user's shell and the machine bring along, and must not matter.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
dev/deps.sh base test || exit 1
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
check "times in it" "$("${german[@]}" bash -c '. dev/lib.sh; step one; wait_for 0 "" false || echo "$EPOCHREALTIME"' 2>&1)" $' 1 *[0-9].[0-9] s  one\n*.*'

# ---- Mode mask -------------------------------------------------------------------------------------------------------

for mask in 077 027 002; do
  check "what is made under umask $mask can be read" "$(umask $mask && bash -c '. dev/lib.sh; umask')" 0022
done

# ---- Proxies ---------------------------------------------------------------------------------------------------------

clone="$scratch/a clone"
mkdir -p "$clone/.local"
cp -r dev tests "$clone/"
proxied=(env -u no_proxy -u NO_PROXY -u SLURM_OPERATOR_NET http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1)
of() { echo "10.$1.0.1,10.$1.0.0/24,10.$(($1 + 1)).0.0/16,10.$(($1 + 2)).0.0/16"; } # what of a cluster no proxy may come before
# direct_after SCRIPT [VARIABLE...]: both lists, after it was sourced twice.
direct_after() {
  # shellcheck disable=SC2016
  "${proxied[@]}" "${@:2}" bash -c '. "$0"; . "$0"; echo "$no_proxy"; env | sed -n s/^NO_PROXY=//p' "$clone/dev/$1" 2>&1
}
twice() { printf '%s\n%s' "$1" "$1"; }
check "the cluster behind no proxy" "$(direct_after lib.sh)" "$(twice "localhost,127.0.0.1,$(of 214)")"
check "with other addresses" "$(direct_after lib.sh SLURM_OPERATOR_NET=10.100)" "$(twice "localhost,127.0.0.1,$(of 100)")"
check "with a list of the user's" "$(direct_after lib.sh no_proxy=a.example,127.0.0.1)" "$(twice "a.example,127.0.0.1,localhost,$(of 214)")"
check "with such a list in capitals" "$(direct_after lib.sh NO_PROXY=a.example)" "$(twice "a.example,localhost,127.0.0.1,$(of 214)")"
check "with a list of all" "$(direct_after lib.sh no_proxy='*')" "$(twice '\*')"
check "with addresses that are none" "$(direct_after lib.sh SLURM_OPERATOR_NET=ten.1)" "$(twice localhost,127.0.0.1)"
# shellcheck disable=SC2016
sourced=(bash -euc '. "$0/dev/env.sh"; echo "KUBECONFIG=$KUBECONFIG"' "$clone")
check "env.sh without a cluster says what to do" "$("${sourced[@]}" 2>&1)" "error: the local cluster is not up: *
   do: make up, in *a clone
KUBECONFIG=*/.local/kubeconfig"
echo '    server: "https://10.50.0.1:6443"' >"$clone/.local/kubeconfig"
check "env.sh with one says nothing" "$("${sourced[@]}" 2>&1)" "KUBECONFIG=*/.local/kubeconfig"
check "of the cluster that is up" "$(direct_after env.sh)" "$(twice "localhost,127.0.0.1,$(of 50),$(of 214)")"
list=$(direct_after lib.sh | head -n 1)
# asked ADDRESS [SECONDS]: the proxy refuses at once; an address that is not there may never answer.
asked() { "${proxied[@]}" no_proxy="$list" curl -sS -m "${2:-1}" "https://$1:2" 2>&1 | grep -c ' 127.0.0.1 port 1 '; }
for address in 10.50.0.1 10.50.0.11 10.51.2.3 10.52.0.10; do check "curl asks no proxy for $address" "$(asked $address)" 0; done
check "curl asks it for others" "$(asked 10.53.0.1 60)" 1
check "the tests in Python ask none" "$("${proxied[@]}" PYTHONPATH="$clone/tests/e2e" PYTHONDONTWRITEBYTECODE=1 python3 -c 'import cluster; print(cluster.ENV["no_proxy"])' 2>&1)" "*$(of 50)*"

# ---- A path with a space ---------------------------------------------------------------------------------------------

# shellcheck disable=SC2016
check "CoreDNS finds what it needs in such a clone" "$(cd "$clone" && bash -c '. dev/lib.sh; . dev/cluster.sh; corefile')" \
  "*
    kubeconfig \"$clone/.local/state/pki/dev.kubeconfig\"
*"
exit $failed
