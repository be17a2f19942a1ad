"""Measures the delay of changes on many open pages, and the CPU and memory that the pages need in the server.

The server runs as under `manage.py up`. A second process keeps the pages open, over loopback. Changes go through the
same service as for people. A change has arrived at a page with the first message whose number is at least that of
the change.
"""

import json
import math
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.signals import recorded
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.bench.console import watchers
from hekla.bench.console.watchers import WatchedPage
from hekla.bench.console.web_server import HOST, Server, web_server
from hekla.bench.console.world import ADMIN
from hekla.launcher.terminal import LaunchRefused
from hekla.lib import clock

_SETTLE_SECONDS = 5.0
_WARM = 40
_FIRST_CHANGES = 5  # warms up the renderings, as in a web process in use


@dataclass(frozen=True, slots=True)
class ChangeRate:
    """The rate and duration of the changes."""

    per_second: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Change:
    """A change: its event number, its topics, and the time of its commit (monotonic clock)."""

    number: int
    topics: frozenset[str]
    at: float


def measure(home: Path, number: int, pace: ChangeRate, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure pages of many views, then pages of one job."""
    load, known, cases = os.getloadavg()[0], watchers.teams(), {}
    for name, make in (("spread", watchers.spread), ("together", watchers.together)):
        pages, changing = make(known, number)
        with web_server(home) as server:
            cases[name] = _case(home, server, pages, changing, pace, say)
        say(f"{name}: {cases[name]['p99']} ms, {cases[name]['kilobytes_a_socket']} kB a socket")
    return {"sockets": number, "load_average": load, "cores": os.cpu_count(), "cases": cases}


def _case(
    home: Path,
    server: Server,
    pages: Sequence[WatchedPage],
    changing: Sequence[Job],
    pace: ChangeRate,
    say: Callable[[str], None],
) -> dict[str, Any]:
    with _browsers(home, server, pages[:: max(1, len(pages) // _WARM)]):
        pass
    before, began, cpu = server.memory, time.monotonic(), server.cpu
    with _browsers(home, server, pages) as write:
        opened, opening = time.monotonic() - began, server.cpu - cpu
        say(f"{len(pages):,} sockets are open after {opened:.0f} s")
        time.sleep(_SETTLE_SECONDS)
        after, cpu = server.memory, server.cpu
        time.sleep(_SETTLE_SECONDS)
        idle = (server.cpu - cpu) / _SETTLE_SECONDS
        edits = _edits(changing)
        _change(edits, ChangeRate(1.0, _FIRST_CHANGES))
        time.sleep(_SETTLE_SECONDS)
        cpu, changes = server.cpu, _change(edits, pace)
        time.sleep(_SETTLE_SECONDS)
        heard = write()
    waits = _waits(pages, changes, heard)
    everything = [wait for of_view in waits.values() for wait in of_view]
    return {
        **_figures(everything),
        "views": {view: _figures(of_view) for view, of_view in sorted(waits.items())},
        "changes": len(changes),
        "kilobytes_a_socket": round((after - before) / len(pages) / 1000, 1),
        "opened_in_seconds": round(opened, 1),
        "cpu_seconds_to_open": round(opening, 1),
        "cpu_idle": round(idle, 2),
        "cpu_seconds": round(server.cpu - cpu, 1),
        "changed_in_seconds": pace.seconds,
    }


@contextmanager
def _browsers(home: Path, server: Server, pages: Sequence[WatchedPage]) -> Iterator[Callable[[], Path]]:
    """Open these pages. Yields a function that writes the messages since its last call to a file, and returns its path.

    Raises LaunchRefused if not all pages can be opened.
    """
    plan, heard = home / "plan.json", home / "heard"
    plan.write_text(json.dumps([(page.path, page.cookie) for page in pages]))
    argv = [sys.executable, "-P", "-m", "hekla.bench.console.socket_client", f"{HOST}:{server.address.port}", str(plan)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        opened = process.stdout.readline().strip()
        if opened != str(len(pages)):
            process.kill()
            raise LaunchRefused(f"Of {len(pages)} sockets {opened or 'none'} could be opened.")

        def write() -> Path:
            process.stdin.write(f"{heard}\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            process.stdout.readline()  # type: ignore[union-attr]
            return heard

        yield write


def _edits(changing: Sequence[Job]) -> Iterator[tuple[Job, int]]:
    """An endless series of jobs, each with a new priority, because setting the same priority changes nothing."""
    return zip(cycle(changing[:: max(1, len(changing) // 97)]), (1 + step % 900 for step in count()))


def _change(edits: Iterator[tuple[Job, int]], pace: ChangeRate) -> list[Change]:
    """Set the priorities of the next jobs at this pace. Returns the changes."""
    user, began = User.objects.get(username=ADMIN), time.monotonic()
    committed: list[float] = []

    def note(**_kwargs: Any) -> None:  # noqa: ANN401
        committed.append(time.monotonic())

    recorded.connect(note)
    for at in range(math.ceil(pace.per_second * pace.seconds)):
        time.sleep(max(0.0, began + at / pace.per_second - time.monotonic()))
        job, priority = next(edits)
        jobs.set_priority(job, priority, user=user, now=clock.now())
    recorded.disconnect(note)
    events = list(LoggedEvent.objects.order_by("-pk").values_list("pk", "topics")[: len(committed)])[::-1]
    return [Change(pk, frozenset(topics), when) for (pk, topics), when in zip(events, committed, strict=True)]


def _waits(pages: Sequence[WatchedPage], changes: Sequence[Change], heard: Path) -> dict[str, list[float]]:
    """By view, the milliseconds until each change arrived at each page with its topics; infinite: never."""
    by_page = _by_page(heard)
    waits: dict[str, list[float]] = {}
    for place, page in enumerate(pages):
        numbers, times = by_page.get(place, (np.array([]), np.array([])))
        for change in changes:
            if page.topics & change.topics:
                first = int(np.searchsorted(numbers, change.number))
                wait = (times[first] - change.at) * 1000 if first < len(times) else float("inf")
                waits.setdefault(page.view, []).append(float(wait))
    return waits


def _by_page(heard: Path) -> dict[int, tuple[Any, Any]]:
    """The event numbers that each page received, and their times, in order."""
    size = heard.stat().st_size // 3 // array("q").itemsize
    with heard.open("rb") as file:
        places, numbers = (np.fromfile(file, np.int64, size) for _ in range(2))
        times = np.fromfile(file, np.float64, size)
    order = np.argsort(places, kind="stable")
    found, starts = np.unique(places[order], return_index=True)
    parts = np.split(order, starts[1:])
    return {int(place): (numbers[part], times[part]) for place, part in zip(found, parts, strict=True)}


def _figures(waits: Sequence[float]) -> dict[str, Any]:
    """Percentiles of the received changes in milliseconds, and the number of lost ones."""
    received = np.array([wait for wait in waits if wait != float("inf")])
    parts = np.percentile(received, (50, 99, 100)) if len(received) else (0.0, 0.0, 0.0)
    named = {name: round(float(part), 1) for name, part in zip(("p50", "p99", "max"), parts, strict=True)}
    return {**named, "deliveries": len(received), "lost": len(waits) - len(received)}
