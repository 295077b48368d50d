"""The row against a modelled store: a first byte that takes as long as S3's, connections as
slow as S3's, and a network interface that all share. What is asked is a share of the
interface, reached with the engine's default settings."""

from __future__ import annotations

from . import places
from .checks import Check
from .contender import Contender
from .rounds import Row
from .rows import BUCKET, VAST, VAST_KEY, WITHOUT_CHECKSUMS, Site

NIC_GB_PER_SECOND = 2.0
#: The server's flags.
MODEL = ("--first-byte", "30ms", "--connection-down", "90MB/s", "--nic", "2GB/s")


def get_default(site: Site) -> Row:
    command = (
        *(str(places.wirespeed()), "--endpoint-url", site.endpoint),
        *("bench", "get", f"s3://{BUCKET}/{VAST_KEY}", "--sink", "discard", "--json", "--step"),
    )
    return Row(
        "get-modelled",
        "GET 4 GiB from 30 ms away, 90 MB/s a connection, default settings",
        (Contender("wirespeed", "engine", command, {**site.environment, **WITHOUT_CHECKSUMS}),),
        (
            Check(
                *("throughput", (), 0.9),
                at_least=True,
                given=NIC_GB_PER_SECOND,
                given_name="NIC of 2 GB/s",
            ),
        ),
        VAST,
        1,
    )
