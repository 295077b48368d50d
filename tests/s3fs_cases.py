"""Calls of s3fs's public API, each an expression, and how their results are compared.

`tools/s3fs_api.py` evaluates them with s3fs and keeps the results in ``s3fs_api.json``;
`test_s3fs_api` evaluates them with `wirespeed.fsspec.S3FileSystem`. An expression sees a file system
``fs``, a bucket ``b`` with `OBJECTS` in it, and an empty local folder ``t``; of versioned buckets
also the versions ``v1`` and ``v2`` of ``d/k``.
"""

# An expression is a line, however long.
# ruff: noqa: E501

from __future__ import annotations

import asyncio
import datetime
import inspect
import re
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

OBJECTS = {
    "a.csv": b"aaa",
    "b.csv": b"bb",
    "dir/a.csv": b"xxxxxxxxx",
    "dir/sub/c.txt": b"c",
    "dir/sub/deep/d": b"dd",
}

READING = """
fs.ls(b)
fs.ls(b + "/")
fs.ls("s3://" + b + "/dir")
fs.ls(b + "/dir", True)
fs.ls(b + "/dir", detail=True)
fs.ls(b, False, True)
fs.ls(b, refresh=True)
fs.ls(b + "/a.csv")
fs.ls(b + "/a.csv", detail=True)
fs.ls(b + "/none")
fs.ls("no-such-bucket-x")
b in fs.ls("")
fs.ls(b, versions=True)
fs.listdir(b + "/dir")
fs.find(b)
fs.find(b, prefix=None)
fs.find(b, maxdepth=1)
fs.find(b, maxdepth=0)
fs.find(b, 2)
fs.find(b, maxdepth=2, withdirs=True)
fs.find(b, withdirs=True)
fs.find(b + "/dir", withdirs=True)
fs.find(b + "/dir", detail=True)
fs.find(b + "/dir", prefix="s")
fs.find(b + "/dir", prefix="s", withdirs=True)
fs.find(b + "/dir", prefix="s", maxdepth=1, withdirs=True)
fs.find(b + "/a.csv")
fs.find(b + "/none")
fs.find("no-such-bucket-x")
fs.find("")
fs.find(b, max_items=2)
fs.find(b, refresh=True)
fs.glob(b + "/*")
fs.glob(b + "/**")
fs.glob(b + "/dir/**")
fs.glob(b + "/*/*.csv")
fs.glob(b + "/*.csv", detail=True)
fs.glob(b + "/**", maxdepth=1)
b in fs.glob("*")
fs.glob(b + "/none*")
list(fs.walk(b))
list(fs.walk(b, maxdepth=1))
list(fs.walk(b + "/dir", detail=True))
b in next(iter(fs.walk("")))[1]
list(fs.walk(b + "/none"))
fs.du(b)
fs.du(b, total=False)
fs.du(b + "/dir")
fs.du(b + "/a.csv")
fs.du(b + "/none")
fs.du(b, maxdepth=1)
fs.du(b + "/dir", withdirs=True)
fs.disk_usage(b + "/dir")
fs.info(b)
fs.info(b + "/dir")
fs.info(b + "/a.csv")
fs.info("")
fs.info(b + "/none")
fs.info("no-such-bucket-x")
fs.info("no-such-bucket-x/k")
fs.info(b + "/a.csv", None, None, True)
fs.info(b + "/a.csv", refresh=True)
fs.info(b + "/a.csv", version_id="x")
fs.exists(b)
fs.exists(b + "/dir")
fs.exists(b + "/none")
fs.exists("no-such-bucket-x")
fs.exists("")
fs.exists("/")
fs.lexists(b + "/a.csv")
fs.isdir(b)
fs.isdir(b + "/dir")
fs.isdir(b + "/a.csv")
fs.isdir("")
fs.isfile(b)
fs.isfile(b + "/a.csv")
fs.isfile(b + "/dir")
fs.size(b + "/a.csv")
fs.size(b + "/dir")
fs.size(b + "/none")
fs.sizes([b + "/a.csv", b + "/b.csv"])
fs.checksum(b + "/a.csv")
fs.checksum(b + "/a.csv", True)
isinstance(fs.checksum(b + "/dir"), int)
fs.checksum(b + "/none")
len(fs.ukey(b + "/a.csv"))
fs.modified(b + "/a.csv")
fs.modified(b + "/a.csv", None, True)
fs.modified(b + "/dir")
fs.created(b + "/a.csv")
fs.modified(b + "/none")
fs.stat(b + "/a.csv")
fs.cat(b + "/a.csv")
fs.cat([b + "/a.csv", b + "/b.csv"])
fs.cat((b + "/a.csv", b + "/b.csv"))
fs.cat(b + "/dir", recursive=True)
fs.cat(b + "/*.csv")
fs.cat(b + "/none")
fs.cat(b + "/none", on_error="return")
fs.cat([b + "/a.csv", b + "/none"], on_error="omit")
fs.cat([b + "/a.csv", b + "/none"], on_error="return")
fs.cat_file(b + "/a.csv")
fs.cat_file(b + "/a.csv", None, 1, 2)
fs.cat_file(b + "/a.csv", start=1)
fs.cat_file(b + "/a.csv", start=-2)
fs.cat_file(b + "/a.csv", end=-1)
fs.cat_file(b + "/a.csv", start=1, end=100)
fs.cat_file(b + "/a.csv", start=10, end=100)
fs.cat_file(b + "/a.csv", chunksize=1, max_concurrency=2)
fs.cat_file(b + "/none")
fs.cat_file(b)
fs.cat_ranges([b + "/a.csv"] * 2, [0, 1], [1, 3])
fs.cat_ranges([b + "/a.csv", b + "/none"], 0, 2)
fs.cat_ranges([b + "/a.csv", b + "/none"], 0, 2, on_error="raise")
fs.head(b + "/a.csv", 2)
fs.tail(b + "/a.csv", 2)
fs.read_block(b + "/a.csv", 0, 2)
fs.read_bytes(b + "/a.csv", 1, 2)
fs.read_text(b + "/a.csv")
fs.get_delegated_s3pars()
fs.invalidate_cache()
fs.invalidate_cache(b + "/dir")
fs.invalidate_region_cache()
fs.close_session(None, None)
fs.split_path("s3://" + b + "/k/x")
fs.split_path(b)
fs.split_path(b + "/k/")
fs.open(b + "/a.csv").read()
fs.open(b + "/a.csv", "r").read()
fs.open(b + "/none")
fs.open(b)
fs.open(b + "/a.csv", version_id="x")
fs.open(b + "/a.csv", "rb", 5, fill_cache=False, cache_type="none", requester_pays=True).read()
fs.open(b + "/a.csv", "rb", Foo=1).read()
fs.get_mapper(b + "/dir")["a.csv"]
sorted(fs.get_mapper(b + "/dir"))
fs.expand_path(b + "/*.csv")
fs.expand_path([b + "/dir"], recursive=True)
fs.expand_path((b + "/dir",))
fs.expand_path(b + "/none*")
fs.tree(b)
fs.protocol
fs.fsid
fs.anon
fs.key
fs.secret
fs.token
fs.endpoint_url
fs.kwargs
fs.req_kw
fs.client_kwargs
fs.config_kwargs
fs.s3_additional_kwargs
fs.requester_pays
fs.use_ssl
fs.default_block_size
fs.default_fill_cache
fs.default_cache_type
fs.cache_regions
fs.max_concurrency
fs.fixed_upload_size
fs.local_expiry_check
fs.version_aware
fs.asynchronous
fs.retries
fs.connect_timeout
fs.read_timeout
fs.current() is fs
fs.unstrip_protocol(b + "/k")
fs.to_dict(include_password=False)["protocol"]
fs.get_tags(b + "/a.csv")
fs.get_tags(b + "/none")
fs.metadata(b + "/a.csv")
fs.metadata(b + "/none")
fs.getxattr(b + "/a.csv", "none")
fs.url(b + "/a.csv").split("?")[0]
fs.url(b + "/a.csv", 60, "get_object").split("?")[0]
fs.url(b + "/a.csv", client_method="put_object", ContentType="text/plain").split("?")[0]
fs.url(b + "/a.csv", ResponseContentDisposition="attachment").split("?")[0]
fs.url(b + "/a.csv", Foo="attachment")
fs.sign(b + "/a.csv").split("?")[0]
fs.sign(b + "/a.csv", expiration=5).split("?")[0]
fs.is_bucket_versioned(b)
fs.object_version_info(b + "/a.csv")
fs.list_multipart_uploads(b)
""".strip().splitlines()

