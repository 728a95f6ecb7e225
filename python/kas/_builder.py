# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writing operators in Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from ._module import Module, Operator

Size: TypeAlias = str | int


class Coordinate:
    """A coordinate of an operator under construction: an index expression with a size."""

    def __init__(self, builder: OperatorBuilder, name: str, size: str):
        self.builder = builder
        self.name = name
        self.size = size

    def __repr__(self) -> str:
        return f"<kas.Coordinate {self.name} : {self.size}>"


class OperatorBuilder:
    """Writes an operator primitive by primitive, from the output to the input.

    >>> b = kas.OperatorBuilder("conv1d", primaries=["N", "Cin", "Cout", "W"], coefficients=["k"])
    >>> n, co, w = b.outputs("N", "Cout", "W")
    >>> ci, kw = b.reduce("Cin"), b.reduce("k")
    >>> ci_d, ci_w = b.share(ci)
    >>> kw_d, kw_w = b.share(kw)
    >>> op = b.build([n, ci_d, b.unfold(w, kw_d)], [[co, ci_w, kw_w]])
    """

    def __init__(self, name: str, primaries: Sequence[str], coefficients: Sequence[str] = ()):
        for symbol in (name, *primaries, *coefficients):
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
                raise ValueError(f"names must be identifiers, got {symbol!r}")
        self.name = name
        self._symbols = ", ".join(primaries) + (f" | {', '.join(coefficients)}" if coefficients else "")
        self._outputs: list[Coordinate] | None = None
        self._lines: list[str] = []
        self._count = 0

    def _new(self, size: Size) -> Coordinate:
        self._count += 1
        return Coordinate(self, f"%c{self._count}", str(size))

    def _operand(self, coordinate: Coordinate) -> Coordinate:
        if not isinstance(coordinate, Coordinate):
            raise TypeError(f"expected a coordinate, got {type(coordinate).__name__}")
        if coordinate.builder is not self:
            raise ValueError(f"{coordinate!r} is of another builder")
        return coordinate

    def outputs(self, *sizes: Size) -> tuple[Coordinate, ...]:
        """The output coordinates; called once."""
        if self._outputs is not None:
            raise ValueError("the outputs were given already")
        self._outputs = [self._new(size) for size in sizes]
        return tuple(self._outputs)

    def reduce(self, size: Size, kind: str = "sum") -> Coordinate:
        """A loop that the output is reduced over: `sum`, `mean` or `max`."""
        if kind not in ("sum", "mean", "max"):
            raise ValueError(f"the reduction must be 'sum', 'mean' or 'max', got {kind!r}")
        result = self._new(size)
        self._lines.append(f"{result.name} = kas.reduce {kind} : {result.size}")
        return result

    def share(self, coordinate: Coordinate) -> tuple[Coordinate, Coordinate]:
        """The coordinate for the data side and for a weight."""
        i = self._operand(coordinate)
        data, weight = self._new(i.size), self._new(i.size)
        self._lines.append(f"{data.name}, {weight.name} = kas.share {i.name} : {i.size}")
        return data, weight

    def split(self, outer: Coordinate, inner: Coordinate) -> Coordinate:
        """`inner.size * outer + inner`."""
        i, j = self._operand(outer), self._operand(inner)
        result = self._new(f"({i.size})*({j.size})")
        self._lines.append(f"{result.name} = kas.split {i.name}, {j.name} : {i.size}, {j.size}")
        return result

    def merge(self, coordinate: Coordinate, block: Size) -> tuple[Coordinate, Coordinate]:
        """`coordinate / block` and `coordinate mod block`."""
        i = self._operand(coordinate)
        quotient, remainder = self._new(f"({i.size})/({block})"), self._new(block)
        self._lines.append(f"{quotient.name}, {remainder.name} = kas.merge {i.name} by {block} : {i.size}")
        return quotient, remainder

    def shift(self, coordinate: Coordinate, amount: int) -> Coordinate:
        """`(coordinate + amount) mod size`."""
        i = self._operand(coordinate)
        result = self._new(i.size)
        self._lines.append(f"{result.name} = kas.shift {i.name} by {amount} : {i.size}")
        return result

    def expand(self, coordinate: Coordinate) -> None:
        """The data does not depend on the coordinate."""
        i = self._operand(coordinate)
        self._lines.append(f"kas.expand {i.name} : {i.size}")

    def unfold(
        self, coordinate: Coordinate, window: Coordinate, low: Size | None = None, causal: bool = False
    ) -> Coordinate:
        """`coordinate + window - low`, where that is in range.

        `low` is half the window by default; with `causal` it is the window's size less 1, so the window looks back
        only. Raises `ValueError` when both are given.
        """
        if causal and low is not None:
            raise ValueError(f"requires 'low' or 'causal' for an unfold, got both ({low!r})")
        i, j = self._operand(coordinate), self._operand(window)
        result = self._new(i.size)
        where = " causal" if causal else "" if low is None else f" low {low}"
        self._lines.append(f"{result.name} = kas.unfold {i.name}, {j.name}{where} : {i.size}, {j.size}")
        return result

    def cyclic_unfold(
        self, coordinate: Coordinate, window: Coordinate, low: Size | None = None, causal: bool = False
    ) -> Coordinate:
        """`(coordinate + window - low) mod size`: `unfold` where the data goes on at its other end.

        It is an unfold in the middle one of three copies, so neither end of the window may be more than the size away.
        A window of the whole size makes of a weight a circulant matrix.
        """
        size = coordinate.size
        second = self.shift(self.stride(self.reduce(1), 3), 1)
        copies = self.unfold(self.split(second, coordinate), window, low, causal)
        copy, result = self.merge(copies, size)
        self.expand(copy)
        return result

    def stride(self, coordinate: Coordinate, factor: Size) -> Coordinate:
        """`factor * coordinate`."""
        i = self._operand(coordinate)
        result = self._new(f"({factor})*({i.size})")
        self._lines.append(f"{result.name} = kas.stride {i.name} by {factor} : {i.size}")
        return result

    def build(self, data: Sequence[Coordinate], weights: Sequence[Sequence[Coordinate]] = ()) -> Operator:
        """The operator that reads the data and the weights at these coordinates. Raises `kas.Error` if it is wrong."""
        outputs = ", ".join(f"{i.name}: {i.size}" for i in self._outputs or [])
        sizes = ", ".join(self._operand(i).size for i in data)
        yields = [f"data({', '.join(i.name for i in data)})"]
        yields += [f"weight({', '.join(self._operand(i).name for i in weight)})" for weight in weights]
        symbols = f"<{self._symbols}>" if self._symbols else ""
        body = "\n".join(f"  {line}" for line in (*self._lines, f"kas.yield {' '.join(yields)}"))
        text = f"kas.operator @{self.name}{symbols}\n    ({outputs}) from [{sizes}] {{\n{body}\n}}\n"
        return Module(text, f"<{self.name}>")[self.name]
