"""Launch and clean-up against moto: whatever happens, nothing is left."""

import base64
import os
import signal

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from wirespeed_lab.cloud import fleet, sweep


def quiet(_):
    pass


def test_what_is_launched_ends_itself_carries_tags_and_lets_nobody_else_in(ec2, launch, alive):
    with fleet.launched(ec2, launch, launch.image, quiet) as machines:
        assert len(machines) == 2
        assert alive() == ["running", "running"]
        found = sweep.find(ec2, launch.name)
        assert {"instance", "volume", "security-group"} <= {one.kind for one in found}
        for machine in machines:
            assert machine.private
            asked = ec2.describe_instance_attribute(
                InstanceId=machine.id, Attribute="instanceInitiatedShutdownBehavior"
            )
            assert asked["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
            data = ec2.describe_instance_attribute(InstanceId=machine.id, Attribute="userData")
            assert base64.b64decode(data["UserData"]["Value"]) == b"#!/bin/bash\n"
        groups = ec2.describe_security_groups(
            Filters=[{"Name": f"tag:{sweep.LAUNCH_TAG}", "Values": [launch.name]}]
        )["SecurityGroups"]
        (rule,) = groups[0]["IpPermissions"]
        assert [r["CidrIp"] for r in rule["IpRanges"]] == ["192.0.2.1/32"]
        assert (rule["FromPort"], rule["ToPort"]) == (7171, 7171)
    assert alive() == []
    assert sweep.find(ec2) == []


def test_the_request_says_what_must_not_be_forgotten(launch):
    said = fleet.request(launch, "ami-1", "sg-1")
    assert said["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert said["MetadataOptions"]["HttpTokens"] == "required"
    assert said["MinCount"] == said["MaxCount"] == 2
    assert said["ClientToken"] == launch.name
    tagged = {one["ResourceType"]: one["Tags"] for one in said["TagSpecifications"]}
    assert set(tagged) == {"instance", "volume", "network-interface"}
    for tags in tagged.values():
        named = {tag["Key"]: tag["Value"] for tag in tags}
        assert named[sweep.TAG] == "1"
        assert named[sweep.LAUNCH_TAG] == launch.name
        assert named["wirespeed-lab-until"].endswith("Z")


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_ends_the_block_all_is_removed(ec2, launch, alive, error):
    with pytest.raises(type(error)), fleet.launched(ec2, launch, launch.image, quiet):
        raise error
    assert alive() == []
    assert sweep.find(ec2) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_block_and_all_is_removed(ec2, launch, alive, number):
    before = signal.getsignal(number)
    with pytest.raises(fleet.Ended), fleet.launched(ec2, launch, launch.image, quiet):
        os.kill(os.getpid(), number)
    assert alive() == []
    assert signal.getsignal(number) is before


def test_a_signal_during_the_clean_up_waits_for_its_end(ec2, launch, alive, monkeypatch):
    remove = sweep.remove

    def disturbed(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return remove(*arguments)

    monkeypatch.setattr(sweep, "remove", disturbed)
    with pytest.raises(fleet.Ended), fleet.launched(ec2, launch, launch.image, quiet):
        pass
    assert alive() == []


class Lossy:
    """EC2 whose answer to one call is lost after it has done what was asked."""

    def __init__(self, ec2, lost):
        self._ec2, self._lost = ec2, lost

    def __getattr__(self, name):
        call = getattr(self._ec2, name)
        if name != self._lost:
            return call

        def lose(**arguments):
            call(**arguments)
            raise EndpointConnectionError(endpoint_url="https://ec2")

        return lose


@pytest.mark.parametrize(
    "lost", ["create_security_group", "authorize_security_group_ingress", "run_instances"]
)
def test_what_was_launched_without_an_answer_is_removed_too(ec2, launch, alive, lost):
    with (
        pytest.raises(fleet.CloudFailed, match="failed to launch"),
        fleet.launched(Lossy(ec2, lost), launch, launch.image, quiet),
    ):
        pytest.fail("nothing was launched, as far as is known")
    assert alive() == []
    assert sweep.find(ec2) == []


def test_a_clean_up_that_fails_says_so_loudly_and_what_to_do(ec2, launch, alive):
    with (
        pytest.raises(fleet.CloudFailed, match=r"CLEAN-UP FAILED.*within 30 minutes.*cloud sweep"),
        fleet.launched(Lossy(ec2, "terminate_instances"), launch, launch.image, quiet),
    ):
        pass


def test_what_is_left_is_named(ec2, launch, monkeypatch):
    monkeypatch.setattr(sweep, "remove", lambda *_: [])
    with (
        pytest.raises(fleet.CloudFailed, match=r"NOT COMPLETE, left: instance i-"),
        fleet.launched(ec2, launch, launch.image, quiet),
    ):
        pass


def test_a_rehearsal_launches_nothing(ec2, launch, alive):
    fleet.rehearse(ec2, launch, launch.image)
    assert alive() == []
    assert sweep.find(ec2) == []


def test_a_rehearsal_tells_what_ec2_holds_against_it(launch):
    class Refusing:
        def run_instances(self, **arguments):
            assert arguments["DryRun"]
            raise ClientError(
                {"Error": {"Code": "UnauthorizedOperation", "Message": "not you"}}, "RunInstances"
            )

    with pytest.raises(fleet.CloudFailed, match="not you"):
        fleet.rehearse(Refusing(), launch, "ami-1")


def test_sweep_finds_and_removes_what_a_crash_left_and_nothing_else(ec2, launch, image, alive):
    ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)
    fleet._launch(ec2, launch, image, quiet)
    other = fleet.Launch("c5n.large", 1, 30, 7171, "192.0.2.1/32", "", image=image)
    fleet._launch(ec2, other, image, quiet)
    assert len(alive()) == 4
    removed = sweep.remove(ec2, launch.name)
    assert {one.launch for one in removed} == {launch.name}
    assert len(alive()) == 2
    assert {one.launch for one in sweep.find(ec2)} == {other.name}
    sweep.remove(ec2)
    assert alive() == ["running"]
    assert sweep.find(ec2) == []
    assert sweep.remove(ec2) == []
