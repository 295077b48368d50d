"""Several agents, each a process on an address of its own: started together, ended together."""

import asyncio
import dataclasses
import os
import signal
import subprocess

import pytest
from wirespeed_lab.hosts import addresses, coordinator, together, versions, wire
from wirespeed_lab.hosts.addresses import Address
from wirespeed_lab.hosts.coordinator import HostsFailed


def test_three_agents_run_together_and_are_merged(hosts):
    addresses = [hosts.start(place) for place in (1, 2, 3)]
    summary, events = hosts.measure(addresses, hosts.get_plan(), blocks=2)
    assert [event["type"] for event in events] == [
        *("hosts", "client", "round", "round", "round", "summary")
    ]
    names = [str(address) for address in addresses]
    assert summary["hosts"] == names
    found = summary["clients"]["reference"]
    assert found["bytes_per_second"]["count"] == 2
    assert found["bytes_per_second"]["low"] > 0
    for event in events[2:5]:
        starts = [host["start_ns"] for host in event["hosts"]]
        # The start is common: within what a busy machine needs to wake three processes.
        assert max(starts) - min(starts) < 5_000_000_000
        for host in event["hosts"]:
            assert len(host["samples"]) == 40
            assert sum(sample["bytes"] for sample in host["samples"]) == 40 * 200_000
            assert host["start_ns"] <= min(s["start_ns"] for s in host["samples"])
            assert host["faults"] == []
        merged = event["merged"]
        assert [share["name"] for share in merged["hosts"]] == names
        assert 0 < merged["bytes"] <= 3 * 40 * 200_000
        assert merged["start_ns"] >= max(starts)
    assert hosts.gone()


def test_uploads_of_each_host_are_its_own_and_are_looked_at(hosts, store):
    plan, seen = hosts.put_plan(), []
    addresses = [hosts.start(place) for place in (1, 2)]
    for place in (0, 1):
        store.prepare(together.plan_at(plan, place, 2))
    hosts.store_said |= {"endpoint": store.endpoint, "bucket": store.bucket}

    def uploads(at_host):
        seen.append(at_host.work[0].key)
        return store.check_uploads(at_host)

    summary, _ = hosts.measure(addresses, plan, uploads=uploads)
    assert seen == ["host-000/p/00000000", "host-001/p/00000000"]
    assert summary["out"] == {}
    assert summary["clients"]["reference"]["operations_per_second"]["low"] > 0


def test_uploads_that_are_wrong_disqualify(hosts, store):
    plan = hosts.put_plan()
    addresses = [hosts.start(1)]
    store.prepare(plan)
    hosts.store_said |= {"endpoint": store.endpoint, "bucket": store.bucket}
    summary, _ = hosts.measure(addresses, plan, uploads=lambda _: ["p/3 is wrong at byte 0"])
    assert "p/3 is wrong" in summary["out"]["reference"]
    assert summary["clients"] == {}


def test_a_missing_agent_aborts_all_before_anything_runs(hosts):
    here = hosts.start(1)
    absent = Address("127.0.0.2", here.port)
    with pytest.raises(HostsFailed, match=r"127\.0\.0\.2:\d+ can't be reached"):
        hosts.measure([here, absent], hosts.get_plan())
    assert not hosts.processes()
    # The one that was there serves the next.
    summary, _ = hosts.measure([here], hosts.get_plan())
    assert "reference" in summary["clients"]


def test_an_agent_that_dies_in_a_round_ends_it_for_all(hosts):
    addresses = [hosts.start(place, "hang") for place in (1, 2, 3)]
    victim = hosts.agents[1]
    orphans = []

    def kill():
        # Nobody is left to end the dead agent's own driver, but this test.
        orphans.extend(pid for pid in hosts.processes() if parent(pid) == victim.pid)
        victim.kill()

    def told(event):
        # Round 0 was the last that this driver ends; the next hangs until its agent dies.
        if event["type"] == "client":
            asyncio.get_running_loop().call_later(1.5, kill)

    with pytest.raises(HostsFailed, match=r"127\.0\.0\.2:\d+.*all hosts were told to stop"):
        hosts.measure(addresses, hosts.get_plan(), told)
    assert len(orphans) == 1
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
    assert hosts.gone()
    assert hosts.agents[0].poll() is None


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_a_driver_that_dies_on_one_host_ends_it_for_all(hosts):
    addresses = [hosts.start(1, "hang"), hosts.start(2, "death")]
    with pytest.raises(HostsFailed, match=r"127\.0\.0\.2:\d+: reference: reference ended with"):
        hosts.measure(addresses, hosts.get_plan())
    assert hosts.gone()


