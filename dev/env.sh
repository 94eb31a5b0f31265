# kubectl and helm of the local cluster, in this shell:  . dev/env.sh
# shellcheck shell=bash
_top=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd -P)
export KUBECONFIG=$_top/.local/kubeconfig
case :$PATH: in *":$_top/.local/bin:"*) ;; *) export PATH=$_top/.local/bin:$PATH ;; esac
_direct=$(bash -c '. "$0/dev/lib.sh" && echo "$no_proxy"' "$_top") && export no_proxy="$_direct" NO_PROXY="$_direct"
unset _top _direct
