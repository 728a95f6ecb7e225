# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What was compiled, and data that were computed, kept on disk for the next process that needs the same: `kas cache`.

The directory is `$KAS_CACHE_DIR`, else `kas/compiled` in `$XDG_CACHE_HOME` or `~/.cache`. It is kept below
`$KAS_CACHE_MB` (512 where not set; 0: nothing is kept) by forgetting what was not read for the longest time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pathlib
import platform
import zlib
from typing import NamedTuple

from . import _kas

_EXTENSION = ".kaso"
"""In the names of files, those that were left unfinished, too. Nothing else in the directory is ours."""


class CacheState(NamedTuple):
    """What is in the cache."""

    directory: str
    entries: int
    bytes: int
    limit: int
    """In bytes; 0: nothing is kept."""


def get_limit() -> int:
    """How many bytes are kept at most; 0: nothing is."""
    _, limit = _kas.get_cache_settings()
    return limit


def _list_entries() -> list[tuple[int, pathlib.Path]]:
    """Size and path of each entry."""
    directory, _ = _kas.get_cache_settings()
    entries = []
    for path in pathlib.Path(directory).glob(f"*{_EXTENSION}*") if directory else ():
        # Another process may have removed it.
        with contextlib.suppress(OSError):
            entries.append((path.stat().st_size, path))
    return entries


def get_state() -> CacheState:
    """What is in the cache now."""
    directory, limit = _kas.get_cache_settings()
    entries = _list_entries()
    return CacheState(directory, len(entries), sum(size for size, _ in entries), limit)


def clear() -> None:
    """Removes all entries."""
    for _, path in _list_entries():
        with contextlib.suppress(OSError):
            path.unlink()


_SOURCES = pathlib.Path(__file__).parent / "torch"
"""What imports graphs."""


@functools.cache
def describe_environment() -> str:
    """All that compiled graphs depend on besides what is compiled: the sources of kas, and the processor.

    Graphs of PyTorch are imported by Python: what was compiled before a mistake there was mended must not come back.
    """
    digest = hashlib.blake2b(_kas.get_generator_digest().encode(), digest_size=16)
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
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def load_bytes(key: str) -> bytes | None:
    """The data that were stored; None where there is nothing, or a file that is damaged."""
    compressed = _kas.load_cached(key)
    return None if compressed is None else zlib.decompress(compressed)


def store_bytes(key: str, content: bytes) -> None:
    """Keeps data. More than half of the limit is not kept: it would drive all else out.

    A directory that cannot be written only costs time.
    """
    compressed = zlib.compress(content, 1) if get_limit() else b""
    if compressed and len(compressed) <= get_limit() // 2:
        _kas.store_cached(key, compressed)
