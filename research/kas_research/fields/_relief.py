# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The relief of the Earth as data: patches at full resolution for their means over squares of 4 by 4 points.

ETOPO5 (National Geophysical Data Center, NOAA, 1988, in the public domain): heights in metres at every twelfth of a
degree, as Debian's package ferret-datasets has them, a NetCDF file of version 3.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy
import torch

from kas._errors import need
from kas.evaluate._fields import RelativeError
from kas.evaluate._task_data import TaskData

PATH = "/usr/share/ferret-vis/data/etopo5.cdf"
SHA256 = "1455d5e5feebd183d0bef5538a750ca8a44801e1503f964df900831c224459ce"
"""Of the file of version 7.6.0."""
VARIABLE = "ROSE"
BLOCK = 4
"""Points of a mean, along both axes."""
LEAST = 10.0
"""Metres: patches whose means deviate less from theirs are left out, as are those beyond `MOST_LATITUDE`."""
MOST_LATITUDE = 70.0
"""Degrees, where points along a parallel are a third as far apart as at the equator."""


def relief(
    size: int = 32,
    train: int = 1000,
    validation: int = 200,
    test: int = 200,
    seed: int = 0,
    path: str | os.PathLike[str] = PATH,
    sha256: str | None = SHA256,
) -> TaskData:
    """Super-resolution: patches `[1, size, size]` of the relief for their means over squares of 4 by 4 points.

    Inputs have each mean at all points of its square. Both are relative to the mean of the patch, in deviations of the
    squares. Patches have no point in common; a seed draws which are for what. `ValueError` where there is no such file,
    or another one than that with the digest `sha256` (None: any), and where it has too few patches.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 2 * BLOCK or size % BLOCK:
        raise ValueError(f"requires a size that is a multiple of {BLOCK} from {2 * BLOCK} on, got {size!r}")
    patches = _cut(*_read(path, sha256), size)
    count = train + validation + test
    if len(patches) < count:
        raise ValueError(f"requires at most {len(patches)} patches of this size, got {count}")
    chosen = patches[numpy.random.default_rng(seed).permutation(len(patches))[:count]]
    parts = chosen.reshape(count, size // BLOCK, BLOCK, size // BLOCK, BLOCK)
    means = parts.mean((2, 4))
    middle, spread = means.mean((1, 2)), means.std((1, 2))
    inputs = numpy.repeat(numpy.repeat(means, BLOCK, 1), BLOCK, 2)
    pairs = [
        torch.from_numpy(((one - middle[:, None, None]) / spread[:, None, None])[:, None].astype(numpy.float32))
        for one in (inputs, chosen)
    ]
    ends = [train, train + validation]
    first, second, third = zip(*(torch.tensor_split(one, ends) for one in pairs))
    return TaskData(f"relief-{size}-{seed}", first, second, third, task=RelativeError())


def _read(path: str | os.PathLike[str], sha256: str | None) -> tuple[Any, Any]:
    """Heights `[latitudes, longitudes]` and the latitudes in degrees."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError as error:
        raise ValueError(
            f"requires the relief of Debian's package ferret-datasets (apt-get install ferret-datasets), got no file "
            f"'{os.fspath(path)}'"
        ) from error
    if sha256 is not None and digest != sha256:
        raise ValueError(f"requires the file with the SHA-256 {sha256}, got {digest} of '{os.fspath(path)}'")
    try:
        with need("scipy.io", "torch").netcdf_file(path, "r", mmap=False) as file:
            heights = file.variables[VARIABLE]
            latitudes = file.variables[heights.dimensions[0]]
            return numpy.array(heights[:], numpy.float64), numpy.array(latitudes[:], numpy.float64)
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"requires a NetCDF file of version 3 with the variable '{VARIABLE}', got '{os.fspath(path)}': {error}"
        ) from error


def _cut(heights: Any, latitudes: Any, size: int) -> Any:
    """The patches `[patches, size, size]`, from south to north and west to east."""
    rows, columns = (count // size for count in heights.shape)
    kept = heights[: rows * size, : columns * size].reshape(rows, size, columns, size).swapaxes(1, 2)
    lowest = abs(latitudes[: rows * size].reshape(rows, size)).max(1) <= MOST_LATITUDE
    patches = kept[lowest].reshape(-1, size, size)
    means = patches.reshape(-1, size // BLOCK, BLOCK, size // BLOCK, BLOCK).mean((2, 4))
    return patches[means.std((1, 2)) >= LEAST]
