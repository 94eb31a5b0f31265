#!/usr/bin/env python3
"""The generated part of values.schema.json of the charts: fields of Kubernetes' types, and of the custom resources.

Usage: values_schema.py write|check KUBERNETES VERSION DEFINITIONS CHART...    See values-schema.sh.

KUBERNETES is the source of that release, or "": then its types stay as they are. Each chart's schema names the types it uses as
"#/definitions/TYPE", with a capital letter. They and what they consist of stand below the definition "generated": the names of their fields,
the kinds of their values, enums, and the form of quantities.

DEFINITIONS is the directory of the custom resource definitions. A schema names their fields as "#/definitions/KINDSpec/properties/FIELD". These
stand below the definition "resources", also with their ranges and patterns.

Null unsets a default, so it is allowed everywhere but as an item.
"""
import json
import pathlib
import re
import sys

import yaml

# What the chart adds to a Container: an image may be a map.
WITH_IMAGE = "ContainerWithImage"
# Nobody writes these, and they consist of further types.
ANY = {"managedFields", "ownerReferences", "status"}
SCALARS = {"Quantity": ["string", "number"], "IntOrString": ["integer", "string"], "Time": ["string"]}
RESOURCES, FIRST, LAST = '    "resources": {', '    "generated": {', "\n  },\n"


def read(path):
    return path.read_text(encoding="utf-8")


class Resources:
    """The custom resources: their specs by type, as KINDSpec."""

    def __init__(self, definitions):
        self.specs = {}
        for path in sorted(definitions.glob("slinky.slurm.net_*.yaml")):
            definition = yaml.safe_load(read(path))["spec"]
            schema = definition["versions"][0]["schema"]["openAPIV3Schema"]
            self.specs[definition["names"]["kind"] + "Spec"] = schema["properties"]["spec"]

    def quantity(self):
        """The form of a quantity that is text."""
        spec = self.specs["ControllerSpec"]
        for name in ("persistence", "resources", "requests"):
            spec = spec["properties"][name]
        return {key: spec["additionalProperties"][key] for key in ("pattern", "maxLength")}

    def value(self, schema, null=True):
        """The schema of a value of a field."""
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            sys.exit("a field of any content has no schema here; name Kubernetes' type of it instead")
        if "enum" in schema:
            return {"enum": [*schema["enum"], *([None] if null else [])]}
        kinds = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema["type"]]
        out = {"type": [*kinds, "null"] if null else kinds}
        for key in ("minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems"):
            if key in schema:
                out[key] = schema[key]
        if schema.get("format") == "int32":
            out = {"minimum": -(2**31), "maximum": 2**31 - 1} | out
        elif "format" in schema:
            out["format"] = schema["format"]
        if "items" in schema:
            out["items"] = self.value(schema["items"], null=False)
        if "additionalProperties" in schema:
            out["additionalProperties"] = self.value(schema["additionalProperties"], null=False)
        if "properties" in schema:
            out["additionalProperties"] = False
            out["properties"] = {name: self.value(below) for name, below in sorted(schema["properties"].items())}
        return out

    def fields(self, schema, wanted):
        """The schema of an object, of these fields alone: names, with what is wanted of each. All of it: {}."""
        if not wanted:
            return self.value(schema)
        properties = {name: self.fields(schema["properties"][name], below) for name, below in sorted(wanted.items())}
        return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}

    def types(self, text):
        """The types that a text names, with the fields that it names of them."""
        named = {tuple(path.split("/properties/")) for path in re.findall(r'"#/definitions/(\w+(?:/properties/\w+)+)"', text)}
        wanted = {}
        for path in named:
            above = any(path[:n] in named for n in range(1, len(path)))
            if path[0] in self.specs and not above:
                at = wanted
                for name in path:
                    at = at.setdefault(name, {})
        return {name: self.fields(self.specs[name], below) for name, below in wanted.items()}


