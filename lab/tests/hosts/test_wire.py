"""Lines and the handshake: what is let in, and what is not."""

import asyncio
import json
import re

import pytest
from wirespeed_lab.hosts import wire

TOKEN = b"0123456789abcdef0123456789abcdef"


class Tap:
    """Collects every byte that passes, and may alter lines on their way."""

    def __init__(self):
        self.passed = b""
        self.alter = lambda line: [line]

    async def pump(self, reader, writer):
        while line := await reader.readline():
            self.passed += line
            for altered in self.alter(line):
                writer.write(altered)
        writer.close()


async def pair(agent, coordinator, tap=None):
    """Runs both halves over TCP, through a tap on the way to the agent; returns what each gave."""
    tap = tap or Tap()
    done = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        line = wire.Line(reader, writer, "the coordinator")
        try:
            done.set_result(await agent(line))
        except wire.WireError as error:
            done.set_result(error)
        finally:
            await line.close()

    async def between(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection(*there)
        await asyncio.gather(tap.pump(reader, inner_writer), tap.pump(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    there = server.sockets[0].getsockname()
    middle = await asyncio.start_server(between, "127.0.0.1", 0)
    async with server, middle:
        line = wire.Line(
            *await asyncio.open_connection(*middle.sockets[0].getsockname()), "the agent"
        )
        try:
            said = await coordinator(line)
        except wire.WireError as error:
            said = error
        await line.close()
        return await asyncio.wait_for(done, 10), said


def run(agent, coordinator, tap=None):
    return asyncio.run(pair(agent, coordinator, tap))


async def admit_and_answer(line):
    await wire.admit(line, TOKEN)
    heard = []
    while True:
        message = await line.receive(10)
        heard.append(message)
        if message["type"] == "bye":
            return heard
        await line.send({"type": "echo", "of": message})


async def greet_and_ask(line):
    await wire.greet(line, TOKEN)
    answers = []
    for n in range(3):
        await line.send({"type": "ask", "n": n, "text": "Ä\n\u2028"})
        answers.append(await line.expect("echo", 10))
    await line.send({"type": "bye"})
    return answers


def test_lines_arrive_as_they_were_sent_and_the_token_never_passes():
    tap = Tap()
    heard, answers = run(admit_and_answer, greet_and_ask, tap)
    assert [message.get("n") for message in heard] == [0, 1, 2, None]
    assert answers == [{"type": "echo", "of": message} for message in heard[:3]]
    assert TOKEN not in tap.passed
    assert all(isinstance(json.loads(line), dict) for line in tap.passed.splitlines())


def test_another_token_is_refused_and_the_reason_is_told():
    async def greet(line):
        await wire.greet(line, TOKEN[::-1])

    agent, coordinator = run(admit_and_answer, greet)
    assert isinstance(agent, wire.NotTrusted)
    assert isinstance(coordinator, wire.Refused)
    assert "tokens differ" in str(coordinator)


def test_an_agent_that_lacks_the_token_is_not_believed():
    async def pretend(line):
        await line.expect("hello", 10)
        await line.send({"type": "challenge", "protocol": wire.PROTOCOL, "nonce": "ab" * 32})
        answer = await line.expect("answer", 10)
        # The coordinator's own proof does not serve as the agent's.
        await line.send({"type": "welcome", "proof": answer["proof"]})

    _, coordinator = run(pretend, lambda line: wire.greet(line, TOKEN))
    assert isinstance(coordinator, wire.NotTrusted)
    assert "does not hold the token" in str(coordinator)


def alter_line(number, change):
    """A tap's alteration of the given line that names an `ask`."""
    seen = 0

    def alter(line):
        nonlocal seen
        if b'"type":"ask"' not in line or b"echo" in line:
            return [line]
        seen += 1
        return change(line) if seen == number else [line]

    return alter


@pytest.mark.parametrize(
    "change",
    [
        lambda line: [line.replace(b'"n":1', b'"n":7')],
        lambda line: [line, line],
        lambda line: [b'{"type":"abort"}\n', line],
        lambda line: [],
        lambda line: [re.sub(b',"mac":"[0-9a-f]*"', b"", line)],
    ],
    ids=["altered", "repeated", "slipped in", "dropped", "without a mac"],
)
def test_a_line_that_another_touched_ends_the_session(change):
    tap = Tap()
    tap.alter = alter_line(2, change)

    async def greet_and_send(line):
        await wire.greet(line, TOKEN)
        for n in range(3):
            await line.send({"type": "ask", "n": n})
        while True:
            await line.receive(10)

    agent, _ = run(admit_and_answer, greet_and_send, tap)
    assert isinstance(agent, wire.NotTrusted)


def test_another_protocol_is_named():
    async def greet(line):
        await line.send({"type": "hello", "protocol": 9, "nonce": "00" * 32})
        await line.receive(10)

    agent, coordinator = run(admit_and_answer, greet)
    assert "speaks protocol 9 and this side 1" in str(agent)
    assert "same version of the lab" in str(coordinator)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\xff\xfe\n", "no JSON"),
        (b"[1]\n", "without a type"),
        (b'{"type":3}\n', "without a type"),
        (b"[" * 3000 + b"\n", "no JSON|without a type"),
        (b"x" * 5000 + b"\n", "more than 4096 bytes"),
        (b"x" * 5000, "more than 4096 bytes"),
        (b'{"type":"go"}\n', "where 'hello' was due"),
        (b'{"type":"hello","protocol":1,"nonce":"zz"}\n', "no nonce"),
        (b'{"type":"hello","protocol":1,"nonce":5}\n', "no nonce"),
        (b"", "closed the connection"),
    ],
)
def test_a_stranger_is_turned_away_with_what_was_wrong(sent, said):
    async def speak(line):
        line._writer.write(sent)
        line._writer.write_eof()
        await line._reader.read()

    agent, _ = run(admit_and_answer, speak, StrangersTap())
    assert isinstance(agent, wire.WireError)
    assert re.search(said, str(agent))


class StrangersTap(Tap):
    """Passes bytes as they come: a stranger's need not be lines."""

    async def pump(self, reader, writer):
        while chunk := await reader.read(1000):
            writer.write(chunk)
        writer.close()


def test_silence_ends_a_wait():
    async def silent(line):
        await line._reader.read()

    async def wait(line):
        return await line.receive(0.05)

    agent, _ = run(wait, lambda line: silent_then_close(line))
    assert "said nothing for 0.05 s" in str(agent)


async def silent_then_close(line):
    await line._reader.read()


def test_a_line_too_long_is_not_sent():
    async def send(line):
        await line.send({"type": "hello", "filler": "x" * wire.BEFORE_TRUST})

    _, coordinator = run(admit_and_answer, send)
    assert "smaller scale" in str(coordinator)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [(b"short\n", 0o600, "at least 32"), (TOKEN, 0o640, "chmod 600")],
)
def test_a_token_that_is_short_or_open_is_refused(tmp_path, text, mode, said):
    file = tmp_path / "token"
    file.write_bytes(text)
    file.chmod(mode)
    with pytest.raises(ValueError, match=said):
        wire.read_token(file)


def test_a_token_is_read_without_its_line_end(tmp_path):
    file = tmp_path / "token"
    file.write_bytes(TOKEN + b"\n")
    file.chmod(0o600)
    assert wire.read_token(file) == TOKEN