CHANGING = """
(fs.pipe_file(b + "/n", b"data"), fs.cat(b + "/n"))[1]
(fs.pipe_file(b + "/n", b"data", 5 << 20, 3), fs.cat(b + "/n"))[1]
(fs.pipe_file(b + "/n", data=b"data", chunksize=5 << 20), fs.cat(b + "/n"))[1]
fs.pipe_file(b + "/a.csv", b"z", mode="create")
(fs.pipe_file(b + "/n", b"z", mode="create"), fs.cat(b + "/n"))[1]
(fs.pipe_file(b + "/n", b"z", Foo=1), fs.cat(b + "/n"))[1]
(fs.pipe_file(b + "/n", b"z", ContentType="text/x"), fs.info(b + "/n"))[1]
fs.pipe_file(b, b"z")
(fs.pipe(b + "/n", b"1"), fs.cat(b + "/n"))[1]
(fs.pipe({b + "/n": b"1", b + "/m": b"2"}), fs.cat(b + "/m"))[1]
(fs.write_bytes(b + "/n", b"x"), fs.cat(b + "/n"))[1]
(fs.write_text(b + "/n", "x"), fs.cat(b + "/n"))[1]
(fs.touch(b + "/n"), fs.size(b + "/n"))[1]
(fs.touch(b + "/n", data=b"xy"), fs.size(b + "/n"))[1]
fs.touch(b + "/a.csv", truncate=False)
(fs.touch(b + "/a.csv"), fs.size(b + "/a.csv"))[1]
(fs.touch(b + "/n", ContentType="a/b"), fs.info(b + "/n"))[1]
fs.touch(b)
fs.mkdir(b)
fs.mkdir(b + "/x")
fs.mkdir("no-such-bucket-x/x", create_parents=False)
fs.mkdir("")
(fs.mkdir(b + "2"), fs.exists(b + "2"), fs.rmdir(b + "2"), fs.exists(b + "2"))
(fs.mkdir(b + "3", "private"), fs.exists(b + "3"), fs.rmdir(b + "3"))[1]
(fs.mkdir(b + "4", acl="private", create_parents=True), fs.exists(b + "4"), fs.rmdir(b + "4"))[1]
fs.mkdir(b + "5", acl="nonsense")
fs.mkdir("Bad_Bucket!")
fs.makedirs(b)
fs.makedirs(b, exist_ok=True)
fs.makedirs(b + "/q/r")
fs.makedir(b + "/x")
fs.mkdirs(b + "/x")
fs.rmdir(b)
fs.rmdir(b + "/dir")
fs.rmdir(b + "/none")
fs.rmdir("no-such-bucket-x")
(fs.rm(b + "/a.csv"), fs.find(b))[1]
fs.rm(b + "/a.csv")
(fs.rm([b + "/a.csv", b + "/b.csv"]), fs.find(b))[1]
(fs.rm((b + "/a.csv", b + "/b.csv")), fs.find(b))[1]
(fs.rm(b + "/dir", recursive=True), fs.find(b))[1]
(fs.rm(b + "/none"), None)[1]
(fs.rm(b + "/none", recursive=True), None)[1]
(fs.rm(b + "/*.csv"), fs.find(b))[1]
fs.rm(b + "/zz*")
(fs.rm(b, recursive=True), fs.exists(b))[1]
(fs.rm_file(b + "/a.csv"), fs.exists(b + "/a.csv"))[1]
(fs.rm_file(b + "/none"), None)[1]
(fs.delete(b + "/a.csv"), fs.exists(b + "/a.csv"))[1]
(fs.cp_file(b + "/a.csv", b + "/c"), fs.cat(b + "/c"))
(fs.cp_file(b + "/a.csv", b + "/c", True), fs.cat(b + "/c"))
(fs.cp_file(b + "/a.csv", b + "/c", ContentType="x/y", MetadataDirective="REPLACE"), fs.cat(b + "/c"))
fs.cp_file(b + "/none", b + "/c")
fs.cp_file(b + "/a.csv", b + "/c", MetadataDirective="REPLACE")
(fs.cp_file(b + "/a.csv", b + "/c", StorageClass="STANDARD_IA"), fs.info(b + "/c"))[1]
(fs.cp_file(b + "/a.csv", b + "/c", blocksize=1), fs.cat(b + "/c"))
(fs.copy(b + "/a.csv", b + "/c"), fs.cat(b + "/c"))[1]
(fs.copy([b + "/a.csv"], [b + "/c"]), fs.cat(b + "/c"))[1]
(fs.copy((b + "/a.csv",), (b + "/c",)), fs.cat(b + "/c"))[1]
(fs.copy(b + "/dir", b + "/new", recursive=True), fs.find(b + "/new"))[1]
(fs.copy(b + "/dir/", b + "/new/", recursive=True), fs.find(b + "/new"))[1]
fs.copy(b + "/none", b + "/c")
(fs.copy(b + "/none", b + "/c", on_error="ignore"), None)[1]
(fs.copy(b + "/a.csv", b + "/c", preserve_etag=True, blocksize=3), fs.cat(b + "/c"))[1]
(fs.cp(b + "/*.csv", b + "/csvs/"), fs.find(b + "/csvs"))[1]
(fs.mv(b + "/a.csv", b + "/m"), fs.exists(b + "/a.csv"), fs.cat(b + "/m"))[1:]
(fs.mv(b + "/dir", b + "/m", recursive=True), fs.find(b + "/m"), fs.find(b + "/dir"))[1:]
fs.mv(b + "/none", b + "/m")
(fs.rename(b + "/a.csv", b + "/m"), fs.cat(b + "/m"))[1]
(fs.move(b + "/a.csv", b + "/m"), fs.cat(b + "/m"))[1]
(fs.get(b + "/a.csv", t + "/a"), local())[1]
fs.get(b + "/a.csv", t + "/a")
(fs.get(b + "/dir", t + "/d", recursive=True), local())[1]
(fs.get(b + "/dir", t + "/d", recursive=True, maxdepth=1), local())[1]
(fs.get([b + "/a.csv"], [t + "/q"]), local())[1]
(fs.get([b + "/a.csv", b + "/b.csv"], t), local())[1]
(fs.get((b + "/a.csv",), (t + "/q",)), local())[1]
(fs.get(b + "/*.csv", t), local())[1]
fs.get(b + "/none", t + "/n")
(fs.get_file(b + "/a.csv", t + "/g"), local())[1]
(fs.get_file(b + "/a.csv", t + "/g", chunksize=5, max_concurrency=2), local())[1]
fs.get_file(b + "/none", t + "/g")
(fs.get_file(b + "/a.csv", t), local())[1]
(fs.download(b + "/a.csv", t + "/g"), local())[1]
(fs.pipe_file(b + "/dir", b"file"), fs.get(b + "/dir", t + "/d", recursive=True))[1]
(fs.put(made("u"), b + "/u"), fs.cat(b + "/u"))[1]
fs.put(made("u"), b + "/u")
(fs.put_file(made("u.csv"), b + "/u"), fs.info(b + "/u"))[1]
(fs.put_file(made("u"), b + "/u", chunksize=5 << 20, max_concurrency=2, ContentType="a/b"), fs.info(b + "/u"))[1]
fs.put_file(made("u"), b + "/a.csv", mode="create")
(fs.put_file(made("u"), b + "/u", Foo=2), fs.cat(b + "/u"))[1]
(fs.put([made("u")], [b + "/u"]), fs.cat(b + "/u"))[1]
(fs.put((made("u"),), (b + "/u",)), fs.cat(b + "/u"))[1]
(made("x/u"), fs.put(t, b + "/tree", recursive=True), len(fs.find(b + "/tree")))[2]
fs.put(t + "/none", b + "/u")
fs.put_file(t, b + "/is-dir")
(fs.upload(made("u"), b + "/u"), fs.cat(b + "/u"))[1]
(described(), fs.metadata(b + "/meta"))[1]
(described(), fs.metadata(b + "/meta", True))[1]
(described(), fs.getxattr(b + "/meta", "some"))[1]
(described(), fs.getxattr(b + "/meta", "under_score"))[1]
(described(), fs.setxattr(b + "/meta", attr_x="1", some=None), fs.metadata(b + "/meta"))[2]
(described(), fs.setxattr(b + "/meta", copy_kwargs={"ContentType": "a/b"}, q="1"), fs.info(b + "/meta"))[2]
(fs.put_tags(b + "/a.csv", {"x": "1"}), fs.get_tags(b + "/a.csv"))[1]
(fs.put_tags(b + "/a.csv", {"x": "1"}), fs.put_tags(b + "/a.csv", {"y": "2"}, "m"), fs.get_tags(b + "/a.csv"))[2]
(fs.put_tags(b + "/a.csv", {"x": "1"}), fs.put_tags(b + "/a.csv", {"y": "2"}, mode="o"), fs.get_tags(b + "/a.csv"))[2]
fs.put_tags(b + "/a.csv", {"x": "1"}, mode="q")
fs.put_tags(b + "/none", {"x": "1"})
fs.chmod(b + "/a.csv", "nonsense")
fs.chmod(b, "bucket-owner-read")
(fs.merge(b + "/mg", [big(), b + "/a.csv"]), fs.size(b + "/mg"), fs.tail(b + "/mg", 4))[1:]
(fs.merge(b + "/mg", [big(), b + "/a.csv"], ContentType="x/y"), fs.info(b + "/mg"))[1]
fs.merge(b + "/mg", [b + "/a.csv", b + "/b.csv"])
fs.merge(b + "/mg", [b + "/none"])
(fs.call_s3("create_multipart_upload", Bucket=b, Key="up/x y"), [u["Key"] for u in fs.list_multipart_uploads(b)], fs.clear_multipart_uploads(b), fs.list_multipart_uploads(b))[1:]
(fs.abort_mpu(b, "up", fs.call_s3("create_multipart_upload", Bucket=b, Key="up")["UploadId"]), fs.list_multipart_uploads(b))
(fs.make_bucket_versioned(b), fs.is_bucket_versioned(b), fs.make_bucket_versioned(b, False), fs.is_bucket_versioned(b))[1::2]
fs.open(b + "/a.csv", acl="nonsense", mode="wb")
fs.open(b + "/w", "wb", block_size=3).close()
fs.open(b + "/a.csv", "xb").close()
(written("wb"), fs.cat(b + "/w"))[1]
(written("wb", acl="private", ContentType="a/b"), fs.info(b + "/w"))[1]
(written("wb"), written("ab"), fs.cat(b + "/w"))[2]
""".strip().splitlines()

