# kubectl and helm of the local cluster, in this shell:  . dev/env.sh
# shellcheck shell=bash
_top=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd -P)
export KUBECONFIG=$_top/.local/kubeconfig
case :$PATH: in *":$_top/.local/bin:"*) ;; *) export PATH=$_top/.local/bin:$PATH ;; esac
unset _top
