# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds passes whose definition does not have the name of their argument, in camel case, and `Pass`.

usage: check-passes.py FOLDER
"""

import pathlib
import re
import sys

found = count = 0
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.td")):
    for name, argument in re.findall(r'^def (\w+)\s*:\s*Pass<"([^"]+)"', path.read_text(), re.MULTILINE):
        count += 1
        # Letters only: words such as GPU have capitals of their own.
        if not name.startswith("Kas") or name.lower() != argument.replace("-", "") + "pass":
            print(f"error: {path.name}: expected the name of -{argument} in camel case and 'Pass', got {name}")
            found += 1
print(f"{count} passes, {found} with other names")
sys.exit(found > 0)
