"""Writes the description of S3's operations that `S3FileSystem.call_s3` reads.

    python tools/s3_operations.py [--check]

The source is the service model of the pinned botocore. The result keeps what a client of the REST
API needs: the method and path of an operation, the place and type of each parameter, and the names
that differ in XML. With `--check` nothing is written, and the exit status reports whether the file
is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import botocore
import botocore.session
from botocore import xform_name

TARGET = Path(__file__).resolve().parent.parent / "python/wirespeed/fsspec/s3_operations.json"
# Their answers are streams of events, or they belong to other kinds of endpoints.
LEFT_OUT = {
    "CreateSession",
    "GetObject",
    "GetObjectTorrent",
    "SelectObjectContent",
    "WriteGetObjectResponse",
}
LOCATIONS = {"uri": "u", "querystring": "q", "header": "h", "headers": "m"}
SCALARS = {
    "boolean": "b",
    "integer": "i",
    "long": "i",
    "timestamp": "t",
    "blob": "x",
    "string": "s",
    "float": "s",
    "double": "s",
}


class Writer:
    """Collects the operations, and the structures and lists that they refer to."""

    def __init__(self) -> None:
        self.model = botocore.session.get_session().get_service_model("s3")
        self.shapes: dict[str, Any] = {}

    def type_of(self, shape: Any) -> str:
        """The code of a scalar, or the name of a structure, list or map that is described."""
        if shape.type_name in SCALARS:
            if shape.type_name == "timestamp":
                form = shape.serialization.get("timestampFormat")
                return "d" if form == "iso8601" else "t"
            return SCALARS[shape.type_name]
        name = shape.name
        if name not in self.shapes:
            self.shapes[name] = {}
            if shape.type_name == "structure":
                self.shapes[name] = self.members(shape)
            elif shape.type_name == "list":
                member = shape.member
                described = {
                    "of": self.type_of(member),
                    "name": member.serialization.get("name", "member"),
                }
                self.shapes[name] = {"list": described}
            else:
                self.shapes[name] = {"map": True}
        return name

    def members(self, shape: Any) -> dict[str, Any]:
        """By parameter: its type, then its name in the request where that differs, then its place:
        ``u`` path, ``q`` query, ``h`` header, ``m`` headers of metadata, ``a`` XML attribute, ``f``
        repeated element, nothing for an element of the body."""
        out: dict[str, Any] = {}
        for name, member in shape.members.items():
            how = member.serialization
            wire = how.get("name", name)
            place = LOCATIONS.get(how.get("location", ""), "")
            if member.type_name == "list" and how.get("flattened"):
                wire = how.get("name") or member.member.serialization.get("name", name)
                place = "f"
            if how.get("xmlAttribute"):
                place = "a"
            described = [self.type_of(member), wire if wire != name or place else "", place]
            while not described[-1]:
                described.pop()
            out[name] = described[0] if len(described) == 1 else described
        return out

    def operation(self, operation: Any) -> dict[str, Any]:
        """The request and the answer of one operation."""
        path = operation.http["requestUri"]
        where, _, query = path.partition("?")
        out: dict[str, Any] = {"method": operation.http["method"], "path": where.count("{")}
        query = "&".join(one for one in query.split("&") if one and not one.startswith("x-id="))
        if query:
            out["query"] = query
        if (operation.http_checksum or {}).get("requestChecksumRequired"):
            out["checksum"] = True
        for side, shape in (("in", operation.input_shape), ("out", operation.output_shape)):
            if shape is None:
                continue
            out[side] = self.members(shape)
            payload = shape.serialization.get("payload")
            if payload:
                out[f"{side}_body"] = payload
        return out

    def described(self) -> dict[str, Any]:
        """All of it."""
        operations = {
            xform_name(name): self.operation(self.model.operation_model(name))
            for name in self.model.operation_names
            if name not in LEFT_OUT
        }
        return {
            "botocore": botocore.__version__,
            "operations": operations,
            "shapes": self.shapes,
        }


def main() -> int:
    """Writes the file, or reports whether it is stale."""
    described = Writer().described()
    groups = []
    for group in ("operations", "shapes"):
        lines = [
            f"{json.dumps(name)}:{json.dumps(one, separators=(',', ':'))}"
            for name, one in sorted(described[group].items())
        ]
        groups.append(f'"{group}":{{\n' + ",\n".join(lines) + "\n}")
    text = f'{{"botocore":"{described["botocore"]}",\n' + ",\n".join(groups) + "\n}\n"
    if "--check" in sys.argv[1:]:
        fresh = TARGET.exists() and TARGET.read_text() == text
        if not fresh:
            print(f"{TARGET.name} is stale: run python tools/s3_operations.py")
        return 0 if fresh else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
