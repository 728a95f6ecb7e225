# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python code of the pages runs as it is written."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_python_page():
    text = (ROOT / "docs" / "Python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    names = {}
    for block in blocks:
        exec(compile(block, "Python.md", "exec"), names)
