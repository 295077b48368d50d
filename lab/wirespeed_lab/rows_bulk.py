"""The rows of whole commands: many objects, from the start of a process to its end.

What is measured is what a person types: the listing, the planning, the transfers, files opened,
written and renamed. Beside it the same with s5cmd, rclone and AWS CLI 2 (its classic client, and
the one on the CRT), with their default settings but for concurrency. Each command is a process of
its own, started by ``whole``; what it did is counted afterwards.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

from . import places
from .checks import Check
from .contender import Contender
from .origin import Synthetic
from .rounds import Row
from .rows import KIB, MIB, WITHOUT_CHECKSUMS, Site

BUCKET = "bulk"
DISCARDING = "bulk-uploads"
DIGITS = 8
#: The issue's work, and a fifth of it for rows with peers that need minutes for all.
MANY, FIFTH = 10_000, 2_000
MIDDLE, MIDDLE_FIFTH = "middle/", "middle-fifth/"
SMALL_COUNT, SMALL_SIZE = 100_000, 4 * KIB
SMALL = "small/"
#: Of clients that need minutes for all of it: so much less.
MIDDLE_SHARE, SMALL_SHARE = MANY // FIFTH, 10
SMALL_SHARED = "small-by-the-slow/"
FLAT, FLAT_COUNT = "flat/", 1_000_000
HUGE, HUGE_COUNT = "ten-million/", 10_000_000
NIC_GB_PER_SECOND = 2.0
#: Requests in flight: s5cmd's own are 256; rclone's would be 4, AWS CLI's 10.
RCLONE_TRANSFERS = 64
AWS_CONCURRENCY = 20

#: What the server computes for these rows.
SYNTHETIC = (
    Synthetic(BUCKET, MIDDLE, MIB, MANY, DIGITS),
    Synthetic(BUCKET, MIDDLE_FIFTH, MIB, FIFTH, DIGITS),
    Synthetic(BUCKET, SMALL, SMALL_SIZE, SMALL_COUNT, DIGITS),
    Synthetic(BUCKET, SMALL_SHARED, SMALL_SIZE, SMALL_COUNT // SMALL_SHARE, DIGITS),
    Synthetic(BUCKET, FLAT, 0, FLAT_COUNT, DIGITS),
    Synthetic(BUCKET, HUGE, 1, HUGE_COUNT, DIGITS),
)
#: The server's flags for the rows of listings: each answer takes as long as a page of S3's.
PAGE_MODEL = ("--first-byte", "60ms")

AWS_CLIENTS = ("classic", "crt")
OURS = "wirespeed"
PEERS = ("s5cmd", "rclone", *(f"aws {client}" for client in AWS_CLIENTS))


@dataclasses.dataclass(frozen=True)
class Less:
    """Where 1/``share`` of a row's work is, and which of the peers are given that."""

    source: str
    share: int
    peers: tuple[str, ...]

    def of(self, peer: str, whole: str) -> tuple[str, int]:
        """What a peer reads, and its share."""
        return (self.source, self.share) if peer in self.peers else (whole, 1)


EVERYTHING = Less("", 1, ())


