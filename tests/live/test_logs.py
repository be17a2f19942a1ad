"""A log followed by offset: every byte once, in order, whatever the characters. Outsiders get nothing."""

import html
import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from tests.controller.conftest import World, world
from tests.support.websocket import Socket

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.backends.logs import whole_characters
from hekla.controller.job_metrics import read_metrics
from hekla.domain.errors import NotFound
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.live import logs
from hekla.live.consumers import LogConsumer
from hekla.pages.logs import metrics

__all__ = ["world"]
only_local = pytest.mark.parametrize("world", ["local"], indirect=True)
TEXT = "größe 火山 🌋 done\n"


@given(st.text(max_size=30), st.integers(min_value=0, max_value=60))
def test_cut_never_splits_a_character(text: str, cut: int) -> None:
    data = text.encode()[:cut]
    whole = whole_characters(data)
    assert data.startswith(whole)
    assert len(data) - len(whole) <= 3
    whole.decode()


def run_job(world: World, script: str) -> Pod:
    task = {"name": "main", "command": ["sh", "-c", script]}
    spec = JobSpec.parse({"name": "talk", "tasks": [task]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).is_final)
    return Pod.objects.get(job=job)


async def _follow(pod: Pod, user: object, offset: int) -> tuple[str, int]:
    socket = Socket(
        LogConsumer.as_asgi(),
        f"/ws/logs/{pod.pk}/?offset={offset}",
        user,
        url_route={"kwargs": {"pod_id": str(pod.pk)}},
    )
    await socket.open()
    text, at = "", offset
    while True:
        message = await socket.message()
        assert message["offset"] == at
        text, at = text + message["text"], message["next"]
        if message["complete"]:
            await socket.leave()
            return text, at


@only_local
def test_log_is_followed_from_an_offset(world: World) -> None:
    pod = run_job(world, f"printf '{TEXT}'; printf '{TEXT}'")
    whole, size = async_to_sync(_follow)(pod, world.alice, 0)
    assert (whole, size) == (TEXT * 2, len(TEXT.encode()) * 2)
    rest, _ = async_to_sync(_follow)(pod, world.alice, len(TEXT.encode()))
    assert rest == TEXT
    (line, arrived), *_later = logs.read(pod.pk, world.alice, 0).times
    assert (line, pod.created_at.timestamp() - 1 < arrived / 1000 < clock.now().timestamp()) == (0, True)


@only_local
def test_outsiders_cannot_read_a_log(world: World) -> None:
    pod = run_job(world, "echo secret")
    stranger = accounts.create_user(username="mallory", password=None, actor=PLATFORM, now=clock.now())
    with pytest.raises(NotFound):
        logs.read(pod.pk, stranger, 0)


@only_local
def test_metrics_are_read_from_the_log(world: World, tmp_path: Path) -> None:
    pod = run_job(world, "echo ::metric step=1 loss=0.5; echo noise; echo ::metric step=2 loss=0.25 accuracy=0.9")
    found = {one.name: [(point.step, point.value) for point in one.points] for one in metrics.of_pods([pod])}
    assert found == {"loss": [(1.0, 0.5), (2.0, 0.25)], "accuracy": [(2.0, 0.9)]}
    assert read_metrics(now=clock.now()) == 1
    assert found == {one.name: [(point.step, point.value) for point in one.points] for one in metrics.of_pods([pod])}
    times = [point.seconds for one in metrics.of_pods([pod]) for point in one.points]
    assert all(time is not None and 0 <= time < 60 for time in times)


def page(user: User, name: str, pod: Pod, **query: str) -> str:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client.get(reverse(name, args=[pod.pk]), query).content.decode()


@only_local
def test_log_search_is_paged(world: World, monkeypatch) -> None:
    monkeypatch.setattr("hekla.pages.logs.views._HITS", 2)
    pod = run_job(world, "for n in 1 2 3; do echo row $n; echo ROW '<b>' $n; done")
    found = page(world.alice, "live:search_log", pod, q="row")
    assert "row 1" in found
    assert "row 2" in found
    assert "row 3" not in found
    more = dict(parse_qsl(html.unescape(re.findall(r'hx-get="[^"?]*\?([^"]*)"', found)[0])))
    rest = page(world.alice, "live:search_log", pod, **more)
    assert re.findall(r'href="#L(\d)"', rest) == ["5"]
    assert "End of results." in rest
    every = page(world.alice, "live:search_log", pod, q="<B>", ignore_case="on")
    assert "ROW &lt;b&gt; 1" in every
    assert "No match in this log" in page(world.alice, "live:search_log", pod, q="absent")
    assert "required" in page(world.alice, "live:search_log", pod)


@only_local
def test_evidence_is_the_end_of_the_log(world: World) -> None:
    pod = run_job(world, "seq 1000; echo '<script>'; echo \"ModuleNotFoundError: No module named 'torch'\"; exit 1")
    found = page(world.alice, "live:evidence", pod)
    assert "The Python package torch is missing." in found
    assert "&lt;script&gt;" in found
    assert "\n1000\n" in found
    assert "\n900\n" not in found


@only_local
def test_logs_of_earlier_attempts_are_kept(world: World) -> None:
    restart = [{"events": ["PodFailed"], "action": "RestartJob"}]
    task = {"name": "main", "command": ["sh", "-c", "echo attempt; exit 1"]}
    spec = JobSpec.parse({"name": "again", "tasks": [task], "policies": restart, "max_retry": 1})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    world.reconcile_until(lambda: Job.objects.get(pk=job.pk).is_final)
    first, second = Pod.objects.filter(job=job).order_by("attempt")
    for pod in (first, second):
        assert logs.read(pod.pk, world.alice, 0).text == "attempt\n"
    client = Client()
    client.force_login(world.alice, backend="django.contrib.auth.backends.ModelBackend")
    content = client.get(reverse("jobs:pod", args=[job.uid, first.pk])).content.decode()
    assert reverse("live:download_log", args=[second.pk]) in content
    assert "a later attempt exists" in content
