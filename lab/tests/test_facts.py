import shutil
import sys

import pytest
from wirespeed_lab import facts
from wirespeed_lab.contender import Contender
from wirespeed_lab.measured import CommandFailed

#: Executes more instructions for every line.
WORK = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    sum(range(20_000))
    print("{}", flush=True)
"""


def test_growth_is_that_of_the_end_over_the_middle():
    steady = [0, 50, 90, 100, 98, 100, 99, 100, 97]
    assert facts.growth(steady) == 0
    assert facts.growth([*steady[:-1], 130]) == 30
    assert facts.growth([10, 20, 30, 40, 50, 60, 50, 40, 30]) == -10
    with pytest.raises(ValueError, match="too few"):
        facts.growth([1, 2])


def test_the_total_of_a_profile_is_read():
    assert facts.total("events: Ir\nfn=(1) main\n12 5\nsummary: 123456\n") == 123456
    with pytest.raises(CommandFailed, match="no total"):
        facts.total("events: Ir\n")


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_instructions_are_counted_by_the_round():
    work = Contender("it", "peer", (sys.executable, "-c", WORK))
    few, many = facts.count(work, 0, 1), facts.count(work, 0, 3)
    # An addition a number, and what the interpreter does for it.
    assert 2 * 20_000 < many - few < 2 * 20_000 * 200


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_a_client_that_fails_under_valgrind_is_quoted():
    with pytest.raises(CommandFailed, match="ended with 1: gave up"):
        facts.count(Contender("it", "peer", (sys.executable, "-c", "exit('gave up')")), 0, 1)
