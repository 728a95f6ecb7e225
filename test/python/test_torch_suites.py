# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The workers that run PyTorch's own tests (tools/torch-coverage.py): one that is lost is a failure of its entry."""

from __future__ import annotations

import torch_suite


def test_a_worker_that_is_lost_is_a_failure(monkeypatch, tmp_path):
    # A worker that ends by a signal, hangs, or answers.
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, os, sys, time\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    name = json.loads(line)['name']\n"
        "    os.abort() if name == 'abort' else time.sleep(100) if name == 'hang' else None\n"
        "    print(json.dumps({'status': 'compiled'}), flush=True)\n"
    )
    monkeypatch.setattr(torch_suite, "__file__", str(worker))
    tasks = [torch_suite.Task("op_db", name, "float32", "forward", 1) for name in ("abort", "good", "hang", "good")]
    outcomes = [outcome.status for _, outcome in torch_suite.Workers(1, 10).run(tasks)]
    assert outcomes == ["crash", "compiled", "time-out", "compiled"]
