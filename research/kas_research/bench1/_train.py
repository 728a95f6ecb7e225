# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trainings of the operators, which go on where they were."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kas._errors import need

need("torch", "torch")

from kas.evaluate._training import Training as Run

from ..protocol import Job, Protocol, Store, Worker
from ..protocol._protocol import identify
from ..protocol._run import Team
from ._table import Row, Training
from ._tasks import REFERENCES, SEEDS, TASKS, get_name, get_widths, make_job, make_protocol

Progress = Callable[[dict[str, Any], int], None]

UNTRAINED: Mapping[str, Row] = {name: Row(-1, "", "", frozenset()) for name in REFERENCES}
"""The layers made by hand, without trainings."""
GROUP = 50
"""Operators that are trained on one task before they are on the next."""


class CurveWorker(Worker):
    """A worker that also evaluates after each epoch."""

    def start(self, job: Job) -> tuple[Run, str]:
        """A training that has only its last epoch before it: the curve has the others."""
        training, backend = super().start(job)
        for epoch in range(1, self.protocol.recipe.epochs):
            training.advance(epoch)
            training.evaluate()
        return training, backend

    def _evaluate(self, training: Run, job: Job) -> Mapping[str, Any]:
        found = dict(super()._evaluate(training, job))
        found["accuracies"] = [round(100 * value, 4) for _, name, value in training.curve if name == "accuracy"]
        return found


def plan(
    task: str,
    rows: Sequence[Row],
    store: Store,
    *,
    references: Mapping[str, Row] = UNTRAINED,
    seeds: Sequence[int] = SEEDS,
    retry: bool = False,
) -> tuple[Protocol, list[Job]]:
    """The trainings of the references and then of the operators that neither the rows nor the store have, in order.

    With `retry` also those that failed.
    """
    protocol = make_protocol(TASKS[task], rows)
    identity = identify(protocol.load_data())
    known = {key for key, record in store.read_trainings().items() if not (retry and record["failure"])}
    jobs = []
    for name, row in {**references, **{get_name(row): row for row in rows}}.items():
        done = {(one.seed, one.width) for one in row.trainings if one.task == task and not (retry and one.failure)}
        jobs += [
            make_job(name, seed, width) for width in get_widths(name) for seed in seeds if (seed, width) not in done
        ]
    return protocol, [job for job in jobs if protocol.key(job, identity) not in known]


def train(
    rows: Sequence[Row],
    store: Store,
    *,
    tasks: Iterable[str] = TASKS,
    references: Mapping[str, Row] = UNTRAINED,
    seeds: Sequence[int] = SEEDS,
    part: tuple[int, int] = (1, 1),
    processes: int = 1,
    limit: int | None = None,
    retry: bool = False,
    niceness: int = 19,
    progress: Progress | None = None,
) -> None:
    """Trains what neither the rows nor the store have, at most `limit` times, in so many processes.

    After each `GROUP` of operators comes the next task, so that each beginning of the trainings is of use. `part`
    (I, N) is one of N parts of equal size, the first one with the references: each of N machines takes one. A call may
    be stopped at any time, and the same call goes on: what ended is kept. `progress` gets each record and how many are
    left of its group.
    """
    own = rows[part[0] - 1 :: part[1]]
    count = 0
    for start in range(0, max(1, len(own)), GROUP):
        by_hand = references if part[0] == 1 and start == 0 else {}
        for name in tasks:
            group = own[start : start + GROUP]
            protocol, jobs = plan(name, group, store, references=by_hand, seeds=seeds, retry=retry)
            jobs = jobs if limit is None else jobs[: limit - count]
            count += len(jobs)
            for done, record in enumerate(_run(protocol, jobs, processes, niceness), 1):
                store.add(record)
                if progress is not None:
                    progress(record, len(jobs) - done)


def _run(protocol: Protocol, jobs: Sequence[Job], processes: int, niceness: int) -> Iterator[dict[str, Any]]:
    """The records of jobs as they end. All seeds of a network are trained by one process."""
    points = list(dict.fromkeys(job.point for job in jobs))
    ended: queue.Queue[dict[str, Any] | BaseException | None] = queue.Queue()
    stopped = threading.Event()

    def work(number: int) -> None:
        own = set(points[number::processes])
        try:
            with Team(protocol, 1, niceness, CurveWorker) as team:
                for record in team.train(job for job in jobs if job.point in own and not stopped.is_set()):
                    ended.put(record)
            ended.put(None)
        except BaseException as error:
            ended.put(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(min(processes, len(points)))]
    for thread in threads:
        thread.start()
    try:
        working = len(threads)
        while working:
            record = ended.get()
            if isinstance(record, BaseException):
                raise record
            if record is None:
                working -= 1
            else:
                yield record
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def read_training(record: Mapping[str, Any], task: str) -> Training:
    """A training of a store as it is in the tables."""
    return Training(
        task,
        record["seed"],
        record["failure"],
        validation=record.get("validation"),
        test=record.get("test"),
        shifted=record.get("shifted"),
        rotated=record.get("rotated"),
        curve=tuple(record.get("accuracies", ())),
        losses=tuple(record.get("curve", ())),
        parameters=record.get("parameters"),
        cpu_seconds=record["cpu_seconds"],
        width=record["width"],
        correct=record.get("test_correct", ""),
    )


def collect_trainings(rows: Sequence[Row], stores: Iterable[Store]) -> tuple[dict[str, list[Training]], dict[str, str]]:
    """The trainings in stores by contender, in the order of tasks and seeds, and the data of each task.

    Raises a `ValueError` where stores have trainings of a task on different data.
    """
    records = {key: record for store in stores for key, record in store.read_trainings().items()}
    found: dict[str, list[Training]] = {}
    identities: dict[str, str] = {}
    for name, task in TASKS.items():
        protocol = make_protocol(task, rows)
        for identity in sorted({record["settings"]["data"] for record in records.values()}):
            for contender in (*REFERENCES, *map(get_name, rows)):
                for width, seed in itertools.product(get_widths(contender), SEEDS):
                    record = records.get(protocol.key(make_job(contender, seed, width), identity))
                    if record is None:
                        continue
                    if identities.setdefault(name, identity) != identity:
                        raise ValueError(
                            f"requires trainings on '{name}' with the data {identities[name]}, got some with {identity}"
                        )
                    found.setdefault(contender, []).append(read_training(record, name))
    return found, identities
