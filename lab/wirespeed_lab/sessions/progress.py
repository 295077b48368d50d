"""What a session has done so far, as the lines of its record say."""

from __future__ import annotations

from collections.abc import Iterable

from ..records.summary import COUNTED

#: States that a client does not leave when the session is resumed; one that failed is tried again.
FINAL = ("skipped", "disqualified")


class Progress:
    """Blocks done and clients out, by cell and client."""

    def __init__(self, lines: Iterable[dict]):
        self.rounds = 0
        self._states: dict[tuple[str, str], str] = {}
        self.processes: dict[tuple[str, str], int] = {}
        self._blocks: dict[tuple[str, str], set[int]] = {}
        for line in lines:
            self.add(line)
        self._states = {where: state for where, state in self._states.items() if state in FINAL}

    def add(self, line: dict) -> None:
        """Takes in one more line."""
        where = (line["cell"], line["client"])
        if line["line"] == "event":
            if line["event"] in (*FINAL, "failed"):
                self._states[where] = line["event"]
            return
        self.rounds += 1
        self.processes[where] = max(self.processes.get(where, 0), line["process"])
        if line["phase"] in COUNTED:
            self._blocks.setdefault(where, set()).add(line["block"])

    def blocks(self, cell: str, client: str) -> set[int]:
        """The blocks in which the client has had a counted round."""
        return self._blocks.get((cell, client), set())

    @property
    def out(self) -> set[tuple[str, str]]:
        """Clients that take no further part in a cell."""
        return set(self._states)
