"""MinIO, versitygw and stores at a URL: filled by uploads, and never beyond what is the lab's."""

import pytest
from botocore.exceptions import ClientError
from wirespeed_lab import places
from wirespeed_lab.driving.digests import formula
from wirespeed_lab.plans import Item
from wirespeed_lab.stores import StoreFailed, open_store, uploads


@pytest.fixture(params=["minio", "versitygw"])
def real(request):
    try:
        places.go_tool(request.param)
    except places.MissingProgram as error:
        pytest.skip(str(error))
    with open_store(request.param, cpus=()) as store:
        yield store


def body(store, key):
    return uploads.client(store).get_object(Bucket=store.bucket, Key=key)["Body"].read()


def test_it_is_filled_once_and_checked(real, plan_of, numbered):
    plan = plan_of(*numbered("a/", 5, 3000), Item("big", 34 << 20))
    real.prepare(plan)
    assert body(real, "a/00000004") == formula().expected("a/00000004", 0, 3000)
    assert body(real, "big") == uploads.FormulaReader("big", 34 << 20).read()
    # A second time nothing is written: what was changed stays.
    uploads.client(real).put_object(Bucket=real.bucket, Key="a/00000004", Body=b"changed")
    real.prepare(plan)
    assert body(real, "a/00000004") == b"changed"
    real.prepare(plan_of(*numbered("a/", 3, 2000)))
    found = uploads.client(real).list_objects_v2(Bucket=real.bucket, Prefix="a/")["Contents"]
    assert [(one["Key"], one["Size"]) for one in found] == [(f"a/{n:08d}", 2000) for n in range(3)]
    puts = plan_of(*numbered("up/", 2, 10), operation="put")
    real.prepare(puts)
    assert len(real.check_uploads(puts)) == 2
    assert real.counts() == {}
    assert real.cpu_seconds() > 0
    with pytest.raises(StoreFailed, match="take a smaller scale"):
        real.prepare(plan_of(Item("huge", 1 << 44)))


@pytest.fixture
def at_a_url(origin, monkeypatch):
    """A store that is not the lab's, with a bucket and an object of somebody else's."""
    server = origin()
    for name, value in server.credentials.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    s3 = uploads.client(server)
    s3.create_bucket(Bucket="theirs")
    s3.put_object(Bucket="theirs", Key="a/00000001", Body=b"precious")
    return server.endpoint, s3


def buckets(s3):
    return {one["Name"] for one in s3.list_buckets()["Buckets"]}


def test_a_bucket_of_its_own_is_made_and_removed(at_a_url, plan_of, numbered):
    url, s3 = at_a_url
    before = buckets(s3)
    with open_store(url, cpus=()) as store:
        with pytest.raises(StoreFailed, match="no plan was prepared"):
            _ = store.bucket
        store.prepare(plan_of(*numbered("a/", 3, 100)))
        assert store.bucket.startswith("wirespeed-lab-")
        assert body(store, "a/00000001") == formula().expected("a/00000001", 0, 100)
        assert (store.pid, store.cpu_seconds(), store.counts()) == (None, None, {})
    assert buckets(s3) == before
    assert s3.get_object(Bucket="theirs", Key="a/00000001")["Body"].read() == b"precious"


def test_a_named_bucket_keeps_what_was_there(at_a_url, plan_of, numbered):
    url, s3 = at_a_url
    with open_store(url, cpus=(), write_to="theirs") as store:
        for plan in (
            plan_of(*numbered("a/", 3, 100)),
            plan_of(*numbered("a/", 3, 8), operation="put"),
        ):
            with pytest.raises(StoreFailed, match="name another bucket"):
                store.prepare(plan)
        puts = plan_of(*numbered("up/", 3, 8), operation="put")
        store.prepare(puts)
        s3.put_object(Bucket="theirs", Key="up/00000000", Body=b"of a put")
        store.prepare(puts)
        store.prepare(plan_of(*numbered("read/", 3, 100)))
        assert body(store, "read/00000002") == formula().expected("read/00000002", 0, 100)
    assert s3.get_object(Bucket="theirs", Key="a/00000001")["Body"].read() == b"precious"
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="theirs", Key="up/00000000")
    # The next session finds what was uploaded to be read, and uploads none of it again.
    etag = s3.head_object(Bucket="theirs", Key="read/00000002")["LastModified"]
    with open_store(url, cpus=(), write_to="theirs") as store:
        store.prepare(plan_of(*numbered("read/", 3, 100)))
    assert s3.head_object(Bucket="theirs", Key="read/00000002")["LastModified"] == etag


def test_no_credentials_and_no_such_bucket_are_explained(at_a_url, plan_of, numbered, monkeypatch):
    url, _ = at_a_url
    with (
        open_store(url, cpus=(), write_to="nobodys") as store,
        pytest.raises(StoreFailed, match="nobodys cannot be listed"),
    ):
        store.prepare(plan_of(*numbered("a/", 3, 100)))
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreFailed, match="set AWS_SECRET_ACCESS_KEY"):
        open_store(url, cpus=())
