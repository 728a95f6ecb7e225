"""Runs a search while another process holds its database, and while the disk is full.

usage: contend.py DIRECTORY KAS-SEARCH-DB COMMAND...
"""

import fcntl
import os
import resource
import signal
import subprocess
import sys

directory, database_tool, *command = sys.argv[1:]


def search(path, **options):
    words = [word.replace("DATABASE", path) for word in command]
    return subprocess.run(words, capture_output=True, text=True, **options)


whole = search(os.path.join(directory, "whole.db"))
assert whole.returncode == 0, whole.stderr

held = os.path.join(directory, "held.db")
with open(held, "wb") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    second = search(held)
    assert second.returncode == 1 and "held.db': in use by another search" in second.stderr, second.stderr
    assert os.path.getsize(held) == 0

# No file may grow beyond 400 KiB, which is less than this search needs.
full = os.path.join(directory, "full.db")


def limit():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400 << 10, 400 << 10))


stopped = search(full, preexec_fn=limit)
assert stopped.returncode == 1 and "full.db': " in stopped.stderr, stopped.stderr
assert "disk" in stopped.stderr and "Stack dump" not in stopped.stderr, stopped.stderr
subprocess.run([database_tool, "check", full], check=True)
rows = subprocess.run([database_tool, "list", full], check=True, capture_output=True, text=True).stdout
assert rows.count("evaluated") > 5, rows
# With space again the same command goes on to the same end.
again = search(full)
assert again.returncode == 0, again.stderr
assert again.stdout == whole.stdout