VERSIONED = """
fs.ls(b + "/d")
fs.ls(b + "/d", versions=True)
fs.find(b)
fs.find(b, versions=True)
fs.info(b + "/d/k", version_id=v1)["size"]
fs.info(b + "/d/k?versionId=" + v1)["size"]
fs.info(b + "/d/k?versionId=" + v1, version_id=v2)
fs.info(b + "/d/k")["VersionId"] == v2
fs.exists(b + "/d/k?versionId=" + v1)
fs.exists(b + "/d/k?versionId=nope")
fs.cat_file(b + "/d/k", v1)
fs.cat_file(b + "/d/k", version_id=v1)
fs.cat(b + "/d/k?versionId=" + v1)
fs.open(b + "/d/k", version_id=v1).read()
fs.open(b + "/d/k?versionId=" + v1).read()
[one["Key"] for one in fs.object_version_info(b + "/d/k")]
fs.split_path(b + "/d/k?versionId=x")
fs.get_tags(b + "/d/k?versionId=" + v1)
fs.url(b + "/d/k?versionId=" + v1).count("versionId")
fs.touch(b + "/d/k?versionId=" + v1)
(fs.cp_file(b + "/d/k?versionId=" + v1, b + "/new"), fs.cat(b + "/new"))
fs.cp_file(b + "/d/k", b + "/new?versionId=x")
(fs.copy(b + "/d/k?versionId=" + v1, b + "/new"), fs.cat(b + "/new"))[1]
fs.merge(b + "/new?versionId=x", [b + "/d/k"])
fs.modified(b + "/d/k", v1)
(fs.get_file(b + "/d/k", t + "/x", version_id=v1), local())[1]
fs.is_bucket_versioned(b)
fs.version_aware
fs._get_kwargs_from_urls("s3://b/k?versionId=1")
fs.du(b)
""".strip().splitlines()

