"""Which contents of earlier plans must go, so that a listing finds its plan's and no more."""

from __future__ import annotations

from collections.abc import Iterable

from ..plans import Series


def clashing(held: Iterable[Series], wanted: Iterable[Series]) -> list[Series]:
    """Of the series that are held, those that a listing for one of the wanted might find and that
    are not wanted themselves."""
    keep = set(wanted)
    folders = {_folder(series) for series in keep}
    return [
        series
        for series in held
        if series not in keep
        and any(
            _folder(series).startswith(folder) or folder.startswith(_folder(series))
            for folder in folders
        )
    ]


def _folder(series: Series) -> str:
    return series.prefix[: series.prefix.rfind("/") + 1]
