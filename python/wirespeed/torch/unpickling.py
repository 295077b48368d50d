"""Reading a checkpoint's pickle: which storages it needs, then its objects around those storages.

Three readers of the same bytes:

- `storages_of` looks only for storages. It builds nothing: every class and function that the pickle
  names is replaced by a stand-in that does nothing, so it is safe on any input.
- `SafeUnpickler` builds tensors, parameters, containers and plain values, and refuses all else: no
  code of the pickle's choice runs.
- `FullUnpickler` builds whatever the pickle says, as `pickle` does: for input that is trusted.
"""

import collections
import importlib
import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, cast

import torch
import torch.nn

from wirespeed.torch.memory import element_size

_ENCODING = "utf-8"
# Where torch keeps what its pickles name. Which of these it has depends on its version.
_rebuilding: Any = importlib.import_module("torch._utils")


class StorageKind:
    """What stands for a storage class in a pickle: only its element type matters."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype


class StorageId(NamedTuple):
    """A storage as a pickle mentions it: its record, where it was, and its size in bytes."""

    key: str
    location: str
    dtype: torch.dtype
    nbytes: int


_KINDS = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
    "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "uint8",
}


def _storage_kind(module: str, name: str) -> StorageKind | None:
    if module not in ("torch", "torch.cuda", "torch.storage") or name not in _KINDS:
        return None
    return StorageKind(getattr(torch, _KINDS[name]))


def name_of_kind(dtype: torch.dtype) -> str:
    """The storage class that stands for an element type; raises `ValueError` if there is none."""
    for kind, name in _KINDS.items():
        if kind != "UntypedStorage" and getattr(torch, name) == dtype:
            return kind
    raise ValueError(f"checkpoints have no storage of {dtype}")


def parse_storage_id(saved: Any) -> StorageId:
    """What a persistent id of a checkpoint says; raises `pickle.UnpicklingError` if it is none."""
    fields = cast("tuple[Any, ...]", saved) if isinstance(saved, tuple) else ()
    if len(fields) != 5 or fields[0] != "storage":
        raise pickle.UnpicklingError("a persistent id is not that of a storage")
    _, kind, key, location, numel = fields
    if not (
        isinstance(kind, StorageKind)
        and isinstance(key, str)
        and isinstance(location, str)
        and type(numel) is int
        and numel >= 0
    ):
        raise pickle.UnpicklingError("the persistent id of a storage is damaged")
    return StorageId(key, location, kind.dtype, numel * element_size(kind.dtype))


class _Inert:
    """Stands for anything that a pickle names; whatever is done to it does nothing."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> "_Inert":
        return object.__new__(cls)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass

    def __call__(self, *arguments: Any, **keywords: Any) -> "_Inert":
        return _Inert()

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def append(self, item: Any) -> None:
        pass

    def extend(self, items: Any) -> None:
        pass

    def add(self, item: Any) -> None:
        pass


class _Scout(pickle.Unpickler):
    def __init__(self, text: bytes) -> None:
        super().__init__(io.BytesIO(text), encoding=_ENCODING)
        self.found: dict[str, StorageId] = {}

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return _storage_kind(module_name, global_name) or _Inert

    def persistent_load(self, pid: Any) -> Any:
        storage = parse_storage_id(pid)
        self.found.setdefault(storage.key, storage)
        return _Inert()


def storages_of(text: bytes) -> dict[str, StorageId]:
    """The storages that a checkpoint's pickle mentions, by key. Runs nothing that it names."""
    scout = _Scout(text)
    scout.load()
    return scout.found


def check_sparse_tensors() -> None:
    """Lets torch check the sparse tensors that were just read, which it puts off until then."""
    check = getattr(_rebuilding, "_validate_loaded_sparse_tensors", None)
    if check is not None:
        check()


Storages = Callable[[StorageId], Any]


class FullUnpickler(pickle.Unpickler):
    """Builds everything, as `pickle` does."""

    def __init__(self, text: bytes, storages: Storages) -> None:
        super().__init__(io.BytesIO(text), encoding=_ENCODING)
        self._storages = storages

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        kind = _storage_kind(module_name, global_name)
        if kind is not None:
            return kind
        # Checkpoints of torch 1.7 and older name a module that has moved.
        module = "torch._tensor" if module_name == "torch.tensor" else module_name
        return super().find_class(module, global_name)

    def persistent_load(self, pid: Any) -> Any:
        return self._storages(parse_storage_id(pid))


