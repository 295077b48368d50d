"""The constructor and the attributes of s3fs's file system.

The constructor takes s3fs's arguments in s3fs's order. Arguments given by position are kept by
their names, so that pickles and JSON have them too.
"""

# fsspec is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .core import LISTINGS_EXPIRY_SECONDS
from .filesystem import WirespeedFileSystem
from .secrets import plain, refuse
from .steps import Plan, both

# The positional arguments of s3fs's constructor, in their order, with its defaults.
_DEFAULTS: dict[str, Any] = {
    "anon": False,
    "endpoint_url": None,
    "key": None,
    "secret": None,
    "token": None,
    "use_ssl": True,
    "client_kwargs": None,
    "requester_pays": False,
    "default_block_size": None,
    "default_fill_cache": True,
    "default_cache_type": "wirespeed",
    "version_aware": False,
    "config_kwargs": None,
    "s3_additional_kwargs": None,
    "session": None,
    "username": None,
    "password": None,
    "cache_regions": False,
    "asynchronous": False,
    "loop": None,
    "max_concurrency": 10,
    "fixed_upload_size": False,
    "local_expiry_check": False,
}
_ORDER = tuple(_DEFAULTS)
_BLOCK_SIZE = 50 << 20
# Beside the above: what fsspec takes for itself.
_FSSPECS = frozenset({"use_listings_cache", "listings_expiry_time", "max_paths"})


