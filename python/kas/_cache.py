# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of what was compiled, and of data that were computed, for the next process that needs the same: `kas cache`.

The directory is `$KAS_CACHE_DIR`, else `kas/compiled` in `$XDG_CACHE_HOME` or `~/.cache`. It is kept below
`$KAS_CACHE_MB` (512 where not set; 0: nothing is kept) by forgetting what was not read for the longest time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import tempfile
import zlib
from typing import NamedTuple

from . import _kas

_NAME = "module.kasc"
_MAGIC = b"kas-cache 1\n"
_KEY_LENGTH = 40
"""Of the names of folders, in hexadecimal digits. Nothing else in the directory is ours."""


class CacheState(NamedTuple):
    """What is in the cache."""

    directory: str
    entries: int
    bytes: int
    limit: int
    """In bytes; 0: nothing is kept."""


def get_directory() -> pathlib.Path:
    """Where the files are; it need not exist."""
    if named := os.environ.get("KAS_CACHE_DIR"):
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base, "kas", "compiled")


def get_limit() -> int:
    """How many bytes are kept at most."""
    text = os.environ.get("KAS_CACHE_MB", "512")
    if not text.isdigit():
        raise ValueError(f"KAS_CACHE_MB requires a number of megabytes, got '{text}'")
    return int(text) << 20


def _list_entries() -> list[tuple[float, int, pathlib.Path]]:
    """Time of the last use, size and folder of each entry, those that were used least recently first."""
    entries = []
    for folder in get_directory().glob("[0-9a-f]" * _KEY_LENGTH):
        # Another process may have removed it.
        with contextlib.suppress(OSError):
            states = [path.stat() for path in folder.iterdir()]
            last = max((state.st_mtime for state in states), default=0.0)
            entries.append((last, sum(state.st_size for state in states), folder))
    return sorted(entries)


def get_state() -> CacheState:
    """What is in the cache now."""
    entries = _list_entries()
    return CacheState(str(get_directory()), len(entries), sum(size for _, size, _ in entries), get_limit())


def clear() -> None:
    """Removes all entries."""
    _remove_beyond(0)


def _remove_beyond(limit: int) -> None:
    entries = _list_entries()
    total = sum(size for _, size, _ in entries)
    for _, size, folder in entries:
        if total <= limit:
            return
        shutil.rmtree(folder, ignore_errors=True)
        total -= size


_SOURCES = pathlib.Path(__file__).parent / "torch"
"""What imports graphs."""


@functools.cache
def describe_environment() -> str:
    """All that compiled code depends on besides what is compiled: this build of kas, and the processor.

    Graphs of PyTorch are imported by Python: what was compiled before a mistake there was mended must not come back.
    """
    digest = hashlib.blake2b(pathlib.Path(_kas.__file__).read_bytes(), digest_size=16)
    for path in sorted(_SOURCES.rglob("*.py")):
        digest.update(path.read_bytes())
    lines = [digest.hexdigest(), platform.machine()]
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
        lines += [line for line in text.splitlines() if line.startswith(("model", "flags", "Features", "CPU "))]
    for path in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")):
        with contextlib.suppress(OSError):
            lines.append(path.read_text(encoding="utf-8").strip())
    return "\n".join(lines)


def make_key(*parts: str) -> str:
    """The name of what is compiled from these texts here."""
    return make_data_key(describe_environment(), *parts)


def make_data_key(*parts: str) -> str:
    """The name of what follows from these texts on any machine."""
    digest = hashlib.blake2b(digest_size=_KEY_LENGTH // 2)
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def get_folder(key: str) -> pathlib.Path | None:
    """Where machine code may be kept beside the text; None where nothing is kept."""
    return get_directory() / key if get_limit() else None


def load(key: str) -> str | None:
    """The text that was stored; None where there is nothing, or a file that is damaged."""
    content = load_bytes(key)
    return None if content is None else content.decode()


def load_bytes(key: str) -> bytes | None:
    """The same of bytes."""
    folder = get_folder(key)
    if not folder:
        return None
    try:
        content = (folder / _NAME).read_bytes()
        os.utime(folder / _NAME)
    except OSError:
        return None
    content = content.removeprefix(_MAGIC)
    digest, compressed = content[:16], content[16:]
    if hashlib.blake2b(compressed, digest_size=16).digest() != digest:
        return None
    return zlib.decompress(compressed)


def store(key: str, text: str) -> None:
    """Keeps a text. A directory that cannot be written only costs time."""
    store_bytes(key, text.encode())


def store_bytes(key: str, content: bytes) -> None:
    """The same of bytes. More than half of the limit is not kept: it would drive all else out."""
    folder = get_folder(key)
    compressed = zlib.compress(content, 1) if folder else b""
    if not folder or len(compressed) > get_limit() // 2:
        return
    digest = hashlib.blake2b(compressed, digest_size=16).digest()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Others see the whole file or none.
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + digest + compressed)
        os.replace(name, folder / _NAME)
        _remove_beyond(get_limit())
