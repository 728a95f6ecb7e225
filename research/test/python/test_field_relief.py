# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relief as data: of a small file that is made here, and of the file of Debian where it is installed."""

from __future__ import annotations

import hashlib
import os

import numpy
import pytest
import torch

from kas_research.fields import _relief
from kas_research.fields._data import KINDS
from kas_research.fields._protocol import read_protocol

scipy_io = pytest.importorskip("scipy.io")

ROWS, COLUMNS = 96, 64


def write(path, heights=None, name=_relief.VARIABLE):
    latitudes = numpy.linspace(-80, 80, ROWS)
    if heights is None:
        generator = numpy.random.default_rng(1)
        heights = 1000 * generator.standard_normal((ROWS, COLUMNS))
        # The sea is flat here.
        heights[40:48, :16] = -4000
    with scipy_io.netcdf_file(path, "w") as file:
        file.createDimension("y", ROWS)
        file.createDimension("x", COLUMNS)
        file.createVariable("y", "d", ("y",))[:] = latitudes
        file.createVariable(name, "f", ("y", "x"))[:] = heights
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def made(tmp_path):
    return write(tmp_path / "relief.cdf")


def make(made, size=8, counts=(20, 5, 10), seed=0):
    return _relief.relief(size, *counts, seed, *made)


def test_inputs_are_means_of_targets(made):
    data = make(made)
    assert [len(part[0]) for part in (data.train, data.validation, data.test)] == [20, 5, 10]
    inputs, targets = data.train
    assert inputs.shape == targets.shape == (20, 1, 8, 8) and inputs.dtype == torch.float32
    blocks = torch.nn.functional.avg_pool2d(targets, 4)
    assert torch.allclose(inputs[:, :, ::4, ::4], blocks, atol=1e-5)
    assert torch.allclose(torch.nn.functional.interpolate(blocks, scale_factor=4.0), inputs, atol=1e-5)
    # Relative to the mean of the patch, in deviations of the means.
    assert torch.allclose(blocks.mean((1, 2, 3)), torch.zeros(20), atol=1e-5)
    assert torch.allclose(blocks.std((1, 2, 3), unbiased=False), torch.ones(20), atol=1e-4)


def test_patches_have_no_point_in_common(made):
    # 60 of 96 rows within 70 degrees make 10 rows of 8 patches, of which two are flat.
    parts = make(made, counts=(60, 10, 8))
    with pytest.raises(ValueError, match="requires at most 78 patches of this size, got 79"):
        make(made, counts=(60, 10, 9))
    patches = torch.cat([part[1] for part in (parts.train, parts.validation, parts.test)]).flatten(1)
    assert len(torch.unique(patches, dim=0)) == 78
    again, other = make(made, counts=(60, 10, 8)), make(made, counts=(60, 10, 8), seed=1)
    assert torch.equal(parts.test[1], again.test[1]) and not torch.equal(parts.test[1], other.test[1])


def test_what_is_no_relief(made, tmp_path):
    path, digest = made
    with pytest.raises(ValueError, match=r"\(apt-get install ferret-datasets\), got no file '.*missing.cdf'"):
        _relief.relief(8, 1, 1, 1, path=tmp_path / "missing.cdf")
    with pytest.raises(ValueError, match=f"requires the file with the SHA-256 {_relief.SHA256}, got {digest} of"):
        _relief.relief(8, 1, 1, 1, path=path)
    for size in (4, 10, 8.0, True):
        with pytest.raises(ValueError, match="requires a size that is a multiple of 4 from 8 on, got"):
            make(made, size=size)
    with pytest.raises(ValueError, match="requires a NetCDF file of version 3 with the variable 'ROSE', got"):
        make(write(tmp_path / "other.cdf", name="HEIGHT"))
    (tmp_path / "text.cdf").write_text("no relief")
    with pytest.raises(ValueError, match="requires a NetCDF file of version 3 with the variable 'ROSE', got"):
        make((tmp_path / "text.cdf", None))


def test_it_is_a_replication():
    protocol = read_protocol(os.path.join(os.path.dirname(__file__), "..", "..", "data", "fields.yaml"))
    assert protocol.equations["relief"].kind is KINDS["relief"]
    assert protocol.experiments["replications"].equations == ("waves", "darcy-30", "relief")
    # Means of squares turn with the patch.
    assert KINDS["relief"].symmetric and KINDS["relief"].scalars == KINDS["relief"].inputs == 1


@pytest.mark.skipif(not os.path.exists(_relief.PATH), reason="needs Debian's package ferret-datasets")
def test_the_file_of_debian():
    data = _relief.relief(32, 1000, 200, 2000)
    assert len(data.test[0]) == 2000
    inputs, targets = data.test
    # Repeating the means is far from the relief, but says most of it.
    assert 0.1 < float(((inputs - targets).flatten(1).norm(dim=1) / targets.flatten(1).norm(dim=1)).mean()) < 0.9
