# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: check-profile.py REPORT.json TRACE.json: whether a profile of tiny.mlir and its trace are consistent."""

import itertools
import json
import pathlib
import sys

report, trace = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
profile = report["profile"]
rows = profile["operations"]
assert report["ok"] and profile["function"] == "forward" and profile["threads"] == 1 and profile["runs"] == 5
assert all(row["ms"] >= row["min_ms"] >= 0 and row["calls"] > 0 and row["bytes"] > 0 for row in rows)
assert abs(sum(row["ms"] for row in rows) + profile["outside_ms"] - profile["ms"]) < 1e-9
# The three convolutions, without products with padding, have most of the work of the model.
assert report["existing_flops"] <= sum(row["flops"] for row in rows) < 1.1 * report["existing_flops"]
conv2 = next(row for row in rows if row["layer"] == "conv2")
assert conv2["location"].endswith("tiny.mlir:28:10") and conv2["strategy"] and conv2["reason"], conv2

events = trace["traceEvents"]
assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"compilation", "forward"}
passes = [event for event in events if event["ph"] == "X" and event["pid"] == 1]
intervals = [event for event in events if event["ph"] == "X" and event["pid"] == 2]
assert {"kas-pack-operators", "optimization"} <= {event["name"] for event in passes}
assert len(intervals) == sum(row["calls"] for row in rows)
for before, after in itertools.pairwise(intervals):
    assert abs(before["ts"] + before["dur"] - after["ts"]) < 1e-3
