"""``python -m wirespeed_lab.clients [--check] [ID...]``: makes what the clients need, says of each
whether it is there, and goes on. Exit code 1 when one that was named is missing."""

from __future__ import annotations

import argparse
import sys

from . import Outcome, registry, setup


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="wirespeed_lab.clients",
        description="Makes what the lab's clients need, from the package registries.",
    )
    parser.add_argument("--check", action="store_true", help="make nothing, say what is there")
    parser.add_argument("clients", nargs="*", metavar="ID", help="default: all")
    chosen = parser.parse_args(argv)
    known = registry()
    if unknown := [id for id in chosen.clients if id not in known]:
        parser.error(f"no client {', '.join(unknown)}; there are {', '.join(known)}")
    if chosen.check:
        outcomes = [Outcome(id, known[id].missing()) for id in chosen.clients or known]
        for outcome in outcomes:
            print(outcome)
    else:
        outcomes = setup(chosen.clients, lambda outcome: print(outcome, flush=True))
    there = sum(outcome.installed for outcome in outcomes)
    print(f"{there} of {len(outcomes)} clients are installed")
    return 1 if chosen.clients and there < len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