class Constructor(WirespeedFileSystem):
    """The constructor and attributes of s3fs's file system."""

    default_block_size: int = _BLOCK_SIZE
    """The most to read ahead of a file, where ``open`` is given no ``block_size``. The value as it
    stands here leaves that to the engine."""
    connect_timeout: float | None = None
    """Seconds; set on the class it holds for file systems made from then on. ``None`` leaves it to
    the engine."""
    read_timeout: float | None = None
    """As ``connect_timeout``."""
    retries: int | None = None
    """Attempts of a request, as ``connect_timeout``."""
    _extra_tokenize_attributes = (
        "default_block_size",
        "connect_timeout",
        "read_timeout",
        "retries",
    )
    _drops_unknown = True
    _positional: Mapping[str, Any] = {}

    def __init__(
        self,
        anon: bool = False,
        endpoint_url: str | None = None,
        key: str | None = None,
        secret: str | None = None,
        token: str | None = None,
        use_ssl: bool = True,
        client_kwargs: Mapping[str, Any] | None = None,
        requester_pays: bool = False,
        default_block_size: int | None = None,
        default_fill_cache: bool = True,
        default_cache_type: str | None = None,
        version_aware: bool = False,
        config_kwargs: Mapping[str, Any] | None = None,
        s3_additional_kwargs: Mapping[str, Any] | None = None,
        session: Any = None,
        username: str | None = None,
        password: str | None = None,
        cache_regions: bool = False,
        asynchronous: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        max_concurrency: int = 10,
        fixed_upload_size: bool = False,
        local_expiry_check: bool = False,
        *,
        use_listings_cache: bool = True,
        listings_expiry_time: float | None = LISTINGS_EXPIRY_SECONDS,
        max_paths: int | None = None,
        **kwargs: Any,
    ) -> None:
        if self._cached:
            return
        if key and username:
            raise KeyError("key and username mean the same: give one of them")
        if secret and password:
            raise KeyError("secret and password mean the same: give one of them")
        if max_concurrency < 1:
            raise ValueError("max_concurrency must be at least 1")
        if default_block_size:
            self.default_block_size = int(default_block_size)
        self._session = session
        for name in ("connect_timeout", "read_timeout", "retries"):
            value = getattr(type(self), name)
            if value is not None:
                value = {"total_max_attempts": value} if name == "retries" else value
                config_kwargs = {name: value} | dict(config_kwargs or {})
        super().__init__(
            asynchronous=asynchronous,
            loop=loop,
            use_listings_cache=use_listings_cache,
            listings_expiry_time=listings_expiry_time,
            max_paths=max_paths,
            anon=anon,
            endpoint_url=endpoint_url,
            key=key,
            secret=secret,
            token=token,
            use_ssl=use_ssl,
            client_kwargs=client_kwargs,
            requester_pays=requester_pays,
            default_cache_type=default_cache_type,
            version_aware=version_aware,
            config_kwargs=config_kwargs,
            s3_additional_kwargs=s3_additional_kwargs,
            session=session,
            username=username,
            password=password,
            local_expiry_check=local_expiry_check,
            **kwargs,
        )

    # ------------------------------------------------------------------ what it was made with

    @property
    def storage_args(self) -> tuple[Any, ...]:
        """Empty: what was given by position is among ``storage_options`` by its name."""
        return ()

    @storage_args.setter
    def storage_args(self, given: tuple[Any, ...]) -> None:
        self._positional = dict(zip(_ORDER, given, strict=False))

    @property
    def storage_options(self) -> dict[str, Any]:
        """The options as given; a secret among them does not show itself."""
        return self._storage_options

    @storage_options.setter
    def storage_options(self, given: dict[str, Any]) -> None:
        WirespeedFileSystem.storage_options.fset(self, {**self._positional, **given})  # pyright: ignore[reportOptionalCall]
        self._positional = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self._session is not None and self.options.explicit_secret:
            refuse()  # a session would be pickled with its credentials
        return super().__reduce__()

    def _said(self, name: str) -> Any:
        given = plain({name: self.storage_options.get(name)}, keep=True)[name]
        return _DEFAULTS.get(name) if given is None else given

    @property
    def anon(self) -> bool:
        """True where requests are not signed."""
        return bool(self.options.client.get("anonymous"))

    @property
    def endpoint_url(self) -> str | None:
        """As given, not the one of the environment."""
        return self._said("endpoint_url")

    @property
    def key(self) -> str | None:
        """The access key as given, not that of the environment or a profile."""
        return self._said("key") or self._said("username")

    @property
    def secret(self) -> str | None:
        """The secret key as given."""
        return self._said("secret") or self._said("password")

    @property
    def token(self) -> str | None:
        """The session token as given."""
        return self._said("token")

    @property
    def use_ssl(self) -> bool:
        """As given."""
        return self._said("use_ssl")

    @property
    def client_kwargs(self) -> dict[str, Any]:
        """As given."""
        return dict(self._said("client_kwargs") or {})

    @property
    def config_kwargs(self) -> dict[str, Any]:
        """As given."""
        return dict(self._said("config_kwargs") or {})

    @property
    def s3_additional_kwargs(self) -> dict[str, Any]:
        """As given."""
        return dict(self.options.extra)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The options that s3fs's constructor does not name."""
        named = {*_ORDER, *_FSSPECS}
        given = {k: v for k, v in self.storage_options.items() if k not in named}
        return plain(given, keep=True)

    @property
    def requester_pays(self) -> bool:
        """True where this account pays for requests to others' buckets."""
        return self.options.requester_pays

    @property
    def req_kw(self) -> dict[str, str]:
        """The parameters that ``requester_pays`` adds to every request."""
        return {"RequestPayer": "requester"} if self.requester_pays else {}

    @property
    def session(self) -> Any:
        """The session as given."""
        return self._session

    @property
    def default_cache_type(self) -> str:
        """The read-ahead of files where ``open`` is given no ``cache_type``."""
        return self.options.default_cache_type

    @property
    def default_fill_cache(self) -> bool:
        """As given; it changes nothing."""
        return self._said("default_fill_cache")

    @property
    def cache_regions(self) -> bool:
        """As given; regions are always remembered."""
        return self._said("cache_regions")

    @property
    def max_concurrency(self) -> int:
        """As given; ``concurrency`` bounds the requests in flight."""
        return self._said("max_concurrency")

    @property
    def fixed_upload_size(self) -> bool:
        """As given; it changes nothing."""
        return self._said("fixed_upload_size")

    @property
    def local_expiry_check(self) -> bool:
        """Always False: the server compares ETags."""
        return False

    def _read_ahead(self) -> int | None:
        size = self.default_block_size
        return None if size == _BLOCK_SIZE else size

    def _plan_get_delegated_s3pars(self, exp: int = 3600) -> Plan[dict[str, Any]]:
        """Options for a file system in another process.

        Raises:
            NotImplementedError: key and secret were given without a token, which STS would have to
                be asked for.
        """
        yield from ()
        if self.anon:
            return {"anon": True}
        if self.token:
            return {"key": self.key, "secret": self.secret, "token": self.token, "anon": False}
        if self.key is None or self.secret is None:
            return {"anon": False}
        raise NotImplementedError(
            "STS is not asked from here: call boto3.client('sts').get_session_token() and give its "
            "AccessKeyId, SecretAccessKey and SessionToken as key, secret and token"
        )

    get_delegated_s3pars, _get_delegated_s3pars = both(_plan_get_delegated_s3pars)

    def _plan_invalidate_region_cache(self) -> Plan[None]:
        """Does nothing: a bucket's region is asked again when the server says that it is wrong."""
        yield from ()

    invalidate_region_cache, _invalidate_region_cache = both(_plan_invalidate_region_cache)

    @staticmethod
    def close_session(loop: Any, s3: Any) -> None:
        """Does nothing: connections close when the last use of the file system has ended."""
