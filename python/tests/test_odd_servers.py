"""Reads from servers that answer otherwise than S3 does: the right bytes, or an error."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import wirespeed
from wirespeed.errors import ConfigError, WirespeedError
from wirespeed.fsspec import WirespeedFileSystem

CONTENT = b"content"
INVALID_RANGE = b"<Error><Code>InvalidRange</Code><Message>no</Message></Error>"

Answer = tuple[int, dict[str, str], bytes]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        texts = asked.groups() if asked else ("", "")
        first, last = (int(text) if text else None for text in texts)
        self.server.ranges.append(self.headers.get("Range"))
        status, headers, body = self.server.answer(first, last)
        self.send_response(status)
        self.send_header("ETag", '"tag"')
        for name, value in headers.items():
            self.send_header(name, value)
        if headers.get("Transfer-Encoding") == "chunked":
            body = (
                b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in _pieces(body)) + b"0\r\n\r\n"
            )
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _pieces(body: bytes) -> list[bytes]:
    return [body[at : at + 50_000] for at in range(0, len(body), 50_000)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[int | None, int | None], Answer]
    ranges: list[str | None]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has what it wants leaves, and may leave the rest."""


@contextlib.contextmanager
def serving(answer: Callable[[int | None, int | None], Answer]) -> Iterator[_Server]:
    """A server whose answers to the first and last byte of a range, or a suffix, are these."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.answer, server.ranges = answer, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def client_of(server: _Server, **settings: Any) -> wirespeed.Client:
    return wirespeed.Client(
        endpoint_url=f"http://127.0.0.1:{server.server_port}", anonymous=True, **settings
    )


def fs_of(server: _Server) -> WirespeedFileSystem:
    return WirespeedFileSystem(
        anon=True, endpoint_url=f"http://127.0.0.1:{server.server_port}", skip_instance_cache=True
    )


def without_sizes(content: bytes, refusal: bytes) -> Callable[[int | None, int | None], Answer]:
    """As rclone and gofakes3: no suffix is longer than the object, and no refusal says its size."""

    def answer(first: int | None, last: int | None) -> Answer:
        size = len(content)
        if first is None and last is None:
            return 200, {}, content
        if (first is None and (last or 0) > size) or (first or 0) >= size:
            return 416, {}, refusal
        start = first if first is not None else size - (last or 0)
        end = size if first is None or last is None else min(last + 1, size)
        return 206, {"Content-Range": f"bytes {start}-{end - 1}/{size}"}, content[start:end]

    return answer


@pytest.mark.parametrize("refusal", [INVALID_RANGE, b""])
@pytest.mark.parametrize("content", [CONTENT, b""])
def test_a_suffix_longer_than_the_object_is_all_of_it(content: bytes, refusal: bytes) -> None:
    with serving(without_sizes(content, refusal)) as server, client_of(server) as client:
        suffix = (-100, None)
        assert client.get("s3://bucket/k", range=suffix, as_bytes=True) == content
        into = bytearray(100)
        length = client.get_into("s3://bucket/k", into, range=suffix)
        assert into[:length] == content
        assert client.get_many([("s3://bucket/k", suffix)] * 2, as_bytes=True) == [content] * 2
        with client.stream("s3://bucket/k", range=suffix) as stream:
            assert b"".join(bytes(part) for part in stream) == content


@pytest.mark.parametrize("refusal", [INVALID_RANGE, b""])
def test_a_range_beyond_the_end_is_an_error_and_empty_for_fsspec(refusal: bytes) -> None:
    with serving(without_sizes(CONTENT, refusal)) as server, client_of(server) as client:
        with pytest.raises(ConfigError, match="beyond the end of the object, which has 7 bytes"):
            client.get("s3://bucket/k", range=(100, 200))
        fs = fs_of(server)
        assert fs.cat_file("bucket/k", 100, 200) == b""
        assert fs.cat_file("bucket/k", 100) == b""
        # What counts from the end is there.
        assert fs.cat_file("bucket/k", -100) == CONTENT
        assert fs.cat_file("bucket/k", -100, -2) == CONTENT[:-2]
        assert fs.cat_file("bucket/k", 0, -100) == b""
        paths = ["bucket/k"] * 4
        starts = [-100, -3, 5, 100]
        assert fs.cat_ranges(paths, starts, [None, None, 100, 200]) == [CONTENT, b"ent", b"nt", b""]


def test_a_refused_suffix_is_never_empty() -> None:
    def refuse(first: int | None, last: int | None) -> Answer:
        return (200, {}, CONTENT) if first is None and last is None else (416, {}, INVALID_RANGE)

    with serving(refuse) as server:
        fs = fs_of(server)
        with pytest.raises(WirespeedError) as caught:
            fs.cat_file("bucket/k", -3)
        assert caught.value.status == 416
        (failed,) = fs.cat_ranges(["bucket/k"], [-3], [None], on_error="return")
        assert isinstance(failed, WirespeedError)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Accept-Ranges": "bytes"}, {"Transfer-Encoding": "chunked"}],
    ids=["no ranges", "ranges announced", "no length"],
)
def test_a_server_that_sends_all_of_it_is_read_in_every_way(
    headers: dict[str, str], tmp_path: Any
) -> None:
    content = bytes(range(256)) * 4000
    with (
        serving(lambda first, last: (200, headers, content)) as server,
        client_of(server, part_size=64 << 10) as client,
    ):
        assert client.get("s3://bucket/k", as_bytes=True) == content
        assert (
            client.get("s3://bucket/k", range=(70_000, 70_010), as_bytes=True)
            == content[70_000:70_010]
        )
        assert client.get_many(["s3://bucket/k"] * 2, as_bytes=True) == [content] * 2
        ranges = client.get_ranges("s3://bucket/k", [(3, 6), (5, 70_000)], as_bytes=True)
        assert ranges == [content[3:6], content[5:70_000]]
        into = bytearray(len(content))
        assert client.get_into("s3://bucket/k", into) == len(content)
        assert into == content
        with client.stream("s3://bucket/k") as stream:
            assert b"".join(bytes(part) for part in stream) == content
        client.download("s3://bucket/k", tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == content
        # A HEAD that says no length is no empty object either.
        if "Transfer-Encoding" not in headers:
            assert client.head("s3://bucket/k").size == len(content)
            fs = fs_of(server)
            with fs.open("bucket/k", block_size=64 << 10) as file:
                file.seek(200_000)
                assert file.read(10) == content[200_000:200_010]
        else:
            with pytest.raises(WirespeedError, match="does not say how long the object is"):
                client.head("s3://bucket/k")


def test_a_checksum_that_cannot_be_one_is_no_damage() -> None:
    """As moto sends it where it lacks awscrt."""
    headers = {"x-amz-checksum-crc64nvme": "AAAAAA==", "x-amz-checksum-type": "FULL_OBJECT"}
    with (
        serving(lambda first, last: (200, headers, CONTENT)) as server,
        client_of(server) as client,
    ):
        body = client.get("s3://bucket/k")
        assert bytes(body) == CONTENT
        assert body.info is not None
        assert (
            body.info.verified
            == "the server's checksum of the object cannot be one of its algorithm"
        )
        assert client.get_many(["s3://bucket/k"], as_bytes=True) == [CONTENT]
