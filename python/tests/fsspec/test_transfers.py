"""To and from local files: get, put, and what callbacks are told."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import endpoints
import pytest
import servers
from fsspec.callbacks import Callback

from wirespeed.fsspec import WirespeedFileSystem

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, bytes]:
    """Files below ``tmp_path/"there"``, by their relative names."""
    files = {f"{n % 3}/{n}.bin": bytes([n]) * n * 100 for n in range(40)}
    files["page.html"] = b"<p>"
    files["0/deep/er/large"] = random.Random(7).randbytes(20 * MIB)
    for name, data in files.items():
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return files


def test_folders_go_there_and_back(
    fs: WirespeedFileSystem, bucket: str, folder: dict[str, bytes], tmp_path: Path, requests: Any
) -> None:
    fs.put(str(tmp_path / "there"), f"{bucket}/up", recursive=True)
    assert fs.cat(f"{bucket}/up", recursive=True) == {
        f"{bucket}/up/{name}": data for name, data in folder.items()
    }
    assert fs.info(f"{bucket}/up/page.html", refresh=True)["ContentType"] == "text/html"
    back = tmp_path / "back"
    with requests:
        fs.get(f"{bucket}/up", str(back), recursive=True)
    assert {
        str(path.relative_to(back)): path.read_bytes() for path in back.rglob("*") if path.is_file()
    } == folder
    # A listing, each object, the parts of the large one and the checksum of it.
    assert requests.sent <= 1 + len(folder) + 4
    assert requests.received == sum(map(len, folder.values()))


def test_single_files_go_there_and_back(
    fs: WirespeedFileSystem, bucket: str, tmp_path: Path
) -> None:
    here = tmp_path / "a.json"
    here.write_bytes(b"{}")
    fs.put_file(here, f"{bucket}/new/a.json")
    assert fs.info(f"{bucket}/new/a.json")["ContentType"] == "application/json"
    fs.put_file(here, f"{bucket}/new/a.json", ContentType="text/plain")
    assert fs.info(f"{bucket}/new/a.json", refresh=True)["ContentType"] == "text/plain"
    with pytest.raises(FileExistsError):
        fs.put_file(here, f"{bucket}/new/a.json", mode="create")
    there = tmp_path / "deep" / "er" / "b.json"
    fs.get_file(f"{bucket}/new/a.json", there)
    assert there.read_bytes() == b"{}"
    with pytest.raises(FileNotFoundError):
        fs.get_file(f"{bucket}/nothing", tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(FileNotFoundError):
        fs.put_file(tmp_path / "nothing", f"{bucket}/x")
    assert not fs.exists(f"{bucket}/x")


def test_an_object_is_written_to_whatever_has_write(fs: WirespeedFileSystem, bucket: str) -> None:
    data = random.Random(8).randbytes(20 * MIB)
    fs.pipe_file(f"{bucket}/k", data)
    sink, callback = io.BytesIO(), Callback()
    fs.get_file(f"{bucket}/k", sink, callback=callback)
    assert sink.getvalue() == data
    assert callback.value == len(data)


def test_a_callback_is_told_the_bytes_of_a_file(
    fs: WirespeedFileSystem, bucket: str, tmp_path: Path
) -> None:
    here = tmp_path / "a"
    here.write_bytes(bytes(20 * MIB))
    up, down = Callback(), Callback()
    fs.put_file(here, f"{bucket}/k", callback=up)
    assert (up.size, up.value) == (20 * MIB, 20 * MIB)
    fs.get_file(f"{bucket}/k", tmp_path / "b", callback=down)
    assert (down.size, down.value) == (20 * MIB, 20 * MIB)


def test_a_callback_is_told_the_files_of_many(
    fs: WirespeedFileSystem, bucket: str, folder: dict[str, bytes], tmp_path: Path
) -> None:
    up, down = Callback(), Callback()
    fs.put(str(tmp_path / "there"), f"{bucket}/up", recursive=True, callback=up)
    assert (up.size, up.value) == (len(folder), len(folder))
    fs.get(f"{bucket}/up", str(tmp_path / "back"), recursive=True, callback=down)
    assert (down.size, down.value) == (len(folder), len(folder))


def test_a_callback_that_fails_stops_the_transfer(
    fs: WirespeedFileSystem,
    bucket: str,
    tmp_path: Path,
    server: servers.Server,
    options: dict[str, Any],
) -> None:
    class Failing(Callback):
        def call(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("enough")

    fs.pipe_file(f"{bucket}/k", bytes(20 * MIB))
    with endpoints.slow(server.port, 10 * MIB) as url:
        slow = WirespeedFileSystem(**{**options, "endpoint_url": url})
        with pytest.raises(RuntimeError, match="enough"):
            slow.get_file(f"{bucket}/k", tmp_path / "b", callback=Failing())
    assert not (tmp_path / "b").exists()


def test_a_name_can_not_lead_out_of_the_folder(
    fs: WirespeedFileSystem, bucket: str, tmp_path: Path
) -> None:
    fs.client.put(f"s3://{bucket}/d/ok", b"fine")
    listed = fs.ls(f"{bucket}/d")
    hostile = dict(listed[0], name=f"{bucket}/d/../../escaped")
    expand = fs._plan_expand

    def lying(*args: Any, **kwargs: Any) -> Any:
        found = yield from expand(*args, **kwargs)
        return {**found, hostile["name"]: hostile}

    fs._plan_expand = lying
    with pytest.raises(ValueError, match="escaped"):
        fs.get(f"{bucket}/d", str(tmp_path / "in"), recursive=True)
    assert not (tmp_path / "escaped").exists()
