"""Access points by their ARN in every place that takes a path, through the host names that AWS has
for them: a proxy leads those to wirespeed-origin."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import fsspec
import pytest
import servers

import wirespeed
from wirespeed.fsspec import WirespeedFileSystem

ACCOUNT = "123456789012"
REGION = "eu-west-1"
DOMAIN = f"s3-accesspoint.{REGION}.amazonaws.com"
POINT = f"arn:aws:s3:{REGION}:{ACCOUNT}:accesspoint/mine"
HOST = f"mine-{ACCOUNT}.{DOMAIN}"
# Keys with what a parser of URLs or ARNs could cut at.
KEYS = ("k", "d/a b", "d//e#?%2F", "d/arn:aws:s3:r:1:accesspoint/k", "ü/x?versionId=")


class Aws(NamedTuple):
    """A client's options, and the hosts that it connected to."""

    options: dict[str, Any]
    hosts: list[str]


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copies bytes until one side ends."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def tunnel(client: socket.socket, port: int, hosts: list[str]) -> None:
    """Answers one CONNECT by a connection to the server, whatever host it names."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    hosts.append(head.split()[1].decode().removesuffix(":443"))
    server = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """The access point `POINT`, and nothing else, where a client without an endpoint looks."""
    scratch = tmp_path_factory.mktemp("aws")
    bucket = f"mine-{ACCOUNT}"
    trusted = scratch / "ca.pem"
    flags = ("--tls", "--tls-ca-file", trusted, "--domain", DOMAIN, "--bucket", bucket)
    hosts: list[str] = []
    with (
        servers.origin(scratch, flags=flags) as server,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(
                    target=tunnel, args=(client, server.port, hosts), daemon=True
                ).start()

        threading.Thread(target=accept, daemon=True).start()
        options = {
            "key": server.access_key,
            "secret": server.secret_key,
            "region": "us-east-1",  # the ARN's own region counts
            "https_proxy": f"http://127.0.0.1:{listener.getsockname()[1]}",
            "ca_bundle": str(trusted),
            "max_attempts": 1,
        }
        yield Aws(options, hosts)


def _keys(fs: WirespeedFileSystem) -> list[str]:
    return fs.client.list("", bucket=POINT).keys()


@pytest.fixture
def fs(aws: Aws) -> Iterator[WirespeedFileSystem]:
    """A file system of AWS, its access point empty at the end."""
    aws.hosts.clear()
    fs = WirespeedFileSystem(**aws.options, skip_instance_cache=True)
    yield fs
    assert set(aws.hosts) <= {HOST}
    fs.rm([f"{POINT}/{key}" for key in _keys(fs)] or [f"{POINT}/x"])


@pytest.mark.parametrize("scheme", ["", "s3://", "s3a://", "wirespeed://"])
def test_objects_go_there_and_back(fs: WirespeedFileSystem, aws: Aws, scheme: str) -> None:
    root = scheme + POINT
    fs.pipe({f"{root}/{key}": key.encode() for key in KEYS})
    assert set(aws.hosts) == {HOST}
    keys = sorted(KEYS, key=str.encode)
    assert sorted(_keys(fs), key=str.encode) == keys
    assert set(fs.find(root)) == {f"{POINT}/{key}" for key in KEYS}
    assert fs.cat(fs.find(root)) == {f"{POINT}/{key}": key.encode() for key in KEYS}
    for key in KEYS:
        assert fs.exists(f"{root}/{key}")
        assert fs.info(f"{root}/{key}")["name"] == f"{POINT}/{key}"
        assert fs.split_path(f"{root}/{key}") == (POINT, key, None)
        with fs.open(f"{root}/{key}") as file:
            assert file.read() == key.encode()
    assert not fs.exists(f"{root}/none")
    with fs.open(f"{root}/w", "wb") as file:
        file.write(b"written")
    # The server has no access points, so it knows no copy from one: that it says so shows that the
    # source was sent as an ARN.
    with pytest.raises(wirespeed.ConfigError, match="there are no access points"):
        fs.mv(f"{root}/w", f"{root}/v/w")
    assert fs.cat_file(f"{root}/w") == b"written"
    fs.rm(f"{root}/d", recursive=True)
    assert set(fs.find(root)) == {f"{POINT}/{key}" for key in ("k", "ü/x?versionId=", "w")}


def test_listings_walks_and_patterns_name_it_whole(fs: WirespeedFileSystem, tmp_path: Path) -> None:
    fs.pipe({f"{POINT}/{key}": b"x" for key in ("a", "d/b.csv", "d/c.csv", "d/e/f")})
    assert sorted(fs.ls(POINT, detail=False)) == [f"{POINT}/a", f"{POINT}/d"]
    assert sorted(fs.ls(f"s3://{POINT}/", detail=False)) == [f"{POINT}/a", f"{POINT}/d"]
    assert fs.glob(f"s3://{POINT}/d/*.csv") == [f"{POINT}/d/b.csv", f"{POINT}/d/c.csv"]
    assert fs.glob(f"{POINT}/**/f") == [f"{POINT}/d/e/f"]
    assert [root for root, _, _ in fs.walk(POINT)] == [POINT, f"{POINT}/d", f"{POINT}/d/e"]
    assert fs.isdir(POINT)
    assert fs.isdir(f"{POINT}/d")
    assert fs.du(POINT) == 4
    assert fs._parent(f"s3://{POINT}/d/b.csv") == f"{POINT}/d"
    assert fs._parent(f"{POINT}/a") == POINT
    assert fs._parent(POINT) == ""
    fs.get(f"{POINT}/d", str(tmp_path / "d"), recursive=True)
    assert (tmp_path / "d" / "e" / "f").read_bytes() == b"x"
    fs.put(str(tmp_path / "d"), f"{POINT}/p", recursive=True)
    assert len(fs.find(f"{POINT}/p")) == 3


def test_a_listing_of_it_is_kept_and_forgotten(fs: WirespeedFileSystem) -> None:
    fs.pipe_file(f"{POINT}/d/a", b"1")
    fs.ls(f"{POINT}/d")
    before = fs.client.metrics()["requests"]
    assert fs.info(f"s3://{POINT}/d/a")["size"] == 1
    assert fs.client.metrics()["requests"] == before
    fs.pipe_file(f"s3://{POINT}/d/b", b"12")
    assert sorted(fs.ls(f"{POINT}/d", detail=False)) == [f"{POINT}/d/a", f"{POINT}/d/b"]


def test_urls_of_fsspec_and_pickles_name_it(aws: Aws, fs: WirespeedFileSystem) -> None:
    with fsspec.open(f"wirespeed://{POINT}/d/a", "wb", **aws.options) as file:
        file.write(b"text")
    made, path = fsspec.core.url_to_fs(f"wirespeed://{POINT}/d/a", **aws.options)
    assert path == f"{POINT}/d/a"
    assert pickle.loads(pickle.dumps(made)).cat_file(path) == b"text"
    # A version of the access point, which keeps none: the name ends before it.
    aware, path = fsspec.core.url_to_fs(f"wirespeed://{POINT}/d/a?versionId=v#1", **aws.options)
    assert aware.split_path(path) == (POINT, "d/a", "v#1")


def test_verbs_of_a_client_name_it(aws: Aws, fs: WirespeedFileSystem, tmp_path: Path) -> None:
    client, uri = fs.client, f"s3://{POINT}/d/k"
    client.put(uri, b"body")
    assert client.get(uri, as_bytes=True) == b"body"
    assert client.get_many([uri, (uri, (1, 3))], as_bytes=True) == [b"body", b"od"]
    assert client.head(uri).size == 4
    client.download(uri, tmp_path / "k")
    client.upload(tmp_path / "k", f"s3://{POINT}/d/l")
    assert client.list(f"s3://{POINT}/d/").keys() == ["d/k", "d/l"]
    assert client.delete_many([uri, f"s3://{POINT}/d/l"]) == []
    assert set(aws.hosts) == {HOST}


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "DELETE"])
def test_a_presigned_url_leads_there(fs: WirespeedFileSystem, method: str) -> None:
    for url in (
        fs.client.presign(f"s3://{POINT}/d/a b", method=method),
        fs.client.presign("d/a b", bucket=POINT, method=method),
        fs.url(f"{POINT}/d/a b") if method == "GET" else None,
    ):
        if url is not None:
            parts = urlsplit(url)
            assert (parts.hostname, parts.path) == (HOST, "/d/a%20b")
            assert f"%2F{REGION}%2Fs3%2F" in parts.query


@pytest.mark.parametrize(
    ("arn", "said"),
    [
        (f"arn:aws:s3-object-lambda:{REGION}:{ACCOUNT}:accesspoint/a", "Object Lambda"),
        (f"arn:aws:s3::{ACCOUNT}:accesspoint/mfzwi23gnjvgw.mrap", "multi-region access point"),
        (f"arn:aws:s3-outposts:{REGION}:{ACCOUNT}:outpost/op-1/accesspoint/a", "Outposts"),
        (f"arn:aws:s3-outposts:{REGION}:{ACCOUNT}:outpost:op-1:accesspoint:a", "Outposts"),
        ("arn:aws:s3:::bucket", "bucket's name alone|ARN of a .* bucket, name"),
    ],
)
def test_arns_of_other_kinds_are_refused_by_name(
    aws: Aws, fs: WirespeedFileSystem, arn: str, said: str
) -> None:
    calls = [
        lambda: fs.client.get(f"s3://{arn}/d/k"),
        lambda: fs.client.presign(f"s3://{arn}/d/k"),
        lambda: fs.client.list(f"s3://{arn}/d/").keys(),
        lambda: fs.client.copy(f"s3://{POINT}/k", f"s3://{arn}/d/k"),
        lambda: fs.cat_file(f"s3://{arn}/d/k"),
        lambda: fs.exists(f"{arn}/d/k"),
        lambda: fs.find(arn),
        lambda: fs.open(f"{arn}/d/k", "wb").close(),
        lambda: fsspec.open(f"wirespeed://{arn}/d/k", "rb", **aws.options).open(),
    ]
    for call in calls:
        with pytest.raises(wirespeed.ConfigError, match=said) as raised:
            call()
        if "::" not in arn:
            assert arn in str(raised.value)
    assert aws.hosts == []
