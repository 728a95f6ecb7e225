# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that won in earlier runs, of kas and of the user: what they replaced, their times and losses.

They are tried first for layers of the same space or kind. The user's are lines of JSON in `$KAS_LAYERS`, else in
`kas/layers.jsonl` of `$XDG_DATA_HOME` or `~/.local/share`; kas comes with a few. Runs that end at once, or are killed,
lose none of them: one at a time replaces the file as a whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from ._units import Unit

MOST = 1000
"""The layers that are kept, the latest."""
SHIPPED = pathlib.Path(__file__).with_name("layers.jsonl")
_NUMBERS = ("macs", "own_ms", "ms", "loss")
_OPERATOR = ("form", "text", "formula", "properties")


@dataclass(frozen=True)
class Learnt:
    """A layer of a network, and the alternative that took its place."""

    space: str
    """The layer with all sizes."""
    kind: str
    """The layer without the sizes of its data and channels."""
    form: str
    macs: int
    """Of the layer that was replaced, for one example."""
    own_ms: float
    """The milliseconds of that layer."""
    ms: float
    """Those of the alternative."""
    loss: float
    """How far the network was from the model with this alone."""
    precision: str
    data: str
    """The name of the data set."""
    run: str = ""
    """The run that it comes from: what one has kept it keeps once."""
    operator: dict[str, Any] | None = None
    """Where it is an operator of the search: its text, formula, class and name (`FoundOperator`)."""


def describe_layer(layer: nn.Module, unit: Unit) -> tuple[str, str]:
    """The space of a layer, and its kind."""
    if unit.is_block:
        after = "" if unit.keeps_shape else f" to {list(unit.output_shape)}"
        return f"block of {list(unit.data_shape)}{after}", "block"
    if isinstance(layer, nn.Linear):
        return f"linear {layer.in_features} to {layer.out_features}, {list(unit.data_shape)}", "linear"
    assert isinstance(layer, nn.Conv2d)
    groups = "depthwise" if layer.groups == layer.in_channels > 1 else f"groups {layer.groups}"
    kernel, stride, dilation = ("x".join(map(str, one)) for one in (layer.kernel_size, layer.stride, layer.dilation))
    kind = f"conv {kernel}, stride {stride}, dilation {dilation}, {groups}"
    return f"{kind}, {layer.in_channels} to {layer.out_channels}, {list(unit.data_shape)}", kind


def get_path() -> pathlib.Path | None:
    """The file of the user; None where `KAS_LAYERS` is empty, which keeps nothing."""
    named = os.environ.get("KAS_LAYERS")
    if named is not None:
        return pathlib.Path(named) if named else None
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return pathlib.Path(base, "kas", "layers.jsonl")


def read(path: pathlib.Path | None) -> list[Learnt]:
    """The layers of a file, none where there is no file; lines that are no such layer are passed over."""
    try:
        text = "" if path is None else path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [one for one in map(_read_line, text.splitlines()) if one is not None]


def _read_line(line: str) -> Learnt | None:
    try:
        entry = Learnt(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    numbers = [getattr(entry, name) for name in _NUMBERS]
    texts = [value for name, value in vars(entry).items() if name not in (*_NUMBERS, "operator")]
    if entry.operator is not None:
        if not isinstance(entry.operator, dict) or set(entry.operator) != {*_OPERATOR, "named"}:
            return None
        texts += [entry.operator[name] for name in _OPERATOR]
        texts.append(entry.operator["named"] or "")
    if not all(isinstance(one, (int, float)) and math.isfinite(one) and one >= 0 for one in numbers):
        return None
    return entry if all(isinstance(one, str) for one in texts) else None


def read_all() -> list[Learnt]:
    """Those that come with kas, then the user's."""
    return [*read(SHIPPED), *read(get_path())]


@contextlib.contextmanager
def _alone(path: pathlib.Path) -> Iterator[None]:
    """Nobody else replaces the file meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                # Another process may have replaced it before this one had its turn.
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    yield
                    return


def add(entries: Iterable[Learnt]) -> None:
    """Keeps layers in the file of the user, which is there as a whole or as it was. Raises `OSError`.

    Those that their runs kept before are replaced. Lines of other versions of kas stay as they are.
    """
    path, entries = get_path(), list(entries)
    if path is None or not entries:
        return
    # Where the name is a link, the file that it leads to.
    path = pathlib.Path(os.path.realpath(path))
    runs = {one.run for one in entries if one.run}
    with _alone(path):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        known = [(line, _read_line(line)) for line in lines if line.strip()]
        kept = [line for line, one in known if one is None or one.run not in runs]
        kept += [json.dumps(asdict(one)) for one in entries]
        new = path.with_name(path.name + ".new")
        try:
            with open(new, "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in kept[-MOST:])
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def count_wins(entries: Sequence[Learnt], space: str, kind: str, form: str) -> tuple[int, int]:
    """How often a form won for layers of the space, and of the kind."""
    own = [one for one in entries if one.form == form and one.kind == kind]
    return sum(one.space == space for one in own), len(own)


def report(as_json: bool) -> int:
    """Prints all layers, for `kas report --layers`; its exit code."""
    entries, count = read_all(), len(read(SHIPPED))
    if as_json:
        print(json.dumps([asdict(one) for one in entries], indent=2))
    else:
        print(make_table(entries, count))
    return 0


def make_table(entries: Sequence[Learnt], count_shipped: int) -> str:
    """The layers as text, those that saved most first."""
    lines = [f"{'layer':58}{'became':30}{'ms':>9}{'instead of':>12}{'loss':>10}  {'in':6}{'data':16}{'of':>5}"]
    numbered = sorted(enumerate(entries), key=lambda pair: pair[1].ms - pair[1].own_ms)
    for number, one in numbered:
        owner = "kas" if number < count_shipped else "you"
        lines.append(
            f"{one.space:57} {one.form:29} {one.ms:9.4g}{one.own_ms:12.4g}{one.loss:10.2g}  {one.precision:6}"
            f"{one.data:16}{owner:>5}" + (f"  {one.operator['formula']}" if one.operator else "")
        )
    return "\n".join(lines)
