"""The Python package on the demo's data: everything below a prefix into memory, in one call, and in
the first round each byte compared with the file that it was uploaded from.

Speaks the lab's step protocol, as `driver.py` does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import step_protocol
from step_protocol import Round

import wirespeed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--prefix", required=True, help="a key, or what ends with / for many")
    parser.add_argument("--path", type=Path, required=True, help="the file, or the folder of files")
    parser.add_argument("--mode", choices=["memory"], default="memory")
    parser.add_argument("--unchecked", action="store_true")
    parser.add_argument("--step", action="store_true")
    work = parser.parse_args()
    client = wirespeed.Client(endpoint_url=work.endpoint)
    many = work.prefix.endswith("/")
    keys = client.list(work.prefix, bucket=work.bucket).keys() if many else [work.prefix]

    def memory(done: Round) -> None:
        with done.clock:
            if many:
                bodies = client.get_many(keys, bucket=work.bucket)
            else:
                bodies = [client.get(work.prefix, bucket=work.bucket)]
        for key, body in zip(keys, bodies, strict=True):
            done.bytes += len(body)
            done.objects += 1
            path = work.path / key.removeprefix(work.prefix) if many else work.path
            if done.first and path.read_bytes() != memoryview(body):
                sys.exit(f"wrong bytes of {key}: they are not those of {path.name}")
        with done.clock:
            del bodies, body

    step_protocol.serve(work, {"memory": memory})


if __name__ == "__main__":
    main()
