# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data sets: those that need no download, and those that lie in a folder."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import pathlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._errors import need

need("torch", "torch")

import torch
from torch.nn import functional

Split = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Data:
    """A data set for classification in memory: inputs `[examples, ...]` f32 and classes `[examples]` int64.

    Candidates are trained on `train` and chosen by `validation`; `test` is for what is reported at the end.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    num_classes: int
    augmentation: str = "none"
    """"none", "flip": random horizontal flips, or "crop_flip": also random crops of images padded by an eighth."""

    def __post_init__(self) -> None:
        shape = None
        for name in ("train", "validation", "test"):
            split = getattr(self, name)
            if not isinstance(split, (tuple, list)) or len(split) != 2:
                raise TypeError(f"'{name}' must be a pair of inputs and classes, got {type(split).__name__}")
            inputs, classes = split
            if not isinstance(inputs, torch.Tensor) or not isinstance(classes, torch.Tensor):
                raise TypeError(f"'{name}' must hold torch tensors; make them by torch.as_tensor")
            if len(inputs) == 0 or classes.shape != inputs.shape[:1]:
                raise ValueError(
                    f"'{name}' must have at least one input and a class for each, "
                    f"got inputs of shape {tuple(inputs.shape)} and classes of shape {tuple(classes.shape)}"
                )
            if not inputs.dtype.is_floating_point or classes.dtype != torch.int64:
                raise TypeError(
                    f"'{name}' must have float inputs and int64 classes, got {inputs.dtype} and {classes.dtype}"
                )
            if int(classes.min()) < 0 or int(classes.max()) >= self.num_classes:
                raise ValueError(
                    f"'{name}' must have classes from 0 to {self.num_classes - 1}, "
                    f"got {int(classes.min())} to {int(classes.max())}"
                )
            shape = shape or inputs.shape[1:]
            if inputs.shape[1:] != shape:
                raise ValueError(f"'{name}' must have inputs of shape {tuple(shape)}, got {tuple(inputs.shape[1:])}")
        if self.augmentation not in ("none", "flip", "crop_flip"):
            raise ValueError(f"the augmentation must be 'none', 'flip' or 'crop_flip', got {self.augmentation!r}")

    def checksum(self) -> str:
        """32 digits (SHA-256) of shapes, inputs and classes of all parts: results on other data are not compared."""
        digest = hashlib.sha256()
        for split in (self.train, self.validation, self.test):
            for tensor in split:
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().cpu().numpy().data)
        return digest.hexdigest()[:32]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input, without the examples."""
        return tuple(self.train[0].shape[1:])

    def to(self, device: str | torch.device) -> Data:
        """The same on a device."""

        def move(split: Split) -> Split:
            return split[0].to(device), split[1].to(device)

        return Data(
            self.name, move(self.train), move(self.validation), move(self.test), self.num_classes, self.augmentation
        )

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Split]:
        """One pass over the training set in random order, without what is left of it after the last whole batch."""
        inputs, classes = self.train
        size = min(size, len(inputs))
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, len(inputs) - size + 1, size):
            chosen = order[start : start + size].to(inputs.device)
            batch = inputs[chosen]
            if self.augmentation == "flip":
                batch = _flip(batch, generator)
            elif self.augmentation == "crop_flip":
                batch = _crop_and_flip(batch, generator)
            yield batch, classes[chosen]


def _flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    flips = torch.rand(len(images), generator=generator).to(images.device) < 0.5
    return torch.where(flips[:, None, None, None], images.flip(3), images)


