"""The demo's steps: one piece of work, done by the engine, from Python, by the limit and by boto3.

Every client does the same work against the same server in the same run; what
the limit and boto3 upload goes to prefixes of their own and is deleted before
the next step. Requests are the server's count, whoever sent them.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from . import measured, places
from .contender import Contender, Running
from .dataset import PARTS, Part
from .origin import Origin

BUCKET = "demo"
CLIENT_CPU = 1
#: boto3 takes milliseconds a request: of the many small objects it does this share.
BOTO3_SHARE = 10
#: Rounds in one process where memory is reused; the median after the first counts.
ROUNDS = 4
CONNECTIONS = 16
#: The limit's SO_RCVLOWAT here: one good cell, for the demo is no benchmark.
MARK = "1MiB"


class StepFailed(Exception):
    """A client did not do the work it was given."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """One client's line: seconds of wall and core, bytes, and 1/``share`` of the work."""

    client: str
    seconds: float
    core_seconds: float
    bytes: int
    objects: int
    requests: int
    peak_rss_bytes: int
    share: int = 1


@dataclasses.dataclass(frozen=True)
class Step:
    title: str
    clients: tuple[Callable[[], Measured], ...]

    def run(self) -> tuple[str, list[Measured]]:
        return self.title, [client() for client in self.clients]


