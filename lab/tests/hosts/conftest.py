"""Agents as real processes on loopback addresses of their own, and a store for them."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from wirespeed_lab import places, plans
from wirespeed_lab.hosts import addresses, coordinator, record, together

HERE = Path(__file__).parent
LAB = HERE.parents[1]
REFERENCE = LAB / "tests" / "driving" / "reference_driver.py"
TOKEN = b"0123456789abcdef0123456789abcdef"
VERSION = "0123456789abcdef"


def get_plan(objects=40, size=200_000):
    work = tuple(plans.Item(f"h/{n:08d}", size) for n in range(objects))
    return plans.Plan("hosts-get", "get", "discard", work, concurrency=4)


def put_plan():
    work = tuple(plans.Item(f"p/{n:08d}", 50_000) for n in range(8))
    return plans.Plan("hosts-put", "put", "discard", work, concurrency=2)


class Hosts:
    """Starts agents, and measures with them."""

    TOKEN = TOKEN
    get_plan = staticmethod(get_plan)
    put_plan = staticmethod(put_plan)

    def __init__(self, folder, store_said):
        self.folder = folder
        self.marker = f"marker-{folder.name}-{os.getpid()}"
        self.token = folder / "token"
        self.token.write_bytes(TOKEN)
        self.token.chmod(0o600)
        self.store_said = store_said
        self.agents = []

    def start(self, place, lie=None, under=(), **setting):
        """An agent at 127.0.0.PLACE; its address. ``under`` is a command that starts it."""
        commands = {"reference": self.reference(lie)}
        said = {"clients": {**commands, **setting.pop("more", {})}, "version": VERSION, **setting}
        agent = subprocess.Popen(
            [
                *under,
                sys.executable,
                str(HERE / "agent_process.py"),
                f"127.0.0.{place}:0",
                str(self.token),
                json.dumps(said),
            ],
            stdout=subprocess.PIPE,
            stderr=(self.folder / f"agent-{place}.err").open("w"),
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(LAB),
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
            },
        )
        self.agents.append(agent)
        line = agent.stdout.readline()
        assert "listening on" in line, (self.folder / f"agent-{place}.err").read_text()
        (address,) = addresses.parse(line.split()[-1])
        return address

    def reference(self, lie=None):
        """The command of the reference driver; the marker finds its processes again."""
        lying = ["--lie", lie] if lie else []
        return [sys.executable, str(REFERENCE), "--marker", self.marker, *lying]

    def processes(self):
        """Living drivers."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                said = (entry / "cmdline").read_bytes().decode().split("\0")
                if self.marker in said:
                    found.append(int(entry.name))
        return found

    def gone(self, limit_s=20):
        """Whether all of them end, waited for."""
        until = time.monotonic() + limit_s
        while self.processes() and time.monotonic() < until:
            time.sleep(0.02)
        return not self.processes()

    def request(self, addresses, plan, **more):
        return together.Request(
            hosts=addresses,
            token=TOKEN,
            plan=plan,
            clients=more.pop("clients", ["reference"]),
            store=self.store_said,
            blocks=more.pop("blocks", 1),
            segment_ns=1_000_000,
            **more,
        )

    def measure(self, addresses, plan, tell=None, **more):
        """The summary and all events, each of the form that a record has."""
        events = []

        def told(event):
            record.check(json.loads(json.dumps(event)), "an event")
            events.append(event)
            if tell is not None:
                tell(event)

        summary = asyncio.run(together.measure(self.request(addresses, plan, **more), told))
        return summary, events

    def close(self):
        for agent in self.agents:
            agent.kill()
            agent.wait()
            agent.stdout.close()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def store():
    """The embedded server with what `get_plan` reads."""
    from wirespeed_lab import stores

    try:
        opened = stores.open_store("origin", cpus=())
    except (places.MissingProgram, stores.StoreFailed) as error:
        pytest.skip(str(error))
    with opened as running:
        running.prepare(get_plan())
        yield running


@contextlib.contextmanager
def agents_in(folder, store):
    """Hosts whose agents are gone at the end."""
    # Other tests of this session may have turned the store to another plan.
    store.prepare(get_plan())
    said = {
        "endpoint": store.endpoint,
        "region": store.region,
        "bucket": store.bucket,
        "ca_pem": None,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinator, "fingerprint", lambda: VERSION)
        made = Hosts(folder, said)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def hosts(tmp_path, store):
    with agents_in(tmp_path, store) as made:
        yield made


@pytest.fixture(scope="module")
def real_events(tmp_path_factory, store):
    """What a run on two agents told: one client that was measured, one that one of them skips."""
    with agents_in(tmp_path_factory.mktemp("hosts"), store) as made:
        addresses = [
            made.start(1, more={"other": made.reference()}),
            made.start(2, more={"other": made.reference("skip")}),
        ]
        events = made.measure(addresses, get_plan(), clients=["reference", "other"], blocks=2)[1]
    return json.loads(json.dumps(events))