# On a server that has them.
OPERATIONS = """
fs.call_s3("head_object", Bucket=b, Key="a.csv")
fs.call_s3("head_object", Bucket=b, Key="none")
fs.call_s3("list_objects_v2", Bucket=b, Prefix="dir/", Delimiter="/")
fs.call_s3("list_objects_v2", Bucket=b, MaxKeys=2)["KeyCount"]
fs.call_s3("list_objects_v2", {"Prefix": "dir"}, Bucket=b, Nonsense=3)["KeyCount"]
fs.call_s3("list_object_versions", Bucket=b, Prefix="dir/sub/c")
fs.call_s3("get_bucket_versioning", Bucket=b)
fs.call_s3("put_object", Bucket=b, Key="po é+ %", Body=b"xyz", Metadata={"A": "b"})["ETag"]
fs.call_s3("delete_object", Bucket=b, Key="a.csv")
fs.call_s3("delete_objects", Bucket=b, Delete={"Objects": [{"Key": "a.csv"}, {"Key": "b&<.csv"}]})
fs.call_s3("copy_object", Bucket=b, Key="cc", CopySource={"Bucket": b, "Key": "a.csv"})["CopyObjectResult"]["ETag"]
fs.call_s3("get_object_attributes", Bucket=b, Key="a.csv", ObjectAttributes=["ETag", "ObjectSize"])["ObjectSize"]
fs.call_s3("get_object_acl", Bucket=b, Key="a.csv")["Grants"]
fs.call_s3("get_bucket_location", Bucket=b)
fs.call_s3("get_bucket_policy", Bucket=b)
(fs.call_s3("put_bucket_policy", Bucket=b, Policy='{"Statement":[]}'), fs.call_s3("get_bucket_policy", Bucket=b))[1]
(fs.call_s3("put_bucket_tagging", Bucket=b, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}), fs.call_s3("get_bucket_tagging", Bucket=b))[1]
(fs.call_s3("put_bucket_lifecycle_configuration", Bucket=b, LifecycleConfiguration={"Rules": [{"ID": "x", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}]}), fs.call_s3("get_bucket_lifecycle_configuration", Bucket=b)["Rules"])[1]
(fs.call_s3("put_bucket_cors", Bucket=b, CORSConfiguration={"CORSRules": [{"AllowedMethods": ["GET", "PUT"], "AllowedOrigins": ["*"], "MaxAgeSeconds": 5}]}), fs.call_s3("get_bucket_cors", Bucket=b))[1]
(fs.call_s3("put_bucket_encryption", Bucket=b, ServerSideEncryptionConfiguration={"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}), fs.call_s3("get_bucket_encryption", Bucket=b))[1]
(fs.call_s3("put_public_access_block", Bucket=b, PublicAccessBlockConfiguration={"BlockPublicAcls": True}), fs.call_s3("get_public_access_block", Bucket=b))[1]
(fs.chmod(b + "/a.csv", "public-read"), [one["Permission"] for one in fs.call_s3("get_object_acl", Bucket=b, Key="a.csv")["Grants"]])[1]
(fs.chmod(b + "/dir", "public-read", recursive=True), len(fs.call_s3("get_object_acl", Bucket=b, Key="dir/sub/c.txt")["Grants"]))[1]
(fs.chmod(b, "public-read"), len(fs.call_s3("get_bucket_acl", Bucket=b)["Grants"]))[1]
fs.chmod(b + "/none", "private")
fs.call_s3("nonsense")
fs.call_s3("get_bucket_website", Bucket=b)
fs.call_s3("list_parts", Bucket=b, Key="k", UploadId=fs.call_s3("create_multipart_upload", Bucket=b, Key="k")["UploadId"])["IsTruncated"]
""".strip().splitlines()


