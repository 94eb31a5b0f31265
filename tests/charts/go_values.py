#!/usr/bin/env python3
"""Tests the values of Slinky's charts, as go_values.yaml lists them. A value that works must appear in what the
chart renders. A value without a meaning must be named in the notes. The refusal of a value must say what to write instead.
Needs helm and python3-yaml.

Usage: go_values.py CHARTS     Ends with "N passed, N failed"; exits 1 when something failed.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import yaml

MARK = "are not used: "


def nested(flat):
    """Converts values by dotted paths to maps of maps."""
    whole = {}

    def put(into, path, value):
        if isinstance(value, dict):
            into = into.setdefault(path[0], {}) if len(path) == 1 else into
        if len(path) == 1:
            if isinstance(value, dict):
                into.update(value)
            else:
                into[path[0]] = value
        else:
            put(into.setdefault(path[0], {}), path[1:], value)

    for path, value in flat.items():
        put(whole, path.split("."), value)
    return whole


class Chart:
    def __init__(self, charts, name, scratch):
        """Copies the chart and makes the copy render its notes as an object, because helm prints notes only with a cluster."""
        self.name, self.path = name, scratch / name
        self.lock, self.known = threading.Lock(), {}
        shutil.copytree(charts / name, self.path)
        notes = (self.path / "templates/NOTES.txt").read_text(encoding="utf-8")
        (self.path / "templates/notes.yaml").write_text(
            '{{- define "notes" }}' + notes + '{{- end }}\n---\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {notes: {{ include "notes" . | toJson }}}\n',
            encoding="utf-8",
        )

    def render(self, *values):
        """Returns the rendered objects by kind and name, or the refusal as a string."""
        command = ["helm", "template", self.name, str(self.path), "--namespace", "ns", "--kube-version", "1.34"]
        # Each map gets a file of its own, because helm merges files.
        files = []
        for flat in values:
            file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
            json.dump(nested(flat), file)
            file.close()
            files.append(file.name)
        done = subprocess.run(command + [f"--values={file}" for file in files], capture_output=True, text=True, check=False)
        for file in files:
            os.unlink(file)
        if done.returncode != 0:
            return done.stderr.strip()
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return {f"{d['kind']}/{d['metadata']['name']}": d for d in yaml.load_all(done.stdout, loader) if d}

    def rendered(self, *values):
        """Does what `render` does, but only once for the same values."""
        key = json.dumps(values)
        with self.lock:
            if key not in self.known:
                self.known[key] = self.render(*values)
            return self.known[key]


def at(objects, path):
    """Returns what is at the path, or None."""
    for name in path:
        if isinstance(objects, list):
            objects = objects[name] if isinstance(name, int) and name < len(objects) else None
        else:
            objects = (objects or {}).get(name)
        if objects is None:
            return None
    return objects


def stands(found, wanted):
    return wanted in found if isinstance(found, list) and not isinstance(wanted, list) else found == wanted


def unused(objects):
    """Returns the names of the values that the notes list as not used."""
    line = next((line for line in objects["ConfigMap/notes"]["data"]["notes"].splitlines() if MARK in line), "")
    return line.partition(MARK)[2].rstrip(".").split(", ")


def above(key):
    """Returns the key and all maps that contain it, by their dotted names."""
    words = key.split(".")
    return {".".join(words[: n + 1]) for n in range(len(words))}


def problem(chart, key, line, base, coming):
    """Returns what is wrong with a line, or None."""
    values = [base, line.get("with", {}), {key: line["set"]}]
    objects = chart.render(*values)
    refused = objects if isinstance(objects, str) else None
    # If a default causes the refusal, the message names the map that gets the default.
    names = {name for path in (key, *line.get("with", {})) for name in above(path)}
    names |= {name.replace("Defaults", "s.a", 1) for name in above(key) if "." in name} | {key.split(".")[0].replace("Defaults", "s")}
    if coming and line.get("as", "") is None:
        return None  # the value requests nothing
    if coming:
        if refused:
            return None if any(name in refused for name in names) else f"refused without its name: {refused}"
        return None if names & set(unused(objects)) else "ignored without a word"
    if "refused" in line:
        return None if refused and line["refused"] in refused else f"expected to be refused: {line['refused']}; have: {refused or 'accepted'}"
    if refused:
        return refused
    if "unused" in line:
        return None if above(key) & set(unused(objects)) else f"not told; told are: {unused(objects)}"
    if above(key) & set(unused(objects)):
        return f"told to be unused: {unused(objects)}"
    wanted = line.get("as", line["set"])
    found = at(objects, line["shows"])
    if not stands(found, wanted):
        return f"{line['shows']}: expected {wanted!r}, have {found!r}"
    without = chart.rendered(*values[:-1])
    # If helm refuses to render without the value, the value has an effect.
    if not isinstance(without, str) and stands(at(without, line["shows"]), wanted):
        return f"{line['shows']}: {wanted!r} also without the value"
    return None


def lines(part):
    for key, line in part["keys"].items():
        coming = bool(above(key) & set(part.get("coming", [])))
        yield key, line, coming
        for defaults, own in (("nodesetDefaults.", "nodesets.a."), ("loginsetDefaults.", "loginsets.a.")):
            if key.startswith(defaults):
                yield key.replace(defaults, own, 1), line, coming
    for case in part.get("cases", []):
        (key,) = case["set"]
        yield key, case | {"set": case["set"][key]}, False


def main():
    charts = pathlib.Path(sys.argv[1])
    whole = yaml.safe_load((pathlib.Path(__file__).parent / "go_values.yaml").read_text(encoding="utf-8"))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        asked = []
        for name, part in whole.items():
            chart = Chart(charts, name, pathlib.Path(scratch))
            stale = [prefix for prefix in part.get("coming", []) if not any(prefix in above(key) for key in part["keys"])]
            asked += [(name, prefix, pool.submit(lambda: "no key begins so")) for prefix in stale]
            asked += [(name, key, pool.submit(problem, chart, key, line, part.get("base", {}), coming)) for key, line, coming in lines(part)]
        for name, key, answer in asked:
            wrong = answer.result()
            if wrong:
                failed += 1
                print(f"FAIL {name} {key}\n     {wrong}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
