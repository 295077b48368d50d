"""Progress bars, ready to be given to a verb: ``get(uri, progress=wirespeed.progress.tqdm())``.

Owns: what tqdm and rich are told of a transfer. Neither is needed before it is asked for.
A bar belongs to one call; leaving a ``with`` block around it, or dropping it, closes it.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ._wirespeed import Progress

__all__ = ["Bar", "rich", "tqdm"]


class Bar(ABC):
    """Something to be given to a verb as ``progress=``, and a context manager that closes it."""

    @abstractmethod
    def __call__(self, progress: Progress, /) -> None:
        """Shows how far a call has come."""

    @abstractmethod
    def close(self) -> None:
        """Leaves the bar as it stands. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def tqdm(**options: Any) -> Bar:
    """A bar of tqdm's, in bytes.

    Args:
        options: what ``tqdm.tqdm`` takes, such as ``desc="weights"``, ``disable=True``, ``file=``.

    Raises:
        ModuleNotFoundError: tqdm is not installed.
    """
    return _Tqdm(_need("tqdm.auto"), options)


def rich(description: str = "", *, within: Any = None, **options: Any) -> Bar:
    """A bar of rich's, in bytes, with speed and time left.

    Args:
        description: what stands before the bar.
        within: a running ``rich.progress.Progress`` in which to show it, as one task of several;
            it is not stopped. ``None`` makes one.
        options: what ``rich.progress.Progress`` takes, such as ``console=``, ``transient=True``.

    Raises:
        ModuleNotFoundError: rich is not installed.
    """
    return _Rich(_need("rich.progress"), description, within, options)


def _need(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise ModuleNotFoundError(
            f"{package} is not installed: pip install {package},"
            " or pip install 'wirespeed[progress]'",
            name=error.name,
        ) from error


class _Tqdm(Bar):
    _bar: Any = None

    def __init__(self, library: Any, options: dict[str, Any]) -> None:
        look: dict[str, Any] = {"unit": "B", "unit_scale": True, "unit_divisor": 1024}
        self._bar = library.tqdm(**(look | options))

    def __call__(self, progress: Progress, /) -> None:
        if progress.objects > 1:
            self._bar.set_postfix_str(f"{progress.objects} objects", refresh=False)
        self._bar.total = progress.expected
        self._bar.update(progress.bytes - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Rich(Bar):
    _shown: Any = None
    _is_ours = False

    def __init__(
        self, library: Any, description: str, within: Any, options: dict[str, Any]
    ) -> None:
        if within is not None and options:
            raise TypeError("options are those of a Progress that is made here: leave out within")
        if within is None:
            self._is_ours = True
            within = library.Progress(
                library.TextColumn("{task.description}"),
                library.BarColumn(),
                library.DownloadColumn(binary_units=True),
                library.TransferSpeedColumn(),
                library.TimeRemainingColumn(),
                **options,
            )
            within.start()
        self._shown = within
        self._task = within.add_task(description, total=None)

    def __call__(self, progress: Progress, /) -> None:
        self._shown.update(self._task, completed=progress.bytes, total=progress.expected)

    def close(self) -> None:
        if self._shown is not None and self._is_ours:
            self._shown.stop()
