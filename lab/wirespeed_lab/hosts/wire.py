"""Lines between a coordinator and an agent, and how each knows the other.

A line is one JSON object (NDJSON over TCP) whose length is bounded: 4 KiB until both sides have
shown that they hold the token, 64 MiB from then on, which is a plan of about a million objects.

The handshake is a challenge: each side sends a nonce and answers with an HMAC-SHA-256 over both,
so the token itself is never sent, and a recorded handshake opens nothing. The coordinator
answers first; to a peer that can't, an agent says nothing of itself. From then on each line ends
with a `mac` under a key of this session, over its direction, its place and its text: a line that
was altered, repeated or slipped in by another ends the session. Nothing is encrypted. What is sent
is a plan and its samples, never a credential.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import re
import secrets
from pathlib import Path

#: Of the conversation between coordinator and agent; the drivers' own protocol has another.
PROTOCOL = 1
BEFORE_TRUST = 4096
LONGEST_LINE = 64 << 20
#: Characters of a token: 32 hexadecimal ones are 128 bits.
SHORTEST_TOKEN = 32
#: Seconds for a step of the handshake.
HANDSHAKE_LIMIT = 10.0

_NONCE = re.compile(r"[0-9a-f]{64}")
_MAC_FIELD = ',"mac":"'
_MAC_TAIL = len(_MAC_FIELD) + 64 + len('"}')


class WireError(Exception):
    """The other side closed, said something that is no line of this protocol, or said nothing."""


class NotTrusted(WireError):
    """The other side doesn't hold the same token, or a line isn't its own."""


class Refused(WireError):
    """The other side refused, and this is its reason."""


def read_token(path: Path) -> bytes:
    """The shared token, from a file that only its owner can read. Raises ValueError with what to
    do about it, and OSError."""
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} can be read by others: `chmod 600 {path}`")
    token = path.read_bytes().strip()
    if len(token) < SHORTEST_TOKEN:
        raise ValueError(
            f"{path} holds {len(token)} characters, and a token has at least {SHORTEST_TOKEN}: "
            f"make one with `(umask 077; openssl rand -hex 32 > {path})`"
        )
    return token


class Line:
    """A connection that speaks in lines. ``name`` is how errors call the other side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str):
        self.name = name
        self._reader = reader
        self._writer = writer
        self._rest = bytearray()
        self._sending = asyncio.Lock()
        self._key: bytes | None = None
        self._sends = self._receives = ""
        self._sent = self._received = 0

    async def send(self, message: dict) -> None:
        """Sends one line. Raises WireError when the other side is gone."""
        text = json.dumps(message, separators=(",", ":"))
        if len(text) + _MAC_TAIL >= self._bound:
            raise WireError(
                f"a line of {len(text)} bytes is more than {self.name} takes ({self._bound}): "
                "run the workload at a smaller scale"
            )
        async with self._sending:
            if self._key is not None:
                mac = self._mac(self._sends, self._sent, text.encode())
                text = f'{text[:-1]}{_MAC_FIELD}{mac}"}}'
                self._sent += 1
            try:
                self._writer.write(text.encode() + b"\n")
                await self._writer.drain()
            except OSError as error:
                raise WireError(f"{self.name} is gone: {error}") from None

    async def receive(self, limit_s: float | None = None) -> dict:
        """The next line. Raises WireError, also when none came for ``limit_s`` seconds, NotTrusted,
        and Refused for a line that says so."""
        try:
            async with asyncio.timeout(limit_s):
                raw = await self._raw()
        except TimeoutError:
            raise WireError(f"{self.name} said nothing for {limit_s:g} s") from None
        except OSError as error:
            raise WireError(f"{self.name} is gone: {error}") from None
        if self._key is not None:
            raw = self._checked(raw)
        try:
            message = json.loads(raw)
        except (ValueError, RecursionError):
            raise WireError(f"{self.name} sent what is no JSON: {bytes(raw[:80])!r}") from None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise WireError(f"{self.name} sent an object without a type: {bytes(raw[:80])!r}")
        if message["type"] == "refused":
            raise Refused(f"{self.name} refused: {str(message.get('reason'))[:2000]}")
        return message

    async def expect(self, kind: str, limit_s: float) -> dict:
        """The next line, which must be of this type."""
        message = await self.receive(limit_s)
        if message["type"] != kind:
            raise WireError(f"{self.name} sent {message['type'][:40]!r} where {kind!r} was due")
        return message

    def secure(self, key: bytes, sends: str, receives: str) -> None:
        """From here on each line carries a mac."""
        self._key, self._sends, self._receives = key, sends, receives

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), 5)

    @property
    def _bound(self) -> int:
        return BEFORE_TRUST if self._key is None else LONGEST_LINE

    async def _raw(self) -> bytes:
        searched = 0
        while (end := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if searched >= self._bound:
                raise WireError(f"{self.name} sent a line of more than {self._bound} bytes")
            chunk = await self._reader.read(1 << 16)
            if not chunk:
                raise WireError(f"{self.name} closed the connection")
            self._rest += chunk
        if end >= self._bound:
            raise WireError(f"{self.name} sent a line of more than {self._bound} bytes")
        raw = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return raw

    def _checked(self, raw: bytes) -> bytes:
        body, tail = raw[:-_MAC_TAIL], raw[-_MAC_TAIL:]
        text = body + b"}"
        said = tail[len(_MAC_FIELD) : -2]
        if not tail.startswith(_MAC_FIELD.encode()) or not hmac.compare_digest(
            said, self._mac(self._receives, self._received, text).encode()
        ):
            raise NotTrusted(f"a line that came from {self.name} is not its own")
        self._received += 1
        return text

    def _mac(self, direction: str, place: int, text: bytes) -> str:
        said = f"{direction} {place} ".encode() + text
        return hmac.new(self._key or b"", said, hashlib.sha256).hexdigest()


async def greet(line: Line, token: bytes) -> None:
    """The coordinator's half of the handshake. Raises WireError, NotTrusted, Refused."""
    mine = secrets.token_hex(32)
    await line.send({"type": "hello", "protocol": PROTOCOL, "nonce": mine})
    challenge = await line.expect("challenge", HANDSHAKE_LIMIT)
    if challenge.get("protocol") != PROTOCOL:
        raise WireError(_other_protocol(line.name, challenge.get("protocol")))
    theirs = _nonce(line, challenge)
    await line.send({"type": "answer", "proof": _proof(token, "coordinator", mine, theirs)})
    welcome = await line.expect("welcome", HANDSHAKE_LIMIT)
    if not _same(welcome.get("proof"), _proof(token, "agent", mine, theirs)):
        raise NotTrusted(f"{line.name} does not hold the token")
    line.secure(_session(token, mine, theirs), "coordinator", "agent")


async def admit(line: Line, token: bytes) -> None:
    """The agent's half. Raises WireError, NotTrusted; the other side is told the reason."""
    try:
        hello = await line.expect("hello", HANDSHAKE_LIMIT)
        if hello.get("protocol") != PROTOCOL:
            raise WireError(_other_protocol(line.name, hello.get("protocol")))
        theirs = _nonce(line, hello)
        mine = secrets.token_hex(32)
        await line.send({"type": "challenge", "protocol": PROTOCOL, "nonce": mine})
        answer = await line.expect("answer", HANDSHAKE_LIMIT)
        if not _same(answer.get("proof"), _proof(token, "coordinator", theirs, mine)):
            raise NotTrusted("the tokens differ: give both sides the same file")
    except WireError as error:
        with contextlib.suppress(WireError):
            await line.send({"type": "refused", "reason": str(error)})
        raise
    await line.send({"type": "welcome", "proof": _proof(token, "agent", theirs, mine)})
    line.secure(_session(token, theirs, mine), "agent", "coordinator")


def _other_protocol(name: str, said: object) -> str:
    return (
        f"{name} speaks protocol {str(said)[:20]} and this side {PROTOCOL}: "
        "install the same version of the lab on both"
    )


def _nonce(line: Line, message: dict) -> str:
    nonce = message.get("nonce")
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise WireError(f"{line.name} sent no nonce of 32 bytes")
    return nonce


def _proof(token: bytes, role: str, coordinator: str, agent: str) -> str:
    said = f"wirespeed-lab {PROTOCOL} {role} {coordinator} {agent}".encode()
    return hmac.new(token, said, hashlib.sha256).hexdigest()


def _session(token: bytes, coordinator: str, agent: str) -> bytes:
    return bytes.fromhex(_proof(token, "session", coordinator, agent))


def _same(said: object, proof: str) -> bool:
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof.encode())
