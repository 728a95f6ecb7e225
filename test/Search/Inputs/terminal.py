"""Runs a command with its standard error stream on a terminal of 160 columns and prints what it writes there.

usage: terminal.py COMMAND...
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

master, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=terminal)
os.close(terminal)
written = b""
while True:
    try:
        block = os.read(master, 65536)
    except OSError:
        break
    if not block:
        break
    written += block
assert child.wait() == 0
for line in written.decode().replace("\r\n", "\n").replace("\r\033[K", "\n").splitlines():
    assert len(line) < 160 or "hypervolume" in line, line
    print(line)
