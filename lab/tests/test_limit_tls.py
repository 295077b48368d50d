"""The limit over TLS against the embedded server: right bytes, a verified server, clear errors."""

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest
from wirespeed_lab import places

SIZE = 3_000_001


@pytest.fixture(scope="session")
def limit():
    """The driver, built now unless WIRESPEED_LAB_DRIVERS says where drivers are."""
    if "WIRESPEED_LAB_DRIVERS" not in os.environ:
        environment = {k: v for k, v in os.environ.items() if k != "CARGO_TARGET_DIR"}
        command = ["cargo", "build", "--locked", "--quiet", "--release", "-p", "limit-tls"]
        subprocess.run(command, cwd=places.DRIVERS / "rust", env=environment, check=True)
    return places.rust_driver("limit-tls")


class Server:
    """wirespeed-origin over TLS, with one computed object and a bucket for uploads."""

    def __init__(self, folder, *arguments):
        self.ca = folder / "ca.pem"
        port = folder / "port"
        command = [
            *(places.target() / "debug" / "wirespeed-origin", "--tls", "--tls-ca-file", self.ca),
            *("--anonymous", "--port-file", port, "--bucket", "uploads"),
            *("--synthetic", f"bench=object:k,size:{SIZE}", *arguments),
        ]
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not (port.exists() and port.read_text().strip()):
            assert self.process.poll() is None, "the server did not start"
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.02)
        self.endpoint = f"https://127.0.0.1:{port.read_text().strip()}"

    def read(self, path):
        context = ssl.create_default_context(cafile=self.ca)
        with urllib.request.urlopen(f"{self.endpoint}/{path}", context=context) as answer:
            return answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("origin")) as running:
        yield running


def drive(limit, server, *arguments, go=None, ca=None):
    defaults = {"--endpoint": server.endpoint, "--ca": ca or server.ca, "--bucket": "bench"}
    command = [limit, "--timeout", 5, *arguments]
    for name, value in defaults.items():
        if name not in arguments:
            command += [name, value]
    return subprocess.run(
        [str(word) for word in command], input=go, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("mark", ["0", "64KiB", "4MiB"])
@pytest.mark.parametrize("scratch", ["32KiB", "1MiB"])
def test_ranges_are_decrypted_to_their_offsets(limit, server, tmp_path, mark, scratch):
    dump = tmp_path / "dump"
    done = drive(
        *(limit, server, "--mode", "get", "--key", "k", "--size", SIZE, "--part", "300KiB"),
        *("--connections", 3, "--rcvlowat", mark, "--scratch", scratch),
        *("--rounds", 2, "--dump", dump),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert dump.read_bytes() == server.read("bench/k")
    assert [r["bytes"] for r in report["rounds"]] == [SIZE, SIZE]
    assert [r["requests"] for r in report["rounds"]] == [10, 10]
    assert report["operation"] == "get"
    assert report["peak_rss_bytes"] > SIZE


@pytest.mark.parametrize(("sndbuf", "seal"), [("0", "16KiB"), ("64KiB", "1MiB")])
def test_uploads_are_sealed_whole(limit, server, sndbuf, seal):
    done = drive(
        *(
            limit,
            server,
            "--bucket",
            "uploads",
            "--mode",
            "put",
            "--key",
            f"{seal}-",
            "--size",
            SIZE,
        ),
        *("--part", "1MiB", "--connections", 2, "--sndbuf", sndbuf, "--seal", seal),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"][0]["bytes"] == SIZE
    stored = b"".join(server.read(f"uploads/{seal}-{n}") for n in range(3))
    words = range(1, SIZE // 8 + 1)
    pattern = b"".join((n * 0x9E3779B97F4A7C15 % (1 << 64)).to_bytes(8, "little") for n in words)
    assert stored[: len(pattern)] == pattern
    assert len(stored) == SIZE


def test_discarding_counts_every_byte(limit, server):
    done = drive(
        *(limit, server, "--mode", "get", "--key", "k", "--size", SIZE, "--part", "1MiB"),
        *("--sink", "discard", "--rcvlowat", "256KiB", "--rounds", 2),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"][1]["bytes"] == SIZE


def test_steps_run_one_round_each(limit, server):
    done = drive(
        *(limit, server, "--mode", "get", "--key", "k", "--size", SIZE, "--step"), go="go\ngo\n"
    )
    ready, *rounds = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert ready == "ready"
    assert [json.loads(line)["bytes"] for line in rounds] == [SIZE, SIZE]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--mode", "get", "--key", "absent", "--size", "1000"), "NoSuchKey"),
        (("--mode", "get", "--key", "k", "--size", str(SIZE + 10)), "got 206"),
        (("--mode", "put", "--key", "k", "--size", "1000", "--bucket", "none"), "NoSuchBucket"),
        (("--mode", "get", "--key", "a b", "--size", "1000"), "would need escaping"),
        (("--mode", "get", "--key", "k", "--size", "9", "--scratch", "1KiB"), "at least 32KiB"),
        (("--mode", "get", "--key", "k", "--size", "9", "--endpoint", "http://x:1"), "https://"),
    ],
)
def test_wrong_answers_end_the_run(limit, server, arguments, said):
    done = drive(limit, server, *arguments, "--connections", 1)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_body_that_ends_early_is_an_error(limit, tmp_path):
    with Server(tmp_path, "--fault", "action=close-after:1000000,key=k,times=1") as faulty:
        done = drive(limit, faulty, *("--mode", "get", "--key", "k", "--size", SIZE))
    assert done.returncode == 1
    assert "body bytes" in done.stderr


def test_a_server_of_another_authority_is_refused(limit, server, tmp_path):
    with Server(tmp_path) as other:
        done = drive(limit, server, *("--mode", "get", "--key", "k", "--size", 9), ca=other.ca)
    assert done.returncode == 1
    assert "invalid peer certificate" in done.stderr


def test_nobody_there(limit, server):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        done = drive(
            *(limit, server, "--endpoint", f"https://127.0.0.1:{port}"),
            *("--mode", "get", "--key", "k", "--size", "9"),
        )
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
