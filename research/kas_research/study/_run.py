# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a study, configuration after configuration, each in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import kas

from ._spec import Configuration, Spec
from ._store import Outcome, Store, StudyError

ELEMENT_FACTORS = {"f16": 2.0, "bf16": 2.0, "int8": 4.0}
"""What is expected of smaller elements: as many times more fit a vector as they have fewer bits."""

WORKER = ["-m", "kas_research.study._worker"]
"""What a worker's interpreter is called with."""

Progress = Callable[[int, int, Outcome], None]


def find_baseline(configuration: Configuration, outcomes: dict[Configuration, Outcome]) -> Configuration | None:
    """The fastest dense one of the same model, schedule and target."""
    dense = [
        outcome
        for candidate, outcome in outcomes.items()
        if outcome.ms is not None
        and candidate.compression == "dense"
        and (candidate.model, candidate.schedule, candidate.target)
        == (configuration.model, configuration.schedule, configuration.target)
    ]
    return min(dense, key=lambda outcome: outcome.ms or 0.0).configuration if dense else None


def _start_worker(request: dict[str, Any], limit: float) -> dict[str, Any]:
    """What the worker answers, or why it does not."""
    # In a build tree the files of kas are links to the sources, and the extension is next to the links: nothing is
    # resolved.
    packages = [
        str(pathlib.Path(os.path.abspath(file)).parents[depth]) for file, depth in ((__file__, 2), (kas.__file__, 1))
    ]
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS=str(request["threads"]))
    environment["PYTHONPATH"] = os.pathsep.join([*packages, *filter(None, [os.environ.get("PYTHONPATH")])])
    # In a session of its own: what it has forked ends with it, and Ctrl-C comes to this process alone.
    with subprocess.Popen(
        [sys.executable, *WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as worker:
        try:
            output, errors = worker.communicate(json.dumps(request), timeout=limit)
        except subprocess.TimeoutExpired:
            return {"failure": f"expected an end within {limit:g} s, got none"}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
    if worker.returncode < 0:
        return {"failure": f"the worker died: {signal.Signals(-worker.returncode).name}"}
    try:
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
        return answer
    except (IndexError, ValueError):
        return {"failure": f"the worker ended with {worker.returncode} and without an answer: {errors.strip()[-500:]}"}


def measure(
    spec: Spec,
    configuration: Configuration,
    baseline: Configuration | None,
    database: str,
    features: Sequence[str] = (),
) -> tuple[Outcome, list[dict[str, Any]]]:
    """What becomes of a configuration, and its layers. `features` are the processor's, each as `+NAME`."""
    start = time.monotonic()
    request = {
        "configuration": configuration._asdict(),
        "baseline": baseline._asdict() if baseline and configuration.compression != "dense" else None,
        "layers": [(dense.to_json(), layer.to_json()) for dense, layer in spec.get_layer_pairs(configuration)],
        "database": os.path.abspath(database),
        "seed": spec.seed,
        "runs": spec.runs,
        "trials": spec.trials,
        "threads": spec.threads,
        "features": features,
    }
    answer = _start_worker(request, spec.limit)
    outcome = Outcome(configuration, failure=answer.get("failure"), seconds=time.monotonic() - start)
    if outcome.failure is not None:
        return outcome, []
    layers = answer["layers"]

    def total(name: str) -> float:
        return float(sum(layer[name] * layer["count"] for layer in layers))

    expected = total("dense_macs") / total("macs") * ELEMENT_FACTORS.get(configuration.compression, 1.0)
    outcome = dataclasses.replace(
        outcome, ms=total("ms"), expected=expected, error=max(layer["error"] for layer in layers)
    )
    if request["baseline"] is not None and baseline is not None:
        dense = total("baseline_ms")
        outcome = dataclasses.replace(
            outcome, baseline_ms=dense, baseline=baseline.algorithm, achieved=dense / total("ms")
        )
    return outcome, layers


def run(spec: Spec, database: str, *, retry: bool = False, progress: Progress | None = None) -> list[Outcome]:
    """Measures all configurations that the database does not have, and gives the outcomes of all.

    A process that is killed loses the configuration that it was measuring: the same call goes on. `retry` measures
    those again that failed. One process at a time: another one on the same file is refused.
    """
    with open(database + ".lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StudyError(f"'{database}' requires one study at a time, got another process that runs one") from error
        store = Store(database, spec)
        try:
            outcomes = store.read()
            plan = spec.get_configurations()
            for place, configuration in enumerate(plan):
                known = outcomes.get(configuration)
                if known is not None and not (retry and known.failure):
                    continue
                baseline = find_baseline(configuration, outcomes)
                outcome, layers = measure(spec, configuration, baseline, database, store.features)
                store.record(outcome, layers)
                outcomes[configuration] = outcome
                if progress is not None:
                    progress(place, len(plan), outcome)
            return [outcomes[configuration] for configuration in plan]
        finally:
            store.close()
