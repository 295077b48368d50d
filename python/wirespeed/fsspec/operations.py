"""S3's operations by their names in boto3, as requests and answers of `wirespeed.Client.raw`.

``s3_operations.json`` describes them (written by ``tools/s3_operations.py``). This module reads a
description: it places parameters in the path, the query, headers and XML, and makes dictionaries of
answers. It sends nothing.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from difflib import get_close_matches
from email.utils import format_datetime, parsedate_to_datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import parse_qsl, quote, unquote_plus
from xml.etree import ElementTree as ET

from ..errors import ProtocolError, ServerError

if TYPE_CHECKING:
    from .._wirespeed import RawAnswer

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
# Left to the engine, which sends them with every request that needs them.
_SENT_ANYWAY = frozenset({"content-length", "x-amz-sdk-checksum-algorithm"})
# Names in listings that the server encodes when it is asked for `encoding-type=url`.
_ENCODED = frozenset(
    {"Key", "Prefix", "Delimiter", "Marker", "NextMarker", "KeyMarker", "NextKeyMarker"}
    | {"StartAfter"}
)
# Operations that boto3 asks for encoded names.
_LISTINGS = frozenset(
    {"list_objects", "list_objects_v2", "list_object_versions", "list_multipart_uploads"}
)
_INSTEAD = {
    "select_object_content": "its answer is a stream of events; use boto3",
    "get_object_torrent": "S3 no longer offers it",
    "create_session": "the engine makes sessions of directory buckets itself",
    "write_get_object_response": "it belongs to Object Lambda functions; use boto3",
}


class Request(NamedTuple):
    """The arguments of `wirespeed.Client.raw`."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@functools.cache
def _described() -> dict[str, Any]:
    text = files(__package__ or "wirespeed.fsspec").joinpath("s3_operations.json").read_text()
    return json.loads(text)


def names() -> list[str]:
    """The operations that can be sent."""
    return list(_described()["operations"])


def parameters(name: str) -> frozenset[str]:
    """The parameters of an operation."""
    return frozenset(_operation(name).get("in", {}))


@functools.cache
def s3_parameters() -> frozenset[str]:
    """The parameters of all operations on objects: what S3 knows and a verb may not."""
    found: set[str] = set()
    for one in ("put_object", "copy_object", "head_object", "create_multipart_upload"):
        found |= parameters(one)
    return frozenset(found)


def _operation(name: str) -> dict[str, Any]:
    known: dict[str, Any] = _described()["operations"]
    if name in known:
        return known[name]
    if name in _INSTEAD:
        raise NotImplementedError(f"{name} cannot be sent from here: {_INSTEAD[name]}")
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AttributeError(f"S3 has no operation {name!r}{hint}")


def _member(described: Any) -> tuple[str, str, str]:
    """Type, name in the request and place of a parameter."""
    if isinstance(described, str):
        return described, "", ""
    kind, wire, place = (*described, "", "")[:3]
    return kind, wire, place


# ---------------------------------------------------------------------- requests


def request(name: str, given: Mapping[str, Any]) -> Request:
    """The request of an operation.

    Raises:
        AttributeError: S3 has no operation of that name.
        NotImplementedError: it has, and it cannot be sent as one request with one answer.
        TypeError: a parameter is unknown or of the wrong type.
    """
    operation = _operation(name)
    known = operation.get("in", {})
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise TypeError(f"{name} has no parameter {', '.join(unknown)}")
    given = _completed(name, known, given)
    query = dict(parse_qsl(operation.get("query", ""), keep_blank_values=True))
    headers: dict[str, str] = {}
    where = {"Bucket": "", "Key": ""}
    body = b""
    for parameter, value in given.items():
        kind, wire, place = _member(known[parameter])
        if parameter == operation.get("in_body"):
            body = _body(wire or parameter, kind, value)
        elif place == "u":
            where[parameter] = str(value)
        elif place == "q":
            query[wire] = _text(kind, value, in_header=False)
        elif place == "m":
            headers |= {f"{wire}{one}".lower(): str(text) for one, text in value.items()}
        elif place == "h" and wire.lower() not in _SENT_ANYWAY:
            headers[wire.lower()] = _text(kind, value, in_header=True)
    if operation.get("checksum") and "content-md5" not in headers:
        headers["content-md5"] = _md5(body)
    if operation["path"] and not where["Bucket"]:
        raise TypeError(f"{name} needs Bucket")
    if operation["path"] > 1 and not where["Key"]:
        raise TypeError(f"{name} needs Key")
    return Request(operation["method"], where["Bucket"], where["Key"], query, headers, body)


