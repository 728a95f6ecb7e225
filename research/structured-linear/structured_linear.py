#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The complete list of linear layers with structured weights: research/reports/structured-linear.md.

usage: PYTHONPATH=build/python $(tools/python.sh) research/structured-linear/structured_linear.py COMMAND

  list   writes the list to research/data: all operators of the space, with costs, predicted times (by kas-opt of the
         build tree $KAS_BUILD, build by default, without a machine model), exponents, exact ranks at a small binding,
         and the names of families
  pages  writes the tables of the page and its picture from that file
  check  says whether the tables and the picture are those of the file
"""

from __future__ import annotations

import csv
import html
import io
import json
import lzma
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from fractions import Fraction

import kas
from kas_research.structured import Structure

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPACE = ROOT / "tools" / "kas-bench" / "spaces" / "structured-linear.mlir"
DATA = ROOT / "research" / "data" / "structured-linear.csv.xz"
PAGE = ROOT / "research" / "reports" / "structured-linear.md"
PICTURE = ROOT / "research" / "reports" / "structured-linear.svg"

# Cin = Cout = d, and both levels of factors and the rank as large as what is left: all sizes are powers of one number.
POWERS = {"Cin": 1, "Cout": 1, "R": Fraction(1, 3), "b": Fraction(1, 3)}
# There, the binding at which ranks are computed.
SMALL = {"N": 1, "Cin": 27, "Cout": 27, "R": 3, "b": 3}
BATCHES = (1, 512)
COLUMNS = (
    ["key", "weights", "levels", "family", "parameters", "flops"]
    + [f"predicted_ms_{batch}" for batch in BATCHES]
    + ["reaches", "sharing", "rank", "compute", "rank_at_27", "pattern", "structure"]
)

HALF = Fraction(1, 2)
THIRD = Fraction(1, 3)
# Title, operator of the library or of families.mlir, other names for its symbols in the space, powers in the textbook.
FAMILIES = (
    ("dense", "linear", {}, {}),
    ("low rank", "linear_low_rank", {"r": "R"}, {"r": HALF}),
    ("block diagonal", "linear_block_diagonal", {"g": "b"}, {"g": HALF}),
    ("equal blocks", "equal_blocks", {}, {"b": HALF}),
    ("low rank in blocks", "low_rank_blocks", {}, {"b": HALF, "R": Fraction(1, 4)}),
    ("Kronecker", "linear_kronecker", {"p": "b", "g": "b"}, {"p": HALF, "g": HALF}),
    ("Kronecker, three factors", "kronecker_of_three", {}, {"b": THIRD}),
    ("tensor train", "tensor_train", {}, {"b": HALF, "R": Fraction(1, 4)}),
    ("polyadic", "polyadic", {}, {"b": THIRD, "R": THIRD}),
    ("Monarch", "linear_monarch", {"g": "b", "p": "b"}, {"g": HALF, "p": HALF}),
    ("Monarch, transposed", "linear_monarch_transposed", {"g": "b", "p": "b"}, {"g": HALF, "p": HALF}),
    ("BTT", "linear_block_tensor_train", {"g": "b", "p": "b", "r": "R"}, {"g": HALF, "p": HALF, "r": Fraction(1, 4)}),
    ("shuffled groups", "linear_shuffled_groups", {"g": "b"}, {"g": HALF}),
    ("BLAST", "linear_blast", {"r": "R"}, {"b": HALF, "r": HALF}),
    ("butterfly, three factors", "butterfly", {}, {"b": THIRD}),
)


def load_family(name, names):
    """The operator as it is, and with the symbols of the space."""
    extra = kas.load(ROOT / "research" / "structured-linear" / "families.mlir")
    operator = kas.operator(name) if name.startswith("linear") else extra[name]
    text = str(operator)
    primaries, coefficients = operator.symbols
    for old, new in names.items():
        text = re.sub(rf"(?<![%\w]){old}\b(?!_)", new, text)
    symbols = [names.get(symbol, symbol) for symbol in (*primaries, *coefficients)]
    wanted = list(dict.fromkeys(symbol for symbol in symbols if symbol != "b"))
    head = f"<{', '.join(wanted)}{' | b' if 'b' in symbols else ''}>"
    text = re.sub(r"(kas\.operator @\w+)<[^>]*>", lambda match: match[1] + head, text, count=1)
    (renamed,) = kas.parse(text)
    return operator, renamed


def get_families():
    """By title: the operator as the textbook has it, its structure there and in the space, its powers."""
    result = {}
    for title, name, names, powers in FAMILIES:
        operator, renamed = load_family(name, names)
        result[title] = (
            operator,
            Structure.of(operator),
            renamed,
            Structure.of(renamed),
            {"Cin": 1, "Cout": 1, **powers},
        )
    return result


def get_titles(families):
    """Titles by pattern: those of one pattern share it."""
    titles = defaultdict(list)
    for title, (_, _, _, structure, _) in families.items():
        titles[structure.pattern].append(title)
    # Shuffled groups have a rank that is a part of Cout, Monarch matrices differ in the order of the factors only.
    return {pattern: "/".join(names) for pattern, names in titles.items()}


def predict(space_text, batch):
    """Times by key, as `kas-opt` predicts them without a machine model."""
    text, count = re.subn(r"N = \d+", f"N = {batch}", space_text)
    assert count == 1
    with tempfile.TemporaryDirectory() as folder:
        space, database = pathlib.Path(folder, "space.mlir"), pathlib.Path(folder, "times.db")
        space.write_text(text)
        options = "algorithm=exhaustive evaluations=1000000 evaluators=flops,params,predicted_ms top=1 progress=false"
        programs = pathlib.Path(os.environ.get("KAS_BUILD", ROOT / "build")) / "bin"
        subprocess.run(
            [
                programs / "kas-opt",
                space,
                f"-kas-search={options} objective=predicted_ms database={database}",
                "-o",
                os.devnull,
            ],
            check=True,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": folder},
        )
        listed = subprocess.run(
            [programs / "kas-search-db", "list", "--json", database], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    found = [json.loads(line) for line in listed.splitlines()]
    return {
        one["key"].removeprefix("0x"): one["metrics"]["predicted_ms"]
        for one in found
        if "predicted_ms" in one.get("metrics", {})
    }


def make_rows(weights=3):
    """One row for each operator of the space with so many weights at most."""
    text = re.sub(r"weights = \d", f"weights = {weights}", SPACE.read_text())
    space = kas.SearchSpace.parse(text)
    titles = get_titles(get_families())
    times = {batch: predict(text, batch) for batch in BATCHES}
    (binding,) = space.bindings
    rows = []
    for candidate in space.list():
        structure = Structure.of(candidate.operator)
        flops = structure.flops(binding)
        if (flops * binding["N"], structure.parameters(binding)) != (candidate.flops, candidate.params):
            raise AssertionError(f"requires the costs of the compiler, got others for\n{candidate.text}")
        levels = 2 if "b**2" in structure.key else int("b" in structure.key)
        exponents = structure.exponents(POWERS)
        rows.append(
            {
                "key": candidate.key,
                "weights": structure.num_weights,
                "levels": levels,
                "family": titles.get(structure.pattern, ""),
                "parameters": candidate.params,
                "flops": flops,
                **{f"predicted_ms_{batch}": f"{times[batch][candidate.key]:.4g}" for batch in BATCHES},
                "reaches": int(structure.reaches),
                "sharing": exponents.sharing,
                "rank": exponents.rank,
                "compute": exponents.compute,
                "rank_at_27": structure.rank(SMALL),
                "pattern": structure.pattern,
                "structure": str(structure),
            }
        )
    rows.sort(key=lambda row: (row["weights"], row["flops"], row["parameters"], row["key"]))
    return [{name: str(value) for name, value in row.items()} for row in rows]


def write_rows(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    DATA.write_bytes(lzma.compress(text.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME))


def read_rows():
    return list(csv.DictReader(io.StringIO(lzma.decompress(DATA.read_bytes()).decode())))


#
# Tables
#


def table(head, lines):
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(map(str, line))} |" for line in lines),
    ]


def write_number(value):
    return f"{int(value):,}".replace(",", " ")


def write_exponents(row):
    return f"{row['sharing']}, {row['rank']}, {row['compute']}"


def tabulate_counts(rows):
    lines = []
    for weights in "123":
        mine = [row for row in rows if row["weights"] == weights]
        levels = Counter(row["levels"] for row in mine)
        lines.append(
            [
                weights,
                *(write_number(levels[level]) for level in "012"),
                write_number(len(mine)),
                write_number(sum(row["reaches"] == "1" for row in mine)),
                write_number(len({row["pattern"] for row in mine})),
                write_number(len({row["pattern"] for row in mine if not is_kept(row["pattern"])})),
            ]
        )
    lines.append(
        [
            "all",
            *(write_number(sum(row["levels"] == level for row in rows)) for level in "012"),
            write_number(len(rows)),
            write_number(sum(row["reaches"] == "1" for row in rows)),
            write_number(len({row["pattern"] for row in rows})),
            write_number(len({row["pattern"] for row in rows if not is_kept(row["pattern"])})),
        ]
    )
    head = [
        "weights",
        "no factors",
        "one level",
        "two levels",
        "operators",
        "reach all",
        "patterns",
        "of these reach all",
    ]
    return table(head, lines)


def is_kept(pattern):
    """An index is in the data and the output."""
    return any("X" in kind and "Y" in kind for kind in pattern.split())


def tabulate_families(rows):
    by_key = {row["key"]: row for row in rows}
    counts = Counter(row["pattern"] for row in rows)
    space = kas.SearchSpace.parse(SPACE.read_text())
    lines = []
    for title, (operator, own, renamed, structure, powers) in get_families().items():
        membership = space.find(renamed)
        row = by_key.get(membership.key or "")
        exponents = own.exponents(powers)
        name = f"`kas.{operator.name}`" if operator.name.startswith("linear") else "-"
        lines.append(
            [
                title,
                name,
                f"`{structure.pattern}`",
                counts[structure.pattern],
                f"`{row['key'][:8]}`" if row else "none",
                write_number(row["parameters"]) if row else "",
                write_number(row["flops"]) if row else "",
                row["predicted_ms_1"] if row else "",
                row["predicted_ms_512"] if row else "",
                "yes" if structure.reaches else "no",
                f"{exponents.sharing}, {exponents.rank}, {exponents.compute}",
            ]
        )
    head = ["family", "operator", "pattern", "of it", "entry", "parameters", "FLOPs", "ms at 1", "ms at 512"]
    return table([*head, "reaches", "sharing, rank, compute"], lines)


def get_class(row):
    return tuple(Fraction(row[name]) for name in ("sharing", "rank", "compute"))


def tabulate_exponents(rows):
    groups = defaultdict(list)
    for row in rows:
        sharing, rank, compute = get_class(row)
        if sharing == 0 and row["reaches"] == "1":
            groups[rank, compute].append(row)
    lines = []
    for (rank, compute), mine in sorted(groups.items(), key=lambda item: (-item[0][0], item[0][1])):
        named = Counter(name for row in mine if row["family"] for name in [row["family"]])
        lines.append(
            [
                rank,
                compute,
                *(write_number(sum(row["weights"] == weights for row in mine)) for weights in "123"),
                ", ".join(f"{name} ({count})" for name, count in sorted(named.items())) or "none",
            ]
        )
    return table(["rank", "compute", "1 weight", "2 weights", "3 weights", "named"], lines)


def tabulate_unnamed(rows, weights, limit):
    """Patterns without a name, of full rank and without sharing, those of the least compute first."""
    best = {}
    for row in rows:
        sharing, rank, compute = get_class(row)
        if row["weights"] != weights or row["family"] or row["reaches"] != "1" or sharing != 0 or rank != 1:
            continue
        rank_of = (compute, float(row["predicted_ms_512"]), row["key"])
        if row["pattern"] not in best or rank_of < best[row["pattern"]][0]:
            best[row["pattern"]] = (rank_of, row)
    counts = Counter(row["pattern"] for row in rows)
    ordered = sorted(best.values(), key=lambda entry: entry[0])
    lines = [
        [
            f"`{row['pattern']}`",
            counts[row["pattern"]],
            f"`{row['key'][:8]}`",
            f"`{row['structure']}`",
            write_number(row["parameters"]),
            write_number(row["flops"]),
            row["predicted_ms_1"],
            row["predicted_ms_512"],
            row["compute"],
        ]
        for _, row in ordered[:limit]
    ]
    head = ["pattern", "of it", "entry", "as a sum", "parameters", "FLOPs", "ms at 1", "ms at 512", "compute"]
    return [f"{len(ordered)} patterns; the first {min(limit, len(ordered))}:", "", *table(head, lines)]


def summarize(rows):
    named = [row for row in rows if row["family"]]
    attained = sum(row["rank_at_27"] == str(round(27 ** float(Fraction(row["rank"])))) for row in rows)
    good = [row for row in rows if row["reaches"] == "1" and get_class(row)[:2] == (0, 1)]
    dense = next(row for row in rows if row["family"] == "dense")

    def count_faster(batch):
        name = f"predicted_ms_{batch}"
        return write_number(sum(float(row[name]) < float(dense[name]) for row in rows))

    def count_patterns(chosen):
        return len({row["pattern"] for row in chosen})

    unnamed = [row for row in rows if not row["family"]]
    return [
        f"* {write_number(len(rows))} operators of {write_number(count_patterns(rows))} patterns. "
        f"{write_number(len(named))} operators of {count_patterns(named)} patterns have a name, "
        f"{write_number(len(unnamed))} operators of {write_number(count_patterns(unnamed))} patterns have none.",
        f"* {write_number(len(good))} reach all inputs, share no parameters and may have full rank; "
        f"{write_number(sum(bool(row['family']) for row in good))} of them have a name.",
        f"* The rank at 27 inputs and outputs is what the exponent says for {write_number(attained)} operators, "
        f"less for the other {write_number(len(rows) - attained)}.",
        f"* Predicted to be faster than the dense layer: {count_faster(1)} for one token, {count_faster(512)} for 512.",
    ]


def make_tables(rows):
    return {
        "summary": summarize(rows),
        "counts": tabulate_counts(rows),
        "families": tabulate_families(rows),
        "exponents": tabulate_exponents(rows),
        "unnamed-2": tabulate_unnamed(rows, "2", 20),
        "unnamed-3": tabulate_unnamed(rows, "3", 20),
    }


def put_tables(text, rows):
    for name, lines in make_tables(rows).items():
        begin, end = f"<!-- {name}: written by structured_linear.py -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        assert found, name
        text = f"{before}{begin}\n{chr(10).join(lines)}\n{end}{after}"
    return text


#
# The picture
#

WIDTH, HEIGHT = 940, 470
PANEL, LEFT, TOP, BOTTOM, GAP = 390, 60, 64, 60, 60


def draw(rows):
    """Rank over compute, for operators that reach all, without and with sharing; the area is their number."""
    families = get_families()
    space = kas.SearchSpace.parse(SPACE.read_text())
    keys = defaultdict(list)
    for title, (_, _, renamed, _, _) in families.items():
        keys[space.find(renamed).key].append(title)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        "<title>Rank and compute of linear layers with structured weights</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]

    def text(x, y, content, anchor="middle", size=12, color="#374151"):
        out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}">'
            f"{html.escape(content)}</text>"
        )

    for panel, (title, shares) in enumerate((("no sharing", False), ("with sharing", True))):
        left = LEFT + panel * (PANEL + GAP)
        bottom = HEIGHT - BOTTOM

        def x(compute, left=left):
            return left + 40 + (PANEL - 80) * float(compute)

        def y(rank, bottom=bottom):
            return bottom - 24 - (bottom - TOP - 64) * float(rank)

        mine = [row for row in rows if row["reaches"] == "1" and (get_class(row)[0] != 0) == shares]
        text(left, 30, f"{title}: {write_number(len(mine))} operators that reach all inputs", "start", 14)
        out.append(f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{bottom - TOP}" fill="none" stroke="#d1d5db"/>')
        for value in (Fraction(third, 3) for third in range(4)):
            text(x(value), bottom + 18, str(value))
            text(left - 8, y(value) + 4, str(value), "end")
            out += [
                f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{bottom}" stroke="#eef0f2"/>',
                f'<line x1="{left}" x2="{left + PANEL}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#eef0f2"/>',
            ]
        text(left + PANEL / 2, bottom + 40, "compute: FLOPs are d^(1 + compute)")
        text(left, TOP - 10, "rank is d^...", "start")
        groups = defaultdict(list)
        for row in mine:
            groups[get_class(row)[1:]].append(row)
        for (rank, compute), members in sorted(groups.items()):
            radius = 2 + 24 * math.sqrt(len(members) / 1500)
            out.append(
                f'<circle cx="{x(compute):.1f}" cy="{y(rank):.1f}" r="{radius:.1f}" fill="#93c5fd" stroke="#1d4ed8" '
                f'fill-opacity="0.7"><title>{len(members)} operators, rank {rank}, compute {compute}</title></circle>'
            )
        for (rank, compute), members in sorted(groups.items()):
            titles = [title for row in members for title in keys.get(row["key"], ())]
            radius = 2 + 24 * math.sqrt(len(members) / 1500)
            beside = 0 if radius > 9 else radius + 12
            text(x(compute) + beside, y(rank) + 4, str(len(members)), size=10, color="#1e3a8a")
            for number, name in enumerate(titles):
                text(x(compute), y(rank) + radius + 12 + 12 * number, name, size=10, color="#b45309")
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    command = sys.argv[1] if len(sys.argv) == 2 else ""
    if command == "list":
        write_rows(make_rows())
    elif command in ("pages", "check"):
        rows = read_rows()
        page, picture = put_tables(PAGE.read_text(), rows), draw(rows)
        if command == "pages":
            PAGE.write_text(page)
            PICTURE.write_text(picture)
        elif page != PAGE.read_text() or picture != PICTURE.read_text():
            sys.exit("structured_linear.py: the page is not that of the data; run it with 'pages'")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
