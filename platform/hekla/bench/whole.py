"""Runs a whole console for one measurement (`manage.py up`), and reads the usage of its processes from /proc.

Linux only, because only Linux reports the proportional share of memory (PSS).
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path

import hekla
from hekla.backends.local.processes import descendants
from hekla.cli.client import Failure

_MANAGE = Path(hekla.__file__).resolve().parents[2] / "manage.py"
_LINK = re.compile(r"http://\S+/link/\S+")
_TICKS = os.sysconf("SC_CLK_TCK")
_START_SECONDS, _STOP_SECONDS = 180.0, 30.0
_OF_STAT = slice(11, 15)  # after the name: user and system ticks of the process and of its ended children


@dataclass(frozen=True)
class Cost:
    """The usage of a process so far. `switches`: voluntary context switches, so the number of its wake-ups."""

    name: str
    cpu_seconds: float
    pss_mib: float
    switches: int


@dataclass
class RunningConsole:
    """A running console. `seconds`: from the command to its link. `cpu_seconds`: of all its processes until then."""

    pid: int
    link: str
    seconds: float
    cpu_seconds: float

    def costs(self) -> dict[int, Cost]:
        """The usage of all its processes, by pid."""
        found = {pid: _cost(pid) for pid in [self.pid, *descendants(self.pid)]}
        return {pid: cost for pid, cost in found.items() if cost is not None}

    def visit(self) -> None:
        """Open the first page as the admin, because a console without any visit uses less memory than usual."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        for address in (self.link, self.link.partition("/accounts/")[0]):
            opener.open(address, timeout=30).read()


@contextmanager
def new_folder() -> Iterator[Path]:
    """A path for a new data folder. It is deleted afterwards."""
    place = Path(tempfile.mkdtemp(prefix="hekla-bench-"))
    try:
        yield place / "data"
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def console(folder: Path) -> Iterator[RunningConsole]:
    """Start a console on this folder, and end it afterwards. Raises Failure."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise Failure("This can be measured on Linux only.")
    began = time.perf_counter()
    argv = [sys.executable, str(_MANAGE), "up", "--data", str(folder), "--port", str(_free_port())]
    unset = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "VALKEY_URL"}}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=unset)
    try:
        link = _link(process)
        seconds = time.perf_counter() - began
        found = RunningConsole(process.pid, link, seconds, 0.0)
        found.cpu_seconds = sum(cost.cpu_seconds for cost in found.costs().values())
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_STOP_SECONDS)


def _link(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None  # noqa: S101  (stdout is a pipe)
    output = []
    for line in process.stdout:
        output.append(line)
        if found := _LINK.search(line):
            return found[0]
    raise Failure("The console did not start:\n" + "".join(output[-20:]))


def _cost(pid: int) -> Cost | None:
    """The usage of a process, or None if it has ended."""
    try:
        return Cost(_name(pid), _cpu_seconds(pid), _kib(pid, "smaps_rollup", "Pss:") / 1024, _switches(pid))
    except (OSError, ValueError):
        return None


def _name(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    words = re.sub(r"\S*/(?=\S)", "", words)
    return next((name for name in ("manage.py up", "postgres -D") if name in words), words)[:40]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[_OF_STAT])) / _TICKS


def _kib(pid: int, file: str, field: str) -> int:
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _switches(pid: int) -> int:
    """Voluntary context switches of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(_kib(pid, f"task/{task.name}/status", "voluntary_ctxt_switches:") for task in tasks)


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])
