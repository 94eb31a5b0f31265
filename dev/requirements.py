#!/usr/bin/env python3
"""Writes docs/enlistment/requirements.md: the requirements of requirements.toml beside it, with the tests that name them.

Usage: requirements.py          Writes it. Run it after a change of the requirements, or of the tests that name them.
       requirements.py check    Exits 1 if it is not up to date.

Fails if a requirement has neither a test nor a reason why there is none.
"""
import pathlib
import re
import subprocess
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent
WORDS, PAGE = TOP / "docs/enlistment/requirements.toml", TOP / "docs/enlistment/requirements.md"
MARKER = re.compile(r"( *)(?://|#) Requirement (\d+)")
TEST = re.compile(r"TEST(?:_F|_P)?\((\w+), (\w+)\)|def (\w+)\(")

BEGIN = """# Requirements

Where each requirement on slurm-enlist and [the charms](juju.md) is shown by a test. Tests of `tests/` use a real Slurm, with namespaces of a machine
as hosts. Those of `src/` are unit tests, with models of what surrounds the code.

**Decided** says what was decided where a requirement is open, or is met in another way. **Not shown** says what no test shows, and why.

<!-- Made by dev/requirements.py of requirements.toml and of the comments "Requirement N" above tests. -->

"""


def tests_of(path):
    """Returns (number, name) for each requirement that a test of this file names, above itself or in its body."""
    found, numbers, name = [], [], None
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        marker, test = MARKER.fullmatch(line), TEST.match(line)
        if marker and marker[1] and name:
            found.append((int(marker[2]), name))
        elif marker:
            numbers.append(int(marker[2]))
        elif test:
            name = test[3] or f"{test[1]}.{test[2]}"
            found += [(number, name) for number in numbers]
            numbers = []
        elif numbers and not line.startswith("@"):
            sys.exit(f"{path.relative_to(TOP)}:{at}: no test follows Requirement {numbers[-1]}")
    if numbers:
        sys.exit(f"{path.relative_to(TOP)}: no test follows Requirement {numbers[-1]} at its end")
    return found


def page(sections, tests):
    out = [BEGIN]
    for section in sections:
        out.append(f"## {section['title']}\n\n| | Requirement | Tests |\n| --- | --- | --- |\n")
        for item in section["requirement"]:
            words = [item["text"]]
            words += [f"**Decided:** {item['decision']}"] if "decision" in item else []
            words += [f"**Not shown:** {item['open']}"] if "open" in item else []
            shown = []
            for path, names in sorted(tests.get(item["number"], {}).items()):
                shown.append(f"[{path.name}](../../{path}): " + ", ".join(f"`{name}`" for name in names))
            if not shown and "open" not in item:
                sys.exit(f"requirement {item['number']} has no test: name it above one, or say in {WORDS.relative_to(TOP)} what is open")
            out.append(f"| {item['number']} | {'<br>'.join(words)} | {'<br>'.join(shown) or '–'} |\n")
        out.append("\n")
    return "".join(out).rstrip("\n") + "\n"


def main():
    sections = tomllib.loads(WORDS.read_text(encoding="utf-8"))["section"]
    numbers = [item["number"] for section in sections for item in section["requirement"]]
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit(f"{WORDS.relative_to(TOP)}: the numbers are not 1, 2, 3 and so on")
    tests = {}
    listed = subprocess.run(["git", "ls-files", "src/enlist", "sim/programs/enlist", "tests/enlist"], cwd=TOP, check=True, capture_output=True, text=True)
    for path in map(pathlib.Path, listed.stdout.split()):
        if path.suffix not in (".cpp", ".py"):
            continue
        for number, name in tests_of(TOP / path):
            if number not in numbers:
                sys.exit(f"{path}: {name} names requirement {number}, which {WORDS.relative_to(TOP)} does not have")
            names = tests.setdefault(number, {}).setdefault(path, [])
            if name not in names:
                names.append(name)
    text = page(sections, tests)
    if sys.argv[1:] == ["check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"{PAGE.relative_to(TOP)} is not up to date: run dev/requirements.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
