"""Drivers that lie, or fall over: each is caught, and the error says what it was."""

import os
import sys
import time

import pytest
from wirespeed_lab.driving import BadPlan, Driver, DriverFailed, Skipped, judge


def faults(lab, plan, lie, **options):
    return [
        fault
        for made, counts in lab.rounds(plan, lie, **options)
        for fault in judge(plan, made, counts)
    ]


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("wrong-bytes", "item 3 has wrong bytes: their digest is"),
        ("missing", "2 of 40 items are missing, first 38"),
        ("doubled", "1 items are there more than once, first 1"),
        ("early-finish", "not in order, or not within"),
        ("more", "samples overlap, and 4 at most were to be in flight"),
        ("fewer", "4 items in flight are claimed, and 1 samples overlap"),
        ("admitted", "concurrency in effect was 1, and 4 was asked for"),
    ],
)
def test_a_lie_is_a_fault(lab, make, lie, said):
    found = faults(lab, make.small(), lie)
    assert any(said in fault for fault in found), found


def test_what_was_not_fetched_again_is_a_fault(lab, make):
    plan = make.small()
    found = faults(lab, plan, "cached", count=2, verify=False)
    assert any("bytes are claimed, and the server had seen" in fault for fault in found), found
    assert any("the server saw 0 requests for 40 items" in fault for fault in found), found


@pytest.mark.parametrize(
    ("lie", "said"),
    [("wrong-bytes", "wrong keys: their digest"), ("missing", "2299 keys and must have 2300")],
)
def test_a_wrong_listing_is_a_fault(lab, make, lie, said):
    found = faults(lab, make.listing(), lie)
    assert any(said in fault for fault in found), found


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("garbage", r"printed a line in round 1 that is not JSON: b?'loading...'"),
        ("endless-line", r"floods: a line of more than 8388608 bytes"),
        ("death", r"ended with signal SIGKILL in place of round 1, after 0 samples"),
        ("death-in-the-middle", r"(?s)ended with exit code 1 .* after 2 samples; .*: fell over"),
        ("too-early", r"printed before round 1 was asked for: '\{\"type\": \"stopped\""),
    ],
)
def test_what_is_no_round_ends_the_driver(lab, make, lie, said):
    with pytest.raises(DriverFailed, match=said):
        next(lab.rounds(make.small(), lie))


def test_a_flood_of_lines_ends_the_driver(lab, make, monkeypatch):
    monkeypatch.setattr("wirespeed_lab.driving.driver.OUTPUT_LIMIT", 1 << 16)
    with pytest.raises(DriverFailed, match="floods: round 1 printed more than any round"):
        next(lab.rounds(make.small(), "flood"))


def test_a_hang_ends_the_driver_with_all_that_it_started(lab, make):
    with lab.driver("hang") as driver:
        driver.start(lab.line(make.small()))
        with pytest.raises(
            DriverFailed, match="hangs: round 1, after 0 samples did not come in 1 s"
        ):
            driver.round(1, limit_s=1)
        with pytest.raises(ProcessLookupError):
            os.killpg(driver.pid, 0)


def test_the_tail_of_standard_error_is_shown_and_bounded(lab, make):
    program = "import sys; sys.stderr.write('x' * 1_000_000 + 'the reason'); sys.exit(3)"
    driver = Driver([sys.executable, "-c", program], {}, name="it")
    with driver, pytest.raises(DriverFailed) as error:
        driver.start({})
    assert str(error.value).endswith("xthe reason")
    assert "ended with exit code 3" in str(error.value)
    assert len(str(error.value)) < 5000


def test_a_newer_plan_is_refused(lab, make):
    newer = {**lab.line(make.small()), "version": 99}
    with lab.driver() as driver, pytest.raises(BadPlan, match=r"plan; .* 99 is newer than 1"):
        driver.start(newer)


