"""The machines of one launch: made under a tag, and removed by it.

Clean-up goes by the tag and never by a list kept here: a request whose answer was lost has launched
all the same, and what it launched is found.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from . import sweep
from .sweep import LAUNCH_TAG, TAG

#: Looks for what is to be removed.
LOOKS = 3
#: Where the newest plain Amazon Linux is named; without an image of the user's it is taken.
IMAGE_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}"


class CloudFailed(Exception):
    """EC2 refused or failed; the text has its words and what to try."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """What to launch. ``allow`` is who may reach the agents (CIDR), ``minutes`` the longest life
    of each machine. ``profile`` names an instance profile, ``subnet`` a subnet, both optional."""

    instance_type: str
    count: int
    minutes: int
    port: int
    allow: str
    user_data: str
    image: str | None = None
    profile: str | None = None
    subnet: str | None = None
    name: str = dataclasses.field(default_factory=lambda: secrets.token_hex(8))

    def tags(self) -> list[dict[str, str]]:
        """On everything: whose it is, which launch, and when it must be gone."""
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=self.minutes)
        return [
            {"Key": "Name", "Value": f"wirespeed-lab-{self.name}"},
            {"Key": TAG, "Value": "1"},
            {"Key": LAUNCH_TAG, "Value": self.name},
            {"Key": "wirespeed-lab-until", "Value": end.strftime("%Y-%m-%dT%H:%M:%SZ")},
        ]


@dataclasses.dataclass(frozen=True)
class Machine:
    """One that runs: its id and where its agent is reached."""

    id: str
    public: str | None
    private: str


def image(ec2: Any, ssm: Any, launch: Launch) -> str:
    """The image to start: the user's, or the newest Amazon Linux for the type's architecture.
    Raises CloudFailed."""
    if launch.image is not None:
        return launch.image
    with _failures("look up an image (--image names one)"):
        types = ec2.describe_instance_types(InstanceTypes=[launch.instance_type])
        kinds = types["InstanceTypes"][0]["ProcessorInfo"]["SupportedArchitectures"]
        architecture = "arm64" if "arm64" in kinds else "x86_64"
        name = IMAGE_PARAMETER.format(architecture)
        return ssm.get_parameter(Name=name)["Parameter"]["Value"]


def request(launch: Launch, image_id: str, group: str) -> dict[str, Any]:
    """The arguments of RunInstances. A machine that shuts itself down is terminated; its volumes
    go with it; its metadata are for those who ask with a session."""
    tags = launch.tags()
    interface: dict[str, Any] = {
        "DeviceIndex": 0,
        "Groups": [group],
        "DeleteOnTermination": True,
        "AssociatePublicIpAddress": True,
    }
    if launch.subnet is not None:
        interface["SubnetId"] = launch.subnet
    said: dict[str, Any] = {
        "ImageId": image_id,
        "InstanceType": launch.instance_type,
        "MinCount": launch.count,
        "MaxCount": launch.count,
        "UserData": launch.user_data,
        "InstanceInitiatedShutdownBehavior": "terminate",
        # The same launch asked for twice is one launch.
        "ClientToken": launch.name,
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "NetworkInterfaces": [interface],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags}
            for kind in ("instance", "volume", "network-interface")
        ],
    }
    if launch.profile is not None:
        said["IamInstanceProfile"] = {"Name": launch.profile}
    return said


def rehearse(ec2: Any, launch: Launch, image_id: str) -> None:
    """Asks EC2 whether it would launch this, and launches nothing. Raises CloudFailed."""
    arguments = request(launch, image_id, "sg-00000000000000000")
    # The group isn't there yet; whether the launch is permitted doesn't depend on it.
    del arguments["NetworkInterfaces"]
    try:
        ec2.run_instances(**arguments, DryRun=True)
    except ClientError as error:
        if error.response["Error"]["Code"] == "DryRunOperation":
            return
        raise CloudFailed(f"EC2 would not launch this: {error}") from None
    except BotoCoreError as error:
        raise CloudFailed(f"EC2 can't be asked: {error}") from None
    raise CloudFailed("EC2 took a rehearsal for a launch: run `wirespeed-lab cloud sweep` at once")


@contextlib.contextmanager
def launched(
    ec2: Any, launch: Launch, image_id: str, say: Callable[[str], None]
) -> Iterator[list[Machine]]:
    """The running machines of a launch. Whatever ends the block, an error, Ctrl-C or SIGTERM
    among it, and whatever failed before it, all that carries the launch's tag is removed; a
    signal that comes during that waits until it is done. Raises CloudFailed, also when something
    is left."""
    signals = _Signals()
    with signals:
        try:
            try:
                yield _launch(ec2, launch, image_id, say)
            finally:
                # A signal that comes before this line raises once, and the outer block still runs.
                signals.put_off = True
        finally:
            _clean_up(ec2, launch, say)


def _launch(ec2: Any, launch: Launch, image_id: str, say: Callable[[str], None]) -> list[Machine]:
    with _failures("launch"):
        group = ec2.create_security_group(
            GroupName=f"wirespeed-lab-{launch.name}",
            Description="wirespeed-lab: agents of one measurement",
            TagSpecifications=[{"ResourceType": "security-group", "Tags": launch.tags()}],
            **_network(ec2, launch),
        )["GroupId"]
        ec2.authorize_security_group_ingress(
            GroupId=group,
            IpPermissions=[
                {
                    "IpProtocol": "tcp",
                    "FromPort": launch.port,
                    "ToPort": launch.port,
                    "IpRanges": [{"CidrIp": launch.allow}],
                }
            ],
        )
        started = ec2.run_instances(**request(launch, image_id, group))
        ids = [one["InstanceId"] for one in started["Instances"]]
        say(f"launched {', '.join(ids)}")
        ec2.get_waiter("instance_running").wait(InstanceIds=ids)
        return _machines(ec2, ids)


def _network(ec2: Any, launch: Launch) -> dict[str, str]:
    """The group's network is that of the subnet; without one, the default."""
    if launch.subnet is None:
        return {}
    found = ec2.describe_subnets(SubnetIds=[launch.subnet])["Subnets"][0]
    return {"VpcId": found["VpcId"]}