class Surroundings:
    """A bucket with objects, a folder, and the names that the expressions use."""

    def __init__(self, fs: Any, boto: Any, *, versioned: bool = False) -> None:
        self.fs, self.boto = fs, boto
        self.bucket = f"c{uuid.uuid4().hex[:15]}"
        self.folder = tempfile.mkdtemp()
        boto.create_bucket(Bucket=self.bucket)
        self.names: dict[str, Any] = {
            "fs": fs,
            "b": self.bucket,
            "t": self.folder,
            "local": self._local,
            "made": self._made,
            "big": self._big,
            "described": self._described,
            "written": self._written,
        }
        if not versioned:
            for key, data in OBJECTS.items():
                boto.put_object(Bucket=self.bucket, Key=key, Body=data)
            return
        status = {"Status": "Enabled"}
        boto.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration=status)
        for name, data in (("v1", b"one"), ("v2", b"two!")):
            answer = boto.put_object(Bucket=self.bucket, Key="d/k", Body=data)
            self.names[name] = answer["VersionId"]
        for key in ("d/k2", "d/gone"):
            boto.put_object(Bucket=self.bucket, Key=key, Body=b"x")
        boto.delete_object(Bucket=self.bucket, Key="d/gone")

    def _local(self) -> list[str]:
        root = Path(self.folder)
        return sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())

    def _made(self, name: str) -> str:
        path = Path(self.folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"up")
        return str(path)

    def _big(self) -> str:
        self.boto.put_object(Bucket=self.bucket, Key="big", Body=b"B" * (5 << 20))
        return f"{self.bucket}/big"

    def _described(self) -> None:
        metadata = {"some": "thing", "under_score": "u", "a-b": "c"}
        self.boto.put_object(Bucket=self.bucket, Key="meta", Body=b"m", Metadata=metadata)

    def _written(self, mode: str, **options: Any) -> None:
        with self.fs.open(f"{self.bucket}/w", mode, **options) as file:
            file.write(mode.encode())

    def outcome(self, expression: str) -> list[Any]:
        """``["returned", value]`` or ``["raised", name of the builtin exception]``."""
        try:
            value = eval(expression, dict(self.names))  # noqa: S307 (one of the above)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
        except Exception as error:
            kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins"]
            return [
                "raised",
                [kind.__name__ for kind in kinds if kind not in (object, BaseException)],
            ]
        return ["returned", self._plain(value)]

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: one for key, one in value.items() if key != "ResponseMetadata"}
            plain = {self._plain(key): self._plain(one) for key, one in kept.items()}
            return dict(sorted(plain.items(), key=lambda item: str(item[0])))
        if isinstance(value, (list, tuple)):
            return [self._plain(one) for one in value]
        if isinstance(value, datetime.datetime):
            return "a time"
        if isinstance(value, BaseException):
            return "an error"
        if isinstance(value, bytes):
            return repr(value)
        if isinstance(value, str):
            text = re.sub(r"versionId=[^&?]+", "versionId=V", value.replace(self.bucket, "B"))
            return re.sub(r"http://[\d.:a-z]+", "http://server", text)
        if value is None or isinstance(value, (int, float)):
            return value
        return f"a {type(value).__name__}"

    def remove(self) -> None:
        """Removes the folder. Buckets go with the server."""
        shutil.rmtree(self.folder)


def agrees(expected: Any, found: Any) -> bool:
    """Returns whether a result is that of s3fs: entries may say more, and an exception may be narrower."""
    if expected[0] != found[0]:
        return False
    if expected[0] == "raised":
        return expected[1][0] == "Exception" or expected[1][0] in found[1]
    return _contains(expected[1], found[1])


def _contains(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict) and isinstance(found, dict):
        if "type" not in expected and expected.keys() != found.keys():
            return False
        return all(_contains(one, found.get(name)) for name, one in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(_contains, expected, found))
    return type(expected) is type(found) and expected == found
