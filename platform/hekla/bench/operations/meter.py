"""CPU time of this process and of the database process that serves it."""

import time
from types import TracebackType

from hekla.bench.reconcile.phases import server_seconds


class CpuMeter:
    """CPU seconds inside the block, after its end."""

    def __init__(self) -> None:
        self.process = self.database = 0.0
        self._began = (0.0, 0.0)

    def __enter__(self) -> "CpuMeter":
        self._began = (time.process_time(), server_seconds())
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        process, database = self._began
        self.process, self.database = time.process_time() - process, server_seconds() - database
