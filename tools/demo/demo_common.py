"""Shared by the reports of both demos: spaces of layers, the events of a search, and steps by name."""

import json
import re
import sys
from pathlib import Path


def fail(message):
    sys.exit(f"error: {message}")


def read_space(directory, name):
    """The text of a kas.space in sites.mlir, and its layers: sizes by name, and how many layers have them."""
    text = (directory / "sites.mlir").read_text()
    match = re.search(rf"kas\.space @{re.escape(name)}<.*?(?=\n  (?:kas|func)\.)", text, re.DOTALL)
    if not match:
        fail(f"no kas.space @{name} in {directory / 'sites.mlir'}")
    layers = [
        (dict(pair.split(" = ") for pair in binding.split(", ")), int(count or 1))
        for binding, count in re.findall(r"<([^<>|]*=[^<>|]*)>(?: x (\d+))?", match.group(0))
    ]
    return match.group(0), layers


def read_candidates(directory):
    """The candidates of a search as it reports them on the standard input; all that it says goes to search.log."""
    with open(directory / "search.log", "w") as log:
        for line in sys.stdin:
            log.write(line)
            try:
                event = json.loads(line)
            except ValueError:
                print(line, end="", file=sys.stderr, flush=True)
                continue
            if event["event"] == "message":
                print(event["text"], file=sys.stderr, flush=True)
            elif event["event"] == "candidate":
                yield event


def run_step(steps, usage):
    """Runs the one of the functions that the command line names."""
    by_name = {step.__name__: step for step in steps}
    if len(sys.argv) < 3 or sys.argv[2] not in by_name:
        sys.exit(usage)
    by_name[sys.argv[2]](Path(sys.argv[1]), *sys.argv[3:])
