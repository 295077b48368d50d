"""Describes s3fs's public API: signatures, attributes, and the results of many calls.

    python -m venv /tmp/s3fs && /tmp/s3fs/bin/pip install s3fs==2026.9.0
    /tmp/s3fs/bin/python tools/s3fs_api.py ORIGIN_ENDPOINT MOTO_ENDPOINT

Run it with s3fs's own environment, which the project's cannot hold beside the pinned boto3. The
first endpoint is a wirespeed-origin with the access key ``AK`` and the secret key ``SK``, the
second a moto server. Writes ``python/tests/fsspec/s3fs_api.json``, with which `test_s3fs_api`
compares `wirespeed.fsspec.S3FileSystem`.
"""

# The path comes first.
# ruff: noqa: E402

from __future__ import annotations

import inspect
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "python" / "tests" / "fsspec"
sys.path.insert(0, str(ROOT / "tests"))

import botocore.session
import s3fs
import s3fs_cases
from s3fs.core import S3File

# Of the base class, and not meant for users.
NOT_PUBLIC = {"clear_instance_cache", "from_dict", "from_json", "transaction_type"}


def signature(function: Any) -> dict[str, Any]:
    """Parameters by their order, and whether others are taken by keyword."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # of a builtin
        return {"parameters": [], "keywords": False}
    kinds = inspect.Parameter
    return {
        "parameters": [
            [one.name, None if one.default is kinds.empty else _default(one.default)]
            for one in parameters
            if one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
        ],
        "keywords": any(one.kind is kinds.VAR_KEYWORD for one in parameters),
    }


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, (str, int, float, bool, type(None), dict)) else "..."


def members(thing: Any) -> tuple[dict[str, Any], list[str]]:
    """Public methods with their signatures, and the names of public attributes."""
    methods: dict[str, Any] = {}
    attributes: list[str] = []
    for name in sorted(dir(thing)):
        if name.startswith("_") or name in NOT_PUBLIC or name == "s3":
            continue
        try:
            value = getattr(thing, name)
        except NotImplementedError:
            continue
        if callable(value):
            methods[name] = signature(value)
            if inspect.iscoroutinefunction(getattr(thing, f"_{name}", None)):
                methods[name]["awaitable"] = True
        else:
            attributes.append(name)
    return methods, attributes


def results(fs: Any, boto: Any, group: list[str], *, versioned: bool = False) -> dict[str, Any]:
    """The outcome of each expression, in surroundings of its own."""
    found: dict[str, Any] = {}
    for expression in group:
        around = s3fs_cases.Surroundings(fs(), boto, versioned=versioned)
        found[expression] = around.outcome(expression)
        around.remove()
    return found


def main() -> None:
    """Writes the description."""
    origin, moto = sys.argv[1:3]

    def at(endpoint: str, **options: Any) -> tuple[Any, Any]:
        keys = {"aws_access_key_id": "AK", "aws_secret_access_key": "SK"}
        boto = botocore.session.get_session().create_client(
            "s3", endpoint_url=endpoint, region_name="us-east-1", **keys
        )
        return (
            lambda: s3fs.S3FileSystem(
                key="AK",
                secret="SK",
                endpoint_url=endpoint,
                client_kwargs={"region_name": "us-east-1"},
                skip_instance_cache=True,
                **options,
            ),
            boto,
        )

    fs, boto = at(origin)
    methods, attributes = members(fs())
    file_methods, _ = members(S3File)
    described = {
        "s3fs": version("s3fs"),
        "fsspec": version("fsspec"),
        "constructor": signature(s3fs.S3FileSystem.__init__)["parameters"][1:],
        "methods": methods,
        "attributes": [*attributes, "s3"],
        "file_methods": file_methods,
        "module": {
            name: signature(getattr(s3fs, name))["parameters"]
            for name in ("S3Map", "add_retryable_error", "set_custom_error_handler")
        }
        | {"utils.ParamKwargsHelper": [], "utils.SSEParams": [], "utils.FileExpired": []},
        "variables": ["FSSPEC_S3_<OPTION>", "AWS_<NAME>", "S3FS_LOGGING_LEVEL"],
        "results": {
            "reading": results(fs, boto, s3fs_cases.READING),
            "changing": results(fs, boto, s3fs_cases.CHANGING),
            "versioned": results(
                *at(origin, version_aware=True), s3fs_cases.VERSIONED, versioned=True
            ),
            "operations": results(*at(moto), s3fs_cases.OPERATIONS),
        },
    }
    (TESTS / "s3fs_api.json").write_text(_lines(described) + "\n")


def _lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each signature and each result."""
    if not isinstance(value, dict) or not value or "parameters" in value:
        return json.dumps(value, ensure_ascii=False)
    indent = " " * (depth + 1)
    rows = [
        f"{indent}{json.dumps(k, ensure_ascii=False)}: {_lines(v, depth + 1)}"
        for k, v in value.items()
    ]
    if depth > 2:
        return json.dumps(value, ensure_ascii=False)
    return "{\n" + ",\n".join(rows) + "\n" + " " * depth + "}"


if __name__ == "__main__":
    main()