class Site:
    """The server, the generated data, and the folders that downloads go to."""

    def __init__(self, server: Origin, data: Path, work: Path):
        self.server = server
        self.data = data
        self.downloads = work / "downloads"
        self.scratch = work / "scratch"
        self.downloads.mkdir()
        self.scratch.mkdir()

    def cli(self, *arguments: str) -> dict:
        """One whole `wirespeed` command, measured from outside."""
        command = (str(places.wirespeed()), "--endpoint-url", self.server.endpoint, *arguments)
        try:
            return measured.run(command, CLIENT_CPU, self.server.credentials)
        except measured.CommandFailed as failure:
            raise StepFailed(str(failure)) from None

    def command(
        self, client: str, arguments: tuple[str, ...], total: int, objects: int
    ) -> Measured:
        """The command as a line of the table; it moved ``total`` bytes in ``objects``."""
        before = self.server.requests()
        result = self.cli(*arguments)
        return Measured(
            client,
            result["seconds"],
            result["user_s"] + result["system_s"],
            total,
            objects,
            self.server.requests() - before,
            result["peak_rss_bytes"],
        )

    def stepped(
        self, client: str, command: tuple[str, ...], part: Part | None, rounds: int, share: int = 1
    ) -> Measured:
        """Rounds of a driver in step mode; with more than one, the median after the first."""
        environment = {**self.server.credentials, "PYTHONPATH": str(places.step_protocol())}
        contender = Contender(client, "client", command, environment)
        with Running(contender, CLIENT_CPU) as process:
            kept = [process.go() for _ in range(rounds - 1)][1:]
            before = self.server.requests()
            kept.append(process.go())
            requests = self.server.requests() - before
        last = kept[-1]
        wanted = (part.bytes // share, part.objects // share) if part else None
        if wanted and (last["bytes"], last["objects"]) != wanted:
            raise StepFailed(
                f"{client} moved {last['bytes']} bytes in {last['objects']} objects, "
                f"not {wanted[0]} in {wanted[1]}"
            )
        return Measured(
            client,
            statistics.median(sample["seconds"] for sample in kept),
            statistics.median(sample["user_s"] + sample["system_s"] for sample in kept),
            last["bytes"],
            last["objects"],
            requests,
            last["peak_rss_bytes"],
            share,
        )

    def limit(self, mode: str, part: Part, prefix: str = "") -> Measured:
        """The raw loop: rounds of GET or PUT of the part's objects."""
        keys = ("--key", prefix + part.name)
        if part.count:
            keys = ("--keys-prefix", f"{prefix}{part.name}/", "--keys-suffix", part.suffix)
            keys += ("--digits", str(part.digits), "--count", str(part.count))
        command = (
            str(places.limit()),
            *("--mode", mode, "--endpoint", self.server.endpoint, "--bucket", BUCKET, *keys),
            *("--size", str(part.size), "--connections", str(CONNECTIONS)),
            *(("--rcvlowat", MARK) if mode == "get" else ()),
            *(("--reuse",) if mode == "get" and part.count else ()),
            "--step",
        )
        return self.stepped("raw sockets", command, part, 2 if mode == "put" else ROUNDS)

    def boto3(self, mode: str, part: Part, prefix: str = "", path: Path | None = None) -> Measured:
        """boto3, one round in a fresh process whose imports are not counted."""
        share = BOTO3_SHARE if part.count else 1
        arguments = ["--prefix", prefix + part.name]
        if part.count:
            arguments = ["--prefix", f"{prefix}{part.name}/", "--suffix", part.suffix]
            arguments += ["--digits", str(part.digits), "--count", str(part.count // share)]
        if mode == "upload":
            # A single object's key is the prefix and the file's own name.
            arguments[1] = arguments[1] if part.count else prefix
        if path:
            arguments += ["--path", str(path)]
        return self.stepped("boto3", self._boto3(mode, *arguments), part, 1, share)

    def _boto3(self, mode: str, *arguments: str) -> tuple[str, ...]:
        driver = (sys.executable, str(places.boto3_driver()), "--mode", mode)
        where = ("--endpoint", self.server.endpoint, "--bucket", BUCKET)
        return (*driver, *where, *arguments, "--step")

    def package(self, part: Part) -> Measured:
        """The Python package, whose first round compares every byte with the files."""
        driver = places.python_driver("wirespeed-python", "demo.py")
        command = (
            *(sys.executable, str(driver), "--endpoint", self.server.endpoint, "--bucket", BUCKET),
            *("--prefix", part.name + ("/" if part.count else "")),
            *("--path", str(self.data / part.name), "--step"),
        )
        return self.stepped("wirespeed, Python", command, part, ROUNDS)

    def forget(self, prefix: str) -> None:
        """Deletes what a client uploaded beside the demo's own objects."""
        self.cli("--quiet", "rm", "--recursive", f"s3://{BUCKET}/{prefix}")

    # ------------------------------------------------------------ the work

    def upload(self, part: Part) -> Step:
        def engine() -> Measured:
            remote = f"s3://{BUCKET}/{part.name}"
            source = str(self.data / part.name)
            arguments = ("cp", source, remote)
            if part.count:
                arguments = ("cp", "--recursive", source, remote + "/")
            return self.command("wirespeed", ("--quiet", *arguments), part.bytes, part.objects)

        def limit() -> Measured:
            result = self.limit("put", part, "limit/")
            self.forget("limit/")
            return result

        def boto3() -> Measured:
            result = self.boto3("upload", part, "boto3/", self.data / part.name)
            self.forget("boto3/")
            return result

        return Step(f"upload {part.title} from files", (engine, limit, boto3))

    def listing(self) -> Step:
        objects = sum(part.objects for part in PARTS)

        def engine() -> Measured:
            before = self.server.requests()
            result = self.cli("--json", "ls", "--recursive", f"s3://{BUCKET}")
            found = sum('"key"' in line for line in result["output"].splitlines())
            if found != objects:
                raise StepFailed(f"wirespeed ls found {found} objects, not {objects}")
            core_seconds = result["user_s"] + result["system_s"]
            requests = self.server.requests() - before
            peak = result["peak_rss_bytes"]
            return Measured("wirespeed", result["seconds"], core_seconds, 0, found, requests, peak)

        def limit() -> Measured:
            command = (str(places.limit()), "--mode", "list", "--endpoint", self.server.endpoint)
            command += ("--bucket", BUCKET, "--connections", "1", "--step")
            # Its bytes are the pages'; the engine and boto3 count those of objects.
            return dataclasses.replace(self.stepped("raw sockets", command, None, ROUNDS), bytes=0)

        def boto3() -> Measured:
            return self.stepped("boto3", self._boto3("list"), None, 1)

        return Step(f"list {objects:,} keys", (engine, limit, boto3))

    def to_memory(self, part: Part) -> Step:
        def engine() -> Measured:
            what = f"s3://{BUCKET}/{part.name}" + ("/" if part.count else "")
            command = (str(places.wirespeed()), "--endpoint-url", self.server.endpoint)
            command += ("bench", "get", what, "--sink", "memory", "--json", "--step")
            return self.stepped("wirespeed", command, part, ROUNDS)

        return Step(
            f"download {part.title} to memory",
            (
                engine,
                lambda: self.package(part),
                lambda: self.limit("get", part),
                lambda: self.boto3("memory", part),
            ),
        )

    def write(self, part: Part) -> Measured:
        """Writes as many bytes to a file and removes it.

        Also run, unmeasured, before each client that writes files: a page that the kernel has not
        used for a while can cost more to touch again than all the rest of a download, and whoever
        came first would pay for all.
        """
        command = (str(places.limit()), "--mode", "pwrite", "--size", str(part.bytes))
        command += ("--path", str(self.scratch / "raw"), "--step")
        return self.stepped("pwrite", command, None, 1)

    def to_files(self, part: Part) -> Step:
        def engine() -> Measured:
            remote, local = f"s3://{BUCKET}/{part.name}", str(self.downloads / part.name)
            arguments = ("cp", remote, local)
            if part.count:
                arguments = ("cp", "--recursive", remote + "/", local)
            self.write(part)
            return self.command("wirespeed", ("--quiet", *arguments), part.bytes, part.objects)

        def limit() -> Measured:
            get = self.limit("get", part)
            self.write(part)
            write = self.write(part)
            return dataclasses.replace(
                get,
                client="raw sockets + pwrite",
                seconds=get.seconds + write.seconds,
                core_seconds=get.core_seconds + write.core_seconds,
            )

        def boto3() -> Measured:
            self.write(part)
            return self.boto3("download", part, path=self.scratch / f"boto3-{part.name}")

        return Step(f"download {part.title} to files", (engine, limit, boto3))


def steps(site: Site) -> list[Step]:
    """All steps in order: what is downloaded must have been uploaded before."""
    return [
        *(site.upload(part) for part in PARTS),
        site.listing(),
        *(site.to_memory(part) for part in PARTS),
        *(site.to_files(part) for part in PARTS),
    ]
