#!/usr/bin/env python3
"""Kubernetes' types in the values.schema.json of the charts: the names of their fields, the kinds of their values, and enums.

Usage: values_schema.py write|check KUBERNETES VERSION CHART...    See values-schema.sh.

KUBERNETES is the source of that release. Each chart's schema names the types it uses as "#/definitions/TYPE", with a capital letter. They and
what they consist of stand below the definition "generated". Null unsets a default, so it is allowed everywhere.
"""
import json
import pathlib
import re
import sys

# What the chart adds to a Container: an image may be a map.
WITH_IMAGE = "ContainerWithImage"
# Nobody writes these, and they consist of further types.
ANY = {"managedFields", "ownerReferences", "status"}
SCALARS = {"Quantity": ["string", "number"], "IntOrString": ["integer", "string"], "Time": ["string"]}
FIRST, LAST = '    "generated": {', "\n  },\n"


def read(path):
    return path.read_text(encoding="utf-8")


class Kubernetes:
    def __init__(self, source):
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
            return {"type": [*SCALARS[name], "null"]} if name in SCALARS else {"$ref": f"#/definitions/{name}"}
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


def generate(kubernetes, version, text):
    """The text of a values.schema.json, with these types as of now."""
    begin = text.index(FIRST)
    end = text.index(LAST, begin)
    wanted, types = refs(text[:begin] + text[end:]), {}
    while wanted:
        name = wanted.pop()
        types[name] = kubernetes.type(name)
        wanted |= refs(json.dumps(types[name])) - set(types)
    described = f"The definitions below are of Kubernetes {version}. dev/values-schema.sh generates them."
    lines = [f'{FIRST}"description": {json.dumps(described)}}}']
    lines += [f"    {json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    return text[:begin] + ",\n".join(lines) + text[end:]


def main():
    action, source, version = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    kubernetes, status = Kubernetes(source), 0
    for chart in sys.argv[4:]:
        path = pathlib.Path(chart) / "values.schema.json"
        text = read(path)
        now = generate(kubernetes, version, text)
        if action == "write":
            path.write_text(now, encoding="utf-8")
        elif now != text:
            status = 1
            print(f"{path}: not as Kubernetes {version} has its types; run: dev/values-schema.sh")
    return status


if __name__ == "__main__":
    sys.exit(main())
