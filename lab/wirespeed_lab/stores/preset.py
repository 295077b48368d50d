"""Presets of the modelled store: what is known of a real one, its source, and by how much it is
scaled to fit a machine. Compiles to the embedded server's flags; measures nothing.

Bytes are scaled, time is not: every rate and every credit is multiplied by one factor, times to
the first byte and requests a second stay as they are. A plan whose sizes and parts are scaled by
the same factor so takes as long as the true one takes, with as many requests in flight. Where a
burst lasts for minutes, the time that its credit lasts is shortened by a factor of its own.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plans import fields
from ..plans.fields import BadInput, Fields

FOLDER = Path(__file__).parent / "presets"
SIZE_LIMIT = 1 << 20
_RATE = re.compile(r"(\d+(?:\.\d+)?) ?([kMG]bit|[kMG]?B)/s")
_UNITS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_UNITS |= {"kbit": 1e3 / 8, "Mbit": 1e6 / 8, "Gbit": 1e9 / 8}


class BadPreset(BadInput):
    """A preset that is not there or cannot be understood; the text names the file and the field."""


@dataclasses.dataclass(frozen=True)
class FirstByte:
    """Milliseconds to an answer's first byte: always ``p50``, or log-normal with these."""

    p50: float
    p95: float | None = None


@dataclasses.dataclass(frozen=True)
class Nic:
    """Bytes a second that all connections share each way: ``burst`` until ``credit`` bytes beyond
    ``baseline`` are spent."""

    baseline: float
    burst: float
    credit: float = 0.0

    @property
    def burst_seconds(self) -> float:
        """For how long all of it can be used."""
        return self.credit / (self.burst - self.baseline) if self.burst > self.baseline else 0.0


@dataclasses.dataclass(frozen=True)
class Claims:
    """What the server is to be like, in milliseconds, bytes a second and requests a second; None
    where it has no limit of that kind."""

    first_byte: FirstByte | None = None
    down: float | None = None
    up: float | None = None
    nic: Nic | None = None
    reads: float | None = None
    writes: float | None = None


@dataclasses.dataclass(frozen=True)
class Preset:
    """One store. ``true`` is what is known of it, ``claims`` what the server is told: the same,
    scaled. ``sources`` says of each claim where it is from."""

    name: str
    title: str
    bytes_factor: float
    burst_factor: float
    why: str
    true: Claims
    claims: Claims
    sources: Mapping[str, str]

    def flags(self) -> tuple[str, ...]:
        """Flags of the embedded server."""
        claims, found = self.claims, ["--model-seed", "1"]
        if (first := claims.first_byte) is not None:
            latest = "" if first.p95 is None else f"..{first.p95:g}ms"
            found += ["--first-byte", f"{first.p50:g}ms{latest}"]
        if claims.down is not None:
            found += ["--connection-down", f"{claims.down:.0f}B/s"]
        if claims.up is not None:
            found += ["--connection-up", f"{claims.up:.0f}B/s"]
        if (nic := claims.nic) is not None:
            bursts = f",{nic.burst:.0f}B/s,{nic.credit:.0f}B" if nic.credit else ""
            found += ["--nic", f"{nic.baseline:.0f}B/s{bursts}"]
        if claims.reads is not None:
            found += ["--prefix-requests", f"{claims.reads:g},{claims.writes:g}"]
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """What a record says of it: enough to make it again."""
        return dataclasses.asdict(self) | {"sources": dict(self.sources), "flags": self.flags()}


def preset_names() -> list[str]:
    """The lab's own, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_preset(name_or_path: str | Path) -> Preset:
    """The preset of that name, or in that file when it ends in ``.toml`` or has a folder. Raises
    BadPreset."""
    text = str(name_or_path)
    by_path = isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text
    if not by_path and text not in preset_names():
        raise BadPreset(
            f"there is no preset {text!r}: there are {', '.join(preset_names())}; a file of your "
            "own is named with its path"
        )
    path = Path(text) if by_path else FOLDER / f"{text}.toml"
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise BadPreset(f"{path}: longer than {SIZE_LIMIT} bytes: no preset is")
        table = tomllib.loads(content.decode())
    except OSError as error:
        raise BadPreset(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPreset(f"{path}: is not TOML: {error}") from None
    return _preset(path, table)


def _preset(path: Path, table: dict[str, Any]) -> Preset:
    given = Fields(table, str(path), BadPreset)
    title = given.take("title", fields.text)
    bytes_factor, burst_factor, why = 1.0, 1.0, "nothing is scaled"
    if given.has("scale"):
        scale = given.table("scale")
        bytes_factor = scale.take("bytes", fields.number(1e-6, 1.0), 1.0)
        burst_factor = scale.take("burst_time", fields.number(1e-6, 1.0), 1.0)
        why = scale.take("why", fields.text)
        scale.done()
    sources: dict[str, str] = {}
    true = _claims(given, sources)
    given.done(("title", "scale", "first_byte", "connection", "nic", "prefix"))
    return Preset(
        path.stem, title, bytes_factor, burst_factor, why, true,
        _scaled(true, bytes_factor, burst_factor), sources,
    )  # fmt: skip


def _claims(given: Fields, sources: dict[str, str]) -> Claims:
    """The claims as they are in the file; every table must say its source."""
    found: dict[str, Any] = {}
    time, requests = fields.number(0.001, 600_000), fields.number(0.001, 1e9)

    def table(name: str) -> Fields | None:
        if not given.has(name):
            return None
        opened = given.table(name)
        sources[name] = opened.take("source", fields.text)
        return opened

    if first := table("first_byte"):
        if first.has("constant_ms"):
            found["first_byte"] = FirstByte(first.take("constant_ms", time))
        else:
            p50 = first.take("p50_ms", time)
            found["first_byte"] = FirstByte(p50, first.take("p95_ms", fields.number(p50, 600_000)))
        first.done(("constant_ms", "p50_ms", "p95_ms", "source"))
    if connection := table("connection"):
        found["down"] = connection.take("down", _rate, None)
        found["up"] = connection.take("up", _rate, None)
        connection.done(("down", "up", "source"))
    if nic := table("nic"):
        baseline = nic.take("baseline", _rate)
        burst, seconds = baseline, 0.0
        if nic.has("burst"):
            burst = nic.take("burst", _rate)
            seconds = nic.take("burst_seconds", fields.number(0.001, 1e6))
        if burst < baseline:
            raise nic.bad("burst", "at least the baseline", burst)
        found["nic"] = Nic(baseline, burst, (burst - baseline) * seconds)
        nic.done(("baseline", "burst", "burst_seconds", "source"))
    if prefix := table("prefix"):
        found["reads"] = prefix.take("reads", requests)
        found["writes"] = prefix.take("writes", requests)
        prefix.done(("reads", "writes", "source"))
    return Claims(**found)


def _scaled(true: Claims, by: float, burst: float) -> Claims:
    nic = true.nic and Nic(
        true.nic.baseline * by, true.nic.burst * by, true.nic.credit * by * burst
    )
    return dataclasses.replace(
        true,
        down=true.down and true.down * by,
        up=true.up and true.up * by,
        nic=nic,
    )


def _rate(value: Any) -> float:
    """Bytes a second."""
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    rate = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if rate < 1:
        raise ValueError('a rate above 0, such as "90 MB/s" or "5 Gbit/s"')
    return rate
