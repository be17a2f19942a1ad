"""Measures the pages of one person while a program of another sends many requests a minute.

The server runs as under `manage.py up`, with its bounds for each person. The two are in different tenants. The program
and the reader are separate processes, and share the machine's cores with the server.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from django.urls import reverse

from hekla.bench.console import watchers
from hekla.bench.console.watchers import Team
from hekla.bench.console.web_server import HOST, web_server

_PAUSE_SECONDS = 0.1  # a person who opens page after page
_WARM = 2
_OK = 200


def measure(home: Path, a_minute: int, seconds: float, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the reader's pages alone, then under `a_minute` requests of the other person."""
    load, (sender, reader, *_others) = os.getloadavg()[0], watchers.teams()
    with web_server(home) as server:
        origin = f"http://{HOST}:{server.address.port}"
        alone = _read(origin, reader, seconds)
        say(f"alone: {alone['p99']} ms")
        with _flood(home, origin, sender, a_minute / 60, seconds) as sending:
            flooded = _read(origin, reader, seconds)
            answers = json.loads(sending.communicate()[0])
        say(f"under the flood: {flooded['p99']} ms")
    cases = {"alone": alone, "flood": flooded}
    return {"a_minute": a_minute, "answers": answers, "load_average": load, "cores": os.cpu_count(), "cases": cases}


def _flood(home: Path, origin: str, team: Team, per_second: float, seconds: float) -> subprocess.Popen[str]:
    """A process that sends the requests of one person of this team, and prints the answers."""
    cookie, path = team.people[0][1], home / "flood.json"
    plan = {"origin": origin, "cookie": cookie, "paths": _expensive(team), "per_second": per_second, "seconds": seconds}
    path.write_text(json.dumps(plan))
    argv = [sys.executable, "-P", "-m", "hekla.bench.console.flood_client", str(path)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def _expensive(team: Team) -> list[str]:
    """What a greedy program asks for: pages, lists, searches, and waits for events."""
    job, jobs = team.jobs[0], reverse("jobs:list")
    return [
        *(reverse("home"), jobs, f"{jobs}?q=llama", f"{jobs}?group=queue", reverse("queues:list")),
        *(reverse("jobs:detail", args=[job.uid]), reverse("clusters:nodes"), f"{reverse('search:results')}?q=llama"),
        *(reverse("api:v1:jobs"), f"{reverse('api:v1:job_events', args=[job.uid])}?wait=30&after=999999999"),
    ]


def _read(origin: str, team: Team, seconds: float) -> dict[str, Any]:
    """Open pages one after another. Returns milliseconds, and how often a page or `/readyz` failed."""
    cookie, job = team.people[0][1], team.jobs[0]
    pages = [reverse("home"), reverse("jobs:list"), reverse("jobs:detail", args=[job.uid]), reverse("queues:list")]
    waits, failed, unready = [], 0, 0
    with httpx2.Client(base_url=origin, headers={"Cookie": cookie}, timeout=60.0) as client:
        for page in pages * _WARM:
            client.get(page).raise_for_status()
        end = time.monotonic() + seconds
        for page in cycle(pages):
            if time.monotonic() >= end:
                break
            began = time.perf_counter()
            failed += client.get(page).status_code != _OK
            waits.append((time.perf_counter() - began) * 1000)
            unready += client.get("/readyz").status_code != _OK
            time.sleep(_PAUSE_SECONDS)
    return {**_figures(waits), "pages": len(waits), "failed": failed, "unready": unready}


def _figures(waits: Sequence[float]) -> dict[str, float]:
    p99, most = np.percentile(waits, (99, 100))
    return {"p50": round(statistics.median(waits), 1), "p99": round(float(p99), 1), "max": round(float(most), 1)}
