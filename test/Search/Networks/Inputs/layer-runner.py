#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says 2 ms of each layer, dies of weights in two groups or slabs, and records its requests in KAS_TEST_RECORD."""

import hashlib
import json
import os
import re
import sys

for line in sys.stdin:
    request = json.loads(line)
    weights = re.findall(r"%arg[0-9]+: tensor<([0-9x]+)xf32>", request["function"])[1:]
    with open(os.environ["KAS_TEST_RECORD"], "a") as record:
        print(" ".join(weights), hashlib.md5(request["function"].encode()).hexdigest(), file=record)
    if any(re.fullmatch(r"2x\d+x\d+x3x3", shape) for shape in weights):
        sys.exit(1)
    print(json.dumps({"id": request["id"], "metrics": {"latency_ms": 2}}), flush=True)
