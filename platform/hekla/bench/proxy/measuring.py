"""Measures a program in a pod: directly, by the proxy of sessions, and by nginx."""

import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hekla.bench.proxy import keystrokes, requests, transfers
from hekla.bench.proxy.nginx import nginx
from hekla.bench.proxy.place import SOCKETS_OF_A_SESSION, ProxyBench, place
from hekla.bench.proxy.requests import Endpoint, percentiles
from hekla.bench.proxy.websockets import OpenSockets
from hekla.cli.client import Failure

CONNECTIONS = (1, 16)
_MIB = 1024 * 1024
_SETTLE_SECONDS = 1.0
_WARM = 50


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. `repeat`: transfers in each direction, of which the median counts."""

    requests: int
    websockets: int
    seconds: int
    mebibytes: int
    repeat: int
    keystrokes: int


def measure(sizes: Sizes, program: str | None, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure everything. `program`: nginx, by its name or path; None: without it. Raises Failure."""
    if program is not None and shutil.which(program) is None:
        raise Failure(f"There is no program {program} on this machine.")
    load, ports = os.getloadavg()[0], max(1, -(-sizes.websockets // SOCKETS_OF_A_SESSION))
    with place(ports) as found:
        rows = {"direct": _figures_of(found.direct[0], sizes, None)}
        rows["proxy"] = _figures_of(found.proxied[0], sizes, found.web_pid)
        say("the proxy is measured")
        if program is not None:
            with nginx(program, found.direct[0]) as (endpoint, pid):
                rows["nginx"] = _figures_of(endpoint, sizes, pid)
            say("nginx is measured")
        sockets = _websockets(found, sizes)
        say("the websockets are measured")
        keys = _figures(keystrokes.delays(found, sizes.keystrokes), 50, 95, 99)
    facts = {"cores": os.cpu_count(), "load_average": load}
    return {**facts, "endpoints": rows, "websockets": sockets, "keystrokes": {"count": sizes.keystrokes, **keys}}


def _figures_of(endpoint: Endpoint, sizes: Sizes, pid: int | None) -> dict[str, Any]:
    """The figures of one endpoint. `pid`: the process in between, if there is one."""
    requests.seconds_of(endpoint, CONNECTIONS[-1], _WARM)
    found: dict[str, Any] = {"connections": {}}
    for connections in CONNECTIONS:
        before = _cpu(pid) if pid else 0.0
        waits = requests.seconds_of(endpoint, connections, sizes.requests)
        row: dict[str, Any] = _figures(waits, 50, 99)
        if pid:
            row["cpu_ms"] = round((_cpu(pid) - before) * 1000 / len(waits), 3)
        found["connections"][str(connections)] = row
    size = sizes.mebibytes * _MIB
    for name, transfer in (("upload", transfers.upload_seconds), ("download", transfers.download_seconds)):
        with _growth(pid) as grown:
            speed = statistics.median(sizes.mebibytes / transfer(endpoint, size) for _time in range(sizes.repeat))
        found[name] = {"mib_per_second": round(speed, 1), **grown}
    return found


def _websockets(found: ProxyBench, sizes: Sizes) -> dict[str, Any]:
    """The delays, and what a websocket costs the web process."""
    pid = found.web_pid
    with _opened(found, min(sizes.websockets, _WARM)) as some:
        some.echo(1)
    before = _memory(pid)
    with _opened(found, sizes.websockets) as opened:
        time.sleep(_SETTLE_SECONDS)
        after, cpu = _memory(pid), _cpu(pid)
        waits = opened.echo(sizes.seconds)
        used = _cpu(pid) - cpu
    return {
        "count": sizes.websockets,
        **_figures(waits, 50, 95, 99),
        "kilobytes_each": round((after - before) / 1000 / sizes.websockets, 1),
        "cpu_ms_per_message": round(used * 1000 / len(waits), 3),
    }


@contextmanager
def _opened(found: ProxyBench, number: int) -> Iterator[OpenSockets]:
    sockets = OpenSockets(found.proxied, number)
    try:
        yield sockets
    finally:
        sockets.close()


def _figures(seconds: list[float], *which: int) -> dict[str, float]:
    return {f"p{part}": value for part, value in zip(which, percentiles(seconds, *which), strict=True)}


def _memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


@contextmanager
def _growth(pid: int | None) -> Iterator[dict[str, float]]:
    """How much the peak memory of the process is above what it used before, in MiB; nothing without a process."""
    found: dict[str, float] = {}
    if pid is None:
        yield found
        return
    before = _memory(pid)
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # forget the peak so far
    yield found
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    found["grown_mib"] = round((peak - before) / _MIB, 1)
