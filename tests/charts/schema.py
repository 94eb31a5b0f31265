#!/usr/bin/env python3
"""Compares values.schema.json of each chart with values.yaml and with the custom resource definitions. Needs helm and
python3-yaml.

Usage: schema.py CHARTS     Prints lines of verdict, chart, value and detail, separated by tabs:
  closed    the schema knows all names in this map (also in types of Kubernetes), and helm refuses any other name
  taken     the schema knows all names in this map, but helm accepts another name
  unknown   the schema does not know a value of values.yaml, or a field of a resource that the chart passes on
  open      the schema knows some names in this map and accepts any other
  enum      a field that the chart passes on allows other values than the definition
  limited   a field with a range, a length or a format: helm refuses what the definition refuses, and accepts the ends of the range
  unlimited such a field, but helm accepts what the definition refuses
  narrow    such a field, but helm refuses what the definition accepts
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
        """Returns the schema of the value at a path of names. None: a name on the path is not known."""
        schema = self.resolved(self.whole if schema is None else schema)
        if not path:
            return schema
        below = schema.get("properties", {}).get(path[0])
        if below is None and path[0] == "0":
            below = schema.get("items")
        if below is None and isinstance(schema.get("additionalProperties"), dict):
            below = schema["additionalProperties"]  # users choose these names, such as those of nodesets
        return None if below is None else self.at(path[1:], below)

    def misspelt(self, schema, path=()):
        """Yields values with one misspelt name in each map of known names, and the path of the name. A name that users choose
        is "some"."""
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
        """Prints all findings at once, because helm reports all misspelt names together."""
        values, paths = self.misspelt(self.whole)
        refused = self.refused(values, "additional properties 'misspelt' not allowed")
        for path in paths:
            if path in refused:
                tell("closed", self.chart, ".".join(path))
            else:
                tell("taken", self.chart, ".".join(path), "helm takes a misspelt name")

    def refused(self, values, words=""):
        """Returns the paths of the values that helm refuses."""
        command = ["helm", "template", self.chart, f"{charts}/{self.chart}", "--kube-version=1.34", "--values=-"]
        told = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False).stderr
        return {tuple(path.split("/")[1:]) for path in re.findall(rf"- at '([^']*)': {words}", told)}

    def tell_open(self, part, path=()):
        """Prints the findings for a part of the schema and everything below."""
        for name, below in part.items():
            if isinstance(below, dict):
                self.tell_open(below, (*path, name))
        if "properties" in part and part.get("additionalProperties", True) is True:
            tell("open", self.chart, ".".join(path), "it takes any name")

    def compare(self, values, path=()):
        """Compares a chart's values with the schema. `values`: the existing values, as maps of maps."""
        if self.at(path) is None:
            tell("unknown", self.chart, ".".join(path), "values.schema.json does not know it")
        elif isinstance(values, dict):
            for name in values:
                self.compare(values[name], (*path, name))

    def compare_field(self, field, path):
        """Compares a field of a definition with the value at its path. Returns the values to try: [path, value, whether the
        definition accepts it]."""
        schema = self.at(path)
        if schema is None:
            tell("unknown", self.chart, ".".join(path), "values.schema.json does not know it")
        elif "enum" in field:
            known, wanted = set(schema.get("enum", [])) - {None, ""}, set(field["enum"])
            if known != wanted:
                tell("enum", self.chart, ".".join(path), f"expected {sorted(wanted)}, have {sorted(known)}")
        else:
            return [(path, value, False) for value in beyond(field)] + [(path, value, True) for value in ends(field)]
        return []

    def try_limits(self, tries):
        """Tries many values at once, none of which contains another."""
        while tries:
            now, later = [], []
            for path, value, good in tries:
                apart = all(path[: len(other)] != other and other[: len(path)] != path for other, _, _ in now)
                (now if apart else later).append((path, value, good))
            refused = self.refused(document([(path, value) for path, value, _ in now]))
            for path, value, good in now:
                if good == (path not in refused):
                    tell("limited", self.chart, ".".join(path))
                else:
                    tell("narrow" if good else "unlimited", self.chart, ".".join(path), f"{'refused' if good else 'taken'}: {str(value)[:80]!r}")
            tries = later


