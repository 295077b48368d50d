"""Finds and removes whatever carries the lab's tag, of one launch or of all.

Knows nothing of a launch: what a crashed one left is found by its tag alone.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from botocore.exceptions import ClientError

TAG = "wirespeed-lab"
LAUNCH_TAG = "wirespeed-lab-launch"
#: States of an instance that is gone, or going by itself.
_GONE = ("terminated",)
#: Tries for what can't be removed while something uses it, and seconds between.
TRIES = 30
PAUSE = 2.0


@dataclasses.dataclass(frozen=True, order=True)
class Found:
    """Something that carries the tag."""

    kind: str
    id: str
    launch: str
    state: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id}" + (f" ({self.state})" if self.state else "")


def find(ec2: Any, launch: str | None = None) -> list[Found]:
    """What is there under the tag in the client's region, of one launch or of all."""
    filters = [{"Name": f"tag:{TAG}", "Values": ["1"]}]
    if launch is not None:
        filters.append({"Name": f"tag:{LAUNCH_TAG}", "Values": [launch]})
    found = []
    for page in ec2.get_paginator("describe_instances").paginate(Filters=filters):
        for reservation in page["Reservations"]:
            for one in reservation["Instances"]:
                state = one["State"]["Name"]
                if state not in _GONE:
                    found.append(Found("instance", one["InstanceId"], _launch(one), state))
    for kind, call, listed, field in (
        ("volume", "describe_volumes", "Volumes", "VolumeId"),
        (
            "network-interface",
            "describe_network_interfaces",
            "NetworkInterfaces",
            "NetworkInterfaceId",
        ),
        ("security-group", "describe_security_groups", "SecurityGroups", "GroupId"),
    ):
        for page in ec2.get_paginator(call).paginate(Filters=filters):
            for one in page[listed]:
                found.append(Found(kind, one[field], _launch(one)))
    return found


def remove(ec2: Any, launch: str | None = None) -> list[Found]:
    """Terminates instances, waits until they are gone, then deletes the rest. Returns what was
    removed. Raises botocore's errors; what can't be removed yet is tried again for a minute."""
    removed = find(ec2, launch)
    instances = [one.id for one in removed if one.kind == "instance"]
    if instances:
        ec2.terminate_instances(InstanceIds=instances)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=instances)
    for one in find(ec2, launch):
        _delete(ec2, one)
    return removed


def _delete(ec2: Any, one: Found) -> None:
    delete = {
        "volume": lambda: ec2.delete_volume(VolumeId=one.id),
        "network-interface": lambda: ec2.delete_network_interface(NetworkInterfaceId=one.id),
        "security-group": lambda: ec2.delete_security_group(GroupId=one.id),
    }.get(one.kind)
    if delete is None:
        # An instance that came up since: found again by whoever looks whether something is left.
        ec2.terminate_instances(InstanceIds=[one.id])
        return
    for left in reversed(range(TRIES)):
        try:
            delete()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code.endswith(".NotFound") or code == "InvalidGroup.NotFound":
                return
            if left == 0 or code not in (
                "DependencyViolation",
                "VolumeInUse",
                "InvalidParameterValue",
            ):
                raise
            time.sleep(PAUSE)
        else:
            return


def _launch(one: dict) -> str:
    for tag in one.get("Tags") or one.get("TagSet") or ():
        if tag["Key"] == LAUNCH_TAG:
            return tag["Value"]
    return ""
