"""Proves the rules of pages by an SMT solver.

usage: prove-rules.py [options] RULES.mlir...

Runs kas-prove-rules on the files and z3 on what it writes. A rule is proven when the negation of each claim is
unsatisfiable, its near miss is refuted when that of a claim of it can be satisfied.

  --tools=FOLDER     where kas-prove-rules and kas-opt are (build/bin)
  --z3=PROGRAM       the solver (z3)
  --work=FOLDER      where formulas are written; made when it is not there
  --only=REGEX       only rules whose whole name matches
  --skip=REGEX       no rules whose whole name matches
  --timeout=SECONDS  for each formula (300)
  --exact=PAGE       each rule of this page that is called exact must have a statement, and no other one
  --rewrites=PAGE    the same for each rewrite R1, R2, ... of this page
  --canonicalize     -kas-canonicalize must make of @before what @after is
  --write-table=PAGE writes the table of this page, between two comments
  --check-table=PAGE the table of this page must be what --write-table writes, but for the seconds
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

BEGIN, END = "<!-- proofs: written by test/Proofs/prove-rules.py -->", "<!-- end of proofs -->"


class Rule:
    """A statement and what was found."""

    def __init__(self, name, statement, near_miss):
        self.name, self.statement, self.near_miss = name, statement, near_miss
        self.claims, self.seconds = 0, 0.0

    @property
    def number(self):
        return self.name.split("_")[0]


def read_rules(files):
    """The rules of the files in their order."""
    text = "".join(pathlib.Path(file).read_text() for file in files)
    module = r'module @(\w+) attributes \{rule\.statement = "([^"]*)"'
    rules = []
    for name, statement in re.findall(module, text):
        if name == "near_miss":
            rules[-1].near_miss = statement
        else:
            rules.append(Rule(name, statement, None))
    return rules


def solve(path, arguments):
    """The results of the claims of a formula, by name, and the seconds."""
    claims = re.findall(r"^; claim: (.*)$", path.read_text(), re.M)
    start = time.monotonic()
    try:
        # What z3 prints for an error is no result either.
        run = subprocess.run([arguments.z3, str(path)], capture_output=True, text=True, timeout=arguments.timeout)
        lines = run.stdout.split("\n")
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").decode().split("\n")
    seconds = time.monotonic() - start
    lines = [line for line in lines if line]
    lines += ["no result in time"] * (len(claims) - len(lines))
    claims += ["none"] * (len(lines) - len(claims))
    return list(zip(claims, lines)), seconds


def prove(rule, folder, arguments):
    """The errors, as text."""
    results, rule.seconds = solve(folder / f"{rule.name}.smt2", arguments)
    rule.claims = len(results)
    if not results:
        yield f"{rule.name}: no claims"
    for claim, result in results:
        if result != "unsat":
            found = "has a counterexample" if result == "sat" else f"is not proven: {result}"
            yield f"{rule.name}: claim '{claim}' {found}"
    if rule.name.startswith("lemma_"):
        return
    results, _ = solve(folder / f"{rule.name}.near_miss.smt2", arguments)
    if any(result not in ("sat", "unsat") for _, result in results):
        yield f"{rule.name}: near miss: neither proven nor refuted"
    elif all(result == "unsat" for _, result in results):
        yield f"{rule.name}: near miss: it is proven"


def canonicalize(rule, folder, tools):
    """The errors of the instance of a rewrite, as text."""

    def run(suffix, *options):
        path = folder / f"{rule.name}.{suffix}.mlir"
        command = [str(tools / "kas-opt"), str(path), *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    before, after = run("before", "-kas-canonicalize"), run("after")
    if before != after:
        yield f"{rule.name}: -kas-canonicalize makes\n{before}instead of\n{after}"
    if after == run("before"):
        yield f"{rule.name}: nothing is to be rewritten"


def check_page(page, rules, is_wanted):
    """The errors of a page whose rules of some kind must have statements."""
    rows = re.findall(r"^\| ([A-Z]\d+) \| ([^|]*) \|", pathlib.Path(page).read_text(), re.M)
    wanted = [number for number, kind in rows if is_wanted(number, kind)]
    numbers = {rule.number for rule in rules}
    for number in wanted:
        if number not in numbers:
            yield f"{number}: exact on the page, but without a statement"
    for number in sorted(numbers - set(wanted)):
        yield f"{number}: a statement of a rule that is not exact on the page"


def make_table(rules, lemmas):
    lines = [BEGIN, "| rule | before and after are the same | sizes | claims | seconds | near miss |"]
    lines.append("|---|---|---|---|---|---|")
    for rule in lemmas + rules:
        name = rule.name.removeprefix("lemma_").replace("_", " ")
        cells = [name, rule.statement, "all", str(rule.claims), f"{rule.seconds:.1f}", rule.near_miss or ""]
        lines.append("| " + " | ".join(cells).replace("*", "\\*") + " |")
    lines.append(END)
    return "\n".join(lines)


def replace_table(page, table):
    text = pathlib.Path(page).read_text()
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    return text[:begin] + table + text[end:]


def without_seconds(text):
    return re.sub(r"\| \d+\.\d \|", "| |", text)


LEMMAS = {
    "lemma_product": "a >= k and b >= 0 give a*b >= k*b, a <= k gives a*b <= k*b, for k from -2 to 2",
    "lemma_range_of_split": "B*i + j is in [0, G*B)",
    "lemma_range_of_merge": "i / B is in [0, G), i in [0, G*B)",
    "lemma_range_of_stride": "S*i is in [0, S*K)",
    "lemma_shift_is_one_to_one": "(i + d) mod N = (j + d) mod N only for i = j, i and j in [0, N)",
}


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("files", nargs="+")
    for option in ("work", "only", "skip", "exact", "rewrites", "write-table", "check-table"):
        parser.add_argument("--" + option)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/bin"))
    parser.add_argument("--z3", default="z3")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--canonicalize", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    folder = pathlib.Path(arguments.work or "build/proofs")
    folder.mkdir(parents=True, exist_ok=True)
    instances = ["-instances"] if arguments.canonicalize else []
    subprocess.run([arguments.tools / "kas-prove-rules", *arguments.files, "-o", folder, *instances], check=True)
    every = read_rules(arguments.files)
    lemmas = [Rule(name, statement, None) for name, statement in LEMMAS.items()]
    rules = [
        rule
        for rule in every
        if (not arguments.only or re.fullmatch(arguments.only, rule.name))
        and not (arguments.skip and re.fullmatch(arguments.skip, rule.name))
    ]
    errors = []
    for rule in lemmas + rules:
        errors += prove(rule, folder, arguments)
    if arguments.canonicalize:
        for rule in rules:
            errors += canonicalize(rule, folder, arguments.tools)
    if arguments.exact:
        errors += check_page(arguments.exact, every, lambda _, kind: "exact" in kind)
    if arguments.rewrites:
        errors += check_page(arguments.rewrites, every, lambda number, _: re.match(r"R\d", number))
    table = make_table(rules, lemmas)
    if arguments.write_table and not errors:
        page = pathlib.Path(arguments.write_table)
        page.write_text(replace_table(page, table))
    if arguments.check_table:
        page = pathlib.Path(arguments.check_table)
        if without_seconds(replace_table(page, table)) != without_seconds(page.read_text()):
            errors.append(f"{page.name}: the table is not up to date, run prove-rules.py --write-table={page.name}")
    for error in errors:
        print(error)
    if not errors:
        numbers = len({rule.number for rule in rules})
        print(f"{len(rules)} statements of {numbers} rules are proven for all sizes, their near misses refuted")
    return bool(errors)


sys.exit(main())