def test_a_client_that_one_host_skips_is_out_and_the_rest_goes_on(hosts):
    more = {"other": hosts.reference()}
    addresses = [hosts.start(1, more=more), hosts.start(2, "skip", more=more)]
    summary, _ = hosts.measure(addresses, hosts.get_plan(), clients=["reference", "other"])
    assert "127.0.0.2" in summary["out"]["reference"]
    assert "not today" in summary["out"]["reference"]
    assert list(summary["clients"]) == ["other"]


def test_wrong_bytes_on_one_host_disqualify_the_client(hosts):
    addresses = [hosts.start(1), hosts.start(2, "wrong-bytes")]
    summary, events = hosts.measure(addresses, hosts.get_plan())
    assert "has wrong bytes" in summary["out"]["reference"]
    assert "127.0.0.2" in summary["out"]["reference"]
    assert not [event for event in events if event["type"] == "round"]


def test_an_unknown_client_is_refused_whatever_comes_with_it(hosts, tmp_path):
    address = hosts.start(1)
    with pytest.raises(HostsFailed, match="no client '/bin/sh' in this agent's registry"):
        hosts.measure([address], hosts.get_plan(), clients=["/bin/sh"])


def test_a_command_that_comes_over_the_wire_is_not_run(hosts, tmp_path):
    address, proof = hosts.start(1), tmp_path / "ran"

    async def speak():
        line = wire.Line(*await asyncio.open_connection(address.host, address.port), "agent")
        await wire.greet(line, hosts.TOKEN)
        order = {"type": "prepare", "client": "reference", "plan": hosts.get_plan().as_json()}
        order |= {**hosts.store_said, "command": ["touch", str(proof)]}
        await line.send({**order, "environment": {"LD_PRELOAD": "/x.so"}})
        said = await line.receive(60)
        await line.send({"type": "exec", "command": ["touch", str(proof)]})
        with pytest.raises(wire.WireError):
            await all_of(line)
        await line.close()
        return said

    async def all_of(line):
        while True:
            await line.receive(60)

    assert asyncio.run(speak())["type"] == "ready"
    assert not proof.exists()
    assert hosts.gone()


@pytest.mark.parametrize("field", ["plan", "endpoint", "client"])
def test_a_malformed_order_is_answered_with_what_is_wrong(hosts, field):
    address = hosts.start(1)

    async def speak():
        line = wire.Line(*await asyncio.open_connection(address.host, address.port), "agent")
        await wire.greet(line, hosts.TOKEN)
        order = {"type": "prepare", "client": "reference", "plan": hosts.get_plan().as_json()}
        order |= hosts.store_said
        await line.send({**order, "plan": {"version": 99}} if field == "plan" else without(order))
        said = await line.receive(60)
        await line.close()
        return said

    def without(order):
        return {name: value for name, value in order.items() if name != field}

    said = asyncio.run(speak())
    assert said["type"] == "failed"
    assert ("version is 99" if field == "plan" else field) in said["reason"]


def test_an_agent_serves_one_coordinator_at_a_time(hosts):
    address = hosts.start(1)

    async def both():
        async with coordinator.Coordinator([address], hosts.TOKEN):
            with pytest.raises(HostsFailed, match="busy with another coordinator"):
                async with coordinator.Coordinator([address], hosts.TOKEN):
                    pass

    asyncio.run(both())
    assert hosts.measure([address], hosts.get_plan())[0]["clients"]


def test_another_token_is_refused(hosts):
    address = hosts.start(1)
    request = dataclasses.replace(hosts.request([address], hosts.get_plan()), token=b"x" * 32)
    with pytest.raises(HostsFailed, match="tokens differ"):
        asyncio.run(together.measure(request, lambda _: None))


