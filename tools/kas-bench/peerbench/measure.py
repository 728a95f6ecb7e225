# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the workers and times all variants of all of them in turn."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ENTRY = Path(__file__).resolve().parents[1] / "peers.py"


class Worker:
    """A process that serves one implementation, on some cores; it is started again if it dies."""

    def __init__(self, name, python, work, cores, log, extra=()):
        threads = str(len(cores))
        environment = dict(os.environ, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads, PYTHONWARNINGS="ignore",
                           TORCHINDUCTOR_CACHE_DIR=str(work / "inductor"), TORCHINDUCTOR_COMPILE_THREADS="1")
        command = ["taskset", "-c", ",".join(map(str, cores)), str(python), str(ENTRY), f"--worker={name}", f"--threads={threads}",
                   f"--work={work}", *extra]
        self.name = name
        self.open = lambda: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
                                             env=environment, cwd=work)
        self.start()

    def start(self):
        self.process = self.open()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the worker did not start; workers.log in the work directory says why")
        self.versions = json.loads(line)["versions"]

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.start()
        return {"failure": f"the worker ended with {code}"}

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


class Variant:
    """What was measured of one variant of one case, in milliseconds."""

    def __init__(self, worker, name, error):
        self.worker, self.name, self.error, self.times = worker, name, error, []

    @property
    def median(self):
        return statistics.median(self.times)


def load_case(workers, case, settings):
    """All variants that are ready, and (variant, reason) of those that failed."""
    variants, failures = [], []
    for worker in workers:
        answer = worker.ask(do="load", case=case.name, forms=list(case.forms), variants=settings.variants, limit=settings.limit)
        if "failure" in answer:
            failures.append((worker.name, answer["failure"]))
        for name, outcome in answer.get("variants", {}).items():
            if "failure" in outcome:
                failures.append((name, outcome["failure"]))
            else:
                variants.append(Variant(worker, name, outcome["error"]))
    return variants, failures


def time_case(variants, settings):
    """`rounds` times through all variants, each time beginning with the next one."""
    failures = []
    for turn in range(settings.rounds):
        start = turn % max(1, len(variants))
        for variant in variants[start:] + variants[:start]:
            answer = variant.worker.ask(do="time", variant=variant.name, repetitions=settings.repetitions, start=turn * settings.repetitions,
                                        least=-(-20 // settings.rounds), budget=settings.budget)
            if "times" in answer:
                variant.times += [t / 1e6 for t in answer["times"]]
            elif turn == 0:
                failures.append((variant.name, answer["failure"]))
    return [variant for variant in variants if variant.times], failures


def measure(workers, case, settings):
    """The variants of `case` with their times, and what failed."""
    start = time.time()
    variants, failures = load_case(workers, case, settings)
    if settings.warm:
        loads = ", ".join(sorted({variant.worker.name for variant in variants}))
        print(f"# {case.name}: loaded {len(variants)} variants of {loads} in {time.time() - start:.1f} s", file=sys.stderr, flush=True)
        return [], failures
    variants, more = time_case(variants, settings)
    return variants, failures + more
