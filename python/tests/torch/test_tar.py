"""Tar archives of any parts: what Python's tarfile writes is what is read, or a clear error."""

from __future__ import annotations

import io
import random
import tarfile

import pytest

from wirespeed.torch import CorruptDataError
from wirespeed.torch.tar import Member, read_members, read_samples

URI = "s3://bucket/shard.tar"
LONG = "folder/" + "n" * 180 + "/ünïcode-" + "x" * 90 + ".jpg"
FILES = {
    "a/0001.jpg": b"j" * 1000,
    "a/0001.cls": b"7",
    "a/0002.jpg": b"",
    "a/0002.seg.png": bytes(range(256)) * 9,
    LONG: b"long" * 400,
    "b.txt": b"t" * 512,
}


def written(files: dict[str, bytes], style: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as tar:
        folder = tarfile.TarInfo("a")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        link = tarfile.TarInfo("a/link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "0001.jpg"
        tar.addfile(link)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def members(data: bytes, part: int = 1 << 20) -> list[Member]:
    return list(read_members(cut(data, part), URI, size=len(data)))


@pytest.mark.parametrize("part", [1, 7, 511, 512, 513, 1024, 4099, 1 << 20])
@pytest.mark.parametrize("style", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_an_archive_in_parts_of_any_size_has_the_files_that_were_written(
    style: int, part: int
) -> None:
    found = members(written(FILES, style), part)
    assert {one.name: bytes(one.data) for one in found} == FILES
    assert [one.name for one in found] == list(FILES)


def test_an_ustar_name_in_two_fields_is_put_together() -> None:
    name = "p" * 120 + "/" + "n" * 60 + ".txt"
    assert [one.name for one in members(written({name: b"x"}, tarfile.USTAR_FORMAT))] == [name]


def test_a_size_in_base_256_and_one_in_a_pax_header_are_read() -> None:
    archive = bytearray(written({"x.bin": b"abc"}, tarfile.GNU_FORMAT))
    at = archive.index(b"x.bin")
    archive[at + 124 : at + 136] = b"\x80" + (3).to_bytes(11, "big")
    _mend_checksum(archive, at)
    assert [bytes(one.data) for one in members(bytes(archive))] == [b"abc"]

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("y.bin")
        info.size, info.pax_headers = 3, {"size": "3"}
        tar.addfile(info, io.BytesIO(b"xyz"))
    archive = bytearray(out.getvalue())
    at = archive.rindex(b"y.bin")
    archive[at + 124 : at + 136] = b"0" * 11 + b"\0"
    _mend_checksum(archive, at)
    assert [bytes(one.data) for one in members(bytes(archive))] == [b"xyz"]


def _mend_checksum(archive: bytearray, at: int) -> None:
    header = archive[at : at + 512]
    header[148:156] = b" " * 8
    archive[at + 148 : at + 156] = b"%06o\0 " % sum(header)


def test_the_places_of_members_span_their_headers_and_join_without_gaps() -> None:
    archive = written({LONG: b"1" * 700, "b.txt": b"22"})
    first, second = members(archive)
    assert first.end == second.start
    for one in (first, second):
        again = read_members([archive[one.start : one.end]], URI, offset=one.start, excerpt=True)
        assert [(m.name, bytes(m.data)) for m in again] == [(one.name, bytes(one.data))]


def test_an_archive_that_is_cut_anywhere_is_refused() -> None:
    archive = written(FILES)
    ends = members(archive)[-1].end
    cuts = {*random.Random(5).sample(range(ends), 60), 0, 511, 512, ends}
    for at in cuts:
        with pytest.raises(CorruptDataError, match="ends") as refused:
            members(archive[:at], 700)
        assert refused.value.uri == URI
        assert refused.value.offset is not None
        assert refused.value.offset <= at


def test_a_damaged_byte_in_a_header_is_noticed_and_its_place_told() -> None:
    archive = bytearray(written(FILES))
    at = members(bytes(archive))[1].start
    archive[at + 3] ^= 1
    with pytest.raises(CorruptDataError, match="checksum") as refused:
        members(bytes(archive))
    assert refused.value.offset == at


def test_a_header_that_claims_more_than_the_object_has_is_refused_before_it_is_read() -> None:
    archive = bytearray(written({"x.bin": b"abc"}, tarfile.GNU_FORMAT))
    at = archive.index(b"x.bin")
    archive[at + 124 : at + 136] = b"77777777777\0"
    _mend_checksum(archive, at)
    parts = iter(cut(bytes(archive), 512))
    with pytest.raises(CorruptDataError, match="ends in the middle"):
        list(read_members(parts, URI, size=len(archive)))
    assert len(list(parts)) > 2, "it read on although the size could not be right"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x1f\x8b\x08" + bytes(600), "gzip"),
        (b"BZh9" + bytes(600), "bzip2"),
        (b"<html>no such thing</html>" * 40, "not a tar header"),
        (b"", "ends without its closing zeros"),
    ],
)
def test_what_is_no_tar_is_told_so(data: bytes, message: str) -> None:
    with pytest.raises(CorruptDataError, match=message):
        members(data)


def test_a_sparse_member_and_an_unknown_kind_are_refused() -> None:
    for kind in (b"S", b"Z"):
        archive = bytearray(written({"x.bin": b"abc"}, tarfile.GNU_FORMAT))
        at = archive.index(b"x.bin")
        archive[at + 156 : at + 157] = kind
        _mend_checksum(archive, at)
        with pytest.raises(CorruptDataError, match="of a kind not read here"):
            members(bytes(archive))


@pytest.mark.parametrize("record", [b"9 path=ab\n", b"x path=a\n", b"99 path=a\n", b"8 patha\n"])
def test_a_damaged_pax_header_is_refused(record: bytes) -> None:
    archive = written({LONG: b"1"})
    at = archive.index(b" path=") // 512 * 512
    broken = archive[:at] + record.ljust(512, b"\0") + archive[at + 512 :]
    with pytest.raises(CorruptDataError, match="pax"):
        members(broken)


def test_files_with_one_basename_that_follow_each_other_are_a_sample() -> None:
    files = {
        "a/0001.jpg": b"1",
        "a/0001.CLS": b"2",
        "a/.hidden.jpg": b"h",
        "README": b"r",
        "a/0002.seg.png": b"3",
        "a/0001.jpg.json": b"4",
        "a.b/0001.jpg": b"5",
    }
    found = list(read_samples(members(written(files)), URI))
    assert [(one.key, sorted(one.fields)) for one in found] == [
        ("a/0001", ["cls", "jpg"]),
        ("a/0002", ["seg.png"]),
        ("a/0001", ["jpg.json"]),
        ("a.b/0001", ["jpg"]),
    ]


def test_a_name_that_is_twice_in_one_sample_is_refused() -> None:
    archive = written({"a/1.jpg": b"1"})
    both = archive[: members(archive)[-1].end] * 2 + bytes(1024)
    with pytest.raises(CorruptDataError, match="twice in one sample"):
        list(read_samples(read_members([both], URI), URI))
