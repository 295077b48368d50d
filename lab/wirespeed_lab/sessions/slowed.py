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

#: Seconds between two looks at the client's CPU time, while it works and while it waits for its
#: turn, in which it must disturb nobody. What is owed at a round's end is lost.
WORKING_S, WAITING_S = 0.002, 0.02


def main(argv: list[str]) -> int:
    """The exit code of the command, negative ones as a shell has them."""
    share, command = float(argv[0]) / 100, argv[1:]
    process = subprocess.Popen(command)
    # The clock id of another process's CPU time, as clock_getcpuclockid(3) makes it.
    clock = (~process.pid << 3) | 2
    seen = owed = 0.0
    paid = time.process_time()
    while process.poll() is None:
        try:
            now = time.clock_gettime(clock)
        except OSError:
            break
        owed += (now - seen) * share
        # Looking costs too, and is paid with. What it costs beyond the debt is no payment in
        # advance: a client that waits would never have to pay again.
        while time.process_time() - paid < owed:
            pass
        owed = 0.0
        paid = time.process_time()
        time.sleep(WORKING_S if now > seen else WAITING_S)
        seen = now
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
