"""Objects that are described, piped, copied, signed for and taken back, against every server."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
import servers
from files import files_below

MIB = 1 << 20


@pytest.fixture
def s3(server):
    return server.boto3()


def keys_of(s3, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


# ------------------------------------------------------------------ how an object is described


def test_the_media_type_follows_from_the_name(ws, s3, bucket, tmp_path):
    (tmp_path / "in").mkdir()
    types = {
        "a.txt": "text/plain",
        "b.json": "application/json",
        "c.tar.gz": "application/x-tar",
        "d.html": "text/html",
    }
    for name in types:
        (tmp_path / "in" / name).write_bytes(b"x")
    ws("cp", tmp_path, f"s3://{bucket}", "--recursive")
    ws("cp", tmp_path / "in" / "a.txt", f"s3://{bucket}/one")
    ws("pipe", f"s3://{bucket}/piped.json", stdin=b"{}")
    ws("cp", tmp_path / "in" / "a.txt", f"s3://{bucket}/plain.txt", "--no-guess-mime-type")
    for name, expected in types.items():
        assert s3.head_object(Bucket=bucket, Key=f"in/{name}")["ContentType"] == expected
    assert s3.head_object(Bucket=bucket, Key="one")["ContentType"] == "text/plain"
    assert s3.head_object(Bucket=bucket, Key="piped.json")["ContentType"] == "application/json"
    assert s3.head_object(Bucket=bucket, Key="plain.txt")["ContentType"] != "text/plain"


@pytest.mark.parametrize("size", [3, 20 * MIB], ids=["one-request", "in-parts"])
def test_flags_describe_the_object(ws, s3, bucket, payload, tmp_path, size):
    (tmp_path / "f.txt").write_bytes(payload[:size])
    flags = ["--content-type", "text/x-mine", "--content-encoding", "gzip"]
    flags += ["--content-disposition", 'attachment; filename="a b.csv"']
    flags += ["--content-language", "de-CH", "--cache-control", "max-age=60"]
    flags += ["--metadata", "one=1,two=b c"]
    ws("cp", tmp_path / "f.txt", f"s3://{bucket}/k", *flags)
    told = s3.head_object(Bucket=bucket, Key="k")
    assert told["ContentType"] == "text/x-mine"
    assert told["ContentEncoding"] == "gzip"
    assert told["ContentDisposition"] == 'attachment; filename="a b.csv"'
    assert told["ContentLanguage"] == "de-CH"
    assert told["CacheControl"] == "max-age=60"
    assert told["Metadata"] == {"one": "1", "two": "b c"}
    (row,) = ws("--json", "stat", f"s3://{bucket}/k").json
    assert row["content_disposition"] == 'attachment; filename="a b.csv"'
    assert row["metadata"] == {"one": "1", "two": "b c"}


@pytest.mark.parametrize("checksum", ["crc64nvme", "CRC32", "crc32c", "SHA256", "none"])
def test_any_checksum_brings_the_same_bytes(ws, bucket, payload, tmp_path, checksum):
    (tmp_path / "f").write_bytes(payload[: 20 * MIB])
    ws("cp", tmp_path / "f", f"s3://{bucket}/k", "--checksum", checksum)
    ws("cp", f"s3://{bucket}/k", tmp_path / "back", "--checksum-mode", "ENABLED")
    assert (tmp_path / "back").read_bytes() == payload[: 20 * MIB]


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1, 40 * MIB])
@pytest.mark.parametrize("verb", [["pipe"], ["cp", "-"]], ids=["pipe", "cp"])
def test_standard_input_becomes_an_object(ws, s3, bucket, payload, verb, size):
    ws(*verb, f"s3://{bucket}/k", stdin=payload[:size])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == payload[:size]
    assert ws("cp", f"s3://{bucket}/k", "-").out == payload[:size]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_ranges_of_an_object(ws, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    for given, expected in [("0-3", b"0123"), ("7-", b"789"), ("-2", b"89"), ("4-4", b"4")]:
        assert ws("cat", f"s3://{bucket}/k", "--range", given).out == expected


# ------------------------------------------------------------------ within S3


def test_an_object_is_copied_on_the_server(ws, s3, bucket):
    s3.put_object(
        Bucket=bucket, Key="a b+c", Body=b"x", ContentType="text/x-a", Metadata={"m": "1"}
    )
    assert ws("cp", f"s3://{bucket}/a b+c", f"s3://{bucket}/to/").lines == [
        f"copy: s3://{bucket}/a b+c to s3://{bucket}/to/a b+c"
    ]
    told = s3.head_object(Bucket=bucket, Key="to/a b+c")
    assert (told["ContentType"], told["Metadata"]) == ("text/x-a", {"m": "1"})
    replace = ["--metadata-directive", "REPLACE", "--content-type", "text/x-b"]
    ws("cp", f"s3://{bucket}/a b+c", f"s3://{bucket}/other", *replace)
    told = s3.head_object(Bucket=bucket, Key="other")
    assert (told["ContentType"], told["Metadata"]) == ("text/x-b", {})
    assert "none" in ws("cp", f"s3://{bucket}/none", f"s3://{bucket}/x", code=3).text


def test_a_tree_is_copied_on_the_server(ws, s3, bucket):
    names = ["one", "deep/er/two", "sp ace/pl+us", "ümläut/🚀"]
    for name in names:
        s3.put_object(Bucket=bucket, Key=f"in/{name}", Body=name.encode())
    ws("cp", f"s3://{bucket}/in", f"s3://{bucket}/out", "--recursive")
    for name in names:
        assert s3.get_object(Bucket=bucket, Key=f"out/{name}")["Body"].read() == name.encode()
    assert len(keys_of(s3, bucket)) == 2 * len(names)


# ------------------------------------------------------------------ what is only told


def test_a_dry_run_says_all_and_does_nothing(ws, s3, bucket, tmp_path):
    (tmp_path / "up" / "d").mkdir(parents=True)
    (tmp_path / "up" / "a").write_bytes(b"1")
    (tmp_path / "up" / "d" / "b").write_bytes(b"2")
    s3.put_object(Bucket=bucket, Key="in/k", Body=b"x")
    up, down = tmp_path / "up", tmp_path / "down"

    def told(*words) -> list[str]:
        return ws(*words, "--dryrun").lines

    at = f"s3://{bucket}"
    assert told("cp", up, f"{at}/p", "--recursive") == [
        f"(dryrun) upload: {up}/a to {at}/p/a",
        f"(dryrun) upload: {up}/d/b to {at}/p/d/b",
    ]
    assert told("cp", up / "a", f"{at}/p/") == [f"(dryrun) upload: {up}/a to {at}/p/a"]
    assert told("cp", f"{at}/in", down, "-r") == [f"(dryrun) download: {at}/in/k to {down}/k"]
    assert told("cp", f"{at}/in/k", down) == [f"(dryrun) download: {at}/in/k to {down}"]
    assert told("cp", f"{at}/in", f"{at}/out", "-r") == [f"(dryrun) copy: {at}/in/k to {at}/out/k"]
    assert told("cp", f"{at}/in/k", f"{at}/out") == [f"(dryrun) copy: {at}/in/k to {at}/out"]
    assert told("rm", f"{at}/in/k") == [f"(dryrun) delete: {at}/in/k"]
    assert told("rm", at, "--recursive") == [f"(dryrun) delete: {at}/in/k"]
    assert told("pipe", f"{at}/piped") == [f"(dryrun) upload: - to {at}/piped"]
    rows = ws("--json", "cp", up, f"{at}/p", "--recursive", "--dry-run").json
    assert [row.get("status") for row in rows] == ["dryrun", "dryrun", None]
    assert rows[-1]["dryrun"] is True
    assert "none" in ws("cp", f"{at}/none", down, "--dryrun", code=3).text
    assert keys_of(s3, bucket) == ["in/k"]
    assert not down.exists()


def test_only_what_is_not_there_yet(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"new")
    s3.put_object(Bucket=bucket, Key="there", Body=b"old")
    ws("cp", tmp_path / "f", f"s3://{bucket}/absent", "--if-none-match")
    assert (
        "412"
        in ws("cp", tmp_path / "f", f"s3://{bucket}/there", "--if-none-match", "*", code=3).text
    )
    assert s3.get_object(Bucket=bucket, Key="there")["Body"].read() == b"old"


def test_an_optional_value_swallows_no_file(ws, s3, bucket, tmp_path):
    (tmp_path / "f").write_bytes(b"new")
    s3.put_object(Bucket=bucket, Key="there", Body=b"old")
    ws("cp", "--if-none-match", tmp_path / "f", f"s3://{bucket}/absent")
    assert s3.get_object(Bucket=bucket, Key="absent")["Body"].read() == b"new"
    ran = ws("cp", "--if-none-match", tmp_path / "f", f"s3://{bucket}/there", code=3)
    assert "412" in ran.text
    etag = s3.head_object(Bucket=bucket, Key="there")["ETag"]
    ran = ws("cp", f"--if-none-match={etag}", f"s3://{bucket}/there", tmp_path / "g", code=3)
    assert "304" in ran.text
    ws("cp", "--sse", "AES256", "--request-payer", tmp_path / "f", f"s3://{bucket}/sse")


# ------------------------------------------------------------------ keys that end in a slash


def test_a_key_that_ends_in_a_slash_is_an_object_like_any_other(server, ws, s3, bucket, tmp_path):
    at = f"s3://{bucket}"
    # versitygw keeps such keys as directories, which have no content.
    content = b"" if server.name == "versitygw" else b"marker"
    ws("pipe", f"{at}/dir/", stdin=content)
    assert keys_of(s3, bucket) == ["dir/"]
    assert ws("cat", f"{at}/dir/").out == content
    assert ws("cp", f"{at}/dir/", "-").out == content
    assert f"{len(content)} (" in ws("stat", f"{at}/dir/").text
    assert f"/{bucket}/dir/?" in ws("presign", f"{at}/dir/").lines[0]
    ws("cp", f"{at}/dir/", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    assert "name the file" in ws("cp", f"{at}/dir/", tmp_path, code=2).text
    if content:
        ws("cp", f"{at}/dir/", f"{at}/copy/")
        ws("mv", f"{at}/copy/", f"{at}/moved")
        assert keys_of(s3, bucket) == ["dir/", "moved"]
        ws("rm", f"{at}/moved")
    ws("rm", f"{at}/dir/")
    assert keys_of(s3, bucket) == []
    for words, advice in [
        (("cat", f"{at}/none/"), f"'{at}/none/*'"),
        (("cp", f"{at}/none/", tmp_path / "none"), "--recursive"),
        (("cp", f"{at}/none/", f"{at}/other"), "--recursive"),
    ]:
        assert advice in ws(*words, code=3).text
    assert "whole key" in ws("pipe", at, stdin=b"x", code=2).text
    assert "whole key" in ws("cp", "-", f"{at}/dir/", stdin=b"x", code=2).text


# ------------------------------------------------------------------ URLs


def test_a_url_reads_and_another_writes(ws, s3, bucket):
    key = "a b/ü+%"
    put = ws("presign", f"s3://{bucket}/{key}", "--method", "put").lines[0]
    urllib.request.urlopen(urllib.request.Request(put, data=b"sent", method="PUT")).close()
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == b"sent"
    (row,) = ws("--json", "presign", f"s3://{bucket}/{key}", "--expires-in", "60").json
    assert (row["type"], row["method"], row["expires_in"]) == ("url", "GET", 60)
    with urllib.request.urlopen(row["url"]) as answer:
        assert answer.read() == b"sent"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(row["url"].replace("Signature=", "Signature=0"))


# ------------------------------------------------------------------ uploads that nobody finished


def test_unfinished_uploads_are_listed_and_aborted(ws, s3, bucket):
    ids = {
        key: s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        for key in ["a", "ab", "p/c"]
    }
    s3.put_object(Bucket=bucket, Key="p/c", Body=b"stays")
    rows = ws("--json", "uploads", "ls", f"s3://{bucket}").json
    assert {row["key"]: row["upload_id"] for row in rows} == ids
    assert ids["a"] in ws("uploads", "ls", f"s3://{bucket}").text

    def left() -> set[str]:
        return {one["Key"] for one in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])}

    old = ["--older-than", "1d"]
    assert ws("uploads", "abort", f"s3://{bucket}", "--recursive", *old).lines == []
    assert ws("uploads", "abort", f"s3://{bucket}/a", "--dryrun").lines == [
        f"(dryrun) abort: s3://{bucket}/a (upload {ids['a']})"
    ]
    assert left() == {"a", "ab", "p/c"}
    ws("uploads", "abort", f"s3://{bucket}/a")
    assert left() == {"ab", "p/c"}, "a key alone, not what begins with it"
    ws("uploads", "abort", f"s3://{bucket}/ab", "--upload-id", ids["ab"])
    assert left() == {"p/c"}
    ws("uploads", "abort", f"s3://{bucket}/p", "--recursive")
    assert left() == set()
    assert keys_of(s3, bucket) == ["p/c"]


# ------------------------------------------------------------------ completions and manual


def test_completions_are_shells_own_language(ws):
    for shell, program in [("bash", "bash"), ("zsh", "zsh"), ("fish", "fish")]:
        script = ws("completions", shell).out
        assert b"presign" in script
        assert b"storage-class" in script
        if shutil.which(program):
            subprocess.run([program, "-n"], input=script, check=True)


def test_bash_completes(ws, tmp_path):
    (tmp_path / "script").write_bytes(ws("completions", "bash").out)
    ask = f"source {tmp_path / 'script'}; COMP_WORDS=(wirespeed pre); COMP_CWORD=1; "
    ask += "_wirespeed wirespeed pre wirespeed; echo ${COMPREPLY[@]}"
    said = subprocess.run(["bash", "-c", ask], capture_output=True, check=True)
    assert said.stdout.split() == [b"presign"]


def test_the_manual_has_a_page_a_verb(ws, tmp_path):
    ws("manual", "--folder", tmp_path)
    pages = files_below(tmp_path)
    assert {"wirespeed.1", "wirespeed-cp.1", "wirespeed-uploads-abort.1"} <= pages.keys()
    man = shutil.which("man")
    if man:
        for page in pages:
            said = subprocess.run([man, "-l", "--warnings", tmp_path / page], capture_output=True)
            assert said.returncode == 0, said.stderr
            assert said.stderr == b"", page


def test_a_url_keeps_the_secret(ws, bucket, server, transcript):
    url = ws("presign", f"s3://{bucket}/k").lines[0]
    assert isinstance(server, servers.Server)
    assert server.access_key in url
    assert not transcript.leaks()
