# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of the pipeline for CPUs: the one place of Python that spells them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class CPUPipeline:
    """`kas-cpu-pipeline`, whose text `str` gives. See `CPUPipelineOptions` of C++ for the meaning of the options.

    None and an empty text leave the pipeline's own default, which the text does not mention.
    """

    threads: int | None = None
    workspace: bool | None = None
    cpu: str = ""
    triple: str = ""
    features: str = ""
    register_tiles: bool | None = None
    prepack_weights: bool | None = None
    precision: str = ""
    algorithm: str = ""
    split_batch: bool | None = None
    share_short_loops: bool | None = None

    def __str__(self) -> str:
        given = {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, "")}
        entries = (f"{name.replace('_', '-')}={str(value).lower()}" for name, value in given.items())
        return f"kas-cpu-pipeline{{{' '.join(entries)}}}"
