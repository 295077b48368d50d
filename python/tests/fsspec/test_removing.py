"""The results of removing, and the errors that name what could not be removed."""

from __future__ import annotations

import errno
import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import servers

from wirespeed.fsspec import DeletionError, WirespeedFileSystem


def test_rm_returns_the_paths_that_it_removed(
    fs: WirespeedFileSystem, bucket: str, requests: Any
) -> None:
    paths = [f"{bucket}/d/{n}" for n in range(3)]
    fs.pipe({path: b"" for path in [*paths, f"{bucket}/k", f"{bucket}/l"]})
    assert fs.rm(f"wirespeed://{bucket}/k") == [f"{bucket}/k"]
    assert fs.rm(f"{bucket}/not-there") == [f"{bucket}/not-there"]
    with requests:
        assert fs.rm(f"{bucket}/d", recursive=True) == paths
    assert requests.sent == 3  # a listing, a look at the object of that name, one that deletes
    assert fs.rm([f"{bucket}/l", f"{bucket}/m"]) == [f"{bucket}/l", f"{bucket}/m"]
    assert fs.rm(f"{bucket}/d", recursive=True) == []
    fs.pipe({path: b"" for path in paths})
    assert sorted(fs.rm(f"{bucket}/d/*")) == paths
    assert fs.rm_file(f"{bucket}/k") is None
    assert fs.find(bucket) == []


def test_a_version_that_is_removed_is_named(
    origin: servers.Server,
    options_of: Callable[..., dict[str, Any]],
    emptied: Callable[..., None],
) -> None:
    fs = WirespeedFileSystem(**options_of(origin), version_aware=True, skip_instance_cache=True)
    bucket = f"b-{uuid.uuid4().hex[:16]}"
    fs.mkdir(bucket)
    origin.boto3().put_bucket_versioning(
        Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    path = f"{bucket}/k"
    version = fs.pipe_file(path, b"first")["VersionId"]
    fs.pipe_file(path, b"last")
    assert fs.rm(f"{path}?versionId={version}") == [f"{path}?versionId={version}"]
    assert fs.cat_file(path) == b"last"
    assert fs.rm(path) == [path]
    assert len(fs.object_version_info(path)) == 1
    with pytest.raises(OSError, match="not empty") as raised:
        fs.rmdir(bucket)
    assert raised.value.errno == errno.ENOTEMPTY
    emptied(fs, bucket)


def test_what_is_not_empty_is_not_removed(fs: WirespeedFileSystem, bucket: str) -> None:
    fs.pipe_file(f"{bucket}/d/k", b"data")
    for path in (bucket, f"{bucket}/d"):
        with pytest.raises(OSError, match="recursive=True") as raised:
            fs.rmdir(path)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOTEMPTY, path)
    with pytest.raises(FileExistsError):  # as s3fs's
        fs.rmdir(f"{bucket}/d")
    for path in (f"{bucket}/nothing", f"{bucket}-not-there"):
        with pytest.raises(FileNotFoundError) as missing:
            fs.rmdir(path)
        assert missing.value.errno == errno.ENOENT
    with pytest.raises(FileExistsError) as there:
        fs.mkdir(bucket)
    assert there.value.errno == errno.EEXIST
    assert fs.cat_file(f"{bucket}/d/k") == b"data"


class Refusing(BaseHTTPRequestHandler):
    """A server that deletes the keys of one request, but for those that end in an odd digit."""

    protocol_version = "HTTP/1.1"
    code = "AccessDenied"

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        keys = re.findall(rb"<Key>([^<]*)</Key>", asked)
        errors = b"".join(
            b"<Error><Key>%s</Key><Code>%s</Code><Message>no</Message></Error>"
            % (key, self.code.encode())
            for key in keys
            if key[-1] in b"13579"
        )
        deleted = b"".join(
            b"<Deleted><Key>%s</Key></Deleted>" % key for key in keys if key[-1] in b"02468"
        )
        self.answer(b"<DeleteResult>" + deleted + errors + b"</DeleteResult>")

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


@pytest.fixture
def refusing() -> Iterator[WirespeedFileSystem]:
    """A file system over `Refusing`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield WirespeedFileSystem(
        key="a",
        secret="b",
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        client_kwargs={"region_name": servers.REGION},
        skip_instance_cache=True,
    )
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("code", "kind", "number"),
    [("AccessDenied", PermissionError, errno.EACCES), ("Locked", OSError, errno.EIO)],
)
def test_all_that_could_not_be_removed_is_named(
    refusing: WirespeedFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kind: type[OSError],
    number: int,
) -> None:
    monkeypatch.setattr(Refusing, "code", code)
    assert refusing.rm(["bucket/2", "bucket/4"]) == ["bucket/2", "bucket/4"]
    with pytest.raises(kind) as raised:
        refusing.rm([f"bucket/{n}" for n in range(40)])
    error = raised.value
    assert isinstance(error, DeletionError)
    assert isinstance(error, PermissionError) == (code == "AccessDenied")
    failed = [f"bucket/{n}" for n in range(1, 40, 2)]
    assert sorted(error.failed) == sorted((path, f"{code}: no") for path in failed)
    assert error.errno == number
    assert "20 of 40 objects" in str(error)
    assert "and 10 more" in str(error)
    assert str(error).count(f"{code}: no") == 10
    again = pickle.loads(pickle.dumps(error))
    assert (again.failed, str(again), again.errno) == (error.failed, str(error), number)
    with pytest.raises(kind, match=r"1 of 1 objects could not be deleted: bucket/7"):
        refusing.rm_file("bucket/7")
