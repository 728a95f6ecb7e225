#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators of the search bring to `kas accelerate`: the front with all alternatives, and without these.

    operators.py net.py:make_network --weights=net.pt --data=fashion-mnist --seed=1 -o FOLDER

Both fronts are of one library, with the same times and losses of all other alternatives, so that they differ in nothing
else. For each budget the predicted losses are compared, and the layers with an operator are counted.
"""

import argparse
import json
import math
import pathlib
import sys

from libraries import add_arguments, open_library, select

from kas._accelerate._knapsack import choose, find_front


def compare(place, names, count):
    """Rows of a budget, both losses, and the operators that were chosen; budgets are even by ratio."""
    others = select(place, lambda option: option.name not in names)
    fronts = find_front(place), find_front(others)
    low, high = fronts[1][0].ms, max(fronts[1][-1].ms, 1.001 * fronts[1][0].ms)
    rows = []
    for number in range(count):
        limit = low * (high / low) ** ((number + 0.5) / count)
        whole, without = choose(place, limit), choose(others, limit)
        assert whole is not None and without is not None, "the fastest network is within all budgets"
        taken = [f"{option.place}: {option.name}" for option in whole.options if option.name in names]
        rows.append({"ms": limit, "loss": whole.loss, "loss_without": without.loss, "operators": taken})
    return rows


def make_table(rows, described):
    """The rows as text, and how often an operator is chosen."""
    lines = [f"{'ms':>10}{'with':>12}{'without':>12}{'over it':>9}  operators"]
    for row in rows:
        ratio = row["loss"] / row["loss_without"] if row["loss_without"] > 0 else 1.0
        lines.append(
            f"{row['ms']:10.4g}{row['loss']:12.4g}{row['loss_without']:12.4g}{ratio:9.3f}  "
            + ", ".join(row["operators"])
        )
    unnamed = [name for name, entry in described.items() if entry["named"] is None]
    count = sum(any(name.split(": ", 1)[1] in unnamed for name in row["operators"]) for row in rows)
    logs = [math.log(row["loss"] / row["loss_without"]) for row in rows if row["loss"] > 0 and row["loss_without"] > 0]
    mean = math.exp(math.fsum(logs) / len(logs)) if logs else 1.0
    lines.append(
        f"{len(described)} operators in the library, {len(unnamed)} without a name; one of these at {count} of "
        f"{len(rows)} budgets; loss over that without operators, geometric mean: {mean:.3f}"
    )
    return "\n".join(lines)


def main(arguments=None):
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--budgets", type=int, default=12, help="how many (default: %(default)s)")
    options = parser.parse_args(arguments)
    with open_library(options) as (_, library):
        described = library.finder.describe({one.form for one in library.alternatives})
        rows = compare(library.get_place(), set(described), options.budgets)
        if options.output:
            text = json.dumps({"rows": rows, "operators": described}, indent=1)
            pathlib.Path(options.output, "operators.json").write_text(text + "\n", encoding="utf-8")
    for form, entry in described.items():
        print(f"{form} ({entry['properties']}): {entry['formula']}")
    print(make_table(rows, described))
    return 0


if __name__ == "__main__":
    sys.exit(main())
