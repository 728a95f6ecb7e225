# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the comparison in the reports, timed in other runtimes."""

import pathlib
import sys

from kas_research import protocol

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_peers_time_found_networks():
    own = protocol.read_protocol(str(ROOT / "research" / "data" / "discovery.yaml"))
    points = [protocol.Point("pooled", name, 32) for name in ("found-1", "kernel-07923")]
    names = ("onnxruntime", "openvino")
    for record in protocol.measure(own, points, names=names, python=sys.executable, rounds=1, calls=2):
        assert record["failures"] == {}
        assert all(1 < record["microseconds"][name] < 1e6 for name in names)
