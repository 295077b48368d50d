from wirespeed_lab import dataset
from wirespeed_lab.dataset import Part

PARTS = (Part("one.bin", "one", 100_000), Part("many", "many", 1_000, 5))


def test_the_same_seed_makes_the_same_bytes(tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        dataset.generate(tmp_path / folder, PARTS, seed)
    assert dataset.differences(tmp_path / "a", tmp_path / "b") == []
    assert dataset.differences(tmp_path / "a", tmp_path / "c", most=99)
    assert sum(1 for _ in (tmp_path / "a").rglob("*.bin")) == 6


def test_every_kind_of_wrong_is_found(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    dataset.generate(good, PARTS, 1)
    dataset.generate(bad, PARTS, 1)
    (bad / "many" / "00000000.bin").unlink()
    (bad / "many" / "00000001.bin").write_bytes(b"")
    (bad / "many" / "extra.bin").write_bytes(b"?")
    content = bytearray((bad / "one.bin").read_bytes())
    content[77_777] ^= 1
    (bad / "one.bin").write_bytes(content)
    with open(bad / "many" / "00000002.bin", "ab") as file:
        file.write(b"!")
    assert dataset.differences(good, bad) == [
        "many/00000000.bin is missing",
        "many/extra.bin does not belong there",
        "many/00000001.bin differs from byte 0 on",
        "many/00000002.bin differs from byte 1000 on",
        "one.bin differs from byte 77777 on",
    ]
