"""What a file system may be told, in s3fs's names and ours, and what of it the client is told.

The names are those of s3fs's ``S3FileSystem``, and beneath them those of botocore's ``client``
and ``Config``; the names of `wirespeed.Client` and of its settings go as well, and win. What
means nothing to this engine and harms nothing (how many parts at once, whose session) is accepted
and left alone: `IGNORED`. Everything else is an error, so that a misspelt option is not a silent
default.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl

from ..errors import ConfigError
from .operations import s3_parameters
from .secrets import any_secret, refuse

logger = logging.getLogger("wirespeed.fsspec")

# Accepted and left alone: the engine sees to it by itself.
IGNORED = frozenset(
    {
        "batch_size",
        "cache_regions",  # a bucket's region is found when it answers with it
        "default_fill_cache",
        "fixed_upload_size",  # parts are of one size, but for those of unknown length above 1,000
        "max_concurrency",  # `concurrency` is what bounds requests, over all files together
        "use_listings_cache",
        "listings_expiry_time",
        "max_paths",
        "skip_instance_cache",
        "add_docs",
        "add_aliases",
    }
)
_IGNORED_CLIENT = frozenset({"api_version", "aws_account_id", "service_name", "use_ssl"})
_IGNORED_CONFIG = frozenset(
    {
        "account_id_endpoint_mode",
        "auth_scheme_preference",
        "connector_args",
        "defaults_mode",
        "disable_request_compression",
        "endpoint_discovery_enabled",
        "http_session_cls",
        "inject_host_prefix",
        "parameter_validation",
        "request_checksum_calculation",
        "request_min_compression_size_bytes",
        "response_checksum_validation",
        "sigv4a_signing_region_set",
        "tcp_keepalive",
        "user_agent",
        "user_agent_appid",
        "user_agent_extra",
    }
)
SETTINGS = frozenset(
    {
        "endpoint_url",
        "region",
        "addressing_style",
        "profile",
        "use_dualstack_endpoint",
        "use_fips_endpoint",
        "use_accelerate_endpoint",
        "express_sessions",
        "concurrency",
        "part_size",
        "multipart_threshold",
        "memory",
        "bandwidth_limit",
        "connect_timeout",
        "first_byte_timeout",
        "stall_timeout",
        "max_attempts",
        "payload_signing",
        "checksum_algorithm",
        "verify_checksums",
        "ca_bundle",
        "verify_tls",
        "https_proxy",
        "no_proxy",
        "receive_low_water",
        "huge_pages",
    }
)
_FLAG_SETTINGS = frozenset(
    {
        "use_dualstack_endpoint",
        "use_fips_endpoint",
        "use_accelerate_endpoint",
        "verify_checksums",
        "verify_tls",
        "huge_pages",
    }
)
_INTEGER_SETTINGS = frozenset({"concurrency", "max_attempts"})

# S3's own parameters, as s3fs takes them, and what our verbs call them.
_READ = {
    "VersionId": "version_id",
    "IfMatch": "if_match",
    "IfNoneMatch": "if_none_match",
    "IfModifiedSince": "if_modified_since",
    "IfUnmodifiedSince": "if_unmodified_since",
    "SSECustomerKey": "sse_customer_key",
    "RequestPayer": "request_payer",
    "ExpectedBucketOwner": "expected_bucket_owner",
}
_WRITE = {
    "ContentType": "content_type",
    "ContentEncoding": "content_encoding",
    "ContentDisposition": "content_disposition",
    "ContentLanguage": "content_language",
    "CacheControl": "cache_control",
    "Expires": "expires",
    "WebsiteRedirectLocation": "website_redirect",
    "Metadata": "metadata",
    "Tagging": "tags",
    "StorageClass": "storage_class",
    "ACL": "acl",
    "acl": "acl",
    "GrantFullControl": "grant_full_control",
    "GrantRead": "grant_read",
    "GrantReadACP": "grant_read_acp",
    "GrantWriteACP": "grant_write_acp",
    "ObjectLockMode": "object_lock_mode",
    "ObjectLockRetainUntilDate": "object_lock_retain_until",
    "ObjectLockLegalHoldStatus": "object_lock_legal_hold",
    "ServerSideEncryption": "sse",
    "SSEKMSKeyId": "sse_kms_key_id",
    "BucketKeyEnabled": "sse_kms_bucket_key",
    "SSEKMSEncryptionContext": "sse_kms_context",
    "SSECustomerKey": "sse_customer_key",
    "ChecksumAlgorithm": "checksum",
    "IfMatch": "if_match",
    "IfNoneMatch": "if_none_match",
    "RequestPayer": "request_payer",
    "ExpectedBucketOwner": "expected_bucket_owner",
}
DESCRIBES = (
    "ContentType",
    "ContentEncoding",
    "ContentDisposition",
    "ContentLanguage",
    "CacheControl",
    "Expires",
    "WebsiteRedirectLocation",
    "Metadata",
    "Tagging",
)
# Where a copy says one of these, the server replaces what the source is described with.
_DESCRIBING = frozenset({*DESCRIBES, *(_WRITE[name] for name in DESCRIBES)})
_COPY = {
    **_WRITE,
    "MetadataDirective": "metadata_directive",
    "TaggingDirective": "tagging_directive",
    "CopySourceIfMatch": "source_if_match",
    "CopySourceIfNoneMatch": "source_if_none_match",
    "CopySourceIfModifiedSince": "source_if_modified_since",
    "CopySourceIfUnmodifiedSince": "source_if_unmodified_since",
}
# Of no meaning beside the others: the engine sends what goes with a customer's key itself.
_BESIDE = frozenset({"SSECustomerAlgorithm", "SSECustomerKeyMD5", "ContentLength"})
# Of aiobotocore's sessions, which s3fs hands on to them.
_OF_SESSIONS = frozenset({"event_hooks", "include_builtin_handlers", "loader", "session_vars"})
# s3fs's methods take these, each for how it cuts its own transfers.
_CUTTING = frozenset({"chunksize", "max_concurrency", "batch_size"})


@dataclass(frozen=True)
class Options:
    """What the options say, each in its place."""

    client: dict[str, Any] = field(repr=False)
    """Keywords of `wirespeed.Client`."""
    extra: dict[str, Any] = field(repr=False)
    """``s3_additional_kwargs``: what every request that has a use for it carries."""
    requester_pays: bool = False
    version_aware: bool = False
    default_block_size: int | None = None
    default_cache_type: str = "wirespeed"
    explicit_secret: bool = False
    """Whether a secret stands among the options, and not in the environment or a profile."""
    pickle_secrets: bool = False
    drops_unknown: bool = False
    """Ignore keywords that S3 does not have, as s3fs does, instead of raising."""

    def __getstate__(self) -> dict[str, Any]:
        if self.explicit_secret and not self.pickle_secrets:
            refuse()
        return dict(vars(self))

    def reading(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of a verb that reads, out of what a method was given.

        Raises:
            TypeError: one of them is no option of reading.
        """
        return self._request(given, _READ)

    def writing(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of a verb that writes, as `reading`."""
        return self._request(given, _WRITE)

    def copying(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of a copy, as `writing`. What ``s3_additional_kwargs`` says to describe new
        objects with is left out: a copy is described as its source is."""
        kept = {name: value for name, value in self.extra.items() if name not in _DESCRIBING}
        return self._request(given, _COPY, kept)

    def access(self) -> dict[str, Any]:
        """Keywords that every verb has: who pays, and who must own the bucket."""
        found = self.reading({})
        return {k: found[k] for k in ("request_payer", "expected_bucket_owner") if k in found}

    def unknown(self, name: str, known: Iterable[str]) -> None:
        """Raises for a keyword that an operation does not have, or logs that it is ignored. What S3
        has and this package does not send is never ignored.

        Raises:
            TypeError: the keyword is not ignored.
        """
        if self.drops_unknown and name not in s3_parameters():
            _dropped(name, known)
            return
        raise TypeError(
            f"{name!r} is no option of this operation; known are " + ", ".join(sorted(known))
        )

    def _request(
        self,
        given: Mapping[str, Any],
        names: Mapping[str, str],
        extra: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        extra = self.extra if extra is None else extra
        known = {**names, **{ours: ours for ours in names.values()}}
        found = {known[name]: value for name, value in extra.items() if name in known}
        if self.requester_pays:
            found["request_payer"] = True
        for name, value in given.items():
            if name in known:
                if value is not None:
                    found[known[name]] = value
            elif name == "requester_pays":
                if value is not None:
                    found["request_payer"] = flag(name, value)
            elif name not in _BESIDE and name not in _CUTTING:
                self.unknown(name, names)
        return {name: _translated(name, value) for name, value in found.items() if _given(value)}


def _given(value: Any) -> bool:
    return value is not None and value is not False


def _translated(name: str, value: Any) -> Any:
    if name == "request_payer":
        return value is True or value == "requester"
    if name == "tags" and isinstance(value, str):
        return dict(parse_qsl(value, keep_blank_values=True))
    if name == "sse_customer_key" and isinstance(value, str):
        return value.encode()
    if name == "object_lock_legal_hold":
        return flag(name, value)
    return value


def flag(name: str, value: Any) -> bool:
    """A switch, which a variable of the environment spells as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", "", "none"):
        return False
    raise ConfigError(f"{name} is a switch: True or False, not {value!r}")


_warned: set[str] = set()


def _dropped(name: str, known: Iterable[str]) -> None:
    """Logs, once for each name, that a keyword is ignored."""
    if name in _warned:
        return
    _warned.add(name)
    near = get_close_matches(name, [*known, *IGNORED], 1, cutoff=0.5)
    hint = f"; the nearest option is {near[0]!r}" if near else ""
    logger.warning("the keyword %r is ignored: S3 has no such parameter%s", name, hint)


def parse(given: Mapping[str, Any], *, drops_unknown: bool = False) -> Options:
    """Reads the options of a file system.

    With ``drops_unknown``, keywords that S3 does not have are ignored with one warning each.

    Raises:
        ConfigError: an option is not known, or says what can't be done here.
    """
    rest = {name: value for name, value in given.items() if name not in IGNORED}
    client: dict[str, Any] = {}
    below = _mapping("client_kwargs", rest.pop("client_kwargs", None))
    config = _mapping("config_kwargs", rest.pop("config_kwargs", None))
    _config(config, client)
    _client(below, client)
    use_ssl = flag("use_ssl", below.get("use_ssl", rest.pop("use_ssl", True)))
    rest.pop("use_ssl", None)
    for ours, names in _CREDENTIALS.items():
        for name in names:
            value = rest.pop(name, None)
            if value is not None:
                client[ours] = str(value)
    if flag("anon", rest.pop("anon", None) or rest.pop("anonymous", None) or False):
        client["anonymous"] = True
    rest.pop("anonymous", None)
    if client.get("anonymous"):
        for name in _CREDENTIALS:
            client.pop(name, None)
    for name in SETTINGS & rest.keys():
        value = rest.pop(name)
        if value is not None:
            client[name] = _setting(name, value)
    if not use_ssl and not str(client.get("endpoint_url", "")).startswith("http://"):
        raise ConfigError("use_ssl=False needs an endpoint_url that begins with http://")
    from_session = _session(rest.pop("session", None), client)
    if flag("local_expiry_check", rest.pop("local_expiry_check", False)):
        raise ConfigError("local_expiry_check is not supported: the server compares versions")
    pickle_secrets = flag("pickle_secrets", rest.pop("pickle_secrets", False))
    block_size = rest.pop("default_block_size", None)
    options = Options(
        client=client | ({"pickle_secrets": True} if pickle_secrets else {}),
        extra=_additional(rest.pop("s3_additional_kwargs", None)),
        requester_pays=flag("requester_pays", rest.pop("requester_pays", False)),
        version_aware=flag("version_aware", rest.pop("version_aware", False)),
        default_block_size=None if block_size is None else int(block_size),
        default_cache_type=str(rest.pop("default_cache_type", None) or "wirespeed"),
        explicit_secret=from_session or any_secret(given),
        pickle_secrets=pickle_secrets,
        drops_unknown=drops_unknown,
    )
    if drops_unknown:
        for name in _OF_SESSIONS & rest.keys():
            rest.pop(name)
            _dropped(name, SETTINGS)
    if rest:
        raise ConfigError(_unknown(sorted(map(str, rest))))
    unknown = [
        name
        for name in options.extra
        if name not in {*_READ, *_WRITE, *_READ.values(), *_WRITE.values(), *_BESIDE}
    ]
    for name in list(unknown):
        if drops_unknown and name not in s3_parameters():
            _dropped(name, [*_READ, *_WRITE])
            unknown.remove(name)
    if unknown:
        raise ConfigError(f"not known in s3_additional_kwargs: {', '.join(sorted(unknown))}")
    return options


def _additional(value: Any) -> dict[str, Any]:
    """``s3_additional_kwargs``, which may be s3fs's ``SSEParams``."""
    return _mapping(
        "s3_additional_kwargs", value.to_kwargs() if hasattr(value, "to_kwargs") else value
    )


def _session(session: Any, client: dict[str, Any]) -> bool:
    """Takes profile, region and credentials out of a session of botocore, boto3 or aiobotocore;
    returns whether it held a secret. What the options say by name wins.

    Raises:
        ConfigError: the session's credentials expire, and only botocore could renew them.
    """
    if session is None:
        return False
    session = getattr(session, "_session", session)  # boto3's wraps botocore's
    if not hasattr(session, "get_config_variable"):
        raise ConfigError(
            "session must be one of botocore, boto3 or aiobotocore; or give profile, or key and "
            "secret"
        )
    profile = getattr(session, "profile", None)
    if profile:  # which has the region too
        client.setdefault("profile", profile)
    elif region := session.get_config_variable("region"):
        client.setdefault("region", region)
    credentials = getattr(session, "_credentials", None)
    if credentials is None:
        return False
    if hasattr(credentials, "refresh_needed"):
        raise ConfigError(
            "the credentials of this session expire, and only botocore can renew them: give "
            "profile, or key, secret and token, or nothing where AWS's own files have them"
        )
    client.setdefault("access_key_id", credentials.access_key)
    client.setdefault("secret_access_key", credentials.secret_key)
    if credentials.token:
        client.setdefault("session_token", credentials.token)
    return True


def _unknown(names: list[str]) -> str:
    known = [
        *IGNORED,
        *SETTINGS,
        *_OTHERS,
        *(one for many in _CREDENTIALS.values() for one in many),
    ]
    near = [close for name in names for close in get_close_matches(name, known, 1)]
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"not known as an option of wirespeed's file system: {', '.join(names)}{hint}"


_OTHERS = (
    "anon",
    "anonymous",
    "client_kwargs",
    "config_kwargs",
    "default_block_size",
    "default_cache_type",
    "pickle_secrets",
    "requester_pays",
    "s3_additional_kwargs",
    "use_ssl",
    "version_aware",
)
# The least binding first.
_CREDENTIALS = {
    "access_key_id": ("username", "key", "access_key_id"),
    "secret_access_key": ("password", "secret", "secret_access_key"),
    "session_token": ("token", "session_token"),
}


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is a mapping, not {type(value).__name__}")
    return dict(value)  # pyright: ignore[reportUnknownArgumentType]


def _setting(name: str, value: Any) -> Any:
    if name in _FLAG_SETTINGS:
        return flag(name, value)
    if name in _INTEGER_SETTINGS:
        return int(value)
    return value


def _client(given: dict[str, Any], client: dict[str, Any]) -> None:
    """Keywords of botocore's ``client``."""
    for name, value in given.items():
        if name in _IGNORED_CLIENT or value is None:
            continue
        match name:
            case "aws_access_key_id":
                client["access_key_id"] = str(value)
            case "aws_secret_access_key":
                client["secret_access_key"] = str(value)
            case "aws_session_token":
                client["session_token"] = str(value)
            case "endpoint_url":
                client["endpoint_url"] = value
            case "region_name":
                client["region"] = value
            case "verify" if isinstance(value, bool):
                client["verify_tls"] = value
            case "verify":
                client["ca_bundle"] = str(value)
            case "config":
                raise ConfigError("client_kwargs: give what is in config as config_kwargs")
            case _:
                raise ConfigError(f"client_kwargs: {name} is not known")


def _config(given: dict[str, Any], client: dict[str, Any]) -> None:
    """Keywords of botocore's ``Config``."""
    for name, value in given.items():
        if name in _IGNORED_CONFIG or value is None:
            continue
        match name:
            case "region_name":
                client["region"] = value
            case "connect_timeout":
                client["connect_timeout"] = value
            case "read_timeout":
                client["first_byte_timeout"] = client["stall_timeout"] = value
            case "max_pool_connections":
                client["concurrency"] = int(value)
            case "use_dualstack_endpoint" | "use_fips_endpoint":
                client[name] = flag(name, value)
            case "retries":
                retries = _mapping("config_kwargs['retries']", value)
                if "total_max_attempts" in retries:
                    client["max_attempts"] = int(retries["total_max_attempts"])
                elif "max_attempts" in retries:
                    # botocore counts those after the first.
                    client["max_attempts"] = int(retries["max_attempts"]) + 1
            case "signature_version":
                _signature(value, client)
            case "proxies":
                proxies = _mapping("config_kwargs['proxies']", value)
                if proxies and "https" not in proxies:
                    raise ConfigError("config_kwargs: only a proxy for https is supported")
                if proxies:
                    client["https_proxy"] = proxies["https"]
            case "s3":
                _config_s3(_mapping("config_kwargs['s3']", value), client)
            case _:
                raise ConfigError(f"config_kwargs: {name} is not known, or not supported")


def _signature(value: Any, client: dict[str, Any]) -> None:
    # botocore.UNSIGNED is an object of a class of its own, and needs no import to be known.
    if type(value).__name__ == "_UNSIGNED" or str(value).lower() == "unsigned":
        client["anonymous"] = True
    elif str(value) not in ("s3v4", "v4"):
        raise ConfigError(f"config_kwargs: requests are signed by s3v4 only, not by {value}")


def _config_s3(given: dict[str, Any], client: dict[str, Any]) -> None:
    for name, value in given.items():
        match name:
            case "addressing_style":
                client["addressing_style"] = value
            case "use_accelerate_endpoint" | "use_dualstack_endpoint":
                client[name] = flag(name, value)
            case "payload_signing_enabled":
                client["payload_signing"] = "signed" if flag(name, value) else "unsigned"
            case "us_east_1_regional_endpoint" | "use_arn_region":
                pass
            case _:
                raise ConfigError(f"config_kwargs: s3.{name} is not known, or not supported")
