"""pyarrow's S3FileSystem from a pool of threads: a stream that is read into memory of the thread's
own, over and over, or one read of a file that knows its size; uploads by its output stream."""

from __future__ import annotations

import lab_protocol
from lab_protocol import Operation, Plan, read_into, version
from pyarrow import fs, set_io_thread_count


class Pyarrow:
    def __init__(self, plan: Plan):
        self._plan = plan
        self.workers = plan.concurrency or lab_protocol.DEFAULT_WORKERS
        set_io_thread_count(max(8, self.workers))
        access, secret = lab_protocol.credentials()
        trust = {"tls_ca_file_path": plan.ca_file} if plan.ca_file else {}
        self._system = fs.S3FileSystem(
            access_key=access,
            secret_key=secret,
            region=plan.region,
            scheme="https" if plan.secure else "http",
            endpoint_override=plan.host,
            request_timeout=600,
            **trust,
        )

    def get(self, operation: Operation) -> None:
        item, path = operation.item, self._path(operation)
        if self._plan.sink == "memory" or item.first is not None:
            with self._system.open_input_file(path) as file:
                first = item.first or 0
                body = memoryview(file.read_at(item.size, first))
            if self._plan.sink == "memory":
                operation.whole(body)
            else:
                operation.part(body)
            return
        with self._system.open_input_stream(path) as file:
            read_into(operation, file.readinto)

    def put(self, operation: Operation) -> None:
        with self._system.open_output_stream(self._path(operation)) as file:
            if self._plan.files:
                with open(operation.path, "rb", buffering=0) as source:
                    while piece := source.read(lab_protocol.PIECE):
                        file.write(piece)
            else:
                file.write(self._plan.body(operation.item.size))
        operation.sent()

    def list(self, operation: Operation) -> None:
        prefix = operation.item.prefix
        folder = f"{self._plan.bucket}/{prefix}".rpartition("/")[0]
        wanted = fs.FileSelector(folder, recursive=True, allow_not_found=True)
        cut = len(self._plan.bucket) + 1
        keys = [
            info.path[cut:]
            for info in self._system.get_file_info(wanted)
            if info.type == fs.FileType.File
        ]
        operation.listed(sorted(key for key in keys if key.startswith(prefix)))

    def _path(self, operation: Operation) -> str:
        return f"{self._plan.bucket}/{operation.key}"

    def effective(self) -> dict:
        return {"concurrency": self.workers}


if __name__ == "__main__":
    lab_protocol.main(
        {"name": "pyarrow", "client": "pyarrow", "version": version("pyarrow")}, Pyarrow
    )