def _crop_and_flip(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    count, _, height, width = images.shape
    pad = max(1, height // 8)
    padded = functional.pad(images, (pad, pad, pad, pad))
    tops, lefts = torch.randint(0, 2 * pad + 1, (2, count), generator=generator).to(images.device)
    rows = tops[:, None] + torch.arange(height, device=images.device)
    columns = lefts[:, None] + torch.arange(width, device=images.device)
    flips = torch.rand(count, generator=generator).to(images.device) < 0.5
    columns = torch.where(flips[:, None], columns.flip(1), columns)
    picked = padded.permute(0, 2, 3, 1)[
        torch.arange(count, device=images.device)[:, None, None], rows[:, :, None], columns[:, None, :]
    ]
    return picked.permute(0, 3, 1, 2).contiguous()


def load_data(name: str = "digits", path: str | os.PathLike[str] | None = None, **options: Any) -> Data:
    """A data set by name.

    Without a path: `digits` (scikit-learn's 1797 images of 8x8, in a frame of one pixel) and `moved_digits` (each moved
    by up to two pixels in each direction), and `fashion-mnist` of Debian's package `dataset-fashion-mnist` (or of the
    folder `path`; see `fashion_mnist`). With the folder that the archive unpacks to: `cifar10`, `cifar100` (the version
    for Python), and `folder` (`train/CLASS/*.jpg` and `val/CLASS/*.jpg`, as ImageNet's; `size` is the edge of the
    images in pixels).
    """
    if name in ("digits", "moved_digits"):
        return digits(moved=name == "moved_digits", **options)
    if name == "fashion-mnist":
        return fashion_mnist(path or FASHION_MNIST, **options)
    if name not in ("cifar10", "cifar100", "folder"):
        raise ValueError(
            f"the data set must be digits, moved_digits, fashion-mnist, cifar10, cifar100 or folder, got {name!r}"
        )
    if path is None:
        raise ValueError(f"'{name}' is not part of kas: give the folder that it lies in as path=")
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}' with the data set '{name}'")
    return _folder(folder, **options) if name == "folder" else _cifar(name, folder, **options)


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
    folder = pathlib.Path(folder)
    if not 0 < validation < 60000 or not 0 < train <= 60000 - validation:
        raise ValueError(
            f"requires 1 <= train, 1 <= validation, train + validation <= 60000, got {train} and {validation}"
        )

    def read(part: str, count: int) -> Split:
        images = _read_idx(folder / f"{part}-images-idx3-ubyte.gz", (count, 28, 28))
        classes = _read_idx(folder / f"{part}-labels-idx1-ubyte.gz", (count,))
        return functional.pad(images[:, None], (2, 2, 2, 2)), classes.long()

    images, classes = read("train", 60000)
    order = torch.randperm(60000, generator=torch.Generator().manual_seed(seed))
    kept, chosen = order[validation : validation + train], order[:validation]
    # In integers: the same to the last bit on every machine.
    pixels = images[kept].long()
    mean = int(pixels.sum()) / pixels.numel()
    deviation = math.sqrt(int((pixels * pixels).sum()) / pixels.numel() - mean**2)

    def normalize(images: torch.Tensor) -> torch.Tensor:
        return (images.double() - mean).div(deviation).float()

    test = read("t10k", 10000)
    return Data(
        "fashion-mnist",
        (normalize(images[kept]), classes[kept]),
        (normalize(images[chosen]), classes[chosen]),
        (normalize(test[0]), test[1]),
        10,
        augmentation,
    )


def _read_idx(path: pathlib.Path, shape: tuple[int, ...]) -> torch.Tensor:
    """The bytes of a file of MNIST's format, which must have this shape."""
    if not path.is_file():
        raise FileNotFoundError(f"requires the file '{path}', got none; Debian's package dataset-fashion-mnist has it")
    import numpy

    try:
        with gzip.open(path) as stream:
            content = stream.read()
    except (EOFError, OSError) as error:
        raise ValueError(f"requires a whole gzip file in '{path}', got one that ends early or is damaged") from error
    head = b"\0\0\x08" + bytes([len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape)
    if content[: len(head)] != head or len(content) != len(head) + math.prod(shape):
        raise ValueError(f"requires {'x'.join(map(str, shape))} bytes in the idx format in '{path}', got others")
    return torch.from_numpy(numpy.frombuffer(content, numpy.uint8, offset=len(head)).copy()).reshape(shape)


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
    if name == "cifar10":
        files, key = [f"data_batch_{index}" for index in range(1, 6)], b"labels"
        test_files = ["test_batch"]
    else:
        files, test_files, key = ["train"], ["test"], b"fine_labels"

    def read(names: list[str]) -> Split:
        images, classes = [], []
        for file in names:
            if not (folder / file).is_file():
                raise FileNotFoundError(f"requires the file '{file}' of {name} for Python in '{folder}', got none")
            with open(folder / file, "rb") as stream:
                batch = pickle.load(stream, encoding="bytes")
            images.append(torch.as_tensor(batch[b"data"]).reshape(-1, 3, 32, 32).float() / 255)
            classes.append(torch.as_tensor(batch[key], dtype=torch.int64))
        return torch.cat(images), torch.cat(classes)

    return _normalized(name, read(files), read(test_files), validation, 10 if name == "cifar10" else 100)


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
