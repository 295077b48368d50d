"""The client itself: what it is told, what it says of itself, and how it ends and travels."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

import wirespeed

SECRET = "5ecret/+that+nobody/prints"
TOKEN = "t0ken/+that+nobody/prints"
VERBS = {
    "copy",
    "create_bucket",
    "delete",
    "delete_bucket",
    "delete_many",
    "download",
    "exists",
    "get",
    "get_into",
    "get_many",
    "get_ranges",
    "head",
    "list",
    "list_buckets",
    "presign",
    "put",
    "put_file",
    "put_many",
    "raw",
    "stream",
    "upload",
    "writer",
}


def with_secret(**settings: Any) -> wirespeed.Client:
    return wirespeed.Client(
        endpoint_url="http://127.0.0.1:9",
        region="us-east-1",
        access_key_id="AKEXAMPLE",
        secret_access_key=SECRET,
        session_token=TOKEN,
        **settings,
    )


def python(script: str, env: dict[str, str] | None = None) -> str:
    """What a fresh interpreter prints, which must print no errors."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
    return run.stdout.strip()


def test_settings_say_what_is_in_effect() -> None:
    client = wirespeed.Client(
        region="eu-west-3",
        concurrency=7,
        part_size="16MiB",
        memory=64 << 20,
        connect_timeout=2.5,
        stall_timeout="9s",
        verify_checksums=False,
        addressing_style="path",
        max_attempts=3,
    )
    settings = client.settings
    assert settings["region"] == "eu-west-3"
    assert settings["concurrency"] == "7"
    assert settings["part_size"] == "16MiB"
    assert settings["memory"] in ("64MiB", str(64 << 20))
    assert settings["connect_timeout"] == "2s 500ms"
    assert settings["stall_timeout"] == "9s"
    assert settings["verify_checksums"] == "false"
    assert settings["addressing_style"] == "path"
    assert settings["max_attempts"] == "3"
    assert all(type(name) is str and type(value) is str for name, value in settings.items())
    assert client.aio.settings == settings


def test_settings_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRESPEED_CONCURRENCY", "5")
    monkeypatch.setenv("AWS_REGION", "ap-southeast-2")
    assert wirespeed.Client().settings["concurrency"] == "5"
    assert wirespeed.Client().settings["region"] == "ap-southeast-2"
    assert wirespeed.Client(region="eu-west-3").settings["region"] == "eu-west-3"
    assert wirespeed.Client(region=None).settings["region"] == "ap-southeast-2"


