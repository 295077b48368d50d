"""What is handed to the package index: what is in it, what it needs, and that it installs."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
# What every Linux has: the C library's parts and the compiler's unwinder.
SYSTEM = re.compile(
    r"(libc|libm|libgcc_s|libpthread|libdl|librt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+"
)

IMPORT = """
import json, os, sys, time
before = set(sys.modules)
began = time.perf_counter()
import wirespeed
seconds = time.perf_counter() - began
gil = getattr(sys, "_is_gil_enabled", lambda: True)()
print(json.dumps({
    "milliseconds": round(seconds * 1000, 1),
    "threads": len(os.listdir("/proc/self/task")),
    "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
    "file": wirespeed.__file__,
    "gil": gil,
}))
"""

ROUND_TRIP = """
import os, sys, wirespeed
client = wirespeed.Client(endpoint_url=sys.argv[1], region="us-east-1",
    access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
    secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"])
data = os.urandom(20 << 20)
client.put("s3://" + sys.argv[2] + "/k", data)
assert client.get("s3://" + sys.argv[2] + "/k") == data
"""


def imported(python: Path) -> dict:
    """What a fresh interpreter says of the import, the best of five for its time."""
    runs = [
        json.loads(subprocess.check_output([python, "-I", "-c", IMPORT], cwd="/")) for _ in range(5)
    ]
    return min(runs, key=lambda run: run["milliseconds"])


def moves_data(python: Path, store, bucket: str) -> None:
    """An object goes out and comes back with what is installed there."""
    argv = [python, "-I", "-c", ROUND_TRIP, store.endpoint, bucket]
    subprocess.run(argv, env=store.environment(), check=True, cwd="/")


@pytest.fixture(params=["wheel", "threaded_wheel"])
def each_wheel(request) -> Path:
    """Each wheel."""
    return request.getfixturevalue(request.param)


def extension(wheel: Path) -> ELFFile:
    """The one compiled file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".so" in name]
        assert len(names) == 1, f"one compiled file, not {names}"
        return ELFFile(io.BytesIO(archive.read(names[0])))


def test_a_wheel_is_small_enough(each_wheel):
    size = each_wheel.stat().st_size
    print(f"{each_wheel.name}: {size / MIB:.2f} MiB")
    assert size < 12 * MIB


def test_a_wheel_says_which_systems_it_runs_on_and_auditwheel_agrees(each_wheel):
    said = each_wheel.stem.split("-")[-1].split(".")
    assert all(tag.startswith("manylinux") for tag in said), said
    audit = [Path(sys.executable).parent / "auditwheel", "show", each_wheel]
    shown = " ".join(subprocess.check_output(audit, text=True).split())
    print(shown)
    assert f'consistent with the following platform tag: "{said[0]}"' in shown


def test_the_stable_wheel_is_for_every_python_from_the_oldest_on(wheel):
    assert wheel.name.split("-")[2:4] == ["cp311", "abi3"]
    with zipfile.ZipFile(wheel) as archive:
        assert "wirespeed/_wirespeed.abi3.so" in archive.namelist()


def test_a_wheel_needs_no_library_that_a_system_may_lack(each_wheel):
    dynamic = extension(each_wheel).get_section_by_name(".dynamic")
    needed = [tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
    assert needed
    assert [name for name in needed if not SYSTEM.fullmatch(name)] == []


def test_a_wheel_carries_no_debug_information(each_wheel):
    sections = [section.name for section in extension(each_wheel).iter_sections()]
    assert [name for name in sections if name.startswith(".debug")] == []


def test_a_wheel_has_the_package_its_types_and_the_licence_and_nothing_else(each_wheel):
    with zipfile.ZipFile(each_wheel) as archive:
        names = archive.namelist()
    source = ROOT / "python" / "wirespeed"
    package = {
        f"wirespeed/{path.relative_to(source)}"
        for suffix in ("*.py", "*.pyi", "*.json", "py.typed")
        for path in source.rglob(suffix)
    }
    got = {name for name in names if ".so" not in name and ".dist-info/" not in name}
    assert got == package
    information = {name.partition(".dist-info/")[2] for name in names} - {""}
    assert {"METADATA", "WHEEL", "RECORD", "entry_points.txt"} <= information
    assert any(name.endswith("LICENSE") for name in information)


def test_a_wheel_installs_into_a_clean_environment_and_moves_data(wheel, install, store, bucket):
    python = install(wheel)
    found = imported(python)
    print(f"import wirespeed: {found['milliseconds']} ms")
    assert found["threads"] == 1, "the import starts no thread"
    heavy = {"numpy", "asyncio", "fsspec", "torch", "pyarrow", "ssl", "importlib_metadata"}
    assert heavy.isdisjoint(found["modules"]), "the import brings in what only some need"
    moves_data(python, store, bucket)


def test_the_free_threaded_wheel_leaves_the_gil_off(threaded_wheel, install, store, bucket):
    base = ROOT / ".tools" / "python3.13t" / "venv" / "bin" / "python"
    python = install(threaded_wheel, base)
    found = imported(python)
    assert not found["gil"]
    assert found["threads"] == 1
    moves_data(python, store, bucket)


def test_the_source_distribution_has_the_engine_and_no_other_program(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "engine/src/lib.rs" in names
    assert "python/src/lib.rs" in names
    assert "wirespeed/__init__.py" in names
    assert "Cargo.lock" in names
    tops = {name.partition("/")[0] for name in names}
    assert tops.isdisjoint({"cli", "conformance", "lab", "tests", "tools", "target"})


def test_the_source_distribution_installs(sdist, install, store, bucket):
    moves_data(install(sdist), store, bucket)


def test_a_clean_clone_installs(install, tmp_path, store, bucket):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", clone], check=True)
    moves_data(install(clone / "python"), store, bucket)
