# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The progress of a run, the time that it has left, and its early end."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator


class Clock:
    """The time that a run has."""

    def __init__(self, minutes: float):
        self.start = time.monotonic()
        self.total = 60 * minutes

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.start

    @property
    def left(self) -> float:
        """Until the end; 0 when it has passed."""
        return max(0.0, self.total - self.seconds)


class EndedError(Exception):
    """What ends the work of a thread of a run that was interrupted."""


class Ending:
    """Whether a run was interrupted: what takes long hears of it, and ends."""

    def __init__(self) -> None:
        self.is_set = False
        self._calls: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def set(self) -> None:
        """From any thread."""
        with self._lock:
            self.is_set = True
            calls = list(self._calls)
        for one in calls:
            one()

    def check(self) -> None:
        """Raises `EndedError` in a run that was interrupted."""
        if self.is_set:
            raise EndedError

    @contextlib.contextmanager
    def calling(self, function: Callable[[], None]) -> Iterator[None]:
        """Calls the function where the run is interrupted meanwhile."""
        with self._lock:
            self._calls.append(function)
            is_late = self.is_set
        try:
            if is_late:
                function()
            yield
        finally:
            with self._lock:
                self._calls.remove(function)


class Reporter:
    """Lines on the standard error stream: each phase, and in a while how far it is."""

    interval = 10.0

    def __init__(self, clock: Clock, is_quiet: bool):
        self.clock, self.is_quiet = clock, is_quiet
        self._last = -1e9
        self._phase = ""

    def _print(self, text: str) -> None:
        print(f"kas: {int(self.clock.seconds):4d} s  {text}", file=sys.stderr, flush=True)

    def message(self, text: str) -> None:
        """Something to know."""
        if not self.is_quiet:
            self._print(text)

    def show(self, phase: str, done: int, total: int) -> None:
        """How far a phase is."""
        now = time.monotonic()
        if self.is_quiet or (phase == self._phase and now - self._last < self.interval and done < total):
            return
        if phase == self._phase and now - self._last < 1.0 and done < total:
            return
        if phase == self._phase and done == total and total <= 1:
            return
        self._phase, self._last = phase, now
        seconds = int(self.clock.total - self.clock.seconds)
        text = f"{abs(seconds) // 60}:{abs(seconds) % 60:02d}"
        self._print(f"{phase} {done}/{total}, " + (f"time left {text}" if seconds >= 0 else f"{text} over the time"))
