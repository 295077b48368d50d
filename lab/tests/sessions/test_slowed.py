"""A client made dearer is dearer in every round, however long it waited before."""

import subprocess
import sys
import time

from wirespeed_lab.sessions import slowed

#: Works, waits for longer than looking at it costs as much as it will owe, and works again.
CLIENT = """
import sys, time
def work():
    until = time.process_time() + 0.4
    while time.process_time() < until: pass
work()
time.sleep(2)
print("ready", flush=True)
sys.stdin.readline()
work()
print("done", flush=True)
sys.stdin.readline()
"""


def test_what_it_spends_more_is_spent_while_the_client_works():
    command = [sys.executable, slowed.__file__, "25", sys.executable, "-c", CLIENT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        clock = (~process.pid << 3) | 2
        assert process.stdout.readline() == "ready\n"
        before = time.clock_gettime(clock)
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        until = time.monotonic() + 1
        while time.clock_gettime(clock) - before < 0.09 and time.monotonic() < until:
            time.sleep(0.01)
        spent = time.clock_gettime(clock) - before
        process.stdin.close()
    assert 0.09 <= spent <= 0.25
    assert process.returncode == 0


def test_the_exit_code_is_the_clients():
    code = "import sys; sys.exit(7)"
    done = subprocess.run(
        [sys.executable, slowed.__file__, "10", sys.executable, "-c", code], check=False
    )
    assert done.returncode == 7
