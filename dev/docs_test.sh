#!/bin/bash
# What docs/ lists by name, compared with the sources: conditions, reasons and events; labels and annotations. That links lead
# somewhere, and that pictures were made of what stands beside them.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
check() { # WHAT LIST: which must be empty
  if [[ -z $2 ]]; then echo "ok    $1"; else
    printf 'not ok  %s: %s\n' "$1" "${2//$'\n'/ }"
    failed=1
  fi
}
sources() { find "$@" -name '*.[ch]pp' ! -name '*_test.cpp' ! -path '*/testing/*' -print0; }
less() { comm -23 <(sort -u <<<"$1") <(sort -u <<<"$2") | sed '/^$/d'; } # LIST OTHER: what only the first has

# Words that look like a reason, but are none. Whoever adds one to the sources says here or in the table what it is. Our own kinds are
# known by their definitions.
kinds=$(sed -n 's/^    kind: //p' charts/slurm-operator-crds/templates/slinky.slurm.net_*.yaml)
others=$(xargs -n1 <<<"$kinds
  ControllerRevision ConfigMap Secret Pod PodDisruptionBudget PersistentVolumeClaim StatefulSet
  Normal Warning Reconcile Reconfigure Create Delete Observe Reserve Run Sync Wait Cordon Requeue Cancel ScaleUp ScaleDown
  True False Pending Running Failed Succeeded Bound Lost PodScheduled ReplicaFailure
  ContainerCreating PodInitializing ProvisioningFailed
  ErrImageNeverPull ErrImagePull ImagePullBackOff InvalidImageName RegistryUnavailable RunContainerError
  Always None Exists DoesNotExist In NotIn Gt Lt Equal NoExecute NoSchedule Memory Opaque Parallel ReadWriteOnce FallbackToLogsOnError
  Missing KeyMissing OwnerEnds UsageMissing IfNotPresent OnRootMismatch IgnoreExtraneous CommunicationParameters
  AccountingStorageHost AccountingStoragePort AccountingStorageType DbdHost DbdPort PidFile StorageHost StorageLoc StoragePort StorageType StorageUser AuthAltParameters AuthAltTypes AuthInfo AuthType ClusterName CredType
  Epilog EpilogSlurmctld Feature Features Flags Preempt Relative Weight
  Default GresTypes Licenses MetricsAuthUsers MetricsParameters MetricsType NodeName Nodes PrivateData ServiceMonitor Bearer State
  MaxJobCount MaxNodeCount PartitionName Prolog PrologFlags PrologSlurmctld RebootProgram ResumeProgram ReturnToService SlurmSchedLogFile SlurmdTimeout SlurmUser SlurmctldHost SlurmctldLogFile
  SlurmctldParameters SlurmctldPort SlurmctldTimeout SlurmdPort SlurmdSpoolDir SlurmdUser StateSaveLocation
  TopologyPlugin
  FLNdfn")
words=$({
  sources src/slinky src/operator | xargs -0 grep -ohE '"[A-Z][A-Za-z]*[a-z]"'
  grep -E 'k(Pod)?Condition[A-Za-z]+ =' src/api/well_known.hpp | grep -v ConditionPrefix | grep -oE '"[A-Z][A-Za-z]*"'
} | tr -d '"')
# The second column of the tables. Slurm's states are in the sources without what they begin with.
# shellcheck disable=SC2016
told=$(awk -F'|' '/^## slurm-bridge/ { exit } /^\| / { print $3 }' docs/conditions.md | grep -oE '`[A-Za-z]+`' | tr -d '`' | sed 's/^SlurmNodeState//')
check "each condition and reason is in docs/conditions.md, or known to be none" "$(less "$words" "$told"$'\n'"$others")"
check "docs/conditions.md has no reason that the sources do not have" "$(less "$told" "$words")"
check "no word is excused that the sources do not have" "$(less "$others" "$words")"
check "no word is both" "$(comm -12 <(sort -u <<<"$told") <(sort -u <<<"$others"))"

# The same of slurm-bridge.
others=$(xargs -n1 <<<"DaemonSet Job Node Pod PodGroup PodScheduled Ready Slurm
  BadConstraints None Succeeded True False Never PreemptLowerPriority ScheduleAnyway NoExecute NoSchedule PreferNoSchedule
  DoesNotExist Equal Exists Gt In Lt NotIn JobGone JobEnded Unneeded")
words=$(sources src/bridge | xargs -0 grep -ohE '"[A-Z][A-Za-z]*[a-z]"' | tr -d '"')
# shellcheck disable=SC2016
told=$({
  awk -F'|' '/^## / { reasons = /Reasons/ } reasons && /^\| / { print $2 }' docs/bridge/troubleshooting.md
  awk -F'|' '/^## / { bridge = /slurm-bridge/ } bridge && /^\| / { print $3 }' docs/conditions.md
} | grep -oE '`[A-Z][A-Za-z]*[a-z]`' | tr -d '`')
check "each condition and reason of slurm-bridge is in its docs, or known to be none" "$(less "$words" "$told"$'\n'"$others")"
check "they have no reason that its sources do not have" "$(less "$told" "$words")"
check "no word of slurm-bridge is excused that the sources do not have" "$(less "$others" "$words")"

names=$(grep -oE 'k(Label|Annotation|Taint)[A-Za-z]+ = "[^"]*slinky\.slurm\.net/[^"]*"' src/api/well_known.hpp)
# Those of children (slinky.slurm.net/ alone) are the operator's own, but for the cluster.
users=$(cut -d'"' -f2 <<<"$names" | grep -E '^[a-z]+\.slinky|/cluster$')
unused=$(while read -r constant _ name; do
  [[ $(sources src | xargs -0 grep -lw "$constant") != src/api/well_known.hpp ]] || tr -d '"' <<<"$name"
done <<<"$names")
# shellcheck disable=SC2016
page=$(grep -oE '`[^`]*slinky\.slurm\.net/[a-z-]+' docs/labels.md | tr -d '`')
check "each label and annotation of users is in docs/labels.md" "$(less "$(less "$users" "$unused")" "$page")"
check "docs/labels.md has no label that the sources do not have" "$(less "$page" "$users")"

names=$(sed -nE 's/.*k(Gate|Toleration|Label|Annotation|Taint)[A-Za-z]* = "([^"]*[^"/])".*/\2/p' src/bridge/common/names.hpp)
# Annotations for settings stand there without their prefix.
missing=$(while read -r name; do
  grep -qF -e "$name" -e "\`${name#slurmjob.slinky.slurm.net/}\`" docs/bridge/annotations.md || echo "$name"
done <<<"$names")
check "each name of slurm-bridge is in docs/bridge/annotations.md" "$missing"

# slurm-enlist.
# shellcheck disable=SC2016
page=$(grep -oE '`--[a-z-]+' docs/enlistment/reference.md | tr -d '`')
flags=$(grep -ohE '(flag|add_option|add_flag)\("(-[a-z],)?--[a-z-]+' src/enlist/*/program.cpp src/enlist/coordinator/process.cpp src/cmd/slurm-enlist.cpp src/run/shell/shell.cpp |
  grep -oE -e '--[a-z-]+')
check "each flag of slurm-enlist is in docs/enlistment/reference.md" "$(less "$flags" "$page"$'\n'--output)"
check "it has no flag that the sources do not have" "$(less "$page" "$flags"$'\n--conf\n--conf-server\n--help')"
# shellcheck disable=SC2016
told=$(awk '/^## / { phases = /Phases/ } phases && /^\| `/ { print $2 }' docs/enlistment/concept.md | tr -d '`')
phases=$(sed -n '/^constexpr auto kPhases/,/});/p' src/enlist/rules/model.cpp | grep -oE '"[A-Za-z]+"' | tr -d '"')
check "each phase of a node is in docs/enlistment/concept.md" "$(less "$phases" "$told")"
check "it has no phase that the sources do not have" "$(less "$told" "$phases")"
check "docs/enlistment/requirements.md is up to date" "$(dev/requirements.py check 2>&1)"

# Code is not looked into: what looks like a link there is none.
prose() { awk '/^ *```/ { code = !code; next } !code' "$1"; } # FILE
links() { # FILE
  # shellcheck disable=SC2016
  prose "$1" | sed 's/`[^`]*`//g' | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^[a-z]+:' || true
}
# As GitHub makes them; of headings that are twice on a page, the first.
anchors() { # FILE
  prose "$1" | grep -E '^#+ ' | tr '[:upper:]' '[:lower:]' | sed -E 's/^#+ +//; s/\]\([^)]*\)//g; s/[^a-z0-9 _-]//g; s/ /-/g' || true
}
broken=$({ echo README.md && find docs -name '*.md' | sort; } | while read -r page; do
  links "$page" | while read -r link; do
    file=${link%%#*} anchor=${link#"${link%%#*}"}
    file=${file:+$(dirname "$page")/$file}
    if [[ ! -e ${file:=$page} ]]; then echo "$page->$link"
    elif [[ -n $anchor && $file == *.md ]] && ! grep -qxF -e "${anchor#\#}" <<<"$(anchors "$file")"; then echo "$page->$link"; fi
  done
done)
check "each relative link of README.md and docs/ leads to a file, and to a heading in it" "$broken"

# What docs/reliability.md names as a test is one.
cited() { grep -oE "$1 \`[^\`]+\`" docs/reliability.md | sed -E 's/^[a-z0-9]+ `//; s/`$//' | sort -u; } # KIND
faults=$({
  sed -nE 's/.*(event|of_watches|of_slurm)\($//; s/.*(event|of_watches|of_slurm)\("([^"]+)".*/\2/p; s/^ *"([^"]+)", \[\].*/\1/p' sim/histories/trials.cpp
  sed -nE '/to_string\(Fault/,/^}/ s/.*return "([a-z0-9 ]+)".*/\1/p' sim/base/faults.cpp
})
check "each fault in docs/reliability.md is one of the simulator's" "$(less "$(cited fault)" "$faults")"
check "each fault of the simulator is in docs/reliability.md" "$(less "$faults" "$(cited fault)"$'\n'none)"
check "each end-to-end test in docs/reliability.md is there" "$(less "$(cited e2e)" "$(sed -nE 's/^def ([a-z_]+)\(.*/\1/p' tests/e2e/*.py)")"
check "each fault of the soak in docs/reliability.md is there" "$(less "$(cited soak)" "$(sed -nE 's/^    def ([a-z_]+)\(self\).*/\1/p' tests/e2e/soak.py)")"
check "each scenario in docs/reliability.md is there" "$(less "$(cited scenario)" "$(cd tests/scenarios && find . -name '*.yaml' | sed 's|^./||; s|.yaml$||')")"

silent=''
unnamed=''
while IFS= read -r folder; do
  headers=("$folder"/*.hpp)
  [[ -e ${headers[0]} ]] || continue
  grep -qF "// Folder $folder: " "${headers[0]}" || silent+="${headers[0]}"$'\n'
  grep -qE "\`($folder|${folder##*/})/\`" docs/architecture.md || unnamed+="$folder"$'\n'
done < <(find src sim -type d ! -name testing | LC_ALL=C sort)
check "the first header of each folder says what the folder is for: // Folder NAME: ..." "$silent"
check "each folder of src and sim is in docs/architecture.md" "$unnamed"

# A block of code under the line "`FILE`:" is in that file.
quoting=(docs/how-to/add-a-program.md)
quotes=0
unlike=''
while IFS= read -r -d '' file && IFS= read -r -d '' block; do
  quotes=$((quotes + 1))
  [[ -e $file && $(<"$file") == *"$block"* ]] || unlike+="$file: ${block%%$'\n'*}"$'\n'
done < <(awk '
  code && $0 ~ "^" indent "```$" { printf "%s%c%s%c", file, 0, block, 0; code = 0; file = ""; next }
  code { sub("^" indent, ""); block = block (block == "" ? "" : "\n") $0; next }
  file != "" && /^ *```/ { match($0, /^ */); indent = substr($0, 1, RLENGTH); code = 1; block = ""; next }
  /^ *`[^`]+`:$/ { split($0, part, "`"); file = part[2]; next }
  NF { file = "" }' "${quoting[@]}")
check "each block of code in ${quoting[*]} is in the file that it names" "$unlike"
check "some are looked at" "$( ((quotes >= 9)) || echo "$quotes")"

old=$(for dot in docs/diagrams/*.dot; do
  grep -qF "sha256 of ${dot##*/}: $(sha256sum <"$dot" | cut -d' ' -f1) " "${dot%.dot}.svg" || echo "${dot##*/}"
done)
check "each picture was made of its .dot: dev/diagrams.sh makes them anew" "$old"
exit $failed
