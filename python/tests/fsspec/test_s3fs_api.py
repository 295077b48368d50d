"""`S3FileSystem` against the public API of s3fs, as `tools/s3fs_api.py` described it.

``s3fs_api.json`` has the signatures, attributes and results of s3fs. What is not the same stands in
``s3fs_differences.json``, with the text that the guide shows and the result here, or the name of a
test. Nothing may differ in silence.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs_cases
import servers

from wirespeed.fsspec import ReadFile, S3FileSystem, WriteFile

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
API = json.loads((HERE / "s3fs_api.json").read_text())
DIFFERENCES = json.loads((HERE / "s3fs_differences.json").read_text())
# Results that differ, and ours in their place.
OURS = {call: one for each in DIFFERENCES for call, one in each.get("calls", {}).items()}
# Methods, parameters and attributes that are missing or stand elsewhere.
NAMED = {name for each in DIFFERENCES for name in each.get("names", ())}
TESTED = {"connect", "get_s3", "open_async", "set_session"}
TESTED |= {"end_transaction", "start_transaction", "to_json"}
GROUPS = {
    "reading": s3fs_cases.READING,
    "changing": s3fs_cases.CHANGING,
    "versioned": s3fs_cases.VERSIONED,
    "operations": s3fs_cases.OPERATIONS,
}


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A server that has policies, ACLs and lifecycle rules."""
    with servers.moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


def made(server: servers.Server, **options: Any) -> S3FileSystem:
    """A file system whose keys are those that s3fs's results were made with, where they show."""
    return S3FileSystem(
        key=server.access_key,
        secret=server.secret_key,
        endpoint_url=server.endpoint,
        client_kwargs={"region_name": "us-east-1"},
        skip_instance_cache=True,
        **options,
    )


@pytest.mark.parametrize(
    ("group", "call"), [(group, call) for group, calls in GROUPS.items() for call in calls]
)
def test_a_call_does_what_it_does_with_s3fs(
    group: str, call: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("moto" if group == "operations" else "origin")
    versioned = group == "versioned"
    fs = made(server, version_aware=versioned)
    around = s3fs_cases.Surroundings(fs, server.boto3(), versioned=versioned)
    try:
        found = around.outcome(call)
    finally:
        around.remove()
    found = json.loads(
        json.dumps(found).replace(server.access_key, "AK").replace(server.secret_key, "SK")
    )
    expected = OURS.get(call, API["results"][group][call])
    assert s3fs_cases.agrees(expected, found), f"{call}\n{expected}\n{found}"
    if call in OURS:
        assert not s3fs_cases.agrees(API["results"][group][call], found), "no longer a difference"


def parameters(function: Any) -> tuple[list[str], bool]:
    """Names by their order, and whether others are taken."""
    kinds = inspect.Parameter
    found = list(inspect.signature(function).parameters.values())
    names = [p.name for p in found if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    return names, any(p.kind is kinds.VAR_KEYWORD for p in found)


@pytest.mark.parametrize("name", API["methods"])
def test_a_method_has_the_parameters_of_s3fs(name: str) -> None:
    if name in NAMED:
        assert not hasattr(S3FileSystem, name)
        return
    fs = S3FileSystem(anon=True)
    ours, keywords = parameters(getattr(fs, name))
    theirs = [parameter for parameter, _ in API["methods"][name]["parameters"]]
    for place, parameter in enumerate(theirs):
        if f"{name}({parameter})" not in NAMED:
            assert ours[place : place + 1] == [parameter], f"{name}: {theirs} but {ours}"
    assert keywords or not API["methods"][name]["keywords"]
    if API["methods"][name].get("awaitable") and name != "open":
        assert callable(getattr(fs, f"_{name}"))


def test_each_method_is_called_by_a_case_or_a_test() -> None:
    calls = "\n".join(call for group in GROUPS.values() for call in group)
    for name in API["methods"].keys() - TESTED - NAMED:
        assert f"fs.{name}(" in calls, name


def test_the_constructor_takes_the_arguments_of_s3fs_in_their_order() -> None:
    ours, keywords = parameters(S3FileSystem.__init__)
    theirs = [name for name, _ in API["constructor"]]
    assert ours[1 : len(theirs) + 1] == theirs
    assert keywords
    for name, default in API["constructor"]:
        if f"S3FileSystem({name})" not in NAMED:
            ours_default = inspect.signature(S3FileSystem.__init__).parameters[name].default
            assert repr(ours_default) == default, name


def test_the_attributes_of_s3fs_are_there(origin: servers.Server) -> None:
    fs = made(origin)
    for name in API["attributes"]:
        assert hasattr(fs, name) or f".{name}" in NAMED, name


def test_the_methods_and_attributes_of_files_are_there(origin: servers.Server) -> None:
    for kind in (ReadFile, WriteFile):
        for name in API["file_methods"]:
            assert hasattr(kind, name) or f"S3File.{name}" in NAMED, name


def test_the_functions_of_the_module_are_there_or_explained() -> None:
    import wirespeed.fsspec as module

    for name in (*API["module"], *API["variables"]):
        assert hasattr(module, name) or name in NAMED, name


def test_each_difference_is_tested() -> None:
    tests = "\n".join(path.read_text() for path in HERE.rglob("test_*.py"))
    for each in DIFFERENCES:
        assert each["differs"], each
        assert each["of"], each
        if "test" in each:
            assert f"def {each['test']}(" in tests, each["test"]
        else:
            assert each.get("calls"), each
    everything = {call for group in GROUPS.values() for call in group}
    assert everything >= OURS.keys()


@pytest.mark.parametrize("tool", ["s3fs_table.py", "s3_operations.py"])
def test_what_is_generated_is_up_to_date(tool: str) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], check=True, timeout=60)
