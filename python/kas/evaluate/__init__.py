# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluators that train networks.

>>> trainer = kas.evaluate.Trainer(kas.evaluate.DigitsNetwork(), "digits")
>>> trainer(kas.operator("conv2d_depthwise"))["accuracy"]
"""

from .._errors import need

need("torch", "torch")

from .._request import Request
from ._data import Data
from ._data_sets import digits, fashion_mnist, load_data, mnist, mnist1d, mnist_5000, npz
from ._fields import RelativeError, burgers, darcy, navier_stokes, waves
from ._networks import DigitsNetwork
from ._task import Classification, Task
from ._task_data import TaskData
from ._trainer import Trainer, main_space, read_operator, summarize
from ._training import Recipe, Training, TrainingFailure, initialize

__all__ = [
    "Classification",
    "Data",
    "DigitsNetwork",
    "Recipe",
    "RelativeError",
    "Request",
    "Task",
    "TaskData",
    "Trainer",
    "Training",
    "TrainingFailure",
    "burgers",
    "darcy",
    "digits",
    "fashion_mnist",
    "initialize",
    "load_data",
    "main_space",
    "mnist",
    "mnist1d",
    "mnist_5000",
    "navier_stokes",
    "npz",
    "read_operator",
    "summarize",
    "waves",
]
