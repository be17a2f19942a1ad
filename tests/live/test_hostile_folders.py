"""Hostile pod folders behind every page, REST route and socket: nothing leaks, nothing waits, and others go on.

`HEKLA_EXAMPLES=8` reads a thousand folders.
"""

import asyncio
import builtins
import io
import json
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from channels.routing import URLRouter
from django.test import Client
from django.urls import reverse
from tests.apps import access_world
from tests.support.examples import EVERY, examples
from tests.support.hostile_folders import SECRET, TEXTS, fill, hostile, no_waiting
from tests.support.websocket import Socket

from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.openpai.models import Submission
from hekla.apps.queues import services as queues
from hekla.backends.durable_files import durable_files
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.live import routing
from hekla.pages.access_matrix import declared

FOLDERS = examples(120) if EVERY == 1 else 2
MOST_PIECES = 16
"""Of a download. The log of a terabyte is not read to its end."""
QUERIES = {"live:search_log": "?q=secret", "api:v1:pod_search": "?q=secret", "jobs:pod": "?log=all"}
QUERIES |= {"jobs:detail": "?tab=files", "live:download_file": "?path=log", "api:v1:pod_file": "?path=log"}
QUERIES |= {"api:v1:pod_file_search": "?q=secret"}
QUERIES |= dict.fromkeys(("files:preview", "files:image", "api:v1:pod_file_preview"), "?path=log")
SHOWS_MESSAGES = {"jobs:detail", "jobs:pod", "api:v1:job", "api:v1:pod_attempts", "clusters:detail", "jobs:list"}
READS_FOLDERS = {
    "live:results", "live:download_logs", "live:search_log", "live:evidence", "live:download_log", "api:v1:pod_log",
    "api:v1:pod_search", "jobs:detail", "live:download_file", "api:v1:pod_files", "api:v1:pod_file",
    "files:preview", "files:image", "api:v1:pod_file_preview",
    "files:archive", "api:v1:pod_archive", "api:v1:pod_file_search",
}  # fmt: skip


@contextmanager
def _openings() -> Iterator[list[str]]:
    """The files and folders that this process opens meanwhile.

    An audit hook would be simpler, but stays for ever: every later `id` of the tests would take ten times as long.
    """
    found = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "listdir"), (os, "scandir")):
            patch.setattr(module, name, _noting(getattr(module, name), found))
        yield found


def _noting(call: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    def noting(*arguments: Any, **named: Any) -> Any:
        found.extend(str(one) for one in arguments[:1] if isinstance(one, str | Path))
        return call(*arguments, **named)

    return noting


@dataclass
class Site:
    """A cluster of this machine, its people, and a job of somebody else that runs on it."""

    world: access_world.World
    cluster: Cluster
    home: Path
    secret: Path
    good: Pod

    @property
    def folders(self) -> Path:
        return self.home / "local" / "here"

    def folder_of(self, pod: Pod) -> Path:
        return self.folders / "pods" / pod.job.uid.hex / f"{pod.job.uid.hex}-{pod.task}-{pod.index}-{pod.attempt}"


def _spec(name: str, script: str) -> JobSpec:
    return JobSpec.parse({"name": name, "queue": "here", "tasks": [{"name": "main", "command": ["sh", "-c", script]}]})


@pytest.fixture
def site(transactional_db: None, settings, tmp_path: Path) -> Iterator[Site]:
    settings.HEKLA_HOME = tmp_path
    settings.API_SIGN_INS_A_MINUTE = settings.API_REQUESTS_A_MINUTE = 1_000_000
    controllers.reset()
    world, now = access_world.make_world(), clock.now()
    config = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "5000"}}
    cluster = clusters.create(name="here", kind="local", config=config, actor=PLATFORM, now=now)
    queues.create(cluster=cluster, name="here", actor=PLATFORM, now=now)
    private = tmp_path / "private"
    private.mkdir()
    for name in ("secret-key", "log"):
        (private / name).write_text(SECRET)
    (private / "status.json").write_text(json.dumps({"phase": "failed", "at": 1.0, "message": SECRET}))
    script = "while :; do echo fine; sleep 0.05; done"
    job = jobs.submit(spec=_spec("good", script), tenant=world.people.other, user=world.people.charlie, now=now)
    made = Site(world, cluster, tmp_path, private / "secret-key", None)  # type: ignore[arg-type]
    _reconcile_until_running(cluster, job)
    made.good = Pod.objects.get(job=job)
    yield made
    backend_of(cluster).remove(job.uid.hex)
    backend_of(cluster).close()
    controllers.reset()