@pytest.mark.parametrize(
    ("settings", "error", "advice"),
    [
        ({"concurrencies": 5}, TypeError, "did you mean concurrency"),
        ({"wibble_wobble": 5}, TypeError, "there are .*endpoint_url"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": -1}, ValueError, "concurrency"),
        ({"concurrency": "many"}, ValueError, "concurrency"),
        ({"concurrency": []}, TypeError, "concurrency is a str or a number, not list"),
        ({"part_size": "5 bananas"}, ValueError, "part_size"),
        ({"connect_timeout": -1}, ValueError, "connect_timeout is a time in seconds above zero"),
        ({"connect_timeout": float("nan")}, ValueError, "connect_timeout"),
        ({"connect_timeout": float("inf")}, ValueError, "connect_timeout"),
        ({"connect_timeout": 1e300}, ValueError, "connect_timeout"),
        ({"verify_tls": "perhaps"}, ValueError, "verify_tls"),
        ({"addressing_style": "upside-down"}, ValueError, "addressing_style"),
        ({"endpoint_url": "ftp://host"}, ValueError, "endpoint"),
        ({"endpoint_url": "http://"}, ValueError, "endpoint"),
        ({"endpoint_url": b"http://host"}, TypeError, "endpoint_url is a str"),
        ({"access_key_id": "AK"}, ValueError, "without secret_access_key"),
        ({"secret_access_key": "s"}, ValueError, "without access_key_id"),
        ({"session_token": "s"}, ValueError, "without access_key_id"),
        (
            {"access_key_id": "AK", "secret_access_key": "s", "anonymous": True},
            ValueError,
            "anonymous",
        ),
        ({"access_key_id": b"AK", "secret_access_key": "s"}, TypeError, "access_key_id"),
        ({"anonymous": "yes"}, TypeError, "anonymous"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    settings: dict[str, Any], error: type[Exception], advice: str
) -> None:
    for make in (wirespeed.Client, wirespeed.AsyncClient):
        with pytest.raises(error, match=advice):
            make(**settings)


def test_a_client_is_closed_once_and_for_all(verbs: Any, bucket: str) -> None:
    verbs.put("k", b"x", bucket=bucket)
    kept = verbs.get("k", bucket=bucket)
    verbs.client.close()
    verbs.client.close()
    assert kept == b"x"
    for call in (
        lambda: verbs.get("k", bucket=bucket),
        lambda: verbs.get_many(["k"], bucket=bucket),
        lambda: verbs.get_many(["k"], bucket=bucket, as_completed=True),
        lambda: verbs.put("k", b"x", bucket=bucket),
        lambda: verbs.head("k", bucket=bucket),
        lambda: verbs.client.settings,
        verbs.client.metrics,
    ):
        with pytest.raises(wirespeed.ConfigError, match="the client is closed; make another"):
            call()
    assert "closed" in repr(verbs.client)
    assert "closed" in repr(verbs.client.aio)


def test_a_client_is_a_context_manager(new_client: Any, bucket: str) -> None:
    with new_client() as client:
        client.put("k", b"x", bucket=bucket)
    with pytest.raises(wirespeed.ConfigError, match="closed"):
        client.get("k", bucket=bucket)

    async def main() -> wirespeed.AsyncClient:
        async with new_client().aio as client:
            await client.put("k", b"x", bucket=bucket)
        return client

    import asyncio

    client = asyncio.run(main())
    assert "closed" in repr(client)


def test_close_stops_what_is_in_flight(new_client: Any, origin: Any, bucket: str) -> None:
    client = new_client()
    client.put("k", b"x", bucket=bucket)
    outcome: list[BaseException] = []

    def get() -> None:
        try:
            client.get("k", bucket=bucket)
        except BaseException as error:
            outcome.append(error)

    with origin.misbehaving({"action": "stall", "verb": "get", "bucket": bucket}):
        thread = threading.Thread(target=get)
        thread.start()
        time.sleep(0.3)
        client.close()
        thread.join(5)
    assert not thread.is_alive()
    assert isinstance(outcome[0], wirespeed.CancelledError)
    assert "closed" in str(outcome[0])


def test_a_client_that_is_dropped_lets_go_of_its_connections(new_client: Any, bucket: str) -> None:
    client = new_client()
    client.put("k", b"x", bucket=bucket)
    reference = weakref.ref(client)
    before = sockets()
    fresh = pickle.loads(pickle.dumps(new_client(pickle_secrets=True)))
    fresh.get("k", bucket=bucket)
    assert sockets() > before
    del fresh
    deadline = time.monotonic() + 5
    while sockets() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    assert sockets() <= before
    assert reference() is client


def sockets() -> int:
    """The descriptors of this process that are TCP connections or pipes or such."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            continue
    return found


def test_both_views_are_one_client(client: wirespeed.Client, bucket: str) -> None:
    client.put("k", b"x", bucket=bucket)
    before = client.metrics()["requests"]

    async def main() -> None:
        await client.aio.get("k", bucket=bucket)

    import asyncio

    asyncio.run(main())
    assert client.metrics()["requests"] > before
    assert client.aio.metrics() == client.metrics()
    assert client.aio.blocking.get("k", bucket=bucket) == b"x"


def test_both_views_have_the_same_verbs() -> None:
    missing = {
        (view.__name__, verb)
        for view in (wirespeed.Client, wirespeed.AsyncClient)
        for verb in VERBS
        if not callable(getattr(view, verb, None))
    }
    assert not missing
    for verb in VERBS:
        assert inspect.signature(getattr(wirespeed.Client, verb)) == inspect.signature(
            getattr(wirespeed.AsyncClient, verb)
        )


def test_every_verb_has_a_docstring_that_help_shows() -> None:
    shown = python("import wirespeed; help(wirespeed.Client)")
    for verb in sorted(VERBS):
        described = getattr(wirespeed.Client, verb).__doc__
        assert described, verb
        assert described.splitlines()[0].strip() in shown, verb
        assert f"{verb}(self" in shown, verb
    for kind in (wirespeed.Client, wirespeed.AsyncClient, wirespeed.Buffer, wirespeed.Progress):
        assert kind.__doc__
        assert kind.__module__.startswith("wirespeed")


def test_metrics_count(client: wirespeed.Client, bucket: str) -> None:
    before = client.metrics()
    assert before["requests"] == before["bytes_received"] == before["connections_opened"] == 0
    client.put("k", b"x" * 100_000, bucket=bucket)
    kept = client.get("k", bucket=bucket)
    after = client.metrics()
    assert after["requests"] >= 2
    assert after["bytes_sent"] >= 100_000
    assert after["bytes_received"] >= 100_000
    assert after["connections_opened"] >= 1
    assert after["memory_in_use"] >= len(kept)
    assert all(type(value) is int for value in after.values())


def test_no_secret_is_shown() -> None:
    client = with_secret(https_proxy="http://user:pr0xy@127.0.0.1:8")
    shown = [
        repr(client),
        str(client),
        repr(client.aio),
        repr(client.settings),
        repr(vars_of(client)),
    ]
    shown += [repr(client.metrics())]
    for text in shown:
        assert SECRET not in text
        assert TOKEN not in text
        assert "pr0xy" not in text
    assert "http://127.0.0.1:9" in repr(client)
    assert "us-east-1" in repr(client)


def vars_of(thing: Any) -> dict[str, Any]:
    found = {}
    for name in dir(thing):
        if not name.startswith("__"):
            try:
                found[name] = getattr(thing, name)
            except Exception as error:
                found[name] = error
    return found


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_client_of_the_environment_travels_without_secrets(
    environment: dict[str, str], bucket: str, protocol: int
) -> None:
    client = wirespeed.Client(concurrency=6)
    client.put("k", b"x", bucket=bucket)
    pickled = pickle.dumps(client, protocol)
    assert environment["AWS_SECRET_ACCESS_KEY"].encode() not in pickled
    again = pickle.loads(pickled)
    assert type(again) is wirespeed.Client
    assert again.settings == client.settings
    assert again.get("k", bucket=bucket) == b"x"
    assert type(pickle.loads(pickle.dumps(client.aio, protocol))) is wirespeed.AsyncClient


def test_a_client_that_was_given_its_secret_does_not_travel() -> None:
    for view in (with_secret(), with_secret().aio):
        for travel in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(wirespeed.ConfigError, match="pickle_secrets=True") as raised:
                travel(view)
            assert SECRET not in str(raised.value)
    with pytest.raises(wirespeed.ConfigError, match="pickle_secrets"):
        pickle.dumps(wirespeed.Client(https_proxy="http://user:pr0xy@127.0.0.1:8"))


def test_a_secret_travels_where_it_is_told_to(new_client: Any, bucket: str) -> None:
    client = new_client(pickle_secrets=True)
    client.put("k", b"x", bucket=bucket)
    again = pickle.loads(pickle.dumps(client))
    assert again.get("k", bucket=bucket) == b"x"
    assert pickle.loads(pickle.dumps(again)).get("k", bucket=bucket) == b"x"
    assert copy.deepcopy(client).get("k", bucket=bucket) == b"x"


def test_tracebacks_show_no_secret() -> None:
    script = (
        "import wirespeed\n"
        "client = wirespeed.Client(endpoint_url='http://127.0.0.1:9', region='r', max_attempts=1,\n"
        "    access_key_id='AKEXAMPLE', secret_access_key=input())\n"
        "client.get('s3://bucket/key')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], input=SECRET, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 1
    assert "BrokenConnectionError" in run.stderr
    assert "get s3://bucket/key" in run.stderr
    assert SECRET not in run.stderr


def test_import_starts_no_threads_and_imports_no_library() -> None:
    script = (
        "import sys, threading, os\n"
        "before = set(sys.modules)\n"
        "import wirespeed\n"
        "heavy = {'numpy', 'asyncio', 'fsspec', 'torch', 'tqdm', 'rich', 'ssl', 'logging'}\n"
        "print(sorted((set(sys.modules) - before) & heavy), len(os.listdir('/proc/self/task')))\n"
        "client = wirespeed.Client(endpoint_url='http://127.0.0.1:9', region='r', anonymous=True)\n"
        "print(len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')))\n"
    )
    threads_and_files = "1 " + python("import os; print(len(os.listdir('/proc/self/fd')))")
    assert python(script).splitlines() == ["[] 1", threads_and_files]


def test_the_module_has_the_verbs() -> None:
    assert set(dir(wirespeed)) >= VERBS
    with pytest.raises(AttributeError, match="no attribute 'gett'"):
        _ = wirespeed.gett
    with pytest.raises(AttributeError, match="no attribute 'gett'"):
        _ = wirespeed.aio.gett
    assert wirespeed.__version__


def test_the_default_client_can_be_set(client: wirespeed.Client, bucket: str) -> None:
    wirespeed.set_default_client(client)
    try:
        assert wirespeed.default_client() is client
        wirespeed.put("k", b"x", bucket=bucket)
        assert wirespeed.get("k", bucket=bucket) == b"x"
    finally:
        wirespeed.set_default_client(None)
    assert wirespeed.default_client() is not client


SUBINTERPRETER = """
import importlib, sys
try:
    interpreters = importlib.import_module('_xxsubinterpreters')
except ModuleNotFoundError:
    interpreters = importlib.import_module('_interpreters')
import os
read, write = os.pipe()
script = f'''
import os, sys
sys.path[:] = {sys.path!r}
try:
    import wirespeed
except BaseException as error:
    os.write({write}, (type(error).__name__ + ': ' + str(error)).encode())
else:
    os.write({write}, b'imported')
'''
if %r:
    import wirespeed
try:
    interpreters.run_string(interpreters.create(), script)
finally:
    print(os.read(read, 10000).decode())
"""


@pytest.mark.parametrize("is_imported_before", [False, True])
def test_a_subinterpreter_is_refused(is_imported_before: bool) -> None:
    said = python(SUBINTERPRETER % is_imported_before)
    assert said.startswith("ImportError")
    assert "subinterpreters" in said


def test_a_subclass_keeps_the_verbs(store: Any, bucket: str) -> None:
    class Mine(wirespeed.Client):
        def twice(self, where: str) -> bytes:
            return self.get(where, as_bytes=True) * 2

    client = Mine(
        endpoint_url=store.endpoint,
        region="us-east-1",
        access_key_id=store.access_key,
        secret_access_key=store.secret_key,
    )
    with client:
        client.put("k", b"ab", bucket=bucket)
        assert client.twice(f"s3://{bucket}/k") == b"abab"


def test_the_package_says_that_it_is_typed() -> None:
    folder = Path(wirespeed.__file__).parent
    assert (folder / "py.typed").exists()
    assert (folder / "_wirespeed.pyi").exists()


def test_all_that_says_it_is_of_the_package_is_found_there() -> None:
    from wirespeed import _wirespeed

    for name, thing in vars(_wirespeed).items():
        if isinstance(thing, type) and thing.__module__ == "wirespeed":
            assert getattr(wirespeed, name) is thing
            assert name in wirespeed.__all__


def test_threads_at_once_get_one_default_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[wirespeed.Client] = []
    real = wirespeed.Client

    def slow() -> wirespeed.Client:
        time.sleep(0.05)
        return real(region="us-east-1")

    monkeypatch.setattr(wirespeed, "Client", slow)
    wirespeed.set_default_client(None)
    threads = [
        threading.Thread(target=lambda: made.append(wirespeed.default_client())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wirespeed.set_default_client(None)
    assert len(made) == 8
    assert len(set(map(id, made))) == 1
