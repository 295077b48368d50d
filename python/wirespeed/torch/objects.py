"""Which objects a dataset is made of: a prefix, a manifest, or URIs as they come.

The list is taken once, in the process that makes the dataset, so that all workers and ranks that
get it agree on it. It is kept as two arrays and not as an object a key: ten million keys cost
their bytes and 16 more each, a forked worker shares them, and a spawned one unpickles them at
once.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Self, SupportsIndex, overload

import wirespeed
from wirespeed._wirespeed import _split_bucket  # pyright: ignore[reportPrivateUsage]
from wirespeed.torch.errors import CorruptDataError

SCHEME = "s3://"


class ObjectList(Sequence[str]):
    """URIs in order, and their sizes in bytes where they are known."""

    def __init__(self, uris: Iterable[str], sizes: Iterable[int] | None = None) -> None:
        self._head = ""
        self._text = bytearray()
        self._ends = array("Q")
        self._sizes: array[int] | None = None
        for uri in uris:
            if not uri.startswith(SCHEME):
                raise ValueError(f"{uri!r} is not an object's URI: expected s3://bucket/key")
            self._append(uri)
        if sizes is not None:
            self._sizes = array("q", sizes)
            if len(self._sizes) != len(self):
                raise ValueError(f"{len(self)} URIs, but {len(self._sizes)} sizes")

    @classmethod
    def from_prefix(
        cls,
        prefix: str,
        *,
        suffix: str | tuple[str, ...] | None = None,
        client: wirespeed.Client | None = None,
    ) -> Self:
        """All objects whose URI begins with `prefix`, in the listing's order (by bytes of the key).

        With `suffix`, those that end in it, or in one of them. Markers of folders (empty objects
        whose key ends with a slash) are left out.
        """
        if not prefix.startswith(SCHEME):
            raise ValueError(f"{prefix!r} is not a prefix: expected s3://bucket/prefix")
        bucket, _ = _split_bucket(prefix.removeprefix(SCHEME))
        found = cls(())
        found._head = f"{SCHEME}{bucket}/"
        sizes = found._sizes = array("q")
        for page in client_or_default(client).list(prefix).pages():
            for key, size in zip(page.keys(), page.sizes(), strict=True):
                if key.endswith("/") and size == 0:
                    continue
                if suffix is None or key.endswith(suffix):
                    found._append(key)
                    sizes.append(size)
        return found

    @classmethod
    def from_manifest(
        cls, manifest: str | PathLike[str], *, client: wirespeed.Client | None = None
    ) -> Self:
        """The URIs in a text file, one a line; the file is local, or an object (``s3://...``).

        Blank lines, and lines that begin with ``#``, are left out; blanks before a URI too, but not
        those behind it, which may be the key's. Raises `CorruptDataError` for a
        line that is no URI, and what the file or object raises if it can't be read.
        """
        name = fspath(manifest)
        if name.startswith(SCHEME):
            text = client_or_default(client).get(name, as_bytes=True)
        else:
            text = Path(name).read_bytes()
        return cls(_manifest_lines(name, text))

    def _append(self, tail: str) -> None:
        self._text += tail.encode()
        self._ends.append(len(self._text))

    def size(self, index: int) -> int | None:
        """The size in bytes of the object at `index`, if the list came with sizes."""
        return None if self._sizes is None else self._sizes[index]

    @property
    def fingerprint(self) -> str:
        """The same for the same URIs in the same order; a saved position is only good with it."""
        digest = hashlib.blake2b(self._head.encode(), digest_size=12)
        digest.update(self._text)
        digest.update(self._ends.tobytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[str]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> str | list[str]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        start = self._ends[at - 1] if at else 0
        return self._head + self._text[start : self._ends[at]].decode()

    def __iter__(self) -> Iterator[str]:
        return (self[one] for one in range(len(self)))

    def __repr__(self) -> str:
        first = f"{self[0]!r}, ..." if len(self) else ""
        return f"<ObjectList of {len(self):,}: {first}>" if first else "<ObjectList of 0>"


def client_or_default(client: wirespeed.Client | None) -> wirespeed.Client:
    """The client given, or this process's default one."""
    return wirespeed.default_client() if client is None else client


def _manifest_lines(name: str, text: bytes) -> Iterator[str]:
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            uri = line.removesuffix(b"\r").decode().lstrip()
        except UnicodeDecodeError as error:
            raise CorruptDataError(name, f"line {number} is not UTF-8") from error
        if not uri or uri.startswith("#"):
            continue
        if not uri.startswith(SCHEME):
            raise CorruptDataError(name, f"line {number} is not an object's URI: {uri[:200]!r}")
        yield uri