def _reconcile_until_running(cluster: Cluster, job: Job) -> None:
    for _ in range(100):
        controllers.reconcile(cluster)
        if job.pods.filter(phase="running").exists():
            return
        backend_of(cluster).wait(0.1)
    raise AssertionError(access_world.Job.objects.filter(pk=job.pk).values())


def _pod(site: Site, number: int) -> Pod:
    """A running pod of Alice without a folder. OpenPAI's clients know its job too."""
    people, now = site.world.people, clock.now()
    job = jobs.submit(spec=_spec(f"bad-{number}", "true"), tenant=people.lab, user=people.alice, now=now)
    Submission.objects.create(job=job, owner=people.alice, name=job.name, config="{protocolVersion: 2}", tags=["odd"])
    return Pod.objects.create(
        job=job, task="main", index=0, attempt=0, version=1, slot=1000 + number, address="127.0.0.1", phase="running",
        node=os.uname().nodename, created_at=now, bound_at=now, started_at=now,
    )  # fmt: skip


def _make_hostile(site: Site, pod: Pod, chance: random.Random) -> None:
    """Fill its folder, or put something else in its place or in that of its job."""
    folder = site.folder_of(pod)
    place = chance.choice(["inside"] * 8 + ["pod", "job"])
    if place == "inside":
        fill(folder, site.secret, chance)
    elif place == "pod":
        folder.parent.mkdir(parents=True)
        hostile(folder, site.secret, chance)
    else:
        hostile(folder.parent, site.secret, chance)
    (site.folders / "active" / f"{pod.job.uid.hex}:main-0-0").touch()


def _arguments(site: Site, name: str, pod: Pod) -> list[Any]:
    """The arguments of a route, about this pod where the route is about one."""
    world = site.world
    own = {world.job.uid: pod.job.uid, world.pod.pk: pod.pk, "sim": "here", "labs-own": "here"}
    own |= {f"alice~{world.job.name}": f"alice~{pod.job.name}", world.job.name: pod.job.name}
    return [own.get(argument, argument) for argument in world.arguments.get(name, [])]


async def _pieces(content: AsyncIterator[bytes]) -> list[bytes]:
    return [piece async for piece in content]


def _content(answer: Any) -> str:
    if answer.streaming and answer.is_async:
        data = b"".join(async_to_sync(_pieces)(answer.streaming_content))
    elif answer.streaming:
        data = b"".join(islice(answer.streaming_content, MOST_PIECES))
        answer.close()
    else:
        data = answer.content
    return data.decode(errors="replace") + str(dict(answer.headers))


def _read(site: Site, client: Client, name: str, pod: Pod) -> str:
    with no_waiting():
        answer = client.get(reverse(name, args=_arguments(site, name, pod)) + QUERIES.get(name, ""))
        content = _content(answer)
    assert answer.status_code < 500, (name, content)
    assert SECRET not in content, name
    return content


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _routes() -> list[str]:
    """All routes that answer GET, also those that want another query."""
    return [name for name, route in declared().items() if route.get]


def _reading_routes(site: Site, client: Client) -> list[str]:
    """The routes that open files of pods, found by watching this process read a harmless folder.

    By default among the known ones and a third of the others.
    """
    pod, found = _pod(site, 0), []
    site.folder_of(pod).mkdir(parents=True)
    (site.folder_of(pod) / "log").write_text("harmless\n")
    for name in sorted({*_routes()[::EVERY], *READS_FOLDERS} & {*_routes()}):
        with _openings() as opened:
            _read(site, client, name, pod)
        found += [name] if any(path.startswith(str(site.folders)) for path in opened) else []
    return found