def test_another_version_of_the_lab_is_refused(hosts):
    addresses = [hosts.start(1), hosts.start(2, version="0" * 16)]
    with pytest.raises(HostsFailed, match=r"127\.0\.0\.2:\d+ runs another version of the lab"):
        hosts.measure(addresses, hosts.get_plan())


def test_a_wall_clock_that_is_off_is_refused_and_the_bound_can_be_moved(hosts):
    addresses = [hosts.start(1), hosts.start(2, wall_ahead_ns=-3_000_000_000)]
    with pytest.raises(HostsFailed, match=r"127\.0\.0\.2:\d+: its wall clock is -\d+ ms off"):
        hosts.measure(addresses, hosts.get_plan())
    assert hosts.measure(addresses, hosts.get_plan(), wall_bound_ns=60_000_000_000)[0]["clients"]


def test_hosts_that_were_started_at_different_times_have_a_common_time(hosts):
    """The second host's monotonic clock is a day ahead, as that of another machine would be."""
    under = ("unshare", "--time", "--monotonic", "86400", "--fork", "--kill-child")
    tried = subprocess.run([*under, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no time namespace: {tried.stderr.strip()}")
    addresses = [hosts.start(1), hosts.start(2, under=under)]
    summary, events = hosts.measure(addresses, hosts.get_plan())
    ahead = [host["clock"]["ahead"] for host in events[0]["hosts"].values()]
    assert abs(ahead[1] - ahead[0] - 86_400_000_000_000) < 1_000_000_000
    assert summary["clients"]["reference"]["bytes_per_second"]["low"] > 0


def test_a_coordinator_that_falls_silent_is_given_up_and_drivers_are_killed(hosts):
    address = hosts.start(1, "hang")

    async def leave():
        line = wire.Line(*await asyncio.open_connection(address.host, address.port), "agent")
        await wire.greet(line, hosts.TOKEN)
        order = {"type": "prepare", "client": "reference", "plan": hosts.get_plan().as_json()}
        await line.send({**order, **hosts.store_said})
        assert (await line.receive(60))["type"] == "ready"
        assert hosts.processes()
        await line.close()

    asyncio.run(leave())
    assert hosts.gone()


def test_an_agent_that_is_told_to_end_kills_its_drivers(hosts):
    addresses = [hosts.start(1, "hang"), hosts.start(2)]

    def end(event):
        if event["type"] == "client":
            asyncio.get_running_loop().call_later(1.0, hosts.agents[0].terminate)

    with pytest.raises(HostsFailed, match=r"127\.0\.0\.1"):
        hosts.measure(addresses, hosts.get_plan(), end)
    assert hosts.agents[0].wait(20) == 0
    assert hosts.gone()


def test_descriptions_that_differ_are_told_by_host_and_field():
    one = {"name": "a", "version": "1.2", "components": {"x": "1"}}
    assert versions.differences({"h1": one, "h2": dict(one)}) == []
    assert versions.differences({"h1": one, "h2": {**one, "version": "1.3"}}) == [
        "version is '1.3' on h2 and '1.2' on h1"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "no HOST:PORT"),
        ("a:0", "no HOST:PORT"),
        ("a:70000", "no HOST:PORT"),
        ("a:1,,b:2", "no HOST:PORT"),
        ("::1:5", "no HOST:PORT"),
        ("a:1,b:2,a:1", "named more than once: a:1"),
    ],
)
def test_addresses_that_mean_nothing_or_count_twice_are_refused(text, said):
    with pytest.raises(ValueError, match=said):
        addresses.parse(text)


def test_addresses_are_read_and_said_alike():
    text = "a.example:1,[::1]:65535"
    assert ",".join(map(str, addresses.parse(text))) == text


def test_uploads_go_below_a_prefix_for_each_host_and_reads_do_not(hosts):
    assert together.plan_at(hosts.get_plan(), 1, 2) == hosts.get_plan()
    assert together.plan_at(hosts.put_plan(), 0, 1) == hosts.put_plan()
    keys = {
        item.key for place in (0, 1) for item in together.plan_at(hosts.put_plan(), place, 2).work
    }
    assert len(keys) == 2 * len(hosts.put_plan().work)
