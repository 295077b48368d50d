"""The command lines that `drive_cli` runs: for each tool what a plan becomes, and what was in
effect by the very arguments and settings that the tool is given."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import lab_protocol
from lab_protocol import Plan

MIB = 1 << 20


class Tool:
    """A program and the plan it is to do. ``get`` and ``put`` copy a tree of objects below the
    prefix into a folder, or back; where the plan has one object, that one to or from a file."""

    name = ""
    client = ""
    settings = ("concurrency", "part_size", "listing")
    #: Whether what it prints of a listing is in the service's order.
    ordered = True

    def __init__(self, program: str, plan: Plan):
        self.program, self.plan = program, plan
        self.single = len(plan.work) == 1 and plan.listing is None

    @classmethod
    def version(cls, program: str) -> str:
        """As the program itself says it. Raises OSError or CalledProcessError."""
        command = [program, *cls.asks_version]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        found = re.search(r"\d+\.\d+[\w.+-]*", said.stdout + said.stderr)
        return found[0] if found else "unknown"

    asks_version: tuple[str, ...] = ("--version",)

    @classmethod
    def components(cls, program: str) -> dict[str, str]:
        """Versions of what it stands on, where that can be asked. Raises as `version` does."""
        return {}

    def environment(self) -> dict[str, str]:
        """What it is told beside its arguments."""
        return {}

    def get(self, key: str, path: str) -> list[str]:
        raise NotImplementedError

    def put(self, path: str, key: str) -> list[str]:
        raise NotImplementedError

    def list(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def key(self, line: str, prefix: str) -> str:
        """The key in a line of its listing."""
        return line.removeprefix(f"s3://{self.plan.bucket}/")

    def effective(self) -> dict:
        """Of what the tool was told; what it was not told stays unknown."""
        return {"concurrency": self.plan.concurrency, "part_size": self.plan.part_size}

    def at(self, key: str) -> str:
        return f"s3://{self.plan.bucket}/{key}"


class Wirespeed(Tool):
    name, client = "wirespeed-cli", "wirespeed"

    def _told(self) -> list[str]:
        plan = self.plan
        told = [self.program, "--quiet", "--endpoint-url", plan.endpoint, "--region", plan.region]
        if plan.ca_file:
            told += ["--ca-bundle", plan.ca_file]
        if plan.concurrency:
            told += ["--concurrency", str(plan.concurrency)]
        if plan.part_size:
            told += ["--part-size", str(plan.part_size)]
        return told

    def get(self, key: str, path: str) -> list[str]:
        return [*self._told(), "cp", *self._shape(), "--raw", self.at(key), path]

    def put(self, path: str, key: str) -> list[str]:
        return [*self._told(), "cp", *self._shape(), path, self.at(key)]

    def _shape(self) -> list[str]:
        return [] if self.single else ["--recursive"]

    def list(self, prefix: str) -> list[str]:
        return [*self._told(), "ls", "--recursive", "--addresses", "--raw", self.at(prefix)]


class S5cmd(Tool):
    name, client = "s5cmd", "s5cmd"

    @classmethod
    def version(cls, program: str) -> str:
        """What Go wrote into the program when it was built: asked, it calls itself a development
        version unless its makers built it."""
        found = re.search(rb"\tgithub\.com/peak/s5cmd/v2\tv([\w.+-]+)", Path(program).read_bytes())
        return found[1].decode() if found else "unknown"

    def __init__(self, program: str, plan: Plan):
        super().__init__(program, plan)
        if plan.part_size and plan.part_size % MIB:
            raise lab_protocol.Skip("s5cmd takes part sizes in whole MiB")

    def environment(self) -> dict[str, str]:
        # Go reads the authorities to trust from here.
        return {"SSL_CERT_FILE": self.plan.ca_file} if self.plan.ca_file else {}

    def _told(self) -> list[str]:
        told = [self.program, "--endpoint-url", self.plan.endpoint]
        if self.plan.concurrency and not self.single:
            told += ["--numworkers", str(self.plan.concurrency)]
        return told

    def _copy(self) -> list[str]:
        told = [*self._told(), "--log", "error", "cp"]
        if self.plan.concurrency:
            # Of one file the parts at once; of many each is one after the other's, so files count.
            told += ["--concurrency", str(self.plan.concurrency if self.single else 1)]
        if self.plan.part_size:
            told += ["--part-size", str(self.plan.part_size // MIB)]
        return told

    def get(self, key: str, path: str) -> list[str]:
        if self.single:
            return [*self._copy(), "--raw", self.at(key), path]
        return [*self._copy(), self.at(f"{key}*"), f"{path}/"]

    def put(self, path: str, key: str) -> list[str]:
        return [*self._copy(), path if self.single else f"{path}/", self.at(key)]

    def list(self, prefix: str) -> list[str]:
        return [*self._told(), "ls", "--show-fullpath", self.at(f"{prefix}*")]


class Rclone(Tool):
    name, client = "rclone", "rclone"
    asks_version = ("version",)
    ordered = False

    def environment(self) -> dict[str, str]:
        access, secret = lab_protocol.credentials()
        return {
            "RCLONE_CONFIG": "/dev/null",
            "RCLONE_CONFIG_LAB_TYPE": "s3",
            "RCLONE_CONFIG_LAB_PROVIDER": "Other",
            "RCLONE_CONFIG_LAB_ENDPOINT": self.plan.endpoint,
            "RCLONE_CONFIG_LAB_REGION": self.plan.region,
            "RCLONE_CONFIG_LAB_ACCESS_KEY_ID": access,
            "RCLONE_CONFIG_LAB_SECRET_ACCESS_KEY": secret,
            "RCLONE_CONFIG_LAB_FORCE_PATH_STYLE": "true",
        }

    def _told(self, verb: str) -> list[str]:
        told = [self.program, verb, "--s3-no-check-bucket"]
        if self.plan.ca_file:
            told += ["--ca-cert", self.plan.ca_file]
        return told

    def _copy(self) -> list[str]:
        plan = self.plan
        told = [*self._told("copyto" if self.single else "copy"), "--no-check-dest"]
        if plan.concurrency:
            streams = plan.concurrency if self.single else 1
            files = 1 if self.single else plan.concurrency
            told += ["--transfers", str(files), "--checkers", str(plan.concurrency)]
            told += ["--multi-thread-streams", str(streams if streams > 1 else 0)]
            told += ["--s3-upload-concurrency", str(streams)]
        if plan.part_size:
            size = f"{plan.part_size}B"
            told += ["--s3-chunk-size", size, "--s3-upload-cutoff", size]
            told += ["--multi-thread-chunk-size", size, "--multi-thread-cutoff", size]
        return told

    def get(self, key: str, path: str) -> list[str]:
        return [*self._copy(), f"lab:{self.plan.bucket}/{key}", path]

    def put(self, path: str, key: str) -> list[str]:
        return [*self._copy(), path, f"lab:{self.plan.bucket}/{key}"]

    def list(self, prefix: str) -> list[str]:
        told = [*self._told("lsf"), "--recursive", "--files-only", "--fast-list"]
        return [*told, f"lab:{self.plan.bucket}/{prefix}"]

    def key(self, line: str, prefix: str) -> str:
        return prefix + line


class Aws(Tool):
    client = "awscli"
    transfers = ""

    @classmethod
    def components(cls, program: str) -> dict[str, str]:
        """Of the environment beside the program (tools/awscli.sh); nothing of another's. A Python
        that can do without its lock is marked with a `t`."""
        python = Path(program).parent / "venv" / "bin" / "python"
        if not python.is_file():
            return {}
        asked = (
            "import importlib.metadata as m, platform, sys;"
            "print(platform.python_version() + sys.abiflags, m.version('awscrt'))"
        )
        command = [str(python), "-c", asked]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return dict(zip(("python", "awscrt"), said.stdout.split(), strict=True))

    def __init__(self, program: str, plan: Plan):
        super().__init__(program, plan)
        said = {"preferred_transfer_client": self.transfers}
        if plan.concurrency:
            said["max_concurrent_requests"] = str(plan.concurrency)
        if plan.part_size:
            said["multipart_chunksize"] = said["multipart_threshold"] = str(plan.part_size)
        # Its settings come from a file alone, which lives as long as this object.
        self._file = tempfile.NamedTemporaryFile("w+", suffix=".config")  # noqa: SIM115
        self._file.write("[default]\ns3 =\n  addressing_style = path\n")
        self._file.writelines(f"  {name} = {value}\n" for name, value in said.items())
        self._file.flush()

    def environment(self) -> dict[str, str]:
        told = {"AWS_CONFIG_FILE": self._file.name, "AWS_PAGER": ""}
        if self.plan.checksums is not None:
            when = "when_supported" if self.plan.checksums else "when_required"
            told["AWS_REQUEST_CHECKSUM_CALCULATION"] = when
            told["AWS_RESPONSE_CHECKSUM_VALIDATION"] = when
        return told

    def _told(self, *verb: str) -> list[str]:
        plan = self.plan
        told = [self.program, "s3", *verb, "--endpoint-url", plan.endpoint, "--region", plan.region]
        return [*told, "--ca-bundle", plan.ca_file] if plan.ca_file else told

    def _copy(self) -> list[str]:
        shape = ["--only-show-errors"] if self.single else ["--only-show-errors", "--recursive"]
        return self._told("cp", *shape)

    def get(self, key: str, path: str) -> list[str]:
        return [*self._copy(), self.at(key), path]

    def put(self, path: str, key: str) -> list[str]:
        return [*self._copy(), path, self.at(key)]

    def list(self, prefix: str) -> list[str]:
        return [*self._told("ls", "--recursive"), self.at(prefix)]

    def key(self, line: str, prefix: str) -> str:
        # Day, time and size come first, set apart by blanks.
        return line.split(maxsplit=2)[2].split(" ", 1)[1]


class AwsClassic(Aws):
    name, transfers = "awscli-classic", "classic"
    settings = ("concurrency", "part_size", "checksums", "listing")

    def effective(self) -> dict:
        return {**super().effective(), "checksums": self.plan.checksums}


class AwsClassicThreaded(AwsClassic):
    """On an interpreter without a lock. Whatever would ask for the lock does not get it."""

    name = "awscli-classic-threaded"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "PYTHON_GIL": "0"}


class AwsCrt(Aws):
    """Its client takes a target bandwidth, but no number of requests; it always checks."""

    name, transfers = "awscli-crt", "crt"
    settings = ("part_size", "listing")

    def effective(self) -> dict:
        return {"part_size": self.plan.part_size}


TOOLS: dict[str, type[Tool]] = {
    "wirespeed": Wirespeed,
    **{tool.name: tool for tool in (S5cmd, Rclone, AwsClassic, AwsClassicThreaded, AwsCrt)},
}
