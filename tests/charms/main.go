// Reads packed charms with Juju's own parser, and compares what Juju sees with what the charms are.
// Usage: charms SLURMD.charm SLURMCTLD.charm FOLDER    also unpacks them into FOLDER, as Juju does
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/juju/charm/v12"
)

var passed, failed int

func expect(what string, good bool) {
	if good {
		passed++
		return
	}
	failed++
	fmt.Printf("not ok  %s\n", what)
}

func relations(all map[string]charm.Relation) string {
	var out []string
	for name, relation := range all {
		out = append(out, fmt.Sprintf("%s:%s:%d", name, relation.Interface, relation.Limit))
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

// actions returns what Juju reads of the actions: "drain(reason:string)".
func actions(all *charm.Actions) string {
	var out []string
	for name, spec := range all.ActionSpecs {
		var params []string
		properties, _ := spec.Params["properties"].(map[string]interface{})
		for param, value := range properties {
			schema, _ := value.(map[string]interface{})
			params = append(params, fmt.Sprintf("%s:%v", param, schema["type"]))
		}
		sort.Strings(params)
		open := "..."
		if spec.Params["additionalProperties"] == false {
			open = ""
		}
		out = append(out, name+"("+strings.Join(params, ",")+open+")")
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

func read(path, name, folder string) *charm.CharmArchive {
	archive, err := charm.ReadCharmArchive(path)
	if err != nil {
		fmt.Printf("not ok  %s: %v\n", path, err)
		os.Exit(1)
	}
	expect(path+": the name", archive.Meta().Name == name)
	expect(path+": its metadata are those of a charm", archive.Meta().Check(charm.FormatV2, charm.SelectionManifest, charm.SelectionBases) == nil)
	manifest := archive.Manifest()
	expect(path+": the base is Ubuntu 24.04", manifest != nil && len(manifest.Bases) == 1 && manifest.Bases[0].Name == "ubuntu" &&
		manifest.Bases[0].Channel.Track == "24.04" && strings.Join(manifest.Bases[0].Architectures, " ") == "amd64")
	to := filepath.Join(folder, name)
	if err := archive.ExpandTo(to); err != nil {
		fmt.Printf("not ok  %s: %v\n", path, err)
		os.Exit(1)
	}
	for _, program := range []string{"dispatch", "bin/slurm-enlist"} {
		info, err := os.Stat(filepath.Join(to, program))
		expect(path+": "+program+" can be run", err == nil && info.Mode().Perm()&0o111 == 0o111)
	}
	return archive
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: charms SLURMD.charm SLURMCTLD.charm FOLDER")
		os.Exit(2)
	}
	slurmd := read(os.Args[1], "slurmd", os.Args[3])
	expect("slurmd provides slurmctld, for one application", relations(slurmd.Meta().Provides) == "slurmctld:slurmd:1")
	for _, option := range []string{"partition-config", "node-config"} {
		expect("slurmd has the option "+option, slurmd.Config().Options[option].Type == "string")
	}
	expect("slurmd has no other option", len(slurmd.Config().Options) == 2)
	has := actions(slurmd.Actions())
	expect("slurmd has its actions, and not "+has, has == "destroy-jobs() drain(reason:string) node-config(parameters:string,reset:boolean) resume()")
	spec := slurmd.Actions().ActionSpecs["node-config"]
	given, err := spec.InsertDefaults(map[string]interface{}{"parameters": "Weight=5"})
	expect("node-config has defaults", err == nil && given["reset"] == false && given["parameters"] == "Weight=5")
	slurmctld := read(os.Args[2], "slurmctld", os.Args[3])
	expect("slurmctld requires slurmd", relations(slurmctld.Meta().Requires) == "slurmd:slurmd:0")
	expect("slurmctld has no actions", actions(slurmctld.Actions()) == "")
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
