"""A client made dearer on purpose, to prove that the lab finds such a difference.

    slowed.py PERCENT COMMAND...

runs the command with this process's own input and outputs, and spends PERCENT of the CPU time
that it spends once more, on the same cores and in the same process tree. Owns nothing of the
protocol: not a byte passes through it. Needs nothing but Python, because the lab's own path is
not handed to drivers.
"""

from __future__ import annotations

import subprocess
import sys
import time

#: Seconds between two looks at the client's CPU time; what is owed at a round's end is lost.
LOOK_EVERY_S = 0.0005


def main(argv: list[str]) -> int:
    """The exit code of the command, negative ones as a shell has them."""
    share, command = float(argv[0]) / 100, argv[1:]
    process = subprocess.Popen(command)
    # The clock id of another process's CPU time, as clock_getcpuclockid(3) makes it.
    clock = (~process.pid << 3) | 2
    own = time.process_time()
    while process.poll() is None:
        try:
            owed = time.clock_gettime(clock) * share
        except OSError:
            break
        while time.process_time() - own < owed:
            pass
        time.sleep(LOOK_EVERY_S)
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
