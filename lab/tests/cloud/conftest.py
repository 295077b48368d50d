"""EC2 as moto has it, in this process, and a launch that is small."""

import pytest
from moto import mock_aws
from wirespeed_lab.cloud import fleet, sweep

REGION = "us-east-1"


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch):
    """No credentials and no configuration of this machine; no pauses."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Thousands of images that no test asks for, made anew for each.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    monkeypatch.setattr(sweep, "PAUSE", 0.0)


@pytest.fixture
def aws():
    with mock_aws():
        yield


@pytest.fixture
def ec2(aws):
    import boto3

    return boto3.client("ec2", region_name=REGION)


@pytest.fixture
def image(ec2):
    return "ami-12345678"


@pytest.fixture
def launch(image):
    return fleet.Launch("c5n.large", 2, 30, 7171, "192.0.2.1/32", "#!/bin/bash\n", image=image)


@pytest.fixture
def alive(ec2):
    """States of all instances that are not gone."""

    def states():
        found = [
            one["State"]["Name"]
            for reservation in ec2.describe_instances()["Reservations"]
            for one in reservation["Instances"]
        ]
        return [state for state in found if state != "terminated"]

    return states
