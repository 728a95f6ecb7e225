# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pool of processes: whatever becomes of a worker, each task ends once, and the reason is said."""

import functools
import os
import signal
import sys
import time

import pytest

from kas._processes import ProcessPool, map_unordered


def answer(request):
    what, value = request
    if what == "raise":
        raise OSError("no such thing")
    if what == "exit":
        # Not sys.exit, which a library may raise as well, but the end of the process.
        os._exit(value)
    if what == "exit once there is":
        while not value.exists():
            time.sleep(0.01)
        os._exit(2)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(600)
    if what == "unpicklable":
        return lambda: value
    if what == "print":
        # What a worker prints is no answer.
        print("stray output", flush=True)
        os.write(sys.stdout.fileno(), b"more of it\n")
    return value + 1


def make():
    return answer


def make_with(value):
    return functools.partial(pow, value)


def collect(pool, count):
    ended = []
    deadline = time.monotonic() + 300
    while len(ended) < count:
        assert time.monotonic() < deadline
        ended += pool.wait(1)
    return {one.task: one for one in ended}


@pytest.fixture(params=["fork", "spawn"])
def method(request):
    return request.param


def test_all_that_can_become_of_a_task(method):
    kinds = ["right", "raise", "exit", "kill", "unpicklable", "print"]
    with ProcessPool(make, 2, method=method, depth=len(kinds)) as pool:
        assert pool.capacity == 2 * len(kinds) and len(pool.pids) == 2
        for task, kind in enumerate(kinds):
            pool.submit(task, (kind, 3))
            # One after the other: tasks that wait for a worker that is lost are lost, too.
            (one,) = collect(pool, 1).values()
            assert one.task == task and one.begun and one.seconds >= 0
            expected = {
                "right": (4, None, None),
                "raise": (None, "OSError: no such thing", None),
                "exit": (None, None, 3),
                "kill": (None, None, -signal.SIGKILL),
                "print": (4, None, None),
            }
            if kind == "unpicklable":
                assert one.answer is None and one.code is None and "pickle" in one.error
            else:
                assert (one.answer, one.error, one.code) == expected[kind]
        assert len(pool.pids) == 2


def test_tasks_that_wait_for_a_lost_worker(method, tmp_path):
    with ProcessPool(make, 1, method=method, depth=3) as pool:
        pool.submit(0, ("exit once there is", tmp_path / "all"))
        pool.submit(1, ("right", 2))
        pool.submit(2, ("right", 2))
        (tmp_path / "all").touch()
        ended = collect(pool, 3)
        assert [ended[task].begun for task in range(3)] == [True, False, False]
        assert all(one.code == 2 for one in ended.values())


def test_cancelled_tasks_never_end(method):
    with ProcessPool(make, 1, method=method, depth=2) as pool:
        pool.submit(0, ("hang", 0))
        pool.submit(1, ("right", 0))
        assert set(pool.get_times()) == {0, 1}
        pool.cancel(0, kill=True)
        assert collect(pool, 1)[1].begun is False
        pool.submit(2, ("right", 5))
        pool.cancel(2, kill=False)
        pool.submit(3, ("right", 6))
        assert list(collect(pool, 1)) == [3] and not pool.get_times()


def test_lazy_workers_start_with_their_tasks():
    with ProcessPool(functools.partial(make_with, 2), 3, method="fork", is_lazy=True) as pool:
        assert pool.pids == []
        pool.submit(0, 10)
        assert collect(pool, 1)[0].answer == 1024
        pool.submit(1, 4)
        assert len(pool.pids) == 1 and collect(pool, 1)[1].answer == 16
        os.kill(pool.pids[0], signal.SIGKILL)
        assert pool.wait(60) == [] and pool.pids == []
        pool.submit(2, 3)
        assert collect(pool, 1)[2].answer == 8


def test_map():
    assert sorted(map_unordered(answer, [("right", value) for value in range(9)], 2)) == list(range(1, 10))
    with pytest.raises(RuntimeError, match=r"^OSError: no such thing$"):
        list(map_unordered(answer, [("right", 1), ("raise", 1)], 1))
    with pytest.raises(RuntimeError, match=r"^a process ended with code 7$"):
        list(map_unordered(answer, [("exit", 7)], 1))


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, None])
def test_bad_input(workers):
    with pytest.raises(ValueError, match="the number of workers must be a positive integer, got "):
        ProcessPool(make, workers)