async def _sockets(site: Site, bad: Pod) -> tuple[str, str]:
    """What the sockets of a hostile pod and of another person's pod send first, opened at once."""

    async def first(address: str, user: User) -> str:
        socket = Socket(URLRouter(routing.urlpatterns), address, user)
        await socket.open()
        message = await socket.message(timeout=60)
        await socket.leave()
        return str(message)

    people = site.world.people
    found = await asyncio.gather(
        first(f"/ws/logs/{bad.pk}/", people.alice),
        first(f"/ws/live/?view=job&uid={bad.job.uid}&since=0", people.alice),
        first(f"/ws/live/?view=pod&uid={bad.job.uid}&pod={bad.pk}&since=0", people.alice),
        first(f"/ws/logs/{site.good.pk}/", people.charlie),
    )
    return "".join(found[:-1]), found[-1]


@pytest.mark.slow
def test_hostile_folders_harm_no_page(site: Site) -> None:
    chance, people = random.Random(7), site.world.people
    admin, owner, other = _client(people.ada), _client(people.alice), _client(people.charlie)
    every, reading = _routes(), _reading_routes(site, owner)
    assert set(reading) >= READS_FOLDERS, set(reading) ^ READS_FOLDERS
    for number in range(1, FOLDERS + 1):
        pod = _pod(site, number)
        _make_hostile(site, pod, chance)
        for name in reading:
            _read(site, owner, name, pod)
        hostile_texts, good_text = async_to_sync(_sockets)(site, pod)
        assert SECRET not in hostile_texts
        assert "fine" in good_text
        with no_waiting():
            controllers.reconcile(site.cluster)
        for name in {*reading, *SHOWS_MESSAGES}:
            _read(site, owner, name, pod)
        assert "fine" in _read(site, other, "live:download_log", site.good)
    for name in every[:: EVERY**2]:
        _read(site, admin, name, pod)
    assert Pod.objects.get(pk=site.good.pk).phase == "running"
    assert site.secret.read_text() == SECRET


def test_job_ends_whatever_the_status_of_its_pod_is(site: Site) -> None:
    """Also with characters that the database refuses, and numbers that it cannot hold. The others go on."""
    pods = [_pod(site, number) for number in range(len(TEXTS))]
    for pod, text in zip(pods, TEXTS, strict=True):
        site.folder_of(pod).mkdir(parents=True)
        (site.folder_of(pod) / "status.json").write_text(text)
        (site.folders / "active" / f"{pod.job.uid.hex}:main-0-0").touch()
    for name in ("strange", "a:b", "..:main-0-0", "-:-", "x:main-0-0-0"):
        (site.folders / "active" / name).touch()
    for _ in range(3):
        controllers.reconcile(site.cluster)
    unfinished = [text for pod, text in zip(pods, TEXTS, strict=True) if not Pod.objects.get(pk=pod.pk).is_final]
    assert all(text.startswith('{"phase": "running", "at": 1') for text in unfinished)
    client = _client(site.world.people.alice)
    for pod in pods:
        _read(site, client, "jobs:pod", pod)
    assert Pod.objects.get(pk=site.good.pk).phase == "running"


def test_backup_follows_no_link(site: Site, tmp_path: Path) -> None:
    """Neither in the place of a log or record, nor of a folder above it."""
    chance = random.Random(3)
    for number in range(FOLDERS):
        pod = _pod(site, number)
        _make_hostile(site, pod, chance)
    linked = _pod(site, FOLDERS)
    site.folder_of(linked).parent.mkdir()
    site.folder_of(linked).symlink_to(site.secret.parent)
    files = list(durable_files(tmp_path))
    assert all(path.resolve() == path for path in files)
    assert site.folder_of(site.good) / "log" in files
