"""``python -m wirespeed_lab.driving.conformance [--origin PATH] [--case NAME]... -- COMMAND...``"""

from __future__ import annotations

import argparse
import os
import sys

from ...places import MissingProgram
from ...stores import StoreFailed
from . import CASES, conform


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="wirespeed_lab.driving.conformance",
        description="Tries a driver on everything that the protocol asks of it.",
    )
    parser.add_argument("--origin", help="the wirespeed-origin to try it on, if not the built one")
    parser.add_argument("--case", action="append", default=[], choices=list(CASES))
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("command", nargs="+", help="the driver, without describe or run")
    given = parser.parse_args()
    if given.origin:
        os.environ["WIRESPEED_LAB_ORIGIN"] = given.origin
    env = dict(one.partition("=")[::2] for one in given.env)
    try:
        report = conform(
            given.command, env, only=given.case, tell=lambda text: print(text, flush=True)
        )
    except (MissingProgram, StoreFailed) as error:
        print(f"nothing to try it on: {error}", file=sys.stderr)
        return 2
    passed, skipped = len(report.passed), len(report.skipped)
    print(f"{passed} passed, {skipped} skipped, {len(report.failures)} failures")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
