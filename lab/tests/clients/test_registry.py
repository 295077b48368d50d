"""What `clients.toml` says of each client, and what is refused in such a file."""

import dataclasses

import pytest
from wirespeed_lab import places
from wirespeed_lab.clients import BadRegistry, registry
from wirespeed_lab.clients.registry import read

#: All clients that reports are to have, whether they can be had or not.
WANTED = {
    "wirespeed-rust",
    "wirespeed-python",
    "wirespeed-cli",
    "boto3-get",
    "boto3-download",
    "boto3-crt",
    "crt-python-bytes",
    "crt-python-view",
    "crt-c",
    "awscli-classic",
    "awscli-classic-threaded",
    "awscli-crt",
    "s5cmd",
    "rclone",
    "go-manager",
    "go-transfermanager",
    "java-crt",
    "java-tm-100",
    "java-tm-250",
    "java-bytes",
    "java-direct",
    "rust-tm",
    "rust-sdk",
    "object-store",
    "opendal",
    "obstore",
    "s3dlio",
    "s3fs",
    "fasts3",
    "s3torchconnector",
    "pyarrow",
    "warp",
    "limit",
}
BUILDS = '[builds.one]\nwhat = "it"\nrun = ["true"]\n'


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "clients.toml"
        path.write_text(BUILDS + text)
        return path

    return write


def test_every_client_of_the_reports_is_there():
    assert registry().keys() >= WANTED


def test_a_client_has_a_command_or_says_why_not():
    for client in registry().values():
        assert client.title
        assert client.family
        assert bool(client.command) != bool(client.unavailable), client.id
        if client.unavailable:
            assert client.missing() == client.unavailable
            assert client.packages() == {}


def test_titles_tell_clients_apart():
    titles = [client.title for client in registry().values()]
    assert len(titles) == len(set(titles))


def test_every_driver_in_python_is_in_the_repository():
    for client in registry().values():
        for part in client.command:
            if part.endswith(".py"):
                assert str(places.DRIVERS) in part
                with open(part) as driver:
                    assert "lab_protocol.main(" in driver.read()


def test_what_pins_an_environment_is_there():
    for client in registry().values():
        if client.pinned_by:
            assert (places.DRIVERS / client.pinned_by / "requirements.txt").is_file(), client.id


def test_a_command_names_no_place_that_is_not_filled_in():
    for client in registry().values():
        assert not any("{" in part for part in client.command), client.id


def test_what_is_missing_is_told_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("WIRESPEED_LAB_TOOLS", str(tmp_path))
    reason = registry()["s5cmd"].missing()
    assert str(tmp_path) in reason
    assert 'make lab-setup CLIENTS="s5cmd"' in reason


def test_what_a_build_left_as_its_reason_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("WIRESPEED_LAB_TOOLS", str(tmp_path))
    (tmp_path / "awscli").mkdir()
    (tmp_path / "awscli" / "missing").write_text("apt knows no mirror\n")
    assert registry()["awscli-classic"].missing() == "apt knows no mirror"


def test_versions_come_from_the_lock_file(tmp_path):
    (tmp_path / "Cargo.lock").write_text(
        '[[package]]\nname = "hyper"\nversion = "0.14.9"\n'
        '[[package]]\nname = "hyper"\nversion = "1.10.0"\n'
        '[[package]]\nname = "hyper"\nversion = "1.9.0"\n'
        '[[package]]\nname = "other"\nversion = "2.0.0"\n'
    )
    client = registry()["object-store"]
    build = dataclasses.replace(client.build, lock=str(tmp_path / "Cargo.lock"))
    pinned = dataclasses.replace(client, build=build)
    assert pinned.packages() == {"hyper": "1.10.0"}


def test_versions_come_from_a_go_module():
    packages = registry()["minio-go"].packages()
    assert list(packages) == ["github.com/minio/minio-go/v7"]
    assert packages["github.com/minio/minio-go/v7"].startswith("7.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[clients.a]\nlanguage="c"\ntitle="a"\nfamily="f"\n', "either a command and a build"),
        (
            '[clients.a]\nlanguage="c"\ntitle="a"\nfamily="f"\nbuild="one"\ncommand=["x"]\n'
            'unavailable="no"\n',
            "either a command and a build",
        ),
        ('[clients.a]\nlanguage="c"\ntitle="a"\nfamily="f"\nunavailable="no"\nx=1\n', "known of x"),
        ('[clients.a]\nlanguage="c"\nfamily="f"\nunavailable="no"\n', "title"),
        ('[clients.a]\nlanguage="c"\ntitle="a"\nfamily="f"\nbuild="two"\ncommand=["x"]\n', "two"),
        ("[clients", "clients.toml"),
    ],
)
def test_a_file_that_says_what_cannot_be_is_refused(file, text, told):
    with pytest.raises(BadRegistry, match=told):
        read(file(text))
