"""S3 servers as processes on loopback: ours; versitygw, MinIO, rclone; moto and S3Mock.

Each is started on a port of its own with keys that are made up for this run, so that
several test runs live side by side and nothing outside can be reached by mistake.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import boto3
from botocore.config import Config

ROOT = Path(__file__).parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
ORIGIN = TARGET / "wirespeed-origin"
TOOLS = ROOT / ".tools" / "bin"
S3MOCK = ROOT / ".tools" / "s3mock"
REGION = "us-east-1"
STARTUP_SECONDS = 20.0
# A Java program of Spring on two busy cores.
JAVA_STARTUP_SECONDS = 90.0


@dataclass(frozen=True)
class Server:
    """A server that answers, and what a client needs to talk to it."""

    name: str
    endpoint: str
    access_key: str
    log: Path
    secret_key: str = field(repr=False)

    @property
    def port(self) -> int:
        """The port on loopback."""
        return int(self.endpoint.rpartition(":")[2])

    def environment(self) -> dict[str, str]:
        """What a client is started with: these credentials, and no others that lie about."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "RCLONE_", "S3_"))}
        return kept | {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def boto3(self, **config: object):
        """A boto3 client as its users make one: no setting but the endpoint and the keys."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(retries={"total_max_attempts": 1}, **config),
        )

    @contextlib.contextmanager
    def misbehaving(self, *faults: dict[str, object]) -> Iterator[None]:
        """wirespeed-origin with these faults (docs/origin.md), and without any after."""
        self._schedule(faults)
        try:
            yield
        finally:
            self._schedule(())

    def _schedule(self, faults: tuple[dict[str, object], ...]) -> None:
        schedule = json.dumps({"fault": faults}).encode()
        with urllib.request.urlopen(f"{self.endpoint}/-/faults", data=schedule):
            pass


def new_keys() -> tuple[str, str]:
    """An access key, and a secret key with the characters that tempt a client to escape them."""
    return "AK" + secrets.token_hex(9).upper(), "/+" + secrets.token_urlsafe(30)[:36] + "+/"


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def _process(argv: list[str | Path], log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_it_answers(
    process: subprocess.Popen, port: int, log: Path, seconds: float = STARTUP_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended at once:\n{log.read_text()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{process.args[0]} doesn't listen:\n{log.read_text()}")
        time.sleep(0.02)


@contextlib.contextmanager
def origin(scratch: Path, *, directory: bool = False, flags: tuple = ()) -> Iterator[Server]:
    """The embedded server, its objects in memory or in a directory, started with further flags."""
    access, secret = new_keys()
    log, port_file = scratch / "log", scratch / "port"
    argv = [ORIGIN, "--listen", "127.0.0.1:0", "--port-file", port_file, *flags]
    keys = {"WIRESPEED_ORIGIN_ACCESS_KEY": access, "WIRESPEED_ORIGIN_SECRET_KEY": secret}
    if directory:
        (scratch / "data").mkdir()
        argv += ["--dir", scratch / "data"]
    with _process(argv, log, os.environ | keys) as process:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not (port_file.exists() and port_file.read_text().strip()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"wirespeed-origin doesn't start:\n{log.read_text()}")
            time.sleep(0.02)
        port = int(port_file.read_text())
        _until_it_answers(process, port, log)
        name = "origin-directory" if directory else "origin-memory"
        scheme = "https" if "--tls" in flags else "http"
        yield Server(name, f"{scheme}://127.0.0.1:{port}", access, log, secret)


@contextlib.contextmanager
def versitygw(scratch: Path) -> Iterator[Server]:
    """versitygw over a directory: a server that nobody here has written."""
    access, secret = new_keys()
    log, data, port = scratch / "log", scratch / "data", free_port()
    data.mkdir()
    argv: list[str | Path] = [TOOLS / "versitygw", "--port", f"127.0.0.1:{port}", "posix"]
    try:
        os.setxattr(data, "user.probe", b"1")
    except OSError:  # no extended attributes here: it keeps its metadata beside the data
        (scratch / "meta").mkdir()
        argv += ["--sidecar", scratch / "meta"]
    keys = {"ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret}
    with _process([*argv, data], log, os.environ | keys) as process:
        _until_it_answers(process, port, log)
        yield Server("versitygw", f"http://127.0.0.1:{port}", access, log, secret)


@contextlib.contextmanager
def minio(scratch: Path) -> Iterator[Server]:
    """MinIO over a directory, with nothing that reaches beyond loopback."""
    access, secret = new_keys()
    log, data, port = scratch / "log", scratch / "data", free_port()
    data.mkdir()
    argv: list[str | Path] = [
        TOOLS / "minio",
        "server",
        "--quiet",
        "--config-dir",
        scratch / "config",
    ]
    argv += [
        "--address",
        f"127.0.0.1:{port}",
        "--console-address",
        f"127.0.0.1:{free_port()}",
        data,
    ]
    settings = {
        "MINIO_ROOT_USER": access,
        "MINIO_ROOT_PASSWORD": secret,
        "MINIO_UPDATE": "off",
        "MINIO_CALLHOME_ENABLE": "off",
        "MINIO_BROWSER": "off",
    }
    with _process(argv, log, os.environ | settings) as process:
        _until_it_answers(process, port, log)
        server = Server("minio", f"http://127.0.0.1:{port}", access, log, secret)
        _until_it_serves(server)
        yield server


@contextlib.contextmanager
def moto(scratch: Path) -> Iterator[Server]:
    """moto, which many tests elsewhere take for S3. It looks at no signature."""
    access, secret = new_keys()
    log, port = scratch / "log", free_port()
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "moto.server",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with _process(argv, log, dict(os.environ)) as process:
        _until_it_answers(process, port, log)
        yield Server("moto", f"http://127.0.0.1:{port}", access, log, secret)


@contextlib.contextmanager
def rclone(scratch: Path) -> Iterator[Server]:
    """rclone over a directory, whose S3 is gofakes3."""
    access, secret = new_keys()
    log, data, port = scratch / "log", scratch / "data", free_port()
    data.mkdir()
    argv: list[str | Path] = [TOOLS / "rclone", "serve", "s3", "--addr", f"127.0.0.1:{port}", data]
    settings = {"RCLONE_AUTH_KEY": f'"{access},{secret}"', "RCLONE_CONFIG": os.devnull}
    with _process(argv, log, os.environ | settings) as process:
        _until_it_answers(process, port, log)
        yield Server("rclone", f"http://127.0.0.1:{port}", access, log, secret)


@contextlib.contextmanager
def s3mock(scratch: Path) -> Iterator[Server]:
    """Adobe's S3Mock, which tests in Java take for S3. It looks at no signature."""
    access, secret = new_keys()
    log, port = scratch / "log", free_port()
    # Without these it takes every address of the machine.
    listening = ["--server.address=127.0.0.1", "--server.port=0", f"--http.port={port}"]
    jvm = ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", f"-Djava.io.tmpdir={scratch}"]
    argv: list[str | Path] = [*jvm, "-jar", S3MOCK / "s3mock.jar", *listening]
    with _process(argv, log, dict(os.environ)) as process:
        _until_it_answers(process, port, log, JAVA_STARTUP_SECONDS)
        yield Server("s3mock", f"http://127.0.0.1:{port}", access, log, secret)


def _until_it_serves(server: Server) -> None:
    """Waits for a server that listens before it can serve."""
    s3, deadline = server.boto3(), time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            s3.list_buckets()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
