"""What checksums cost: the engine with CRC64NVME on, less the engine without, in passes of
the bare CRC over as many bytes of memory. Over plain HTTP and over TLS, down and up.

The object that is read was uploaded by the engine with its checksum, since a computed
one has none: a download is only checked where the server has something to check against.
"""

from __future__ import annotations

import os
import subprocess

from . import places
from .checks import Check
from .contender import Contender
from .rounds import Row
from .rows import CHECKED, LARGE, LARGE_KEY, PART, UPLOADS, Site, engine, engine_command

WITH, WITHOUT, PASS = "wirespeed", "wirespeed without checksums", "bare CRC64NVME"
#: Seconds for the upload.
PREPARE_LIMIT = 120


def prepare(site: Site) -> None:
    """Uploads the object that is read. Raises CalledProcessError when it can't."""
    target = f"s3://{CHECKED}/{LARGE_KEY}"
    command = engine_command(site, "put", target, "--size", str(LARGE), "--rounds", "1", step=False)
    environment = {**os.environ, **site.environment}
    subprocess.run(
        command, env=environment, check=True, capture_output=True, timeout=PREPARE_LIMIT, text=True
    )


def _row(site: Site, name: str, title: str, *arguments: str) -> Row:
    without = engine(site, *arguments)
    bare = (str(places.rust_driver("crc-pass")), "--size", str(LARGE), "--part", PART, "--step")
    return Row(
        name,
        title,
        (
            Contender(WITH, "engine", without.command, site.environment),
            Contender(WITHOUT, "baseline", without.command, without.environment),
            Contender(PASS, "pass", bare),
        ),
        (Check("core_s_per_gib", (PASS,), 1.2, minus=WITHOUT),),
        LARGE,
        1,
    )


def get(site: Site) -> Row:
    secure = "over TLS" if site.ca_file else "over plain HTTP"
    return _row(
        site,
        "checksums-get-tls" if site.ca_file else "checksums-get",
        f"GET 1 GiB to memory {secure}, CRC64NVME verified",
        *("get", f"s3://{CHECKED}/{LARGE_KEY}", "--sink", "memory"),
    )


def put(site: Site) -> Row:
    secure = "over TLS" if site.ca_file else "over plain HTTP"
    return _row(
        site,
        "checksums-put-tls" if site.ca_file else "checksums-put",
        f"PUT 1 GiB from memory {secure}, CRC64NVME sent",
        *("put", f"s3://{UPLOADS}/engine", "--size", str(LARGE), "--unsigned-payload"),
    )
