"""What a machine does when it starts: it sets the timer that ends it, then starts the agent."""

from __future__ import annotations

import shlex

#: Bytes that EC2 takes, before its encoding.
LONGEST = 16384


class TooLong(ValueError):
    """The setup script doesn't fit."""


def script(minutes: int, token: str, port: int, setup: str) -> str:
    """The user data. The timer comes first, before anything that can fail or hang; the instance is
    launched so that its own shutdown terminates it. ``setup`` is a shell script of the user's that
    leaves `wirespeed-lab` on PATH, the clients installed, and credentials exported. When it fails,
    the machine ends at once. The token is of this launch alone; who may read the account's
    instances may read it. Raises TooLong, and ValueError for a setup that can't be carried."""
    if "\0" in setup:
        raise ValueError("the setup script holds a NUL byte")
    end = _free_word(setup)
    text = "\n".join(
        [
            "#!/bin/bash",
            f"shutdown -h +{minutes} 'the time of this measurement is over' || poweroff",
            "set -eu",
            "trap 'shutdown -h now' ERR",
            "umask 077",
            "export HOME=${HOME:-/root}",
            f"printf '%s\\n' {shlex.quote(token)} > /run/wirespeed-lab.token",
            f"cat > /run/wirespeed-lab.setup <<'{end}'",
            setup.rstrip("\n"),
            end,
            "source /run/wirespeed-lab.setup",
            f"wirespeed-lab agent --listen 0.0.0.0:{port} "
            "--token-file /run/wirespeed-lab.token --once",
            "shutdown -h now",
            "",
        ]
    )
    if len(text.encode()) > LONGEST:
        raise TooLong(
            f"the setup script makes user data of {len(text.encode())} bytes, and EC2 takes "
            f"{LONGEST}: let it fetch what it needs"
        )
    return text


def _free_word(setup: str) -> str:
    """A word that ends a here-document and is no line of the script."""
    word = "END-OF-SETUP"
    while word in setup.splitlines():
        word += "-"
    return word
