#!/usr/bin/env python3
"""What values.schema.json of each chart says, beside values.yaml and the definitions. Needs helm and python3-yaml.

Usage: schema.py CHARTS     Prints lines of verdict, chart, value and detail, separated by tabs:
  closed    a map of names which the schema knows, also inside of Kubernetes' types: helm refuses another name there, by its name
  taken     such a map, but helm does not
  unknown   a value of values.yaml, or a field of a resource that the chart passes on, which the schema does not know by name
  open      a map that the schema knows names of, and takes any other
  enum      a field of a resource that the chart passes on, of which the schema has other values than the definition
"""
import json
import re
import subprocess
import sys

import yaml

charts = sys.argv[1]


def read(path):
    with open(f"{charts}/{path}", encoding="utf-8") as file:
        return json.load(file) if path.endswith(".json") else yaml.safe_load(file)


def tell(*words):
    print("\t".join(words))


class Enum:
    """The values of a field, as a definition has them."""

    all = []

    def __init__(self, path, values):
        self.path, self.values, self.compared = path, set(values), False
        self.all.append(self)


class Schema:
    def __init__(self, chart):
        self.chart = chart
        self.whole = read(f"{chart}/values.schema.json")

    def resolved(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            names = schema["$ref"].removeprefix("#/").split("/")
            schema = self.whole
            for name in names:
                schema = schema[name]
        return {} if schema is True else schema

    def at(self, path, schema=None):
        """The schema of a value, by a path of names; None where it is not known by them."""
        schema = self.resolved(self.whole if schema is None else schema)
        if not path:
            return schema
        below = schema.get("properties", {}).get(path[0])
        if below is None and isinstance(schema.get("additionalProperties"), dict):
            below = schema["additionalProperties"]  # names are the user's, as those of nodesets
        return None if below is None else self.at(path[1:], below)

    def misspelt(self, schema, path=()):
        """Values with a misspelt name in each map of known names alone, and the paths of those. A user's own name is "some"."""
        schema = self.resolved(schema)
        if "items" in schema:
            below, paths = self.misspelt(schema["items"], (*path, "0"))
            return [below], paths
        values, paths = {}, [path] if schema.get("additionalProperties") is False else []
        parts = dict(schema.get("properties", {}))
        if isinstance(schema.get("additionalProperties"), dict):
            parts["some"] = schema["additionalProperties"]
        for name, part in parts.items():
            below, more = self.misspelt(part, (*path, name))
            if more:
                values[name] = below
                paths += more
        if schema.get("additionalProperties") is False:
            values["misspelt"] = 1
        return values, paths

    def tell_closed(self):
        """All of them at once: helm tells of each."""
        values, paths = self.misspelt(self.whole)
        command = ["helm", "template", self.chart, f"{charts}/{self.chart}", "--kube-version=1.34", "--values=-"]
        told = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False).stderr
        refused = set(re.findall(r"- at '([^']*)': additional properties 'misspelt' not allowed", told))
        for path in paths:
            if "".join(f"/{name}" for name in path) in refused:
                tell("closed", self.chart, ".".join(path))
            else:
                tell("taken", self.chart, ".".join(path), "helm takes a misspelt name")

    def tell_open(self, part, path=()):
        """Of a part of the schema, and all below."""
        for name, below in part.items():
            if isinstance(below, dict):
                self.tell_open(below, (*path, name))
        if "properties" in part and part.get("additionalProperties", True) is True:
            tell("open", self.chart, ".".join(path), "it takes any name")

    def compare(self, values, path=()):
        """`values`: what there is, as maps of maps."""
        schema = self.at(path)
        if schema is None:
            tell("unknown", self.chart, ".".join(path), "values.schema.json does not know it")
        elif isinstance(values, Enum):
            values.compared = True
            known = set(schema.get("enum", [])) - {None, ""}
            if known != values.values:
                tell("enum", self.chart, ".".join(path), f"expected {sorted(values.values)}, have {sorted(known)}")
        elif isinstance(values, dict):
            for name in values:
                self.compare(values[name], (*path, name))


def fields(kind):
    """The fields of a resource's spec, as maps of maps down to what is passed on as it is."""

    def names(schema, path):
        if "enum" in schema:
            return Enum(f"{kind} {path}", schema["enum"])
        if schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema:
            return None
        return {name: names(below, f"{path}.{name}") for name, below in schema["properties"].items()}

    definition = read(f"slurm-operator-crds/templates/slinky.slurm.net_{kind}.yaml")
    return names(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec")


schemas = {chart: Schema(chart) for chart in ("slurm-operator-crds", "slurm-operator", "slurm")}
for chart, schema in schemas.items():
    schema.tell_open(schema.whole)
    schema.tell_closed()
    if chart != "slurm-operator-crds":
        schema.compare(read(f"{chart}/values.yaml"))

nodeset = fields("nodesets")
for own in ("controllerRef", "template"):
    del nodeset[own]
schemas["slurm"].compare(nodeset, ("nodesets", "some"))
loginset = fields("loginsets")
for own in ("controllerRef", "template", "sssdConfRef"):
    del loginset[own]
schemas["slurm"].compare(loginset, ("loginsets", "some"))
controller, restapi = fields("controllers"), fields("restapis")
for part in ("persistence", "metrics", "service", "externalConfig", "ha", "topology", "deletionPolicy"):
    schemas["slurm"].compare(controller[part], ("controller", part))
schemas["slurm"].compare(restapi["service"], ("restapi", "service"))
accounting = fields("accountings")
del accounting["storageConfig"]["template"]
for part in ("storageConfig", "externalConfig", "service"):
    schemas["slurm"].compare(accounting[part], ("accounting", part))
for enum in Enum.all:
    if not enum.compared:
        tell("enum", "slurm", enum.path, "no value of the chart is compared with it")
