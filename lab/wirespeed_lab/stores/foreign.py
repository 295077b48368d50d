"""A store at a URL that the lab did not start: AWS, or anything that speaks S3."""

from __future__ import annotations

import os
import uuid
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..plans import Plan, Series
from . import uploads
from .clashes import clashing
from .store import Store, StoreFailed

#: Of buckets that the lab makes: whoever finds one left over knows whose it is.
OWN_PREFIX = "wirespeed-lab-"
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class ForeignStore(Store):
    """Credentials and region are those in the environment. Without ``write_to`` it makes a bucket
    of its own when a plan is prepared, and removes it when closed; no other bucket is written to
    or listed. In a bucket that ``write_to`` names, nothing that was there is ever replaced or
    deleted: objects to read that are there in the right size are taken for what they should be
    (a verifying round tells) and what is uploaded to be read stays for the next session; a plan's
    puts are refused where they would meet a stranger, and are deleted at the end."""

    def __init__(self, url: str, write_to: str | None = None):
        """Raises StoreFailed where the environment has no credentials."""
        missing = [name for name in _KEYS if not os.environ.get(name)]
        if missing:
            raise StoreFailed(f"{url}: set {' and '.join(missing)} in the environment")
        self.kind = self._url = url.rstrip("/")
        self.region = os.environ.get("AWS_REGION") or "us-east-1"
        self._named = write_to
        self._made: str | None = None
        self._held: set[Series] = set()
        self._puts: list[Plan] = []

    @property
    def endpoint(self) -> str:
        return self._url

    @property
    def bucket(self) -> str:
        if self._named or self._made:
            return self._named or self._made or ""
        raise StoreFailed(f"{self._url}: no plan was prepared, so that there is no bucket yet")

    @property
    def credentials(self) -> dict[str, str]:
        found = {name: os.environ[name] for name in _KEYS}
        token = os.environ.get("AWS_SESSION_TOKEN")
        return {
            **found,
            "AWS_REGION": self.region,
            **({"AWS_SESSION_TOKEN": token} if token else {}),
        }

    def prepare(self, plan: Plan) -> None:
        if not self._named and not self._made:
            self._made = self._make()
        if plan.operation == "put" and plan not in self._puts:
            if self._named:
                self._refuse_strangers(plan)
            self._puts.append(plan)
        for series in clashing(self._held, plan.contents()) if self._made else ():
            uploads.remove(self, series.keys())
            self._held.discard(series)
        for series in plan.contents():
            if series in self._held:
                continue
            if not (self._named and self._is_there(series)):
                uploads.upload(self, [series])
            self._held.add(series)

    def forget_uploads(self, plan: Plan) -> None:
        uploads.forget(self, plan)

    def check_uploads(self, plan: Plan, most: int = 5) -> list[str]:
        return uploads.wrong(self, plan, most)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "tls": self._url.startswith("https://"),
            "cpus": [],
            "preset": None,
            "made_bucket": self._named is None,
        }

    def close(self) -> None:
        """Raises StoreFailed, with its name, when the bucket that was made cannot be removed."""
        if self._made is None:
            puts, self._puts = self._puts, []
            for plan in puts:
                uploads.forget(self, plan)
            return
        s3, bucket = uploads.client(self), self._made
        try:
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                named = [{"Key": found["Key"]} for found in page.get("Contents", ())]
                if named:
                    s3.delete_objects(Bucket=bucket, Delete={"Objects": named, "Quiet": True})
            for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
                for found in page.get("Uploads", ()):
                    s3.abort_multipart_upload(
                        Bucket=bucket, Key=found["Key"], UploadId=found["UploadId"]
                    )
            s3.delete_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError) as error:
            raise StoreFailed(
                f"{self._url}: the lab's bucket {bucket} could not be removed ({error}): remove it "
                "yourself, it costs money"
            ) from None
        self._made = None

    def _make(self) -> str:
        bucket = OWN_PREFIX + uuid.uuid4().hex[:20]
        place = {"LocationConstraint": self.region}
        more = {} if self.region == "us-east-1" else {"CreateBucketConfiguration": place}
        try:
            uploads.client(self).create_bucket(Bucket=bucket, **more)
        except (BotoCoreError, ClientError) as error:
            raise StoreFailed(
                f"{self._url}: a bucket of the lab's own cannot be made ({error}): name one that "
                "it may write to"
            ) from None
        return bucket

    def _refuse_strangers(self, plan: Plan) -> None:
        """Raises StoreFailed where the plan's puts would replace what is not the lab's."""
        ours = {item.key for before in self._puts for item in before.work}
        keys = {item.key for item in plan.work} - ours
        for prefix in {key[: key.rfind("/") + 1] or key for key in keys}:
            for key, size in self._listed(prefix):
                if key in keys:
                    raise self._stranger(key, size)

    def _is_there(self, series: Series) -> bool:
        """Whether the bucket holds the whole series. Raises StoreFailed for a key of the series
        that has another size."""
        wanted, found = set(series.keys()), 0
        for key, size in self._listed(series.prefix):
            if key in wanted:
                if size != series.size:
                    raise self._stranger(key, size)
                found += 1
        return found == len(wanted)

    def _listed(self, prefix: str):
        pages = uploads.client(self).get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self.bucket, Prefix=prefix):
                for found in page.get("Contents", ()):
                    yield found["Key"], found["Size"]
        except (BotoCoreError, ClientError) as error:
            raise StoreFailed(f"{self._url}: {self.bucket} cannot be listed: {error}") from None

    def _stranger(self, key: str, size: int) -> StoreFailed:
        return StoreFailed(
            f"{self._url}: {self.bucket} has an object {key!r} of {size} bytes, which the lab did "
            "not put there and will not replace: name another bucket"
        )
