#!/usr/bin/env python3
"""The metrics that the chart's dashboards and alerts use.

Usage: metrics_of.py           prints their names, one a line; fails if one of the operator's is not in docs/reference/metrics.md
       metrics_of.py --queries prints the queries, one a line, with Grafana's variables replaced
"""

import json
import pathlib
import re
import sys

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
FILES = TOP / "charts/slurm-operator/files"
PREFIXES = "slurm|slurm_operator|controller_runtime|workqueue|rest_client|leader_election|certwatcher|process"


def queries():
    """Returns the queries by their place in the file."""
    found = {}
    for path in sorted(FILES.glob("dashboards/*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                found[f"{path.name}, {panel['title']}, {target['refId']}"] = target["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found[f"{path.name}, ${variable['name']}"] = re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"])[1]
    for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            found[f"alerts.yaml, {rule['alert']}"] = rule["expr"]
    return found


def filled(query, variables):
    for name, value in variables.items():
        query = query.replace(f"${name}", value)
    return query


def metrics(query):
    """Returns the names of the metrics in a query, without the suffixes of histograms."""
    words = re.findall(rf"\b(?:{PREFIXES})_[a-z0-9_]+|\bup\b", re.sub(r'"[^"]*"', '""', query))
    bare = re.sub(r"\bby \([^)]*\)|\bon \([^)]*\)", "", query)
    return {re.sub(r"_bucket$", "", word) for word in words if word in bare}


def main():
    if "--queries" in sys.argv:
        for query in queries().values():
            print(query)
        return 0
    wanted = {name for query in queries().values() for name in metrics(query)} - {"up"}
    listed = set(re.findall(r"`([a-z_]+)`", (TOP / "docs/reference/metrics.md").read_text()))
    # slurmctld has many metrics; the end-to-end test looks for them in slurmctld's own answer.
    missing = {name for name in wanted if not re.match("slurm_(?!operator)", name)} - listed
    for name in sorted(wanted):
        print(name)
    if missing:
        print(f"not in docs/reference/metrics.md: {', '.join(sorted(missing))}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
