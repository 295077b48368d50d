"""What a process tree costs, seen from outside, and what is said of the machine."""

import os
import subprocess
import sys

import pytest
from wirespeed_lab.measuring import Cores, CoresRefused, Meter, Method, Watch, cgroup, processes

#: Burns CPU for 0.2 s and holds 50 MiB for each line that it reads; with "child" a child does.
WORK = """
import subprocess, sys, time
def work():
    held = bytearray(50 << 20)
    until = time.process_time() + 0.2
    while time.process_time() < until: pass
if sys.argv[1:] == ["once"]:
    work(); sys.exit()
print("up", flush=True)
for line in sys.stdin:
    if line == "child\\n":
        subprocess.run([sys.executable, "-S", __file__, "once"], check=True)
    else:
        work()
    print("did", flush=True)
"""
METHODS = [Method("proc", "asked for"), pytest.param(Method.choose(), id="chosen")]


@pytest.fixture
def worker(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(WORK)
    process = subprocess.Popen(
        [sys.executable, "-S", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdout.readline() == "up\n"
    yield process
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def ask(process, what):
    process.stdin.write(f"{what}\n")
    assert process.stdout.readline() == "did\n"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("what", ["itself", "child"])
def test_cpu_and_memory_of_the_tree_are_seen(worker, method, what):
    with Meter(worker.pid, method) as meter:
        meter.begin()
        ask(worker, what)
        meter.end()
        used = meter.usage()
    assert 0.19 <= used.core_s <= 1.0
    assert used.peak_memory_bytes > 50 << 20


def test_what_happens_outside_begin_and_end_is_not_counted(worker):
    with Meter(worker.pid, Method.choose()) as meter:
        ask(worker, "itself")
        meter.begin()
        meter.end()
        ask(worker, "itself")
        used = meter.usage()
    assert used.core_s < 0.1
    assert used.peak_memory_bytes < 50 << 20


def test_usage_needs_a_beginning(worker):
    with Meter(worker.pid, Method("proc", "")) as meter, pytest.raises(RuntimeError):
        meter.usage()


def test_a_leaf_is_removed_and_others_are_swept(tmp_path):
    gone = tmp_path / "wirespeed-lab-999999999-0"
    gone.mkdir()
    (tmp_path / f"wirespeed-lab-{os.getpid()}-0").mkdir()
    assert cgroup.sweep(tmp_path) == 1
    assert not gone.exists()
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_process_starts_while_it_is_moved_is_moved_too(worker, monkeypatch):
    try:
        leaf = cgroup.Leaf()
    except cgroup.NoLeaf as reason:
        pytest.skip(str(reason))
    child = subprocess.Popen(["sleep", "60"])
    # The first look is as if the child had not been there yet.
    looks = iter([[worker.pid]])
    monkeypatch.setattr(processes, "tree", lambda _: next(looks, [worker.pid, child.pid]))
    try:
        leaf.adopt(worker.pid)
        assert sorted(leaf.pids()) == sorted([worker.pid, child.pid])
    finally:
        child.kill()
        child.wait()
        worker.kill()
        worker.wait()
        leaf.close()
    assert not leaf.path.exists()


@pytest.mark.parametrize(
    ("mounts", "own", "says"),
    [
        ("tmpfs /sys tmpfs rw 0 0\n", "0::/\n", "no cgroup v2"),
        ("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "1:cpu:/\n", "in no cgroup v2"),
    ],
)
def test_without_cgroups_the_reason_is_said(mounts, own, says):
    with pytest.raises(cgroup.NoLeaf, match=says):
        cgroup.home(mounts, own)


def test_a_folder_that_takes_no_group_is_refused(tmp_path):
    with pytest.raises(cgroup.NoLeaf, match="takes no group"):
        cgroup.Leaf(tmp_path / "not there")
    with pytest.raises(cgroup.NoLeaf, match="keeps no accounts"):
        cgroup.Leaf(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_permission_means_proc_and_says_why(monkeypatch):
    def refused(*_):
        raise cgroup.NoLeaf("takes no group of ours: Permission denied")

    monkeypatch.setattr(cgroup, "Leaf", refused)
    method = Method.choose()
    assert method.cpu == "proc"
    assert "Permission denied" in method.as_json()["why_no_cgroup"]


def test_a_tree_has_its_children(worker):
    assert processes.tree(os.getpid())[0] == os.getpid()
    assert worker.pid in processes.tree(os.getpid())


def test_cores_are_split_and_never_shared():
    found = Cores.split(available={0, 1})
    assert not set(found.server) & set(found.client) or found.why
    alone = Cores.split(available={0})
    assert alone.server == alone.client == (0,)
    assert "only one core" in alone.why
    assert Cores.split("0", None, {0, 1, 2, 3}).client == (1, 2, 3)


@pytest.mark.parametrize(
    ("server", "client", "says"),
    [
        ("0-1", "1", "core 1 is asked for by the server and by the clients"),
        ("9", None, "core 9 is not among"),
        ("x", None, "is no list of cores"),
    ],
)
def test_cores_that_cannot_be_are_refused(server, client, says):
    with pytest.raises(CoresRefused, match=says):
        Cores.split(server, client, {0, 1})


def noise(monkeypatch, before, after, ours_s=0.0, seconds=1.0):
    texts = iter([before, after])
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: next(texts))
    monkeypatch.setattr("wirespeed_lab.measuring.noise.frequency", lambda _: None)
    clock = iter([0.0, seconds])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    watch = Watch([1])
    watch.begin()
    return watch.end(ours_s)


def test_steal_and_other_load_disturb_a_round(monkeypatch):
    before = "cpu0 9 9 9 9 9 9 9 9\ncpu1 100 0 50 500 0 0 0 0\n"
    found = noise(monkeypatch, before, "cpu0 99 9 9 9 9 9 9 99\ncpu1 150 0 60 500 0 0 0 10\n", 0.2)
    assert found.steal == pytest.approx(0.10)
    assert found.other == pytest.approx(0.40)
    assert found.reasons == ("steal 10%", "other load 40%")


def test_the_clients_own_load_and_single_ticks_do_not(monkeypatch):
    before = "cpu1 100 0 50 500 0 0 0 0\n"
    found = noise(monkeypatch, before, "cpu1 150 0 60 500 0 0 0 2\n", 0.59, 0.62)
    assert found.reasons == ()


def test_a_look_is_kept_though_the_process_ends(worker):
    meter = Meter(worker.pid, Method("proc", ""))
    meter.begin(since_birth=True)
    meter.look()
    worker.stdin.close()
    worker.wait(10)
    meter.end()
    assert meter.usage().peak_memory_bytes > 1 << 20
    meter.close()
