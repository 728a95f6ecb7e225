#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/reference/onnx-coverage.md from the results of ONNX's own tests.

usage: tools/onnx-coverage.py RESULTS.jsonl

RESULTS.jsonl is what `python test/python/onnx_suite.py --output=RESULTS.jsonl` has written.
"""

import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "onnx-coverage.md"
HEAD = """# What of ONNX is read

<!-- Generated from the results of the tests by tools/onnx-coverage.py. -->

ONNX's package has tests of its own: models, most of them of one operation, with data and results. Each is read by
[`kas.onnx.load`](python.md#kasonnxload), compiled and compared, in a process of its own
(`test/python/test_onnx_suite.py`). A model is right, or refused by a message that names the operation and what of it is
not supported. Excluded is what `kas.onnx` is not for: tensors of text, sequences and optional values as inputs or
results, floating-point numbers of 8 bits, numbers of 4 bits and less, and random numbers. Inputs that say shapes, axes
and the like are given by `constants`.
"""


def find_operation(model):
    """The operation that a test of one node is named after: that of its first node."""
    return model.graph.node[0].op_type if model.graph.node else "none"


def main():
    sys.path.insert(0, str(ROOT / "test" / "python"))
    import onnx
    import onnx_suite

    results = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    folders = collections.defaultdict(collections.Counter)
    operations = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(dict)
    for result in results:
        folder, _, stem = result["name"].partition("/")
        folders[folder][result["outcome"]] += 1
        if folder != "node" or "_expanded" in stem:
            continue
        kind = find_operation(onnx.load(onnx_suite.find_data() / folder / stem / "model.onnx"))
        operations[kind][result["outcome"]] += 1
        if result["outcome"] == "refused":
            said = re.sub(r"^[\w., ]*\(node [^)]*\): ", "", result["why"].split("; `constants`")[0])
            said = re.sub(r"'[^']*'", "...", said)[:160]
            reasons[kind][said.replace("|", "/")] = None
    lines = [HEAD, "| models | right | refused | excluded | other |", "|---|---|---|---|---|"]
    for folder, counts in folders.items():
        other = sum(counts.values()) - counts["right"] - counts["refused"] - counts["excluded"]
        lines.append(f"| {folder} | {counts['right']} | {counts['refused']} | {counts['excluded']} | {other} |")
    lines += ["", "## Operations", "", "Of the tests of single operations:", ""]
    lines += ["| operation | right | refused | why | excluded |", "|---|---|---|---|---|"]
    for kind, counts in sorted(operations.items()):
        why = "; ".join(reasons[kind])
        lines.append(f"| {kind} | {counts['right']} | {counts['refused']} | {why} | {counts['excluded']} |")
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
