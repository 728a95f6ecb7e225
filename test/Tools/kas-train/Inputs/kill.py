"""Kills a training after each of its epochs and checks that its end is the one of an uninterrupted training.

usage: kill.py FOLDER COMMAND...

In COMMAND, CHECKPOINT and OUTPUT are the files to keep the state and the parameters in.
"""

import os
import signal
import subprocess
import sys

folder, *command = sys.argv[1:]


def command_for(name):
    paths = {key: os.path.join(folder, f"{name}.{key.lower()}.npz") for key in ("CHECKPOINT", "OUTPUT")}
    words = list(command)
    for key, path in paths.items():
        words = [word.replace(key, path) for word in words]
    return words, paths


def lines_without_times(text):
    return [line.rsplit(";", 1)[0] for line in text.splitlines()]


words, whole = command_for("whole")
expected = lines_without_times(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

words, parts = command_for("parts")
kills, lines = 0, []
while True:
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    # The state is kept after the line, so the epoch may come again.
    line = child.stdout.readline()
    if kills < 8:
        os.kill(child.pid, signal.SIGKILL)
        kills += 1
    rest = child.stdout.read()
    got = lines_without_times(line + rest)
    lines += [entry for entry in got if entry not in lines]
    if child.wait() == 0:
        break
assert lines == expected, (lines, expected)
with open(whole["OUTPUT"], "rb") as a, open(parts["OUTPUT"], "rb") as b:
    assert a.read() == b.read(), "other parameters"
print(kills, "kills, the same parameters")