@pytest.mark.parametrize("bad", [{}, {"version": 1, "work": 3}, {"version": "one"}])
def test_a_malformed_plan_is_refused(lab, bad):
    with lab.driver() as driver, pytest.raises(BadPlan, match="bad plan"):
        driver.start(bad)


def test_a_skipped_plan_is_no_failure(lab, make):
    with lab.driver("skip") as driver, pytest.raises(Skipped, match="skips this plan: not today"):
        driver.start(lab.line(make.small()))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('hello')", "printed a line that is not JSON: 'hello'"),
        ("print('[1]')", r"is no ready or skip message: '\[1\]'"),
        ("print('[' * 100000)", "is not JSON: .* and 99880 bytes more"),
        ('print(\'{"type": "done"}\')', "is no ready or skip message"),
        ('print(\'{"type": "skip"}\')', "exit code 0 after it had said that it skips"),
        ("import os; os.write(1, b'\\xff\\xfe\\n')", "is not JSON"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with signal SIGSEGV"),
        ("import sys; sys.exit(64)", "ended with exit code 64 in place of ready"),
        ("import os, time; os.close(1); time.sleep(60)", "closed its standard output"),
        ("import os, time; os.close(0); time.sleep(60)", "hangs: ready did not come in 2 s"),
    ],
)
def test_what_is_not_ready_is_told(monkeypatch, program, said):
    monkeypatch.setattr("wirespeed_lab.driving.process.CLOSE_LIMIT", 0.5)
    driver = Driver([sys.executable, "-c", program], {}, name="it")
    with driver, pytest.raises(DriverFailed, match=said):
        driver.start({}, limit_s=2)


def test_a_plan_that_is_not_read_is_told():
    driver = Driver([sys.executable, "-c", "import time; time.sleep(60)"], {}, name="it")
    with driver, pytest.raises(DriverFailed, match="did not read its plan in 1 s"):
        driver.start({"work": ["x" * 1_000_000]}, limit_s=1)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("{}", "is no describe message"),
        ('{"type":"describe"}', "says nothing of"),
        (None, "ended with exit code 0 in place of its description"),
    ],
)
def test_what_is_no_description_is_told(said, wrong):
    from wirespeed_lab.driving import describe

    program = f"print({said!r})" if said else "pass"
    with pytest.raises(DriverFailed, match=wrong):
        describe([sys.executable, "-c", program], {})


def test_a_command_that_is_not_there_is_told():
    with pytest.raises(DriverFailed, match=r"cannot be started: .*No such file"):
        Driver(["/nowhere/driver", "run"], {})


def test_one_that_ignores_everything_is_killed(lab, make, monkeypatch):
    monkeypatch.setattr("wirespeed_lab.driving.process.TERM_LIMIT", 0.3)
    driver = lab.driver("deaf")
    driver.start(lab.line(make.small()))
    how = driver._process.close(0.3)
    assert how.startswith("signal SIGKILL")
    assert driver.close() == how


def test_children_do_not_outlive_their_driver(tmp_path):
    program = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '600']);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid));"
        'print(\'{"type": "ready"}\', flush=True); sys.stdin.read()'
    )
    with Driver([sys.executable, "-c", program], {}, name="it") as driver:
        driver.start({})
        child = int((tmp_path / "pid").read_text())
        os.kill(child, 0)
    assert _gone(child)


def _gone(pid):
    """Ended, if not yet collected by whoever inherited it."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_cores_that_are_not_there_are_told_and_do_without():
    with Driver([sys.executable, "-c", "input()"], {}, cpus=[4000]) as driver:
        assert not driver.pinned
        assert "4000" in driver.pinning


def test_a_driver_runs_on_its_cores():
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with Driver([sys.executable, "-c", "input()"], {}, cpus=[core]) as driver:
        assert driver.pinned
        assert os.sched_getaffinity(driver.pid) == {core}
    assert os.sched_getaffinity(0) == before
