"""The drivers in Rust, those that are built: the protocol, and the truth about their versions."""

import json
import re
import subprocess
import tomllib

import pytest
from wirespeed_lab import places
from wirespeed_lab.clients import registry
from wirespeed_lab.driving.conformance import conform
from wirespeed_lab.stores import StoreFailed

WORKSPACE = places.DRIVERS / "rust"
#: Drivers by id, and the crate whose version they tell.
CRATES = {
    "wirespeed-rust": "wirespeed",
    "rust-sdk": "aws-sdk-s3",
    "rust-tm": "aws-sdk-s3-transfer-manager",
    "object-store": "object_store",
    "opendal": "opendal",
    "fasts3-as-described": None,
}
#: What each of them must be able to do, whatever else it can.
AT_LEAST = {"get discard", "get memory", "get stream", "get file", "get ranges", "put", "SIGTERM"}


def driver(name: str) -> list[str]:
    """How it is started; one that was built without optimisation serves as well here."""
    client = registry()[name]
    if missing := client.missing():
        if (quick := WORKSPACE / "target" / "debug" / name).is_file():
            return [str(quick)]
        pytest.skip(missing)
    return client.command


def locked() -> dict[str, set[str]]:
    """The versions of each package in the workspace's lock file."""
    found: dict[str, set[str]] = {}
    for package in tomllib.loads((WORKSPACE / "Cargo.lock").read_text())["package"]:
        found.setdefault(package["name"], set()).add(package["version"])
    return found


@pytest.mark.parametrize("name", CRATES)
def test_it_conforms(name):
    command = driver(name)
    try:
        report = conform(command)
    except (places.MissingProgram, StoreFailed) as error:
        pytest.skip(f"no server to try it on: {error}")
    assert report.failures == []
    assert set(report.passed) >= AT_LEAST


@pytest.mark.parametrize("name", CRATES)
def test_it_tells_the_version_that_is_locked(name):
    done = subprocess.run([*driver(name), "describe"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["name"] == name
    told = {**said["components"], CRATES[name]: said["version"]}
    versions = locked()
    for crate, version in told.items():
        assert crate is None or version in versions[crate]


@pytest.mark.parametrize("name", ["rust-sdk", "rust-tm", "object-store"])
def test_the_flags_of_the_older_protocol_stay(name):
    done = subprocess.run([*driver(name), "--help"], capture_output=True, text=True, check=True)
    assert "--keys-prefix" in done.stdout


def test_each_driver_has_a_program_of_its_name():
    names = set()
    for manifest in WORKSPACE.glob("*/Cargo.toml"):
        told = tomllib.loads(manifest.read_text())
        names |= {one["name"] for one in told.get("bin", ())} or {told["package"]["name"]}
        names |= {source.stem for source in manifest.parent.glob("src/bin/*.rs")}
    assert set(CRATES) <= names


def test_the_lock_file_knows_no_other_registry():
    sources = set(re.findall(r'^source = "(.*)"$', (WORKSPACE / "Cargo.lock").read_text(), re.M))
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}