def _machines(ec2: Any, ids: Sequence[str]) -> list[Machine]:
    pages = ec2.get_paginator("describe_instances").paginate(InstanceIds=list(ids))
    return [
        Machine(one["InstanceId"], one.get("PublicIpAddress"), one["PrivateIpAddress"])
        for page in pages
        for reservation in page["Reservations"]
        for one in reservation["Instances"]
    ]


def _clean_up(ec2: Any, launch: Launch, say: Callable[[str], None]) -> None:
    removed: list[sweep.Found] = []
    try:
        # EC2 may take a while to show what it has just made: one look is not enough.
        for look in range(LOOKS):
            if look:
                time.sleep(sweep.PAUSE)
            removed += sweep.remove(ec2, launch.name)
        left = sweep.find(ec2, launch.name)
    except (BotoCoreError, ClientError, WaiterError) as error:
        raise CloudFailed(
            f"CLEAN-UP FAILED, machines may still run and cost: {error}. They end by themselves "
            f"within {launch.minutes} minutes; run `wirespeed-lab cloud sweep --remove`, and look "
            "at the console"
        ) from error
    say(f"removed {', '.join(map(str, removed)) or 'nothing: there was nothing'}")
    if left:
        raise CloudFailed(
            f"CLEAN-UP IS NOT COMPLETE, left: {', '.join(map(str, left))}; run "
            "`wirespeed-lab cloud sweep --remove`"
        )


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError, WaiterError) as error:
        raise CloudFailed(f"EC2 failed to {what}: {error}") from None


class Ended(KeyboardInterrupt):
    """A signal asks to end; clean-up comes first. Of this kind, because an event loop lets no
    other through."""


class _Signals:
    """SIGINT, SIGTERM and SIGHUP end the block, so that what is in `finally` runs: the first of
    them raises, those after it do not, and none does once they are put off. One that was put off
    is raised at the end. Does nothing outside the main thread, which alone can have handlers."""

    def __init__(self) -> None:
        self.put_off = False
        self._raised = False
        self._came: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._came is not None and not self._raised:
            raise Ended(self._came)

    def _handle(self, number: int, _: object) -> None:
        self._came = signal.Signals(number).name
        if not self.put_off and not self._raised:
            self._raised = True
            raise Ended(self._came)
