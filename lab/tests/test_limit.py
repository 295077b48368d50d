"""The limit driver against a small server: right bytes, and errors that say what was wrong."""

import hashlib
import http.server
import json
import socket
import subprocess
import threading
import urllib.parse

import pytest
from wirespeed_lab import places

FOLDER = places.DRIVERS / "limit"
SIZE = 3_000_001
CONTENT = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(SIZE // 32 + 1))[:SIZE]
KEYS = [f"a&b-{n:05d}" for n in range(2_345)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if "list-type" in query:
            return self.answer(200, page(query.get("continuation-token", ["0"])[0]))
        name = url.path.rpartition("/")[2]
        if name == "short":
            self.send_response(206)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
            self.wfile.flush()
            self.close_connection = True
            return None
        if name == "chunked":
            self.send_response(206)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"0\r\n\r\n")
            return None
        if name == "absent":
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        if "Range" not in self.headers:
            number = int(name.split("-")[1].split(".")[0])
            at = number * 100
            # Heads of different lengths, which a loop must not confuse with bodies.
            return self.answer(200, CONTENT[at : at + 20_000], X_Padding="p" * (number % 7 * 50))
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        body = CONTENT[first : last + 1]
        self.answer(
            206, body, Content_Range=f"bytes {first}-{last}/{SIZE}", X_Pad="p" * (first % 97)
        )
        if name == "closing":
            self.close_connection = True
        return None

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("denied0"):
            return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        self.server.stored[self.path] = body
        return self.answer(200, b"", ETag='"e"')


def page(token):
    start = int(urllib.parse.unquote(token).removesuffix("=/+"))
    keys = KEYS[start : start + 1000]
    entries = "".join(
        f"<Contents><Key>{key.replace('&', '&amp;')}</Key><ETag>&quot;{n}&quot;</ETag>"
        f"<Size>{n}</Size></Contents>"
        for n, key in enumerate(keys)
    )
    more = start + 1000 < len(KEYS)
    after = f"<NextContinuationToken>{start + 1000}=/+</NextContinuationToken>" if more else ""
    return (
        f'<?xml version="1.0"?><ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>'
        f"{after}{entries}</ListBucketResult>"
    ).encode()


@pytest.fixture(scope="session")
def limit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    subprocess.run(["make", "-s", "-C", FOLDER, f"BUILD={folder}"], check=True)
    return folder / "limit"


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that gives up resets its connections: no news here."""


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as running:
        running.stored = {}
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def drive(limit, server):
    def run(*arguments, go=None):
        endpoint = f"http://127.0.0.1:{server.server_port}"
        command = [limit, "--endpoint", endpoint, "--bucket", "b", "--timeout", "5", *arguments]
        return subprocess.run(
            [str(word) for word in command], input=go, capture_output=True, text=True, timeout=60
        )

    return run


@pytest.mark.parametrize("mark", ["0", "64KiB", "4MiB"])
@pytest.mark.parametrize("key", ["plain", "closing"])
def test_ranges_land_at_their_offsets(drive, tmp_path, mark, key):
    dump = tmp_path / "dump"
    done = drive(
        *("--mode", "get", "--key", key, "--size", SIZE, "--part", "300KiB"),
        *("--connections", 3, "--rcvlowat", mark, "--rounds", 2, "--dump", dump),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert dump.read_bytes() == CONTENT
    assert [r["bytes"] for r in report["rounds"]] == [SIZE, SIZE]
    assert [r["requests"] for r in report["rounds"]] == [10, 10]
    assert report["operation"] == "get"
    assert report["peak_rss_bytes"] > SIZE


def test_many_objects_land_one_after_the_other(drive, tmp_path):
    dump = tmp_path / "dump"
    done = drive(
        *("--mode", "get", "--keys-prefix", "o-", "--keys-suffix", ".bin", "--digits", 4),
        *("--count", 200, "--size", 20_000, "--connections", 4, "--dump", dump),
    )
    assert done.returncode == 0, done.stderr
    assert dump.read_bytes() == b"".join(CONTENT[n * 100 : n * 100 + 20_000] for n in range(200))
    assert json.loads(done.stdout)["rounds"][0]["objects"] == 200


def test_fresh_memory_gets_the_same_bytes(drive, tmp_path):
    dump = tmp_path / "dump"
    done = drive(
        "--mode", "get", "--key", "k", "--size", SIZE, "--cold", "--rounds", 2, "--dump", dump
    )
    assert done.returncode == 0, done.stderr
    assert dump.read_bytes() == CONTENT


def test_discarding_counts_every_byte(drive):
    done = drive(
        *("--mode", "get", "--key", "k", "--size", SIZE, "--part", "1MiB"),
        *("--sink", "discard", "--scratch", "64KiB", "--rcvlowat", "256KiB", "--rounds", 2),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"][1]["bytes"] == SIZE


def test_reused_slots_move_every_byte(drive):
    done = drive(
        *("--mode", "get", "--keys-prefix", "o-", "--digits", 4, "--count", 2000),
        *("--size", 20_000, "--connections", 4, "--reuse"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["rounds"][0]["bytes"] == 2000 * 20_000
    # The program itself is some 4 MB.
    assert report["peak_rss_bytes"] < 2000 * 20_000 / 2


def test_uploads_arrive_whole(drive, server):
    done = drive(
        "--mode", "put", "--key", "up-", "--size", SIZE, "--part", "1MiB", "--connections", 2
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rounds"][0]["bytes"] == SIZE
    parts = [server.stored[f"/b/up-{n}"] for n in range(3)]
    assert [len(part) for part in parts] == [1 << 20, 1 << 20, SIZE - (2 << 20)]
    assert parts[0][:8] != parts[1][:8]


def test_a_listing_follows_its_pages(drive):
    done = drive("--mode", "list", "--connections", 1, "--rounds", 2)
    assert done.returncode == 0, done.stderr
    for one in json.loads(done.stdout)["rounds"]:
        assert (one["objects"], one["requests"]) == (len(KEYS), 3)


def test_steps_run_one_round_each(drive):
    done = drive("--mode", "get", "--key", "k", "--size", SIZE, "--step", go="go\ngo\n")
    ready, *rounds = done.stdout.splitlines()
    assert done.returncode == 0
    assert ready == "ready"
    assert [json.loads(line)["bytes"] for line in rounds] == [SIZE, SIZE]


def test_writing_a_file_replaces_it_whole(limit, tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    command = [limit, "--mode", "pwrite", "--size", "5MiB", "--part", "1MiB", "--path", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size == 5 << 20
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_step_leaves_no_file_behind(limit, tmp_path):
    command = [limit, "--mode", "pwrite", "--size", "1MiB", "--path", tmp_path / "out", "--step"]
    done = subprocess.run(command, input="go\n" * 2, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--mode", "get", "--key", "absent", "--size", "1000"), "404"),
        (("--mode", "get", "--key", "short", "--size", "1000"), "after 10 of 1000 body bytes"),
        (("--mode", "get", "--key", "chunked", "--size", "1000"), "not a response with"),
        (("--mode", "get", "--key", "k", "--size", str(SIZE + 10)), "got 206"),
        (("--mode", "put", "--key", "denied", "--size", "1000"), "403"),
        (("--mode", "get", "--key", "a b", "--size", "1000"), "would need escaping"),
    ],
)
def test_wrong_answers_end_the_run(drive, arguments, said):
    done = drive(*arguments, "--connections", 1)
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--mode", "walk"),
        ("--mode", "get", "--size", "12"),
        ("--mode", "get", "--key", "k", "--size", "12 parsecs"),
        ("--mode", "get", "--key", "k", "--size", "12", "--connections", "0"),
        ("--mode", "get", "--key", "k", "--size", "12", "--endpoint", "ftp://x"),
    ],
)
def test_senseless_arguments_are_refused(drive, arguments):
    done = drive(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("limit: ")


def test_nobody_there(limit):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        command = [
            limit,
            "--endpoint",
            endpoint,
            "--bucket",
            "b",
            "--mode",
            "get",
            "--key",
            "k",
            "--size",
            "9",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
