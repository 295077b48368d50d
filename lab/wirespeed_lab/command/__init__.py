"""The command line of the lab: ``wirespeed-lab run | list | doctor | compare | show | verify``,
and the rooms' own ``agent`` and ``cloud``.

Owns arguments, exit codes and what is printed. Refuses to measure and to compute: it asks
``sessions`` and ``records``. Exit codes: 0 done; 1 something is wrong with what was looked at
or measured; 2 the command can't be understood; 130 interrupted, with a record that can be
resumed.
"""

from .parser import main

__all__ = ["main"]
