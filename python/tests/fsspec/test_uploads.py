"""Objects made of others on the server, multipart uploads that were left behind, and tags."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import servers

from wirespeed.errors import WirespeedError
from wirespeed.fsspec import S3FileSystem, WirespeedFileSystem


@pytest.fixture
def s3fs(options: dict[str, Any]) -> S3FileSystem:
    """The file system in s3fs's place, on each server."""
    return S3FileSystem(**options, skip_instance_cache=True)


def test_merge_keeps_order_and_leaves_nothing_behind(s3fs: S3FileSystem, bucket: str) -> None:
    big = bytes(range(256)) * (5 << 12)
    s3fs.pipe({f"{bucket}/1": big, f"{bucket}/2 ü+": big[::-1], f"{bucket}/3": b"end"})
    s3fs.pipe_file(f"{bucket}/empty", b"")
    sources = [f"{bucket}/1", f"s3://{bucket}/2 ü+", f"{bucket}/empty", f"{bucket}/3"]
    s3fs.merge(f"{bucket}/all", sources, ContentType="a/b", Metadata={"some": "thing"})
    assert s3fs.cat(f"{bucket}/all") == big + big[::-1] + b"end"
    info = s3fs.info(f"{bucket}/all")
    assert (info["ContentType"], info["Metadata"]) == ("a/b", {"some": "thing"})
    s3fs.merge(f"{bucket}/nothing", [f"{bucket}/empty"])
    assert s3fs.cat(f"{bucket}/nothing") == b""
    with pytest.raises(FileNotFoundError):
        s3fs.merge(f"{bucket}/x", [f"{bucket}/1", f"{bucket}/none"])
    for wrong in ([], f"{bucket}/1"):
        with pytest.raises(ValueError, match="list"):
            s3fs.merge(f"{bucket}/x", wrong)
    assert not s3fs.exists(f"{bucket}/x")
    assert s3fs.list_multipart_uploads(bucket) == []


def test_sources_too_small_to_merge_are_named(options_of: Any, origin: servers.Server) -> None:
    s3fs = S3FileSystem(**options_of(origin), skip_instance_cache=True)
    s3fs.mkdir("small-merge")
    s3fs.pipe({"small-merge/a": b"a", "small-merge/b": b"b"})
    with pytest.raises(OSError, match=r"5 MiB.*small-merge/a has less"):
        s3fs.merge("small-merge/all", ["small-merge/a", "small-merge/b"])
    assert s3fs.find("small-merge") == ["small-merge/a", "small-merge/b"]
    assert s3fs.list_multipart_uploads("small-merge") == []


@pytest.mark.parametrize(
    "fault",
    [
        "action=error-in-body:InternalError,verb=upload-part-copy",
        "action=error-in-body:InternalError,verb=complete-multipart",
        "action=error:403:AccessDenied,verb=upload-part-copy,nth=2",
        "action=malformed-xml,verb=upload-part-copy",
        "action=malformed-xml,verb=create-multipart",
    ],
)
def test_a_merge_that_fails_leaves_no_object_and_no_parts(
    options_of: Any, tmp_path: Path, fault: str
) -> None:
    with servers.origin(tmp_path, flags=("--fault", fault)) as server:
        options = options_of(server) | {"max_attempts": 2}
        s3fs = S3FileSystem(**options, skip_instance_cache=True)
        s3fs.mkdir("merge")
        s3fs.pipe({"merge/a": b"a" * (5 << 20), "merge/b": b"b"})
        with pytest.raises(WirespeedError, match="s3://merge"):
            s3fs.merge("merge/all", ["merge/a", "merge/b"])
        assert s3fs.find("merge") == ["merge/a", "merge/b"]
        if "create" not in fault:  # whose answer would have had the name of the upload
            assert s3fs.list_multipart_uploads("merge") == []


def test_a_long_list_of_uploads_is_read_to_its_end(options_of: Any, origin: servers.Server) -> None:
    s3fs = S3FileSystem(**options_of(origin), skip_instance_cache=True)
    s3fs.mkdir("uploads")

    async def begin() -> None:
        s3 = s3fs.s3
        for start in range(0, 1100, 100):
            many = [
                s3.create_multipart_upload(Bucket="uploads", Key=f"k{number // 3}")
                for number in range(start, start + 100)
            ]
            await asyncio.gather(*many)

    asyncio.run(begin())
    found = s3fs.list_multipart_uploads("uploads")
    assert len({one["UploadId"] for one in found}) == len(found) == 1100
    s3fs.clear_multipart_uploads("uploads")
    assert s3fs.list_multipart_uploads("uploads") == []
    s3fs.rmdir("uploads")


