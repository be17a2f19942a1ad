"""Many requests and waits of one person leave pages, the API and health checks of others as they are."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from django.db import connection
from django.test import Client
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.event_log import selectors as event_log
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.pages.admission.long_polls import MAX_WAITS
from hekla.pages.admission.running import MAX_QUEUED, MAX_RUNNING

pytestmark = pytest.mark.django_db(transaction=True)  # the server is another process
PLATFORM = Path(__file__).parents[2] / "platform"
START_SECONDS, CONNECTIONS = 180, 3
SignIn = Callable[[User], Client]


@pytest.fixture(scope="module")
def url(django_db_setup: None) -> Iterator[str]:
    """The address of a web process on the database of these tests, with few database connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    known = connection.settings_dict
    where = urlencode({"host": known["HOST"], "user": known["USER"], "port": known["PORT"]})
    env = {
        "PYTHONPATH": str(PLATFORM),
        "DATABASE_URL": f"postgresql:///{known['NAME']}?{where}",
        "HEKLA_DATABASE_POOL": str(CONNECTIONS),
    }
    listen = ["--port", str(port), "--no-access-log", "--log-level", "warning"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "hekla.project.asgi:application", *listen], env=os.environ | env
    )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    """With one client: each new one reads all certificates."""
    limit = time.monotonic() + START_SECONDS
    with httpx2.Client(timeout=2) as client:
        while True:
            assert process.poll() is None
            assert time.monotonic() < limit
            try:
                if client.get(f"{url}/readyz").status_code == 200:
                    return
            except httpx2.HTTPError:
                time.sleep(0.1)


def browser(url: str, client: Client) -> httpx2.AsyncClient:
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(base_url=url, cookies=cookies, timeout=60, limits=limits)


async def statuses_of_others(url: str, other: httpx2.AsyncClient) -> set[int]:
    """The statuses of pages, the API and health checks for another person, several times."""
    addresses = ["/", "/jobs/", "/api/v1/jobs", "/readyz", "/healthz", "/livez"]
    return {(await other.get(address)).status_code for _ in range(3) for address in addresses}


async def _refused(waits: list["asyncio.Task[httpx2.Response]"]) -> list[httpx2.Response]:
    """The refusals, when all waits that remain are in place: no more of them answer."""
    while sum(wait.done() for wait in waits) < len(waits) - MAX_WAITS:
        await asyncio.sleep(0.05)
    return [wait.result() for wait in waits if wait.done()]


def test_waits_of_one_person_occupy_no_thread_and_no_connection(url: str, people: People, as_: SignIn) -> None:
    job, after = people.submit(), event_log.last_number()
    alices, bobs = as_(people.alice), as_(people.bob)

    async def run() -> tuple[set[int], list[httpx2.Response], list[httpx2.Response]]:
        async with browser(url, alices) as alice, browser(url, bobs) as bob:
            assert (await alice.get("/")).status_code == 200
            address = f"/api/v1/jobs/{job.uid}/events?after={after}&wait=25"
            waits = [asyncio.create_task(alice.get(address)) for _ in range(120)]
            refused = await _refused(waits)
            others = await statuses_of_others(url, bob)
            await asyncio.to_thread(_abort, job, people.alice)
            answers = await asyncio.gather(*waits)
            return others, refused, [answer for answer in answers if answer not in refused]

    others, refused, answers = asyncio.run(run())
    assert others == {200}
    assert {answer.status_code for answer in refused} == {429}
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
    assert {answer.json()["code"] for answer in refused} == {"throttled"}
    assert len(answers) == MAX_WAITS
    assert {answer.json()["events"][0]["kind"] for answer in answers} == {"JobCommanded"}


def _abort(job: Job, user: User) -> None:
    try:
        jobs.command(job, LifecycleAction.ABORT_JOB, user=user, now=clock.now())
    finally:
        connection.close()


def test_wait_without_an_event_ends_empty_after_its_time(url: str, people: People, as_: SignIn) -> None:
    job, after = people.submit(), event_log.last_number()
    cookies = {name: morsel.value for name, morsel in as_(people.alice).cookies.items()}
    answer = httpx2.get(f"{url}/api/v1/jobs/{job.uid}/events?after={after}&wait=1", cookies=cookies, timeout=60)
    assert (answer.status_code, answer.json()) == (200, {"events": [], "next_after": after})


def test_requests_of_one_person_beyond_the_bound_are_refused(url: str, people: People, as_: SignIn) -> None:
    alices, bobs = as_(people.alice), as_(people.bob)

    async def run() -> tuple[set[int], list[httpx2.Response]]:
        async with browser(url, alices) as alice, browser(url, bobs) as bob:
            assert (await alice.get("/")).status_code == 200
            flood = [asyncio.create_task(alice.get("/")) for _ in range(2 * (MAX_RUNNING + MAX_QUEUED))]
            others = await statuses_of_others(url, bob)
            return others, await asyncio.gather(*flood)

    others, answers = asyncio.run(run())
    assert others == {200}
    found = Counter(answer.status_code for answer in answers)
    assert set(found) == {200, 429}
    assert found[200] >= MAX_RUNNING + MAX_QUEUED
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "too many requests at once" in refused.text
    assert refused.headers["Retry-After"] == "1"
