# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of a run in its folder, so that the same call goes on: numbers as lines of JSON, weights as files."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

VERSION = 2


class Store:
    """A folder with the results of steps by their names; without a path a temporary one, which `close` removes."""

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, str]):
        self.is_temporary = path is None
        self.path = tempfile.mkdtemp(prefix="kas-accelerate-") if path is None else os.path.join(path, "state")
        os.makedirs(self.path, exist_ok=True)
        self._folder = self._occupy()
        self._log = os.path.join(self.path, "steps.jsonl")
        self.values: dict[str, Any] = {}
        self._lock = threading.Lock()
        try:
            self._read()
            self._check({"version": str(VERSION), **settings})
        except BaseException:
            self.close()
            raise

    def _occupy(self) -> int:
        """The folder, open and locked until this is closed or the process ends, however it does."""
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            raise ValueError(
                f"requires a folder that no other run is at work in, got '{os.path.dirname(self.path)}'"
            ) from None
        except OSError:
            # Some file systems of networks have no locks.
            pass
        return folder

    def _read(self) -> None:
        if not os.path.exists(self._log):
            return
        with open(self._log, "rb") as file:
            data = file.read()
        # A line that was cut off when the process ended is no result.
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
                self.values[entry["step"]] = entry["value"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"'{self._log}' is not of a run of kas.accelerate: {error}") from error
        if len(whole) != len(data):
            os.truncate(self._log, len(whole))

    def _check(self, settings: dict[str, str]) -> None:
        known = self.values.get("settings")
        if known is None:
            self.put("settings", settings)
        elif known != settings:
            names = [name for name in settings if known.get(name) != settings[name]]
            name = names[0] if names else "version"
            raise ValueError(
                f"'{os.path.dirname(self.path)}' holds another run: {name} is '{known.get(name)}' there, "
                f"'{settings.get(name)}' here; give another folder"
            )

    def __contains__(self, step: str) -> bool:
        return step in self.values

    def __getitem__(self, step: str) -> Any:
        return self.values[step]

    def put(self, step: str, value: Any) -> None:
        """Keeps a number, text, list or dictionary."""
        line = json.dumps({"step": step, "value": value}) + "\n"
        # Threads put at once, and a long line is more than one call of the system.
        with self._lock:
            size = os.path.getsize(self._log) if os.path.exists(self._log) else 0
            try:
                with open(self._log, "a", encoding="utf-8") as file:
                    file.write(line)
            except OSError:
                # What another thread puts must not follow a part of a line.
                with contextlib.suppress(OSError):
                    os.truncate(self._log, size)
                raise
            self.values[step] = value

    def _get_file(self, step: str) -> str:
        return os.path.join(self.path, hashlib.sha256(step.encode()).hexdigest()[:20] + ".pt")

    def remember(self, step: str, make: Callable[[], Any]) -> Any:
        """What was kept of a step; makes and keeps it where there is nothing."""
        if step not in self.values:
            self.put(step, make())
        return self.values[step]

    def put_state(self, step: str, module: nn.Module) -> None:
        """Keeps the parameters and buffers of a module; the file is there as a whole or not at all."""
        path = self._get_file(step)
        try:
            torch.save(module.state_dict(), path + ".new")
            os.replace(path + ".new", path)
        except (OSError, RuntimeError) as error:
            if os.path.exists(path + ".new"):
                os.remove(path + ".new")
            raise OSError(f"cannot keep what was trained in '{self.path}': {error}") from error

    def get_state(self, step: str, module: nn.Module) -> bool:
        """Gives the module what was kept; False where there is nothing."""
        path = self._get_file(step)
        if not os.path.exists(path):
            return False
        try:
            module.load_state_dict(torch.load(path, weights_only=True))
        except (RuntimeError, OSError, EOFError, ValueError, pickle.UnpicklingError):
            return False
        return True

    def close(self) -> None:
        """Lets others have the folder, and removes a temporary one."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
        if self.is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)


def digest_model(model: nn.Module) -> str:
    """16 digits of the modules and all parameters and buffers of a network."""
    digest = hashlib.sha256(repr(model).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        if isinstance(tensor, torch.Tensor):
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