class Kubernetes:
    def __init__(self, source, quantity):
        self.quantity = quantity
        swagger = json.loads(read(source / "api/openapi-spec/swagger.json"))["definitions"]
        packages = ("io.k8s.api.core.v1.", "io.k8s.api.networking.v1.", "io.k8s.apimachinery.pkg.")
        self.types = {}
        for package in packages:
            for name, schema in swagger.items():
                if name.startswith(package):
                    self.types.setdefault(name.rsplit(".", 1)[1], schema)
        # The file above has no enums.
        self.enums = {}
        generated = read(source / "pkg/generated/openapi/zz_generated.openapi.go")
        for function in re.split(r"^func schema_", generated, flags=re.M)[1:]:
            name = re.match(r"k8sio_api_(?:core|networking)_v1_(\w+)\(", function)
            if not name:
                continue
            for field in re.split(r'^\t{5}(?=")', function, flags=re.M)[1:]:
                enum = re.search(r"\bEnum: +\[\]interface\{\}\{(.*)\}", field)
                if enum:
                    self.enums[name[1], field.split('"')[1]] = json.loads(f"[{enum[1]}]")

    def value(self, schema, enum=None):
        """The schema of a value of a field."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit(".", 1)[1]
            if name not in SCALARS:
                return {"$ref": f"#/definitions/{name}"}
            return {"type": [*SCALARS[name], "null"]} | (self.quantity if name == "Quantity" else {})
        if enum and schema["type"] == "string":
            return {"enum": [*filter(None, enum), "", None]}
        out = {"type": [schema["type"], "null"]}
        if "items" in schema:
            out["items"] = self.value(schema["items"], enum)
        if "additionalProperties" in schema:
            out["additionalProperties"] = self.value(schema["additionalProperties"])
        return out

    def type(self, name):
        base = "Container" if name == WITH_IMAGE else name
        fields = {}
        for field, schema in sorted(self.types[base]["properties"].items()):
            fields[field] = True if field in ANY else self.value(schema, self.enums.get((base, field)))
        if name == WITH_IMAGE:
            fields["image"] = {"$ref": "#/definitions/image"}
        return {"type": ["object", "null"], "additionalProperties": False, "properties": fields}


def refs(text):
    """The types that a part of a schema names."""
    return set(re.findall(r'"#/definitions/([A-Z]\w*)["/]', text))


def section(description, types):
    lines = [f'"description": {json.dumps(description)}}}'] + [f"    {json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    return ",\n".join(lines)


def generate(kubernetes, resources, version, text):
    """The text of a values.schema.json, with these types as of now."""
    begin = text.index(FIRST)
    head, types, rest = text[:begin], text[begin : text.index(LAST, begin)], text[text.index(LAST, begin) :]
    if RESOURCES in head:
        head = head[: head.index(RESOURCES)]
        own = section("The definitions below are of the custom resources. dev/values-schema.sh generates them.", resources.types(head + rest))
        of_resources = f"{RESOURCES}{own},\n"
    else:
        of_resources = ""
    if kubernetes:
        wanted, found = refs(head + rest) - set(resources.specs), {}
        while wanted:
            name = wanted.pop()
            found[name] = kubernetes.type(name)
            wanted |= refs(json.dumps(found[name])) - set(found)
        types = FIRST + section(f"The definitions below are of Kubernetes {version}. dev/values-schema.sh generates them.", found)
    return head + of_resources + types + rest


def main():
    action, source, version, definitions = sys.argv[1:5]
    resources, status = Resources(pathlib.Path(definitions)), 0
    kubernetes = Kubernetes(pathlib.Path(source), resources.quantity()) if source else None
    for chart in sys.argv[5:]:
        path = pathlib.Path(chart) / "values.schema.json"
        text = read(path)
        now = generate(kubernetes, resources, version, text)
        if action == "write":
            path.write_text(now, encoding="utf-8")
        elif now != text:
            status = 1
            print(f"{path}: not as Kubernetes {version} and the definitions have its types; run: dev/values-schema.sh")
    return status


if __name__ == "__main__":
    sys.exit(main())