def _encode(text: str, encoding: str) -> bytes:
    """What `bytes` are made by in pickles of protocol 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it encodes a text as {encoding!r}")
    return text.encode("latin1")


def _name_of(one: Any) -> str:
    return f"{one.__module__}.{one.__qualname__}"


def _allowed() -> dict[str, Any]:
    """What a checkpoint of weights may name."""
    found: dict[str, Any] = {
        "collections.OrderedDict": collections.OrderedDict,
        "collections.Counter": collections.Counter,
        "builtins.set": set,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.complex": complex,
        "torch.Size": torch.Size,
        "torch.Tensor": torch.Tensor,
        "torch.device": torch.device,
        "torch.nn.parameter.Parameter": torch.nn.Parameter,
        "torch.nn.parameter.Buffer": getattr(torch.nn, "Buffer", None),
        "torch.serialization._get_layout": getattr(torch.serialization, "_get_layout", None),
    }
    for name, value in vars(torch).items():
        if isinstance(value, (torch.dtype, torch.qscheme)):
            found[f"torch.{name}"] = value
    for name in (
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_qtensor",
        "_rebuild_sparse_tensor",
        "_rebuild_sparse_csr_tensor",
        "_rebuild_meta_tensor_no_storage",
        "_rebuild_nested_tensor",
    ):
        found[f"torch._utils.{name}"] = getattr(_rebuilding, name, None)
    # A tensor with attributes: by one of the above, then its state.
    found["torch._tensor._rebuild_from_type_v2"] = getattr(
        importlib.import_module("torch._tensor"), "_rebuild_from_type_v2", None
    )
    # What the person has told torch to trust (torch 2.4 and newer).
    trusted = getattr(torch.serialization, "get_safe_globals", None)
    for one in cast("list[Any]", trusted()) if trusted else ():
        # A class or function, or one with the name that pickles have for it.
        pair = cast("Any", one if isinstance(one, tuple) else (one, _name_of(one)))
        found[pair[1]] = pair[0]
    return {name: value for name, value in found.items() if value is not None}


# The interpreter of pickles in Python, since the compiled one can't be told what to refuse.
_Interpreter: Any = getattr(pickle, "_Unpickler")  # noqa: B009
_REFUSED = "INST OBJ EXT1 EXT2 EXT4 PERSID NEWOBJ_EX NEXT_BUFFER READONLY_BUFFER"


class SafeUnpickler(_Interpreter):
    """Builds what a checkpoint of weights is made of; all else is a `pickle.UnpicklingError`."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Interpreter.dispatch)

    def __init__(self, text: bytes, storages: Storages) -> None:
        _Interpreter.__init__(self, io.BytesIO(text), encoding=_ENCODING)
        self._storages = storages
        self._allowed = _allowed()
        # Functions and classes alike can be called; by identity, since a dtype and such are not.
        self._callable = {id(one) for one in self._allowed.values() if callable(one)}
        self._trusted = tuple(
            one for one in self._allowed.values() if isinstance(one, type) and one not in (set,)
        )

    def find_class(self, module: str, name: str) -> Any:
        kind = _storage_kind(module, name)
        if kind is not None:
            return kind
        # Protocol 2 has Python 2's name of the module.
        full = f"builtins.{name}" if module == "__builtin__" else f"{module}.{name}"
        if full not in self._allowed:
            raise pickle.UnpicklingError(
                f"it holds a {full}, which is not among the plain contents of a checkpoint; if you"
                " trust where it comes from, load it with weights_only=False, or (torch 2.4 and"
                " newer) name the class to torch.serialization.add_safe_globals"
            )
        return self._allowed[full]

    def persistent_load(self, pid: Any) -> Any:
        return self._storages(parse_storage_id(pid))

    def _check_call(self, function: Any) -> None:
        if id(function) not in self._callable:
            raise pickle.UnpicklingError(f"it calls {function!r}, which is not allowed here")

    def load_reduce(self) -> None:
        self._check_call(self.stack[-2])
        _Interpreter.load_reduce(self)

    def load_newobj(self) -> None:
        self._check_call(self.stack[-2])
        _Interpreter.load_newobj(self)

    def load_build(self) -> None:
        made = self.stack[-2]
        if type(made) not in self._trusted:
            raise pickle.UnpicklingError(f"it sets the state of a {type(made).__name__}")
        _Interpreter.load_build(self)

    def _refuse(self) -> None:
        raise pickle.UnpicklingError("it has an instruction that no checkpoint of weights has")


def _install(into: dict[int, Callable[[Any], None]], methods: Mapping[str, Any]) -> None:
    for name in _REFUSED.split():
        into[getattr(pickle, name)[0]] = methods["_refuse"]
    for name in ("reduce", "newobj", "build"):
        into[getattr(pickle, name.upper())[0]] = methods[f"load_{name}"]


_install(SafeUnpickler.dispatch, vars(SafeUnpickler))
