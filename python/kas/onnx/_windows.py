# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows over tensors that need not be written: convolutions and poolings read what they are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ._body import Body, Value


class Part(NamedTuple):
    """A dimension of a tensor with windows: the places along a dimension of the source, or the elements of a window."""

    dim: int
    is_window: bool
    size: int


class Window(NamedTuple):
    """How a window moves over a dimension of the source."""

    size: int
    step: int
    dilation: int = 1


class Padding(NamedTuple):
    """A tensor that is padded with one number."""

    source: Value
    low: tuple[int, ...]
    high: tuple[int, ...]
    fill: float


class Windows(NamedTuple):
    """A tensor as the windows of another one; each of its dimensions is the product of some parts, in their order."""

    padding: Padding
    windows: Mapping[int, Window]
    groups: tuple[tuple[Part, ...], ...]

    @classmethod
    def of(cls, padding: Padding, shape: Sequence[int]) -> Windows:
        """The padded tensor itself, without windows so far."""
        return cls(padding, {}, tuple((Part(dim, False, size),) for dim, size in enumerate(shape)))

    def unfold(self, dim: int, size: int, step: int) -> Windows | None:
        """With windows along a dimension, whose elements are the last dimension."""
        group = self.groups[dim]
        if len(group) != 1 or group[0].is_window or group[0].dim in self.windows:
            return None
        part = group[0]
        places = part._replace(size=(part.size - size) // step + 1)
        groups = (*self.groups[:dim], (places,), *self.groups[dim + 1 :], (Part(part.dim, True, size),))
        return self._replace(windows={**self.windows, part.dim: Window(size, step)}, groups=groups)

    def dilate(self, dim: int, step: int) -> Windows | None:
        """With every step-th element of a window."""
        group = self.groups[dim]
        if len(group) != 1 or not group[0].is_window or self.windows[group[0].dim].dilation != 1:
            return None
        source, size = group[0].dim, (group[0].size - 1) // step + 1
        window = self.windows[source]._replace(size=size, dilation=step)
        groups = (*self.groups[:dim], (Part(source, True, size),), *self.groups[dim + 1 :])
        return self._replace(windows={**self.windows, source: window}, groups=groups)

    def transpose(self, order: Sequence[int]) -> Windows:
        """With the dimensions in another order."""
        return self._replace(groups=tuple(self.groups[dim] for dim in order))

    def reshape(self, body: Body, shape: Sequence[int]) -> Windows | None:
        """With dimensions that follow each other as one, and dimensions without windows as several."""
        parts = [part for group in self.groups for part in group]
        groups: list[tuple[Part, ...]] = []
        start = 0
        for size in shape:
            stop = start
            while stop < len(parts) and math.prod(part.size for part in parts[start:stop]) < size:
                stop += 1
            inner, rest = divmod(math.prod(part.size for part in parts[start:stop]), size)
            if rest:
                return None
            if inner != 1:
                split = self._split(body, parts[stop - 1], inner)
                return split.reshape(body, shape) if split else None
            groups.append(tuple(parts[start:stop]))
            start = stop
        if not groups or any(part.size != 1 for part in parts[start:]):
            return None
        groups[-1] += tuple(parts[start:])
        return self._replace(groups=tuple(groups))

    def _split(self, body: Body, part: Part, inner: int) -> Windows | None:
        """With a dimension of the source as two, where no window moves over it and nothing is added to it."""
        dim, (source, low, high, fill) = part.dim, self.padding
        if part.is_window or dim in self.windows or low[dim] or high[dim] or part.size % inner:
            return None
        halves = [part.size // inner, inner]
        source = body.reshape(source, [*source.shape[:dim], *halves, *source.shape[dim + 1 :]])
        low, high = ((*amounts[:dim], 0, 0, *amounts[dim + 1 :]) for amounts in (low, high))

        def renumber(other: Part) -> list[Part]:
            if other == part:
                return [Part(dim, False, halves[0]), Part(dim + 1, False, halves[1])]
            return [other._replace(dim=other.dim + 1) if other.dim > dim else other]

        return Windows(
            Padding(source, low, high, fill),
            {other + 1 if other > dim else other: window for other, window in self.windows.items()},
            tuple(tuple(new for old in group for new in renumber(old)) for group in self.groups),
        )

    def maximum(self, body: Body, dims: Sequence[int]) -> Value | None:
        """MaxPool, where the maximum of these dimensions is one."""
        order = self._find_places(dims)
        if order is None or (self.padding.fill == 0 and any((*self.padding.low, *self.padding.high))):
            return None
        source = self.padding.source
        first = min(self.windows)
        spatial = list(range(first, len(source.shape)))
        if not 1 <= len(spatial) <= 3:
            return None
        found = [self.windows.get(dim, Window(1, 1)) for dim in spatial]
        low, high = ([amounts[dim] for dim in spatial] for amounts in (self.padding.low, self.padding.high))
        if any(max(ends) >= window.size for *ends, window in zip(low, high, found)) or any(
            (*self.padding.low[:first], *self.padding.high[:first])
        ):
            return None
        channels = source.shape[first - 1] if first else 1
        value = body.reshape(source, [-1, channels, *source.shape[first:]])
        places = [order[dim] for dim in spatial]
        value = body.add(
            "MaxPool",
            [value],
            [*value.shape[:2], *places],
            kernel_shape=[window.size for window in found],
            strides=[window.step for window in found],
            dilations=[window.dilation for window in found],
            pads=[*low, *high],
        )
        value = body.reshape(value, [*source.shape[:first], *places])
        kept = [group[0].dim for group in self.groups if not group[0].is_window]
        return body.transpose(value, kept)

    def _find_places(self, dims: Sequence[int]) -> dict[int, int] | None:
        """The places along each dimension of the source, where the dimensions `dims` are those of all windows."""
        if not self.windows or any(len(group) != 1 for group in self.groups):
            return None
        if {dim for dim, group in enumerate(self.groups) if group[0].is_window} != set(dims):
            return None
        return {group[0].dim: group[0].size for group in self.groups if not group[0].is_window}

    def convolve(self, body: Body, letters: str, weight: Value, weight_letters: str, result: str) -> Value | None:
        """Conv, where the contraction of this tensor and a weight is one."""
        if not self.windows or self.padding.fill != 0:
            return None
        kinds = dict(zip(letters, self.groups))
        grouped = [letter for letter in letters if letter in weight_letters and letter in result]
        summed = [letter for letter in letters if letter in weight_letters and letter not in result]
        free = [letter for letter in letters if letter not in weight_letters]
        outputs = [letter for letter in weight_letters if letter not in letters]
        if len(set(letters)) != len(letters) or len(set(weight_letters)) != len(weight_letters):
            return None
        if any(letter not in result for letter in [*free, *outputs]):
            return None
        plain = [part for letter in [*grouped, *free] for part in kinds[letter]]
        if any(part.is_window for part in plain):
            return None
        inputs = [part for letter in summed for part in kinds[letter] if not part.is_window]
        if any(part.dim in self.windows for part in [*inputs, *(p for letter in grouped for p in kinds[letter])]):
            return None
        moved = [part for letter in free for part in kinds[letter] if part.dim in self.windows]
        batch = [part for letter in free for part in kinds[letter] if part.dim not in self.windows]
        return _Convolution(self, kinds, grouped, summed, outputs, inputs, moved, batch).write(
            body, weight, weight_letters, free, result
        )


class _Convolution(NamedTuple):
    """The parts of a contraction that is a convolution."""

    source: Windows
    kinds: Mapping[str, tuple[Part, ...]]
    grouped: list[str]
    summed: list[str]
    outputs: list[str]
    inputs: list[Part]
    moved: list[Part]
    batch: list[Part]

    def write(self, body: Body, weight: Value, weight_letters: str, free: list[str], result: str) -> Value | None:
        # What is beside the windows, and after the channels, stays where it is: a dimension without a window.
        channels = [part for letter in self.grouped for part in self.kinds[letter]] + self.inputs
        last = max((part.dim for part in channels), default=min(self.source.windows) - 1)
        beside = [part for part in self.batch if part.dim > last]
        if len(self.moved) + len(beside) > 3:
            beside = []
        spatial = sorted([*self.moved, *beside], key=lambda part: part.dim)
        batch = [part for part in self.batch if part not in beside]
        if not 1 <= len(spatial) <= 3:
            return None
        windows = [self.source.windows.get(part.dim, Window(1, 1)) for part in spatial]
        padding = self.source.padding
        low, high = list(padding.low), list(padding.high)
        pads = [[amounts[part.dim] for part in spatial] for amounts in (low, high)]
        for part in spatial:
            low[part.dim] = high[part.dim] = 0
        data = body.pad(padding.source, low, high)
        data = body.transpose(data, [part.dim for part in [*batch, *channels, *spatial]])
        groups = _count(part for letter in self.grouped for part in self.kinds[letter])
        per_group = _count(self.inputs)
        data = body.reshape(data, [_count(batch), groups * per_group, *data.shape[len(batch) + len(channels) :]])
        filters, output_sizes = self._filters(body, weight, weight_letters, windows, spatial, groups, per_group)
        value = body.add(
            "Conv",
            [data, filters],
            [data.shape[0], filters.shape[0], *(part.size for part in spatial)],
            kernel_shape=[window.size for window in windows],
            strides=[window.step for window in windows],
            dilations=[window.dilation for window in windows],
            pads=[*pads[0], *pads[1]],
            group=groups,
        )
        return self._arrange(body, value, batch, spatial, output_sizes, free, result)

    def _filters(
        self,
        body: Body,
        weight: Value,
        letters: str,
        windows: Sequence[Window],
        spatial: Sequence[Part],
        groups: int,
        per_group: int,
    ) -> tuple[Value, list[int]]:
        """The weight as Conv takes it, and the sizes of the outputs of a group."""
        parts: list[tuple[str, Part | None]] = []
        sizes: list[int] = []
        for letter, size in zip(letters, weight.shape):
            if letter in self.summed:
                parts += [(letter, part) for part in self.kinds[letter]]
                sizes += [part.size for part in self.kinds[letter]]
            else:
                parts.append((letter, None))
                sizes.append(size)
        order = [parts.index((letter, None)) for letter in [*self.grouped, *self.outputs]]
        places = {part: index for index, (_, part) in enumerate(parts) if part is not None}
        order += [places[part] for part in self.inputs]
        order += [index for dim in spatial for part, index in places.items() if part.is_window and part.dim == dim.dim]
        output_sizes = [weight.shape[letters.index(letter)] for letter in self.outputs]
        value = body.transpose(body.reshape(weight, sizes), order)
        value = body.reshape(value, [groups * math.prod(output_sizes), per_group, *(w.size for w in windows)])
        return value, output_sizes

    def _arrange(
        self,
        body: Body,
        value: Value,
        batch: Sequence[Part],
        spatial: Sequence[Part],
        output_sizes: Sequence[int],
        free: Sequence[str],
        result: str,
    ) -> Value:
        """The output of Conv in the order of the result."""
        grouped_sizes = [_count(self.kinds[letter]) for letter in self.grouped]
        value = body.reshape(
            value,
            [*(p.size for p in batch), *grouped_sizes, *output_sizes, *(part.size for part in spatial)],
        )
        keys: list[str | Part] = [*batch, *self.grouped, *self.outputs, *spatial]
        order: list[int] = []
        for letter in result:
            parts: Sequence[str | Part] = self.kinds[letter] if letter in free else [letter]
            order += [keys.index(part) for part in parts]
        value = body.transpose(value, order)
        sizes = {letter: size for letter, size in zip(self.outputs, output_sizes)}
        sizes |= {letter: _count(group) for letter, group in self.kinds.items()}
        return body.reshape(value, [sizes[letter] for letter in result])


def _count(parts: object) -> int:
    return math.prod(part.size for part in parts)  # type: ignore[attr-defined]
