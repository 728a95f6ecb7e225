# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the workers and times all variants of all of them in turn."""

import contextlib
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from .isa import LIMITS

ENTRY = Path(__file__).resolve().parents[1] / "peers.py"


# Seconds that a worker may take to start and for what has no limit of its own, and beyond a limit that it keeps by
# itself.
PATIENCE = 120
GRACE = 30


class Worker:
    """A process that serves one implementation, on some cores; started again if it dies, or hangs and is killed."""

    def __init__(self, name, python, work, cores, log, extra=(), isa="native"):
        threads = str(len(cores))
        environment = dict(
            os.environ,
            OMP_NUM_THREADS=threads,
            MKL_NUM_THREADS=threads,
            OPENBLAS_NUM_THREADS=threads,
            PYTHONWARNINGS="ignore",
            TORCHINDUCTOR_CACHE_DIR=str(work / f"inductor-{isa}"),
            TORCHINDUCTOR_COMPILE_THREADS="1",
            **LIMITS[isa],
        )
        command = [
            "taskset",
            "-c",
            ",".join(map(str, cores)),
            str(python),
            str(ENTRY),
            f"--worker={name}",
            f"--threads={threads}",
            f"--work={work}",
            f"--isa={isa}",
            *extra,
        ]
        self.name = name
        self.open = lambda: subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            bufsize=1,
            env=environment,
            cwd=work,
            start_new_session=True,
        )
        self.start()

    def start(self):
        self.process = self.open()
        line = self.read(PATIENCE)
        if not line:
            raise RuntimeError("the worker did not start; workers.log in the work directory says why")
        self.versions = json.loads(line)["versions"]

    def read(self, seconds):
        """A line; nothing if there is none in time.

        A worker answers each request with one line, so none is waiting in a buffer.
        """
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else ""

    def kill(self):
        """With all that it has started, such as compilers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def ask(self, seconds=PATIENCE, **request):
        """The answer; `lost` in it says that the worker is a new one, which has nothing loaded."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            line = self.read(seconds)
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        ended = self.process.poll() is not None or select.select([self.process.stdout], [], [], 0)[0]
        code = self.kill()
        self.start()
        return {
            "failure": f"the worker ended with {code}" if ended else f"the worker said nothing for {seconds:g} s",
            "lost": True,
        }

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
    """All variants that are ready, and (variant, reason) of those that failed.

    One that takes a worker with it costs the others nothing.
    """
    variants, failures = [], []
    for worker in workers:

        def load(name, worker=worker):
            # The worker gives up by itself, but not inside of a library.
            return worker.ask(
                settings.limit + GRACE,
                do="load",
                case=case.name,
                forms=list(case.forms),
                variant=name,
                limit=settings.limit,
            )

        def begin(worker=worker):
            return worker.ask(do="begin", case=case.name, forms=list(case.forms), variants=settings.variants)

        answer = begin()
        if "failure" in answer:
            failures.append((worker.name, answer["failure"]))
        ready = []
        for name in answer.get("variants", []):
            outcome = load(name)
            if outcome.get("lost"):
                begin()
                ready = [other for other in ready if "failure" not in load(other.name)]
            if "failure" in outcome:
                failures.append((name, outcome["failure"]))
            else:
                ready.append(Variant(worker, name, outcome["error"]))
        variants += ready
    return variants, failures


def time_case(variants, settings):
    """`rounds` times through all variants, each time beginning with the next one."""
    failures = []
    for turn in range(settings.rounds):
        start = turn % max(1, len(variants))
        for variant in variants[start:] + variants[:start]:
            answer = variant.worker.ask(
                do="time",
                variant=variant.name,
                repetitions=settings.repetitions,
                start=turn * settings.repetitions,
                least=-(-20 // settings.rounds),
                budget=settings.budget,
            )
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
        print(
            f"# {case.name}: loaded {len(variants)} variants of {loads} in {time.time() - start:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        return [], failures
    variants, more = time_case(variants, settings)
    return variants, failures + more
