"""Kills a search again and again and checks that its database loses nothing.

usage: kill.py KILLS DIRECTORY KAS-SEARCH-DB COMMAND...

COMMAND is a search with `database=DATABASE`. Each run is killed at a random instant, then the same command goes on,
until the search is done; then a new file is begun, until there were KILLS kills.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

kills, directory, database_tool, *command = sys.argv[1:]
kills = int(kills)
seed = int(os.environ.get("KAS_TEST_SEED", "20261"))
print("seed", seed)
rng = random.Random(seed)


def with_database(path):
    return [word.replace("DATABASE", path) for word in command]


def listing(path):
    """The candidates by number, without times, once the file is known to be sound."""
    subprocess.run([database_tool, "check", path], check=True)
    lines = subprocess.run([database_tool, "list", path, "--json"], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        row.pop("asked_at"), row.pop("seconds", None)
    assert [row["id"] for row in rows] == list(range(len(rows)))
    return rows


whole = os.path.join(directory, "whole.db")
start = time.monotonic()
expected_output = subprocess.run(with_database(whole), check=True, capture_output=True).stdout
duration = time.monotonic() - start
expected = listing(whole)
assert len(expected) >= 10 and all(row["state"] != "asked" for row in expected)
assert {row["state"] for row in expected} == {"evaluated", "failed"}, "both outcomes are to be kept"

done = finished = 0
while done < kills:
    path = os.path.join(directory, "killed.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    while True:
        child = subprocess.Popen(with_database(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Half of the instants early, where the file is made and replayed.
        limit = duration * (0.5 if rng.random() < 0.5 else 1.1)
        try:
            output, errors = child.communicate(timeout=rng.random() * limit) if done < kills else child.communicate()
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            output, errors = child.communicate()
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, errors.decode()
        done += 1
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            continue
        try:
            rows = listing(path)
        except subprocess.CalledProcessError:
            # Killed before the file's first transaction: nothing was reported, nothing can be read.
            assert b'"candidate"' not in errors, "lost what was reported"
            continue
        # All that was reported is there; the sequence is the uninterrupted one, but for what is in flight.
        reported = {int(number) for number in re.findall(rb'"candidate","id":(\d+),', errors)}
        assert reported <= {row["id"] for row in rows if row["state"] != "asked"}, "lost what was reported"
        assert sum(row["state"] == "asked" for row in rows) <= 1
        for row, whole_row in zip(rows, expected):
            if row["state"] != "asked":
                assert row == whole_row, (row, whole_row)
            else:
                assert (row["key"], row["operator"]) == (whole_row["key"], whole_row["operator"])
    finished += 1
    assert listing(path) == expected
    assert output == expected_output
print(done, "kills", finished, "searches finished", len(expected), "candidates each")
