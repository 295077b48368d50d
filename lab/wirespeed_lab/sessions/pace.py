"""How long a session still takes, from how long its turns took so far."""

from __future__ import annotations

import statistics


class Pace:
    """Seconds by client and cell. What has not been seen is guessed: a client's turn in a cell to
    come from its turns in others, a client's first from what others needed."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], list[float]] = {}

    def took(self, cell: str, client: str, seconds: float) -> None:
        """One turn, with all that belongs to it."""
        self._seen.setdefault((cell, client), []).append(seconds)

    def left_s(self, turns: dict[tuple[str, str], int]) -> float | None:
        """Seconds for so many turns by cell and client; None before anything was seen."""
        if not self._seen:
            return None
        return sum(count * self._one(*where) for where, count in turns.items())

    def _one(self, cell: str, client: str) -> float:
        known = (
            self._seen.get((cell, client))
            or self._matching(1, client)
            or self._matching(0, cell)
            or [second for seconds in self._seen.values() for second in seconds]
        )
        return statistics.median(known)

    def _matching(self, index: int, name: str) -> list[float]:
        return [
            second
            for where, seconds in self._seen.items()
            if where[index] == name
            for second in seconds
        ]


def spoken(seconds: float | None) -> str:
    """``3 min 20 s``, or that it is not known yet."""
    if seconds is None:
        return "unknown yet"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
