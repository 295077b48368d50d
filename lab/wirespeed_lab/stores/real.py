"""MinIO and versitygw: real servers over a folder of their own, pinned, filled by uploads."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .. import places
from ..plans import Plan, Series
from ..server import START_LIMIT, Server, free_port
from . import uploads
from .clashes import clashing
from .store import Store, StoreFailed

ACCESS_KEY, SECRET_KEY, REGION = "labaccesskey", "lab-secret-access-key", "us-east-1"
BUCKET = "lab"
#: Bytes that are left free on the disk.
SPARE = 2 << 30


class RealStore(Store):
    """A server program over a temporary folder. Its cores are all that it may use."""

    region = REGION

    def __init__(self, cpus: tuple[int, ...]):
        """Starts it. Raises ServerFailed, places.MissingProgram and StoreFailed."""
        self._cpus = cpus
        self._held: set[Series] = set()
        self._scratch = tempfile.TemporaryDirectory(prefix="wirespeed-lab-")
        try:
            folder, port = Path(self._scratch.name), free_port()
            (folder / "data").mkdir()
            command, environment = self._command(folder, port)
            # As many threads as cores, wherever else the process might be allowed to run.
            environment["GOMAXPROCS"] = str(max(1, len(cpus)))
            self._server = Server(command, port, cpus, environment)
        except BaseException:
            self._scratch.cleanup()
            raise
        try:
            self._make_bucket()
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self) -> str:
        return self._server.endpoint

    @property
    def bucket(self) -> str:
        return BUCKET

    @property
    def credentials(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }

    @property
    def pid(self) -> int:
        return self._server.pid

    def prepare(self, plan: Plan) -> None:
        wanted = [series for series in plan.contents() if series not in self._held]
        need = sum(series.bytes for series in wanted)
        if plan.operation == "put":
            need = plan.bytes
        free = shutil.disk_usage(self._scratch.name).free
        if need + SPARE > free:
            raise StoreFailed(
                f"{self.kind}: {plan.workload} needs {need} bytes in {self._scratch.name} and "
                f"{SPARE} to spare, and {free} are free: take a smaller scale, or set TMPDIR"
            )
        for series in clashing(self._held, plan.contents()):
            uploads.remove(self, series.keys())
            self._held.discard(series)
        for series in wanted:
            uploads.upload(self, [series])
            self._held.add(series)

    def forget_uploads(self, plan: Plan) -> None:
        uploads.forget(self, plan)

    def check_uploads(self, plan: Plan, most: int = 5) -> list[str]:
        return uploads.wrong(self, plan, most)

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "tls": False, "cpus": list(self._cpus), "preset": None}

    def close(self) -> None:
        self._server.close()
        self._scratch.cleanup()

    @abstractmethod
    def _command(self, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
        """What starts it over ``folder / "data"``, and its environment."""

    def _make_bucket(self) -> None:
        """A server that listens may not be serving yet."""
        s3, until = uploads.client(self), time.monotonic() + START_LIMIT
        while True:
            try:
                s3.create_bucket(Bucket=BUCKET)
                return
            except (BotoCoreError, ClientError) as error:
                if time.monotonic() > until:
                    raise StoreFailed(f"{self.kind} makes no bucket: {error}") from None
                time.sleep(0.1)


class MinioStore(RealStore):
    kind = "minio"

    def _command(self, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
        command = [str(places.go_tool("minio")), "server", "--quiet"]
        command += ["--config-dir", str(folder / "config"), "--address", f"127.0.0.1:{port}"]
        command += ["--console-address", f"127.0.0.1:{free_port()}", str(folder / "data")]
        settings = {
            "MINIO_ROOT_USER": ACCESS_KEY,
            "MINIO_ROOT_PASSWORD": SECRET_KEY,
            "MINIO_UPDATE": "off",
            "MINIO_CALLHOME_ENABLE": "off",
            "MINIO_BROWSER": "off",
        }
        return command, settings


class VersitygwStore(RealStore):
    kind = "versitygw"

    def _command(self, folder: Path, port: int) -> tuple[list[str], dict[str, str]]:
        command = [str(places.go_tool("versitygw")), "--port", f"127.0.0.1:{port}", "posix"]
        try:
            os.setxattr(folder / "data", "user.probe", b"1")
        except OSError:
            # No extended attributes here: it keeps what it knows of objects beside them.
            (folder / "meta").mkdir()
            command += ["--sidecar", str(folder / "meta")]
        command.append(str(folder / "data"))
        return command, {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