def test_a_copy_can_keep_the_etag_of_an_upload_in_parts(s3fs: S3FileSystem, bucket: str) -> None:
    data = bytes(range(256)) * (9 << 12)
    s3fs.client.put("parts", data, bucket=bucket, content_type="a/b", metadata={"m": "1"})
    fs = S3FileSystem(
        **_as_given(s3fs), part_size="5MiB", multipart_threshold="5MiB", skip_instance_cache=True
    )
    fs.pipe_file(f"{bucket}/parts", data, ContentType="a/b", Metadata={"m": "1"})
    etag = s3fs.info(f"{bucket}/parts", refresh=True)["ETag"]
    assert "-2" in etag
    s3fs.cp_file(f"{bucket}/parts", f"{bucket}/copy", preserve_etag=True)
    info = s3fs.info(f"{bucket}/copy")
    assert (info["ETag"], info["ContentType"], info["Metadata"]) == (etag, "a/b", {"m": "1"})
    s3fs.copy([f"{bucket}/parts"], [f"{bucket}/copy2"], preserve_etag=True)
    assert s3fs.info(f"{bucket}/copy2")["ETag"] == etag
    assert s3fs.cat(f"{bucket}/copy2") == data
    with pytest.raises(FileNotFoundError):
        s3fs.copy([f"{bucket}/none"], [f"{bucket}/copy3"], preserve_etag=True)
    s3fs.mv(f"{bucket}/parts", f"{bucket}/moved", preserve_etag=True)
    assert s3fs.info(f"{bucket}/moved")["ETag"] == etag
    assert not s3fs.exists(f"{bucket}/parts")


def _as_given(fs: S3FileSystem) -> dict[str, Any]:
    return {
        "key": fs.key,
        "secret": fs.secret,
        "endpoint_url": fs.endpoint_url,
        "client_kwargs": fs.client_kwargs,
    }


def test_all_uploads_are_listed_and_cleared(s3fs: S3FileSystem, bucket: str) -> None:
    for key in ("b ü+", "a", "a"):
        s3fs.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    found = s3fs.list_multipart_uploads(f"s3://{bucket}")
    assert [one["Key"] for one in found] == ["a", "a", "b ü+"]
    assert all(one["UploadId"] and one["Initiated"] for one in found)
    s3fs.clear_multipart_uploads(bucket)
    assert s3fs.list_multipart_uploads(bucket) == []
    with pytest.raises(FileNotFoundError):
        s3fs.list_multipart_uploads("no-such-bucket-at-all")


def test_tags_belong_to_both_file_systems(
    s3fs: S3FileSystem, fs: WirespeedFileSystem, bucket: str
) -> None:
    fs.pipe_file(f"{bucket}/k", b"x", Tagging="a=1")
    assert fs.get_tags(f"{bucket}/k") == {"a": "1"}
    s3fs.put_tags(f"{bucket}/k", {"b": "ü"}, "m")
    assert asyncio.run(_tags(fs, f"{bucket}/k")) == {"a": "1", "b": "ü"}
    with pytest.raises(IsADirectoryError):
        fs.get_tags(bucket)


async def _tags(fs: WirespeedFileSystem, path: str) -> dict[str, str]:
    return await fs._get_tags(path)


def test_a_copy_is_described_by_what_it_is_given(s3fs: S3FileSystem, bucket: str) -> None:
    path, copy = f"{bucket}/k", f"{bucket}/copy"
    s3fs.pipe_file(path, b"x", ContentType="a/b", Metadata={"m": "1"})
    s3fs.cp_file(path, copy)
    assert (s3fs.info(copy)["ContentType"], s3fs.info(copy)["Metadata"]) == ("a/b", {"m": "1"})
    s3fs.cp_file(path, copy, ContentType="c/d")
    assert (s3fs.info(copy)["ContentType"], s3fs.info(copy)["Metadata"]) == ("c/d", {})
    s3fs.cp_file(path, copy, MetadataDirective="REPLACE")
    assert s3fs.info(copy)["Metadata"] == {}
    s3fs.cp_file(path, copy, MetadataDirective="COPY", CopySourceIfMatch=s3fs.info(path)["ETag"])
    assert s3fs.info(copy)["Metadata"] == {"m": "1"}
    with pytest.raises(WirespeedError):
        s3fs.cp_file(path, copy, CopySourceIfMatch='"other"')
