"""What a client costs and what disturbs it, both seen from outside the client.

Owns: CPU time, memory and storage bytes of a whole process tree (``Meter``), the choice between
a cgroup and /proc (made once a session, so that every client is measured the same way), which
cores belong to whom (``Cores``), and the noise on them (``Watch``). Refuses to know what a
client is or does: it is told process ids and core numbers.
"""

from .cores import Cores, CoresRefused
from .meter import Meter, Method, Usage
from .noise import Noise, Watch, quietness

__all__ = [
    "Cores",
    "CoresRefused",
    "Meter",
    "Method",
    "Noise",
    "Usage",
    "Watch",
    "quietness",
]
