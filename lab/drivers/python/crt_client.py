"""A client of the AWS Common Runtime for a plan, as both drivers of it make it."""

from __future__ import annotations

from pathlib import Path

import lab_protocol
from awscrt.auth import AwsCredentialsProvider
from awscrt.io import (
    ClientBootstrap,
    ClientTlsContext,
    DefaultHostResolver,
    EventLoopGroup,
    TlsContextOptions,
)
from awscrt.s3 import S3Client, S3RequestTlsMode, create_default_s3_signing_config
from lab_protocol import Plan


def target_gbps(plan: Plan) -> float | None:
    """The runtime takes a connection for each 0.4 Gbit/s that it aims at, and a number that it is
    told only makes them fewer: it has to aim high enough first. None is its default."""
    return None if plan.concurrency is None else max(10.0, 0.5 * plan.concurrency)


def made(plan: Plan) -> S3Client:
    """As many event loops as the runtime starts by itself: one for each core it may use."""
    loops = EventLoopGroup()
    access, secret = lab_protocol.credentials()
    signing = create_default_s3_signing_config(
        region=plan.region, credential_provider=AwsCredentialsProvider.new_static(access, secret)
    )
    options = TlsContextOptions()
    if plan.ca_file:
        options.override_default_trust_store(Path(plan.ca_file).read_bytes())
    tls = ClientTlsContext(options).new_connection_options() if plan.secure else None
    return S3Client(
        bootstrap=ClientBootstrap(loops, DefaultHostResolver(loops)),
        region=plan.region,
        signing_config=signing,
        tls_mode=S3RequestTlsMode.ENABLED if plan.secure else S3RequestTlsMode.DISABLED,
        tls_connection_options=tls,
        part_size=plan.part_size,
        throughput_target_gbps=target_gbps(plan),
        max_active_connections_override=plan.concurrency,
    )