def limits(field):
    least, most = field.get("minimum"), field.get("maximum")
    if field.get("format") == "int32":
        least, most = least if least is not None else -(2**31), most if most is not None else 2**31 - 1
    return least, most


def beyond(field):
    """Returns values for the field that the definition refuses."""
    least, most = limits(field)
    out = [] if least is None else [least - 1]
    out += [] if most is None else [most + 1]
    if "maxLength" in field:
        out.append("x" * (field["maxLength"] + 1))
    if "minLength" in field:
        out.append("")
    if "pattern" in field:
        assert not re.search(field["pattern"], "a\nb"), field["pattern"]
        out.append("a\nb")
    if field.get("format") == "date-time":
        out.append("noon")
    if "minItems" in field:
        out.append([])
    if "maxItems" in field:
        out.append([1 if field["items"]["type"] == "integer" else "x"] * (field["maxItems"] + 1))
    return out


def ends(field):
    """Returns the smallest and the largest value that the definition accepts for the field."""
    return [value for value in limits(field) if value is not None]


def document(values):
    """Converts values by paths to a document of maps and lists."""
    whole = {}
    for path, value in values:
        at = whole
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = value

    def lists(part):
        if not isinstance(part, dict):
            return part
        return [lists(part["0"])] if set(part) == {"0"} else {name: lists(below) for name, below in part.items()}

    return lists(whole)


# Fields that the values do not contain: the chart sets them itself, or makes them from types of Kubernetes.
OWN = {"accountingRef", "controllerRef", "jwtHs256KeyRef", "template"}
KEYS = {"slurmKeyRef": ("slurmKey", "secretRef"), "jwtKeyRef": ("jwtKey", "secretRef"), "jwksKeyRef": ("jwksKeys", "configMapRef")}
SSSD = {"sssdConfRef": ("sssd", "secretRef")}
SCRIPTS = {f"{name}Refs": (f"{name}Refs",) for name in ("configFile", "prologScript", "epilogScript", "prologSlurmctldScript", "epilogSlurmctldScript")}
# Where the values contain the fields of each kind, and the fields that are in another place.
PLACES = {
    "controllers": (("controller",), KEYS | SSSD | SCRIPTS | {"clusterName": ("clusterName",)}),
    "restapis": (("restapi",), SSSD),
    "accountings": (("accounting",), KEYS),
    "nodesets": (("nodesets", "some"), {}),
    "loginsets": (("loginsets", "some"), SSSD),
}


def fields(kind):
    """Yields the fields of a resource's spec by path, down to objects that are passed on. An item is "0", and a name that users
    choose "some"."""

    def walk(schema, path):
        if path:
            yield path, schema
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return
        for name, below in schema.get("properties", {}).items():
            if name not in OWN:
                yield from walk(below, (*path, name))
        for name, key in (("0", "items"), ("some", "additionalProperties")):
            if key in schema:
                yield from walk(schema[key], (*path, name))

    definition = read(f"slurm-operator-crds/templates/slinky.slurm.net_{kind}.yaml")
    yield from walk(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], ())


schemas = {chart: Schema(chart) for chart in ("slurm-operator-crds", "slurm-operator", "slurm", "slurm-bridge")}
for chart, schema in schemas.items():
    schema.tell_open(schema.whole)
    schema.tell_closed()
    if chart != "slurm-operator-crds":
        schema.compare(read(f"{chart}/values.yaml"))

tries = []
for kind, (place, elsewhere) in PLACES.items():
    for path, field in fields(kind):
        tries += schemas["slurm"].compare_field(field, elsewhere.get(path[0], (*place, path[0])) + path[1:])
schemas["slurm"].try_limits(tries)
