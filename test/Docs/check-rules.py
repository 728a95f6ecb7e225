"""Checks that every numbered rule of a page has a test of its own, with what it takes away and what it leaves.

usage: check-rules.py canonical-form PAGE SOURCES_FOLDER TESTS_FOLDER
       check-rules.py rewrites PAGE TEST.mlir...

A rule of the canonical form is a row `| M3 | ...` of a table. It is cited by its number in the sources, and tests
named after it (`TEST_F(RulesTest, M3)`, `TEST_F(RulesTest, M3OfShifts)`) expect something that holds and something
that does not. A rewrite is such a row, too; in the lit tests at least two operators follow comments `// R3` that name
it. Tests of rules that the page does not have are errors.
"""

import pathlib
import re
import sys


def rules(page):
    return re.findall(r"^\| ([A-Z]\d+) \|", pathlib.Path(page).read_text(), re.M)


def check_canonical_form(page, sources, tests):
    """The errors, as text."""
    text = "".join(path.read_text() for path in sorted(pathlib.Path(sources).glob("*.[ch]*")))
    bodies = {}
    for path in sorted(pathlib.Path(tests).glob("*.cpp")):
        for name, body in re.findall(
            r"^TEST_F\((?:Rules|Keys)Test, (\w+)\) \{\n(.*?)^\}", path.read_text(), re.M | re.S
        ):
            number = re.match(r"[A-Z]\d+", name)
            if not number:
                yield f"{name}: the test is named after no rule"
                continue
            bodies[number[0]] = bodies.get(number[0], "") + body
    for rule in rules(page):
        body = bodies.pop(rule, "")
        if not re.search(rf"\b{rule}\b", text):
            yield f"{rule}: no source cites it"
        if not re.search(r"EXPECT_(TRUE|EQ)\(", body):
            yield f"{rule}: no test of what it leaves"
        if not re.search(r"EXPECT_(FALSE|NE)\(", body):
            yield f"{rule}: no test of what it takes away"
    for rule in bodies:
        yield f"{rule}: a test of a rule that the page does not have"


def check_rewrites(page, *tests):
    counts, current = {}, []
    for line in "\n".join(pathlib.Path(test).read_text() for test in tests).splitlines():
        if re.match(r"// R\d+\b", line):
            current = re.findall(r"\bR\d+\b", line)
        elif line.startswith("kas.operator"):
            for rule in current:
                counts[rule] = counts.get(rule, 0) + 1
    for rule in rules(page):
        if rule.startswith("R") and counts.pop(rule, 0) < 2:
            yield f"{rule}: fewer than two examples"
    for rule in counts:
        yield f"{rule}: examples of a rule that the page does not have"


def main():
    check = {"canonical-form": check_canonical_form, "rewrites": check_rewrites}[sys.argv[1]]
    numbers = rules(sys.argv[2])
    errors = list(check(*sys.argv[2:]))
    errors += [f"{rule}: twice on the page" for rule in sorted(set(numbers)) if numbers.count(rule) > 1]
    for error in errors:
        print(error)
    if not errors:
        print(f"{len(numbers)} rules")
    return bool(errors)


sys.exit(main())
