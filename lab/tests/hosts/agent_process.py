"""An agent as a process of its own, with the registry that a test gives it.

    agent_process.py ADDRESS TOKEN_FILE SETTING

SETTING is JSON: `clients` (commands by name), `wall_ahead_ns`, `version`.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from wirespeed_lab import places
from wirespeed_lab.hosts import addresses, agent, wire


def main() -> None:
    where, token, setting = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    paths = {"PYTHONPATH": str(places.step_protocol())}
    clients = {
        name: SimpleNamespace(command=tuple(argv), environment=paths, missing=lambda: None)
        for name, argv in setting["clients"].items()
    }
    ahead = setting.get("wall_ahead_ns", 0)
    made = agent.Setting(
        wire.read_token(token),
        lambda: clients,
        wall_ns=lambda: time.time_ns() + ahead,
        version=setting["version"],
    )
    (address,) = addresses.parse(where, lowest_port=0)
    asyncio.run(agent.serve(made, address, once=False))


main()
