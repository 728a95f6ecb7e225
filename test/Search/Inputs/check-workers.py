"""Reads `kas-search-db list --json`: each of N candidates was evaluated by itself or failed for a known reason.

usage: check-workers.py N
"""

import json
import re
import sys
import zlib

rows = [json.loads(line) for line in sys.stdin]
assert [row["id"] for row in rows] == list(range(int(sys.argv[1]))), len(rows)
assert len({row["key"] for row in rows}) == len(rows)
reasons = {1: "external: does not train", 2: "external: metric 'loss' requires a finite number"}
reasons[3] = reasons[2]
lost = evaluated = 0
for row in rows:
    loss = zlib.crc32(row["operator"].encode())
    reason = reasons.get(loss % 50)
    if row["state"] == "failed" and row["failure"] != reason:
        assert re.fullmatch(
            r"external: the worker (died: Killed|ended with code 3|does not answer in time|answered '.*') \(attempt 4 "
            r"of 4\)",
            row["failure"],
        ), row
        lost += 1
    elif reason:
        assert row["state"] == "failed", row
    else:
        assert row["state"] == "evaluated" and row["metrics"] == {"loss": loss}, row
        evaluated += 1
print(len(rows), "candidates", evaluated, "evaluated", lost, "lost their workers")
assert evaluated > 0.8 * len(rows) and lost < 0.02 * len(rows)
