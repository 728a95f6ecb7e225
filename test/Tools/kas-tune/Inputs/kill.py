"""Kills tuners at random instants and looks at what they leave.

usage: kill.py KAS_TUNE NETWORK DATABASE KILLS SEED

After each kill the database must be sound and must still have every measurement that it had before. At the end two
tuners work on it together, and no schedule is measured twice.
"""

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time

COLUMNS = "id, kernel, schedule, failure, ms, default_ms, provenance"
tune, network, database, kills, seed = [*sys.argv[1:3], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])]
random.seed(seed)
command = [tune, network, "--database=" + database, "--trials=1000", "--runs=1", "--in-model=0", "--json"]


def read():
    connection = sqlite3.connect(database, timeout=60)
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'measurement'").fetchone()[0]
    rows = connection.execute(f"SELECT {COLUMNS} FROM measurement").fetchall() if tables else []
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert not connection.execute("PRAGMA foreign_key_check").fetchall()
    connection.close()
    return {row[0]: row for row in rows}


def wait(tuner):
    """Until a random instant: right after the start, or a little after some more measurements."""
    if random.random() < 0.3:
        return time.sleep(random.uniform(0, 0.5))
    wanted = len(known) + random.randint(1, 2)
    while tuner.poll() is None:
        connection = sqlite3.connect(database, timeout=60)
        try:
            if connection.execute("SELECT count(*) FROM measurement").fetchone()[0] >= wanted:
                break
        except sqlite3.OperationalError:
            pass  # There is no table yet.
        finally:
            connection.close()
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.2))


known, alive = {}, 0
for number in range(kills):
    tuner = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait(tuner)
    alive += tuner.poll() is None
    tuner.send_signal(signal.SIGKILL)
    tuner.wait()
    now = read()
    for row in known.values():
        assert now.get(row[0]) == row, (seed, number, row, now.get(row[0]))
    known = now
assert alive == kills, "a tuner had ended before it was killed"
assert len(known) >= kills // 2, len(known)

# The kernels after the first one are not begun yet.
command[3] = "--trials=8"
both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
measured = 0
for tuner in both:
    output, _ = tuner.communicate()
    assert tuner.returncode == 0, tuner.returncode
    measured += json.loads(output.splitlines()[-1])["measured"]
after = read()
assert len(after) == len(known) + measured, (len(after), len(known), measured)
assert all(after[key] == row for key, row in known.items())
print(f"{kills} kills: {len(known)} measurements kept; two tuners: {measured} more, none twice")
