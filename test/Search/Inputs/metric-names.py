# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What evaluators give is what an objective may have.

usage: metric-names.py KAS-OPT FILE "EVALUATORS [OPTION=VALUE...]"...
"""

import json
import re
import subprocess
import sys


def search(program: str, file: str, options: str) -> str:
    command = [program, file, "-o", "/dev/null", f"-kas-search={options}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def main() -> None:
    program, file, *evaluators = sys.argv[1:]
    for evaluator in evaluators:
        text = search(program, file, f"evaluators={evaluator} progress=true evaluations=1")
        events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        given = {name for event in events if event["event"] == "candidate" for name in event.get("metrics", {})}
        text = search(program, file, f"evaluators={evaluator} objective=nonsense")
        found = re.search(r"that the evaluators give for the option 'objective', of ([\w, ]*), got 'nonsense'", text)
        # `accuracy_3` is an `accuracy_N`.
        given = {re.sub(r"_\d+$", "_N", name) for name in given}
        assert given, (evaluator, text)
        assert found, (evaluator, text)
        named = set(found[1].split(", "))
        assert given == named, f"{evaluator}: candidates have {sorted(given)}, objectives may have {sorted(named)}"
        print(evaluator.split()[0], *sorted(given))


main()
