"""A worker that wants 1 GiB for each candidate."""

import json
import sys

for line in sys.stdin:
    answer = {"id": json.loads(line)["id"]}
    try:
        answer["metrics"] = {"bytes": len(bytes(1 << 30))}
    except MemoryError:
        answer["error"] = "no memory"
    print(json.dumps(answer), flush=True)
