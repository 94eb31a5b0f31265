#!/usr/bin/env python3
"""What values.schema.json of each chart says, beside values.yaml and the definitions. Needs python3-yaml.

Usage: schema.py CHARTS     Prints lines of verdict, chart, value and detail, separated by tabs:
  closed    a value that is a map of names which the schema knows: any other name in it is to be refused
  unknown   a value of values.yaml, or a field of a resource that the chart passes on, which the schema does not know by name
  open      a map that the schema knows names of, and takes any other
"""
import json
import sys

import yaml

charts = sys.argv[1]
# What Kubernetes defines.
OPEN = {"slurm": {("definitions", "container")}}


def read(path):
    with open(f"{charts}/{path}", encoding="utf-8") as file:
        return json.load(file) if path.endswith(".json") else yaml.safe_load(file)


def tell(*words):
    print("\t".join(words))


class Schema:
    def __init__(self, chart):
        self.chart = chart
        self.whole = read(f"{chart}/values.schema.json")

    def at(self, path, schema=None):
        """The schema of a value, by a path of names; None where it is not known by them."""
        schema = self.whole if schema is None else schema
        while "$ref" in schema:
            schema = self.whole["definitions"][schema["$ref"].rsplit("/", 1)[1]]
        if not path:
            return schema
        below = schema.get("properties", {}).get(path[0])
        if below is None and isinstance(schema.get("additionalProperties"), dict):
            below = schema["additionalProperties"]  # names are the user's, as those of nodesets
        return None if below is None else self.at(path[1:], below)

    def closed(self, path=()):
        """The paths of all maps that take known names alone. A user's own name is "some"."""
        schema = self.at(path)
        if schema.get("additionalProperties") is False:
            yield path
        for name in schema.get("properties", {}):
            yield from self.closed((*path, name))
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self.closed((*path, "some"))

    def tell_open(self, part, path=()):
        """Of a part of the schema, and all below."""
        for name, below in part.items():
            if isinstance(below, dict):
                self.tell_open(below, (*path, name))
        takes_all = "properties" in part and part.get("additionalProperties", True) is True
        if takes_all and path not in OPEN.get(self.chart, ()):
            tell("open", self.chart, ".".join(path), "it takes any name")

    def compare(self, values, path=()):
        """`values`: what there is, as maps of maps."""
        schema = self.at(path)
        if schema is None:
            return tell("unknown", self.chart, ".".join(path), "values.schema.json does not know it")
        if not isinstance(values, dict):
            return None
        for name in values:
            # What Kubernetes defines is open: the schema says of it what the chart changes.
            if schema.get("additionalProperties") is False or self.at((*path, name)) is not None:
                self.compare(values[name], (*path, name))
        return None


def fields(kind):
    """The fields of a resource's spec, as maps of maps down to what is passed on as it is."""

    def names(schema):
        if schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema:
            return None
        return {name: names(below) for name, below in schema["properties"].items()}

    definition = read(f"slurm-operator-crds/templates/slinky.slurm.net_{kind}.yaml")
    return names(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


schemas = {chart: Schema(chart) for chart in ("slurm-operator-crds", "slurm-operator", "slurm")}
for chart, schema in schemas.items():
    schema.tell_open(schema.whole)
    for path in schema.closed():
        tell("closed", chart, ".".join(path))
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
for part in ("persistence", "metrics", "service", "externalConfig", "ha"):
    schemas["slurm"].compare(controller[part], ("controller", part))
schemas["slurm"].compare(restapi["service"], ("restapi", "service"))
accounting = fields("accountings")
del accounting["storageConfig"]["template"]
for part in ("storageConfig", "externalConfig", "service"):
    schemas["slurm"].compare(accounting[part], ("accounting", part))
