"""The embedded server as a store: filled, counted, written to."""

import os
import signal
import urllib.error
import urllib.request

import pytest
from wirespeed_lab.driving.digests import formula
from wirespeed_lab.plans import Item
from wirespeed_lab.stores import BadPreset, StoreFailed, open_store, uploads


def get(store, key):
    with urllib.request.urlopen(f"{store.endpoint}/{store.bucket}/{key}", timeout=10) as answer:
        return answer.read()


def keys(store, prefix):
    s3 = uploads.client(store)
    found = s3.list_objects_v2(Bucket=store.bucket, Prefix=prefix).get("Contents", ())
    return [one["Key"] for one in found]


def test_it_holds_what_a_plan_reads(origin, plan_of, numbered):
    store = origin()
    store.prepare(plan_of(*numbered("a/", 20, 3000), Item("b/one", 70_000, (10, 20)), Item("e", 0)))
    assert get(store, "a/00000019") == formula().expected("a/00000019", 0, 3000)
    assert get(store, "b/one") == formula().expected("b/one", 0, 70_000)
    assert get(store, "e") == b""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(store, "a/00000020")


def test_a_listing_finds_its_plans_keys_and_no_more(origin, plan_of, numbered):
    store = origin()
    store.prepare(plan_of(*numbered("k/", 30, 100)))
    store.prepare(plan_of(*numbered("other/", 5, 100)))
    assert len(keys(store, "k/")) == 30
    listing = plan_of(Item("k/", 7, keys=10), operation="list")
    store.prepare(listing)
    assert keys(store, "k/") == [f"k/{n:08d}" for n in range(10)]
    assert len(keys(store, "other/")) == 5
    pid = store.pid
    store.prepare(listing)
    assert store.pid == pid, "started anew for what it has"


def test_counts_outlive_a_server_that_is_started_anew(origin, plan_of, numbered):
    store = origin()
    store.prepare(plan_of(*numbered("a/", 2, 100_000)))
    first = store.counts()
    get(store, "a/00000000")
    second = store.counts()
    assert second["requests"] - first["requests"] == 1
    assert second["requests_get"] - first.get("requests_get", 0) == 1
    assert second["bytes_out"] - first["bytes_out"] >= 100_000
    assert second["connections_accepted"] - first["connections_accepted"] == 1
    used = store.cpu_seconds()
    store.prepare(plan_of(*numbered("c/", 2, 100)))
    third = store.counts()
    assert third["requests"] == second["requests"]
    assert third["bytes_out"] >= second["bytes_out"]
    assert store.cpu_seconds() >= used
    assert third.get("requests_in_flight_peak", 0) == 0


def test_uploads_are_read_back_and_compared(origin, plan_of, numbered):
    store = origin()
    items = numbered("up/", 4, 3_000_000)
    plan = plan_of(*items, operation="put")
    store.prepare(plan)
    s3, body = uploads.client(store), uploads.FormulaReader("body", 3_000_000).read()
    for item in items[1:]:
        s3.put_object(Bucket=store.bucket, Key=item.key, Body=body)
    wrong = body[:2_500_000] + bytes([body[2_500_000] ^ 1]) + body[2_500_001:]
    s3.put_object(Bucket=store.bucket, Key=items[2].key, Body=wrong)
    s3.put_object(Bucket=store.bucket, Key=items[3].key, Body=body + b"x")
    complaints = store.check_uploads(plan)
    assert len(complaints) == 3
    assert "NoSuchKey" in complaints[0]
    assert "is wrong between bytes" in complaints[1]
    assert "is longer than 3000000 bytes" in complaints[2]
    assert len(store.check_uploads(plan, most=1)) == 1
    store.forget_uploads(plan)
    assert len(store.check_uploads(plan)) == 4


def test_uploads_that_are_too_large_to_keep_are_still_checked(origin, plan_of, numbered):
    store = origin()
    store.prepare(plan_of(Item("huge", 1 << 44), operation="put"))
    items = numbered("up/", 4, 5000)
    body = uploads.FormulaReader("body", 5000).read()
    s3 = uploads.client(store)
    s3.put_object(Bucket=store.bucket, Key=items[1].key, Body=body)
    s3.put_object(Bucket=store.bucket, Key=items[2].key, Body=body[::-1])
    s3.put_object(Bucket=store.bucket, Key=items[3].key, Body=body[1:])
    missing, other, short = store.check_uploads(plan_of(*items, operation="put"))
    assert "404" in missing
    assert "other bytes" in other
    assert "4999 bytes instead of 5000" in short


def test_it_speaks_tls_and_says_what_to_trust(origin, plan_of, numbered):
    store = origin(tls=True)
    store.prepare(plan_of(*numbered("a/", 2, 1000)))
    assert store.endpoint.startswith("https://")
    assert len(keys(store, "a/")) == 2
    assert store.counts()["tls_handshakes_full"] >= 1


def test_a_server_that_died_is_reported(origin, plan_of):
    store = origin()
    os.kill(store.pid, signal.SIGKILL)
    os.waitid(os.P_PID, store.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(StoreFailed, match="does not answer POST"):
        store.counts()


def test_what_cannot_be_opened_is_explained(tmp_path, monkeypatch):
    for kind, how, said in [
        ("ceph", {}, "there are origin, minio, versitygw"),
        ("minio", {"preset": "s3"}, "takes no preset"),
        ("minio", {"tls": True}, "without TLS"),
        ("origin", {"write_to": "mine"}, "write_to names a bucket at a URL"),
        ("http://127.0.0.1:9", {"tls": True}, "is not TLS"),
    ]:
        with pytest.raises(StoreFailed, match=said):
            open_store(kind, cpus=(), **how)
    with pytest.raises(BadPreset):
        open_store("origin", cpus=(), preset="nothing")
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    monkeypatch.delenv("WIRESPEED_LAB_ORIGIN", raising=False)
    with pytest.raises(StoreFailed, match="make release"):
        open_store("origin", cpus=())


def test_more_sizes_than_it_can_be_told_are_refused(origin, plan_of):
    store = origin()
    many = (Item(f"x/{'long-name' * 20}-{n}-name", n) for n in range(6000))
    with pytest.raises(StoreFailed, match="take a smaller scale"):
        store.prepare(plan_of(*many))
