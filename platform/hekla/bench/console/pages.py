"""Measures the time and the number of queries of each main page, list, submission and preview.

Requests run through all of Django in this process, with middleware and templates. Only the network is left out.
"""

import gc
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any

from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from hekla.apps.accounts.models import User
from hekla.apps.accounts.people_by_id import BACKEND
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Job
from hekla.bench.console.addresses import pages
from hekla.bench.console.world import ADMIN
from hekla.launcher.gc_tuning import settle_with_pages

_WARM = 2
_COUNTED = 5
_OK = range(200, 300)
_SUBMISSION = "REST submission"
Ask = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one kind of request, and the maximum number of its queries.

    `cpu`: the median CPU time of this process. The rest of the time is the database or other load.
    """

    what: str
    who: str
    p50: float
    p99: float
    cpu: float
    queries: int


def measure(repeat: int, *, only: Collection[str] = (), say: Callable[[str], None]) -> Iterator[Timing]:
    """Measure every page for an admin and for a member of one tenant, then submissions and previews.

    `only`: the names of the pages to measure, or that of submissions; empty: all of it.
    """
    settings.API_REQUESTS_A_MINUTE = 10**9
    settle_with_pages()  # as in a web process
    for user in (_person(ADMIN), _person("person-0-1")):
        client = signed_in(user)
        who = "admin" if user.platform_role else "member"
        for what, addresses in pages(user):
            if addresses and (not only or what in only):
                timing = timed(what, who, addresses, client.get, repeat)
                say(f"{what}, {who}: {timing.p50} ms, {timing.queries} queries")
                yield timing
        client.session.flush()
    if not only or _SUBMISSION in only:
        yield _submissions(repeat)
    if not only:
        yield _what_if("what-if, starts", repeat, pods=1, cpu="1")
        yield _what_if("what-if, waits", repeat, pods=Node.objects.count(), cpu="100")


def _person(username: str) -> User:
    return User.objects.get(username=username)


def signed_in(user: User) -> Client:
    """A client that sends requests as this person."""
    client = Client(headers={"host": "localhost"})
    client.force_login(user, backend=BACKEND)
    return client


def timed(what: str, who: str, addresses: Sequence[str], get: Ask, repeat: int) -> Timing:
    """The times of `repeat` requests after others that are not timed; one request alone only tries the page."""
    turns = cycle(addresses)
    for address in islice(turns, min(_WARM, repeat - 1)):  # the first request fills the caches of the process
        get(address)
    queries, timings = zip(*(_counted(address, get) for address in islice(turns, min(_COUNTED, repeat))), strict=True)
    if repeat > 1:
        gc.collect()
        timings = tuple(_milliseconds(partial(get, address)) for address in islice(turns, repeat))
    wall, cpu = zip(*timings, strict=True)
    return Timing(what, who, *_percentiles(wall), round(statistics.median(cpu), 1), max(queries))


def _counted(address: str, get: Ask) -> tuple[int, tuple[float, float]]:
    """The number of queries of a request, and its time, which is a little longer for the count."""
    answers = list[Any]()
    with CaptureQueriesContext(connection) as queries:
        timing = _milliseconds(lambda: answers.append(get(address)))
    if answers[0].status_code not in _OK:
        raise RuntimeError(f"{address} answers with {answers[0].status_code}")
    return len(queries), timing


def _milliseconds(do: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of wall time, and of CPU time of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    do()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def _percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile, rounded to 0.1 ms. With few values the latter is the maximum."""
    ordered = sorted(milliseconds)
    return round(statistics.median(ordered), 1), round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1)


def _submissions(repeat: int) -> Timing:
    """Submissions over REST, by a member of a tenant with many jobs."""
    user = _person("person-0-1")
    client, queue = signed_in(user), Job.objects.filter(tenant__slug="team-0").select_related("queue")[0].queue.name
    task = {"name": "main", "command": ["true"], "resources": {"cpu": "1"}}
    numbers = iter(range(repeat + _WARM + _COUNTED))

    def submit(address: str) -> Any:  # noqa: ANN401  (the response of a test client)
        document = {"name": f"submitted-{next(numbers)}", "queue": queue, "tasks": [task]}
        return client.post(address, document, content_type="application/json")

    return timed(_SUBMISSION, "member", [reverse("api:v1:jobs")], submit, repeat)


def _what_if(what: str, repeat: int, *, pods: int, cpu: str) -> Timing:
    """Previews of a job of `pods` pods. If it would wait, Hekla also searches for changes that let it start."""
    user = _person("person-0-1")
    client, queue = signed_in(user), Job.objects.filter(tenant__slug="team-0").select_related("queue")[0].queue.name
    task = {"name": "main", "replicas": pods, "command": ["true"], "resources": {"cpu": cpu}}
    document = {"name": "draft", "queue": queue, "tasks": [task]}

    def ask(address: str) -> Any:  # noqa: ANN401  (the response of a test client)
        return client.post(address, document, content_type="application/json")

    return timed(what, "member", [reverse("api:v1:what_if") + "?eta=0"], ask, repeat)
