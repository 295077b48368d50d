from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

_T = TypeVar("_T", covariant=True)

class WorkerInfo(Protocol):
    id: int
    num_workers: int
    dataset: Any

def get_worker_info() -> WorkerInfo | None: ...

class Dataset(Generic[_T]): ...

class IterableDataset(Dataset[_T]):
    def __iter__(self) -> Iterator[_T]: ...

class DataLoader(Generic[_T]):
    num_workers: int
    collate_fn: Callable[[Any], Any]
    _iterator: Iterator[Any] | None
    def __init__(self, dataset: Dataset[_T], *arguments: Any, **keywords: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
