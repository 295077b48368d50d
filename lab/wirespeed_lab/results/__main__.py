"""``python -m wirespeed_lab.results``: writes lab/RESULTS.md, or with ``--check`` says whether it
is what the records give. Exits 1 when it is not, 2 for a seed or a record that can't be read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import places
from ..plans import BadInput
from ..records import BadRecord
from . import document, seeds
from .shelf import Shelf

PAGE = places.REPOSITORY / "lab" / "RESULTS.md"


def main(words: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(words)
    try:
        text = document(seeds.all_in(args.seeds), Shelf.of(args.records))
    except (BadInput, BadRecord) as error:
        print(error, file=sys.stderr)
        return 2
    if not args.check:
        args.to.write_text(text)
        return 0
    if args.to.is_file() and args.to.read_text() == text:
        return 0
    print(f"{args.to.name} is not what the records give: write it with `make results`")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m wirespeed_lab.results")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    parser.add_argument("--records", type=Path, default=places.RECORDS, help="folder of records")
    parser.add_argument("--seeds", type=Path, default=seeds.FOLDER, help="folder of reports")
    parser.add_argument("--to", type=Path, default=PAGE, help="the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
