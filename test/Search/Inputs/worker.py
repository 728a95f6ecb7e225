"""A worker of the evaluator `external` that behaves as KAS_WORKER says; its metric tells which candidate it was given.

usage: worker.py good|zoo
"""

import json
import os
import random
import sys
import time
import zlib

index = int(os.environ["KAS_WORKER"])
kind = sys.argv[1]
if kind == "zoo":
    kind = ("good", "dies", "hangs", "garbage", "slow")[index % 5]
for line in sys.stdin:
    request = json.loads(line)
    loss = zlib.crc32(request.get("operator", request.get("kernel")).encode())
    rng = random.Random(loss + index)
    answer = {"id": request["id"], "metrics": {"loss": loss}}
    if loss % 50 == 1:
        answer = {"id": request["id"], "error": "does not train"}
    elif loss % 50 == 2:
        answer["metrics"]["loss"] = float("nan")
    elif loss % 50 == 3:
        answer["metrics"]["loss"] = float("inf")
    assert request["bindings"] and len(request["bindings"]) == len(request["multiplicities"])
    if kind == "dies" and rng.random() < 0.5:
        os._exit(3) if rng.random() < 0.5 else os.kill(os.getpid(), 9)
    elif kind == "hangs" and rng.random() < 0.03:
        time.sleep(1000)
    elif kind == "garbage":
        print("epoch 1")
        if rng.random() < 0.7:
            print(rng.choice(["\0\x01\xff", "", "{", '{"id": 12345678, "metrics": {}}', "[1, 2]", '{"id": null}']))
    elif kind == "slow":
        time.sleep(0.01)
    print(json.dumps(answer), flush=True)