def whole(
    site: Site,
    name: str,
    role: str,
    command: tuple[str, ...],
    proof: str,
    size: int = 0,
    share: int = 1,
    environment: dict[str, str] | None = None,
) -> Contender:
    """A command that is started anew for each round."""
    driver = (sys.executable, "-m", "wirespeed_lab.whole", "--proof", proof, "--size", str(size))
    more = {
        **site.environment,
        "AWS_ENDPOINT_URL": site.endpoint,
        "AWS_DEFAULT_REGION": site.credentials["AWS_REGION"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(places.REPOSITORY / "lab"),
        **(environment or {}),
    }
    return Contender(name, role, (*driver, "--step", "--", *command), more, share=share)


def ours(*arguments: str) -> tuple[str, ...]:
    return (str(places.wirespeed()), *arguments)


def _s3(prefix: str, bucket: str = BUCKET) -> str:
    return f"s3://{bucket}/{prefix}"


# ------------------------------------------------------------ to nowhere


def discard(site: Site) -> Row:
    """`cp` of a prefix beside the engine that is handed the keys."""
    size = ("--json", "--unsigned-payload")
    command = ours(*size, "--quiet", "cp", "--recursive", _s3(MIDDLE), "/dev/null")
    given = (
        *ours("--endpoint-url", site.endpoint, "--json"),
        *("bench", "get", _s3(MIDDLE), "--sink", "discard", "--step"),
    )
    return Row(
        "bulk-discard",
        f"cp of {MANY:,} x 1 MiB to nowhere, whole process",
        (
            whole(site, OURS, "engine", command, "summary", environment=WITHOUT_CHECKSUMS),
            Contender(
                *("engine, keys given", "baseline", given),
                {**site.environment, **WITHOUT_CHECKSUMS},
            ),
        ),
        (
            Check("throughput", ("engine, keys given",), 0.95, at_least=True),
            Check("core_s_per_gib", ("engine, keys given",), 1.1),
        ),
        MANY * MIB,
        MANY,
    )


def modelled(site: Site) -> Row:
    command = ours("--json", "--quiet", "cp", "--recursive", _s3(MIDDLE), "/dev/null")
    return Row(
        "bulk-modelled",
        f"cp of {MANY:,} x 1 MiB from 30 ms away, 90 MB/s a connection, default settings",
        (whole(site, OURS, "engine", command, "summary", environment=WITHOUT_CHECKSUMS),),
        (
            Check(
                *("throughput", (), 0.9),
                at_least=True,
                given=NIC_GB_PER_SECOND,
                given_name="NIC of 2 GB/s",
            ),
        ),
        MANY * MIB,
        MANY,
    )


# ------------------------------------------------------------ beside the peers


def aws_config(site: Site, client: str) -> Path:
    """AWS CLI takes its concurrency and its client from a file."""
    path = site.disk / f"aws-{client}.config"
    path.write_text(
        "[default]\ns3 =\n  addressing_style = path\n"
        f"  preferred_transfer_client = {client}\n  max_concurrent_requests = {AWS_CONCURRENCY}\n"
    )
    return path


def rclone_environment(site: Site) -> dict[str, str]:
    return {
        "RCLONE_CONFIG": "/dev/null",
        "RCLONE_CONFIG_LAB_TYPE": "s3",
        "RCLONE_CONFIG_LAB_PROVIDER": "Other",
        "RCLONE_CONFIG_LAB_ENDPOINT": site.endpoint,
        "RCLONE_CONFIG_LAB_ENV_AUTH": "true",
        "RCLONE_CONFIG_LAB_FORCE_PATH_STYLE": "true",
        "RCLONE_CONFIG_LAB_REGION": site.credentials["AWS_REGION"],
    }


def _down(
    site: Site, title: str, name: str, prefix: str, work: tuple[int, int], less: Less = EVERYTHING
) -> Row:
    """``work``: objects and bytes of each."""
    count, size = work

    def to(folder: str) -> tuple[str, str]:
        path = site.tmpfs / folder
        return str(path), f"folder:{path}"

    contenders = []
    path, proof = to(OURS)
    command = ours("--quiet", "cp", "--recursive", _s3(prefix), path)
    contenders.append(whole(site, OURS, "engine", command, proof, environment=WITHOUT_CHECKSUMS))

    path, proof = to("s5cmd")
    source, share = less.of("s5cmd", prefix)
    command = (str(places.go_tool("s5cmd")), "--log", "error", "cp", _s3(source) + "*", path + "/")
    environment = {"S3_ENDPOINT_URL": site.endpoint}
    contenders.append(whole(site, "s5cmd", "peer", command, proof, 0, share, environment))

    path, proof = to("rclone")
    source, share = less.of("rclone", prefix)
    command = (
        *(str(places.go_tool("rclone")), "copy", f"lab:{BUCKET}/{source}", path),
        *("--transfers", str(RCLONE_TRANSFERS), "--checkers", str(RCLONE_TRANSFERS)),
    )
    environment = rclone_environment(site)
    contenders.append(whole(site, "rclone", "peer", command, proof, 0, share, environment))

    for client in AWS_CLIENTS:
        path, proof = to(f"aws-{client}")
        source, share = less.of(f"aws {client}", prefix)
        command = (str(places.awscli()), "s3", "cp", "--quiet", "--recursive", _s3(source), path)
        environment = {"AWS_CONFIG_FILE": str(aws_config(site, client))}
        contenders.append(
            whole(site, f"aws {client}", "peer", command, proof, 0, share, environment)
        )
    return Row(name, title, tuple(contenders), _beside(), count * size, count, seconds=600)


def _up(
    site: Site, title: str, name: str, files: Path, work: tuple[int, int], less: Less = EVERYTHING
) -> Row:
    """``files``: the folder with all of them."""
    count, size = work
    proof, target = f"stored:{site.endpoint}", f"s3://{DISCARDING}"
    command = ours("--quiet", "cp", "--recursive", str(files), f"{target}/ours/")
    contenders = [whole(site, OURS, "engine", command, proof, size, environment=WITHOUT_CHECKSUMS)]

    source, share = less.of("s5cmd", str(files))
    s5cmd = (str(places.go_tool("s5cmd")), "--log", "error", "cp", f"{source}/", f"{target}/s5cmd/")
    environment = {"S3_ENDPOINT_URL": site.endpoint}
    contenders.append(whole(site, "s5cmd", "peer", s5cmd, proof, size, share, environment))

    source, share = less.of("rclone", str(files))
    rclone = (
        *(str(places.go_tool("rclone")), "copy", source, f"lab:{DISCARDING}/rclone"),
        *("--transfers", str(RCLONE_TRANSFERS), "--checkers", str(RCLONE_TRANSFERS)),
        # What is discarded can't be looked at afterwards.
        *("--no-check-dest", "--s3-no-head", "--s3-no-check-bucket", "--ignore-checksum"),
    )
    environment = rclone_environment(site)
    contenders.append(whole(site, "rclone", "peer", rclone, proof, size, share, environment))

    for client in AWS_CLIENTS:
        source, share = less.of(f"aws {client}", str(files))
        command = (
            *(str(places.awscli()), "s3", "cp", "--quiet", "--recursive"),
            *(source, f"{target}/aws-{client}/"),
        )
        environment = {"AWS_CONFIG_FILE": str(aws_config(site, client))}
        contenders.append(
            whole(site, f"aws {client}", "peer", command, proof, size, share, environment)
        )
    return Row(name, title, tuple(contenders), _beside(), count * size, count, seconds=600)


def _beside() -> tuple[Check, ...]:
    """Fewer core-seconds and less wall time than each, and so many fewer than s5cmd."""
    return (
        Check("core_us_per_object", ("s5cmd",), 0.6),
        *(Check("core_us_per_object", (peer,), 1, kind="fewer") for peer in PEERS),
        *(Check("us_per_object", (peer,), 1, kind="fewer") for peer in PEERS),
    )


def _half() -> tuple[Check, ...]:
    """Twice the objects a second of the best peer, per core."""
    return (Check("core_us_per_object", ("best peer",), 0.5), *_beside()[1:])


def tmpfs(site: Site) -> Row:
    title = f"cp of {FIFTH:,} x 1 MiB to files on tmpfs, whole process"
    return _down(site, title, "bulk-tmpfs", MIDDLE_FIFTH, (FIFTH, MIB))


def tmpfs_all(site: Site) -> Row:
    title = f"cp of {MANY:,} x 1 MiB to files on tmpfs, whole process"
    less = Less(MIDDLE_FIFTH, MIDDLE_SHARE, PEERS[1:])
    return _down(site, title, "bulk-tmpfs-all", MIDDLE, (MANY, MIB), less)


def upload(site: Site) -> Row:
    files = _files(site.tmpfs / "upload-middle-fifth", FIFTH, MIB)
    title = f"cp of {FIFTH:,} x 1 MiB from files on tmpfs, whole process"
    return _up(site, title, "bulk-upload", files, (FIFTH, MIB))


def upload_all(site: Site) -> Row:
    files = _files(site.tmpfs / "upload-middle", MANY, MIB)
    fewer = _files(site.tmpfs / "upload-middle-fifth", FIFTH, MIB)
    title = f"cp of {MANY:,} x 1 MiB from files on tmpfs, whole process"
    less = Less(str(fewer), MIDDLE_SHARE, PEERS[1:])
    return _up(site, title, "bulk-upload-all", files, (MANY, MIB), less)


def small_down(site: Site) -> Row:
    title = f"cp of {SMALL_COUNT:,} x 4 KiB to files on tmpfs, whole process"
    less = Less(SMALL_SHARED, SMALL_SHARE, PEERS)
    row = _down(site, title, "bulk-small", SMALL, (SMALL_COUNT, SMALL_SIZE), less)
    return dataclasses.replace(row, checks=_half())


def small_up(site: Site) -> Row:
    files = _files(site.tmpfs / "upload-small", SMALL_COUNT, SMALL_SIZE)
    fewer = _files(site.tmpfs / "upload-small-shared", SMALL_COUNT // SMALL_SHARE, SMALL_SIZE)
    title = f"cp of {SMALL_COUNT:,} x 4 KiB from files on tmpfs, whole process"
    less = Less(str(fewer), SMALL_SHARE, PEERS)
    row = _up(site, title, "bulk-small-up", files, (SMALL_COUNT, SMALL_SIZE), less)
    return dataclasses.replace(row, checks=_half())


def _files(folder: Path, count: int, size: int) -> Path:
    """So many files, a hundred to a folder, each beginning with its number."""
    for number in range(count):
        if number % 100 == 0:
            (folder / f"{number // 100:05d}").mkdir(parents=True, exist_ok=True)
        path = folder / f"{number // 100:05d}" / f"{number:08d}"
        if not path.exists() or path.stat().st_size != size:
            path.write_bytes(number.to_bytes(8, "little") * (size // 8))
    return folder


# ------------------------------------------------------------ listings


def listing(site: Site) -> Row:
    """Ten million keys: what a key costs, beside raw paging."""
    peers = {
        "raw paging + quick-xml": (
            *(str(places.rust_driver("serial-list")), "--endpoint", site.endpoint),
            *("--bucket", BUCKET, "--keys-prefix", HUGE, "--step"),
        ),
    }
    du = ours("--json", "--quiet", "du", _s3(HUGE))
    return Row(
        "bulk-list",
        f"listing {HUGE_COUNT:,} keys, whole process",
        (
            whole(
                *(site, OURS, "engine", ours("ls", "--recursive", _s3(HUGE)), "lines"),
            ),
            whole(site, "wirespeed du", "ours", du, "total"),
            *(Contender(name, "baseline", command) for name, command in peers.items()),
        ),
        (
            Check("core_us_per_key", ("raw paging + quick-xml",), 1.5),
            Check("core_us_per_key", ("raw paging + quick-xml",), 1.5, of="wirespeed du"),
        ),
        0,
        HUGE_COUNT,
        seconds=400,
    )


ROWS: dict[str, tuple[str, Callable[[Site], Row]]] = {
    "bulk-discard": ("bulk", discard),
    "bulk-modelled": ("bulk-modelled", modelled),
    "bulk-tmpfs": ("bulk", tmpfs),
    "bulk-upload": ("bulk", upload),
    "bulk-small": ("bulk", small_down),
    "bulk-small-up": ("bulk", small_up),
    "bulk-list": ("bulk", listing),
    "bulk-tmpfs-all": ("bulk", tmpfs_all),
    "bulk-upload-all": ("bulk", upload_all),
}
