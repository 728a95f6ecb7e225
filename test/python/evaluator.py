# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An evaluator for the tests, in a module that workers import quickly."""

import os
import signal
import time


class Evaluator:
    """An evaluator: takes a while, raises for some, ends its process or hangs for others, once or always."""

    def __init__(self, directory, seconds=0.0, dies=(), hangs=(), always=()):
        self.directory, self.seconds = str(directory), seconds
        self.dies, self.hangs, self.always = set(dies), set(hangs), set(always)

    def __call__(self, request):
        assert request.bindings == [{"N": 1, "Cin": 8, "Cout": 8, "H": 6, "W": 6, "g": 4, "k": 3}]
        mark = os.path.join(self.directory, f"{request.id}")
        first = not os.path.exists(mark)
        with open(mark, "a") as file:
            file.write(f"{os.getpid()}\n")
        if (request.id in self.dies and first) or request.id in self.always:
            os.kill(os.getpid(), signal.SIGKILL)
        if request.id in self.hangs and first:
            time.sleep(1000)
        time.sleep(self.seconds)
        if request.id % 10 == 9:
            raise ValueError("no good")
        return {"loss": float(len(request.operator) % 13)}


class Training:
    """A stand-in for a trainer: dies once at one candidate, fails at another."""

    def __init__(self, directory):
        self.directory = str(directory)

    def train_once(self, text, seed, epochs, checkpoint, test):
        mark = os.path.join(self.directory, text)
        if text == "dies" and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "fails":
            raise ValueError("loss became NaN")
        return {"accuracy": seed / 10}, [(0, "accuracy", seed / 10)]
