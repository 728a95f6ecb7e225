# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The display of a search while it runs: a live table by rich on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._search_outcome import Budget, SearchOutcome


class Progress:
    """Shows nothing."""

    interval = 1.0

    def __init__(self) -> None:
        self._last = -1e9

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass

    def is_due(self) -> bool:
        """The last time that something was shown is long ago."""
        if time.monotonic() - self._last < self.interval:
            return False
        self._last = time.monotonic()
        return True

    def show(self, phase: str, outcome: SearchOutcome, seconds: float, budget: Budget, effort: float) -> None:
        pass

    def message(self, text: str) -> None:
        pass

    def finish(self, outcome: SearchOutcome) -> None:
        pass


def _numbers(phase: str, outcome: SearchOutcome, seconds: float, budget: Budget, effort: float) -> dict[str, str]:
    failed = sum(entry.failure is not None for entry in outcome.trained)
    done = len(outcome.trained) - failed
    best, metric = outcome.best, outcome.trainer.task.metric
    result = {
        "phase": phase,
        "candidates": f"{done} evaluated, {failed} failed, {len(outcome.fully_trained)} trained to the end",
        "effort": f"{effort:.1f} whole trainings, {60 * len(outcome.trained) / max(seconds, 1e-9):.1f} candidates per "
        "minute",
    }
    if outcome.dense:
        result["network itself"] = f"{metric} {outcome.dense[metric]:.3f}"
    if best is not None:
        value = best.metrics.get(f"final_{metric}", best.metrics[metric])
        result["best"] = f"{metric} {value:.3f} at {best.metrics['flops_ratio']:.2f} of the FLOPs (candidate {best.id})"
    if outcome.front:
        result["front"] = f"{len(outcome.front)} operators"
    if outcome.failures:
        common = sorted(outcome.failures.items(), key=lambda entry: -entry[1])[:3]
        result["failures"] = "; ".join(f"{count} x {reason[:60]}" for reason, count in common)
    if budget.seconds is not None:
        left = max(0.0, budget.seconds - seconds)
        result["time left"] = f"{int(left) // 60}:{int(left) % 60:02d}"
    return result


class LineProgress(Progress):
    """One line in a while, for logs."""

    interval = 10.0

    def show(self, phase: str, outcome: SearchOutcome, seconds: float, budget: Budget, effort: float) -> None:
        numbers = _numbers(phase, outcome, seconds, budget, effort)
        print(
            f"kas: {int(seconds)} s, "
            + ", ".join(text if name == "phase" else f"{name}: {text}" for name, text in numbers.items()),
            file=sys.stderr,
            flush=True,
        )

    def message(self, text: str) -> None:
        print(f"kas: {text}", file=sys.stderr, flush=True)

    def finish(self, outcome: SearchOutcome) -> None:
        print(summary(outcome), file=sys.stderr, flush=True)


class TableProgress(Progress):
    """A table that is written over, by rich."""

    interval = 0.5

    def __init__(self, rich_live: Any, console: Any):
        super().__init__()
        self._console = console
        # No thread of its own: processes are forked meanwhile.
        self._live = rich_live.Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Progress:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._live.__exit__(*exception)

    def show(self, phase: str, outcome: SearchOutcome, seconds: float, budget: Budget, effort: float) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False, box=None)
        for name, text in _numbers(phase, outcome, seconds, budget, effort).items():
            table.add_row(Text(name, style="bold"), Text(text))
        self._live.update(table, refresh=True)

    def message(self, text: str) -> None:
        self._console.print(text, markup=False)

    def finish(self, outcome: SearchOutcome) -> None:
        self._live.stop()
        self._console.print(summary(outcome), markup=False, highlight=False)


def summary(outcome: SearchOutcome) -> str:
    """The end of a search in some lines."""
    lines = [repr(outcome)[1:-1]]
    metric = outcome.trainer.task.metric
    if outcome.dense:
        spread = outcome.dense.get(f"test_{metric}_deviation")
        lines.append(
            f"  the network itself: test {metric} {outcome.dense[f'test_{metric}']:.4f}"
            + (f" +- {spread:.4f}" if spread is not None else "")
        )
    for entry in outcome.finalists:
        m = entry.metrics
        spread = m.get(f"final_test_{metric}_deviation")
        lines.append(
            f"  candidate {entry.id}: test {metric} {m[f'final_test_{metric}']:.4f}"
            + (f" +- {spread:.4f}" if spread is not None else "")
            + f", {m['flops_ratio']:.3f} of the FLOPs: {entry.operator.formula}"
        )
    return "\n".join(lines)


def make_progress(kind: bool | str) -> Progress:
    """`True`: a table on a terminal where rich is installed, else lines; `False`: nothing; or "table", "lines"."""
    if kind is False:
        return Progress()
    if kind is not True and kind not in ("table", "lines"):
        raise ValueError(f"'progress' must be True, False, 'table' or 'lines', got {kind!r}")
    if kind == "lines" or (kind is True and not sys.stderr.isatty()):
        return LineProgress()
    try:
        import rich.console
        import rich.live
    except ImportError:
        if kind == "table":
            from ._errors import need

            need("rich", "torch")
        return LineProgress()
    return TableProgress(rich.live, rich.console.Console(stderr=True))