def _completed(name: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with what boto3 adds to them; those that are None are left out."""
    out = {parameter: value for parameter, value in given.items() if value is not None}
    for parameter in ("SSECustomerKey", "CopySourceSSECustomerKey"):
        if parameter in out:
            key = out[parameter]
            key = key.encode() if isinstance(key, str) else bytes(key)
            out[parameter] = base64.b64encode(key).decode()
            out.setdefault(f"{parameter}MD5", _md5(key))
            out.setdefault(parameter.replace("Key", "Algorithm"), "AES256")
    if "CopySource" in out:
        out["CopySource"] = _copy_source(out["CopySource"])
    if name in _LISTINGS and "EncodingType" in known:
        out.setdefault("EncodingType", "url")
    return out


def _copy_source(source: Any) -> str:
    if isinstance(source, Mapping):
        source = cast(Mapping[str, Any], source)
        text = quote(f"{source['Bucket']}/{source['Key']}", safe="/~")
        version = source.get("VersionId")
    else:
        path, _, version = str(source).partition("?versionId=")
        text = quote(path, safe="/~")
    return f"{text}?versionId={quote(str(version), safe='~')}" if version else text


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _body(wire: str, kind: str, value: Any) -> bytes:
    if kind in ("x", "s"):
        if hasattr(value, "read"):
            value = value.read()
        return value.encode() if isinstance(value, str) else bytes(value)
    root = ET.Element(wire)
    root.set("xmlns", _NAMESPACE)
    _fill(root, kind, value)
    return ET.tostring(root, encoding="utf-8")


def _fill(node: ET.Element, kind: str, value: Any) -> None:
    members = _described()["shapes"][kind]
    if not isinstance(value, Mapping):
        raise TypeError(f"{node.tag} must be a mapping, not {type(value).__name__}")
    for name, one in cast(Mapping[str, Any], value).items():
        if name not in members:
            raise TypeError(f"{node.tag} has no member {name!r}; known are {', '.join(members)}")
        if one is not None:
            kind, wire, place = _member(members[name])
            _append(node, wire or name, kind, place, one)


def _append(node: ET.Element, name: str, kind: str, place: str, value: Any) -> None:
    if place == "a":
        node.set("xmlns:xsi", _INSTANCE)
        node.set(name, str(value))
        return
    shape = _described()["shapes"].get(kind)
    if shape is None:
        ET.SubElement(node, name).text = _text(kind, value, in_header=False)
    elif "list" in shape:
        inside = shape["list"]
        into = node if place == "f" else ET.SubElement(node, name)
        for one in value:
            _append(into, name if place == "f" else inside["name"], inside["of"], "", one)
    else:
        _fill(ET.SubElement(node, name), kind, value)


def _text(kind: str, value: Any, *, in_header: bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind in ("t", "d") and isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if kind == "t" and in_header:
            return format_datetime(value, usegmt=True)
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, cast(list[Any], value)))
    return str(value)


# ---------------------------------------------------------------------- answers


def result(name: str, answer: RawAnswer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of an operation with these parameters, as boto3 returns it.

    Raises:
        ServerError: the answer is an error in spite of its status.
        ProtocolError: the answer cannot be read.
    """
    operation = _operation(name)
    members: Mapping[str, Any] = operation.get("out", {})
    headers = answer.headers
    out: dict[str, Any] = {
        "ResponseMetadata": {
            "HTTPStatusCode": answer.status,
            "HTTPHeaders": headers,
            "RequestId": headers.get("x-amz-request-id", ""),
        }
    }
    for member, described in members.items():
        kind, wire, place = _member(described)
        if place == "m":
            prefix = wire.lower()
            out[member] = {
                one[len(prefix) :]: text for one, text in headers.items() if one.startswith(prefix)
            }
        elif place == "h" and wire.lower() in headers:
            out[member] = _value(kind, headers[wire.lower()])
    whole = operation.get("out_body")
    if whole is not None and _member(members[whole])[0] in ("s", "x"):
        text = answer.body
        out[whole] = text.decode() if _member(members[whole])[0] == "s" else text
        return out
    inside = {m: one for m, one in members.items() if _member(one)[2] in ("", "f")}
    if not inside and not answer.body.lstrip().startswith(b"<"):
        return out  # what some servers write where S3 writes nothing
    if answer.body.strip():
        root = _parsed(subject(name, given), answer.body)
        if name == "get_bucket_location":
            out["LocationConstraint"] = root.text or None
        elif whole is not None:
            out[whole] = _structure(root, _member(members[whole])[0])
        else:
            out |= _members(root, inside)
    if out.get("EncodingType") == "url" and name in _LISTINGS:
        out = _decoded(out)
    return out


def subject(name: str, given: Mapping[str, Any]) -> str:
    """The operation and its object, for errors."""
    return f"{name} s3://{given.get('Bucket', '')}/{given.get('Key', '')}"


def needed(what: str, answer: Mapping[str, Any], *path: str) -> Any:
    """A member of an answer that S3 always sends.

    Raises:
        ProtocolError: it is missing, so that the status proves nothing.
    """
    value: Any = answer
    for member in path:
        value = value.get(member) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not value:
        raise ProtocolError(
            f"{what} was answered without {path[-1]}, which S3 always sends; check the endpoint"
        )
    return value  # pyright: ignore[reportUnknownVariableType]


def _parsed(what: str, body: bytes) -> ET.Element:
    if b"<!DOCTYPE" in body:
        raise ProtocolError(f"{what}: the answer has a document type, which S3's never have")
    try:
        root = ET.fromstring(body)
    except ET.ParseError as error:
        raise ProtocolError(f"{what}: the answer is not XML: {error}") from None
    if root.tag.rpartition("}")[2] == "Error":
        found = {one.tag.rpartition("}")[2]: one.text or "" for one in root}
        code = found.get("Code", "")
        message = found.get("Message", "")
        raise ServerError(f"{what}: {message!r} ({code!r}, in the body of a success)", code=code)
    return root


def _structure(node: ET.Element, kind: str) -> Any:
    shape = _described()["shapes"].get(kind)
    if shape is None:
        return _value(kind, node.text or "")
    if "list" in shape:
        return [_structure(one, shape["list"]["of"]) for one in node]
    return _members(node, shape)


def _members(node: ET.Element, members: Mapping[str, Any]) -> dict[str, Any]:
    children: dict[str, list[ET.Element]] = {}
    for child in node:
        children.setdefault(child.tag.rpartition("}")[2], []).append(child)
    out: dict[str, Any] = {}
    for member, described in members.items():
        kind, wire, place = _member(described)
        if place == "a":
            text = node.get(f"{{{_INSTANCE}}}{wire.partition(':')[2]}")
            if text is not None:
                out[member] = text
            continue
        found = children.get(wire or member)
        if not found:
            continue
        if place == "f":
            inside = _described()["shapes"][kind]["list"]["of"]
            out[member] = [_structure(one, inside) for one in found]
        else:
            out[member] = _structure(found[0], kind)
    return out


def _value(kind: str, text: str) -> Any:
    try:
        if kind == "i":
            return int(text)
        if kind in ("t", "d"):
            if text[:4].isdigit():
                return datetime.fromisoformat(text)
            return parsedate_to_datetime(text)
    except ValueError:
        return text
    return text.strip().lower() == "true" if kind == "b" else text


def _decoded(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        named = cast(dict[str, Any], value)
        return {one: _decoded(inside, one) for one, inside in named.items()}
    if isinstance(value, list):
        return [_decoded(one) for one in cast(list[Any], value)]
    return unquote_plus(value) if name in _ENCODED and isinstance(value, str) else value
