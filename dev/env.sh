# kubectl and helm of the local cluster, in this shell:  . dev/env.sh
# shellcheck shell=bash
_top=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd -P)
export KUBECONFIG=$_top/.local/kubeconfig
case :$PATH: in *":$_top/.local/bin:"*) ;; *) export PATH=$_top/.local/bin:$PATH ;; esac
_direct=$(bash -c '. "$0/dev/lib.sh" && echo "$no_proxy"' "$_top") && export no_proxy="$_direct" NO_PROXY="$_direct"
# Without a kubeconfig, kubectl and helm ask localhost:8080.
[[ -e $KUBECONFIG ]] || printf 'error: the local cluster is not up: kubectl and helm find none.\n   do: make up, in %s\n' "$_top" >&2
unset _top _direct
