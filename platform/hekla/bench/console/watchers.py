"""The open pages: people of many teams with some tabs each, as on a working day, or all of them on one job."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from hekla.apps.accounts.models import User
from hekla.apps.accounts.people_by_id import BACKEND
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job
from hekla.apps.jobs.services.priority import has_priority
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.live import registry

TABS = 4
_VIEWS = {"job": 60, "jobs": 15, "home": 15, "queues": 5, "queue": 5}
_JOBS_OF_A_TEAM = 5


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """One open page. `topics`: the topics whose changes it must receive."""

    view: str
    path: str
    cookie: str
    topics: frozenset[str]


@dataclass(slots=True)
class Team:
    """A tenant with its people (with session cookies), its active jobs, and their queue."""

    tenant: Tenant
    people: list[tuple[User, str]]
    jobs: list[Job]
    queue: Queue
    topics: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)


def teams() -> list[Team]:
    """The tenants with active jobs, with all their people signed in."""
    found = []
    for tenant in Tenant.objects.filter(slug__startswith="team-").order_by("pk"):
        newest = Job.objects.filter(tenant=tenant).select_related("queue").order_by("-pk")[:200]
        living = [job for job in newest if has_priority(job)][:_JOBS_OF_A_TEAM]
        people = [(one.user, _signed_in(one.user)) for one in tenant.memberships.select_related("user")]
        if living:
            found.append(Team(tenant, people, living, living[0].queue))
    return found


def spread(known: Sequence[Team], count: int) -> tuple[list[WatchedPage], list[Job]]:
    """`count` pages, some tabs per person, and the jobs to change."""
    chance, pages = random.Random(7), _tabs(known)  # noqa: S311  (the same pages each time, not a secret)
    return [_page(*next(pages), chance) for _ in range(count)], [job for team in known for job in team.jobs]


def together(known: Sequence[Team], count: int) -> tuple[list[WatchedPage], list[Job]]:
    """`count` pages of one job, in a tenant with all people as members, and that job."""
    now = clock.now()
    tenant = tenancy.create(slug="everybody", name="Everybody", actor=PLATFORM, now=now)
    people = [(user, cookie) for team in known for user, cookie in team.people]
    Membership.objects.bulk_create(Membership(tenant=tenant, user=user, role="member", since=now) for user, _ in people)
    queue = known[0].queue
    queue.tenants.add(tenant)
    task = {"name": "main", "replicas": 8, "command": ["true"], "resources": {"cpu": "1"}}
    spec = JobSpec.parse({"name": "watched", "queue": queue.name, "tasks": [task]})
    job = jobs.submit(spec=spec, tenant=tenant, user=people[0][0], now=now)
    team = Team(tenant, people, [job], queue)
    return [_of(team, *people[at % len(people)], "job", {"uid": str(job.uid)}) for at in range(count)], [job]


def _tabs(known: Sequence[Team]) -> Iterator[tuple[Team, User, str]]:
    """An endless series of people, `TABS` times each, then again from the start."""
    while True:
        for _ in range(TABS):
            yield from ((team, user, cookie) for team in known for user, cookie in team.people)


def _page(team: Team, user: User, cookie: str, chance: random.Random) -> WatchedPage:
    view = chance.choices(list(_VIEWS), list(_VIEWS.values()))[0]
    params = {"job": {"uid": str(chance.choice(team.jobs).uid)}, "queue": {"name": team.queue.name}}.get(view, {})
    return _of(team, user, cookie, view, params)


def _of(team: Team, user: User, cookie: str, view: str, params: dict[str, str]) -> WatchedPage:
    query = urlencode({"view": view, **params})
    whose = f"{query}&{user.pk}" if view == "home" else query
    if (view, whose) not in team.topics:
        parts = [part.topics(user, params) for part in registry.find(view)]
        team.topics[view, whose] = frozenset[str]().union(*parts)
    path = f"/ws/live/?{query}&since={event_log.last_number()}"
    return WatchedPage(view, path, cookie, team.topics[view, whose])


def _signed_in(user: User) -> str:
    """The cookie of a new session of this person."""
    store = SessionStore()
    store[SESSION_KEY], store[BACKEND_SESSION_KEY] = str(user.pk), BACKEND
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.save()
    return f"{settings.SESSION_COOKIE_NAME}={store.session_key}"
