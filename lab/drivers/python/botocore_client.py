"""A botocore client as boto3's users would make it for a plan, and the listing that all drivers on
boto3 share."""

from __future__ import annotations

import lab_protocol
from lab_protocol import Operation, Plan, version


def made(plan: Plan, connections: int):
    """A client with room for so many connections."""
    import boto3
    from botocore.config import Config

    when = None if plan.checksums is None else _when(plan.checksums)
    access, secret = lab_protocol.credentials()
    session = boto3.session.Session(
        aws_access_key_id=access, aws_secret_access_key=secret, region_name=plan.region
    )
    return session.client(
        "s3",
        endpoint_url=plan.endpoint,
        verify=plan.ca_file if plan.secure else None,
        config=Config(
            s3={"addressing_style": "path"},
            max_pool_connections=max(10, connections),
            request_checksum_calculation=when,
            response_checksum_validation=when,
        ),
    )


def _when(checksums: bool) -> str:
    return "when_supported" if checksums else "when_required"


def checksums(client) -> bool:
    """Whether the client computes checksums that no operation requires."""
    return client.meta.config.request_checksum_calculation == "when_supported"


def listing(client, operation: Operation) -> None:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=operation.plan.bucket, Prefix=operation.item.prefix
    )
    for page in pages:
        if operation.first_ns is None:
            operation.first()
        operation.listed([entry["Key"] for entry in page.get("Contents", ())])


def description(name: str, **more) -> dict:
    """What a driver on boto3 describes itself with."""
    components = {package: version(package) for package in ("botocore", "s3transfer", "urllib3")}
    return {
        "name": name,
        "client": "boto3",
        "version": version("boto3"),
        "components": components,
        "settings": ["concurrency", "checksums", "listing"],
        **more,
    }
