"""The page of one pod attempt: its states, the cause of its failure, and the other attempts."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster
from hekla.apps.event_log.services import CONTROLLER, unit_of_work
from hekla.apps.jobs import selectors
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.jobs.selectors.events import MOST_OF_TIMELINE
from hekla.apps.jobs.services.telling import tell
from hekla.domain import events
from hekla.domain.errors import NotFound
from hekla.domain.phases import PodPhase
from hekla.lib import clock
from hekla.live import registry
from hekla.pages.jobs import pod_context

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
NOW = clock.now()
FULL = {
    "cause": "capacity", "action": "allocate", "plugin": "", "code": "cluster_is_full", "need": {"cpu": "4"},
    "have": {}, "tasks": 1, "nodes": {}, "ever": True,
}  # fmt: skip


@pytest.fixture
def pod(people: People) -> Pod:
    """Attempt 2, which waited for ten seconds, ran for twenty and failed. Attempt 1 was lost."""
    task = {"name": "main", "replicas": 4, "command": ["true"], "resources": {"cpu": "1"}}
    job = people.submit("story", tasks=[task])
    common = {"job": job, "task": "main", "index": 0, "version": 1, "slot": 1, "address": ""}
    Pod.objects.create(**common, attempt=1, phase="lost", reason="NodeRestarted", node="n0", created_at=at(-9))
    made = Pod.objects.create(
        **common, attempt=2, phase="failed", reason="SIGSEGV", message="<b>x</b>", exit_code=139, node="n1",
        created_at=at(0), bound_at=at(10), started_at=at(10), finished_at=at(30),
    )  # fmt: skip
    with unit_of_work():
        tell(job, events.JobUnschedulable(reasons=(FULL,)), actor=CONTROLLER, now=at(4))
        tell(job, events.PodBound(task="main", index=0, attempt=2, node="n1"), actor=CONTROLLER, now=at(10))
        _record_phase(job, PodPhase.RUNNING, 10)
        _record_phase(job, PodPhase.FAILED, 30, exit_code=139, reason="SIGSEGV")
        tell(job, events.PodBound(task="main", index=1, attempt=2, node="else"), actor=CONTROLLER, now=at(11))
    return made


def at(seconds: int):
    return NOW + timedelta(seconds=seconds)


def _record_phase(job: Job, new: PodPhase, seconds: int, exit_code: int | None = None, reason: str = "") -> None:
    changed = events.PodPhaseChanged(
        task="main", index=0, attempt=2, old=PodPhase.BOUND, new=new, node="n1", exit_code=exit_code, reason=reason
    )
    tell(job, changed, actor=CONTROLLER, now=at(seconds))


def test_states_have_times_sentences_and_durations(pod: Pod) -> None:
    states = pod_context.page(pod, may_act=True, now=at(60))["states"]
    assert [((row.at - NOW).total_seconds(), row.state, row.sentence, row.lasted) for row in states] == [
        (0, "waiting", "Attempt 2 was created and is pending.", "4 s"),
        (4, "waiting", "Waiting for 4 CPU. Running and admitted jobs leave 0 CPU.", "6 s"),
        (10, "admitted", "main-0 was bound to n1.", "0 s"),
        (10, "running", "main-0 is running on n1.", "20 s"),
        (30, "failed", "main-0 failed. Exit code 139.", ""),
    ]


def test_page_explains_the_failure_and_links_attempts(people: People, as_: As, pod: Pod) -> None:
    address = reverse("jobs:pod", args=[pod.job.uid, pod.pk])
    page = as_(people.bob).get(address).content.decode()
    assert "Segmentation fault (SIGSEGV)" in page
    assert "faulthandler" in page
    assert "139, stopped by SIGSEGV" in page
    assert reverse("live:evidence", args=[pod.pk]) in page
    first = Pod.objects.get(attempt=1)
    assert reverse("jobs:pod", args=[pod.job.uid, first.pk]) in page
    lost = as_(people.bob).get(reverse("jobs:pod", args=[pod.job.uid, first.pk])).content.decode()
    assert "The node restarted while the pod was running." in lost


def test_terminal_is_offered_to_who_may_act_while_the_pod_runs(people: People, as_: As, pod: Pod) -> None:
    terminal = reverse("jobs:terminal", args=[pod.job.uid, pod.pk])
    places = [reverse("jobs:pod", args=[pod.job.uid, pod.pk]), reverse("jobs:detail", args=[pod.job.uid])]
    assert terminal not in as_(people.alice).get(places[0]).content.decode()
    assert "simulated and run no programs" in as_(people.alice).get(terminal).content.decode()
    Cluster.objects.update(kind="local")
    assert "Terminals are for running pods" in as_(people.alice).get(terminal).content.decode()
    Pod.objects.filter(pk=pod.pk).update(phase="running")
    for place in (*places, f"{places[1]}?tab=pods"):
        assert terminal in as_(people.alice).get(place).content.decode(), place
        assert terminal not in as_(people.bob).get(place).content.decode(), place
    found = as_(people.alice).get(terminal)
    nonce = re.search(r'data-nonce="([^"]+)"', found.content.decode())
    assert nonce
    assert f"'nonce-{nonce[1]}'" in found["Content-Security-Policy"]
    assert as_(people.bob).get(terminal).status_code == 403
    other = people.submit("other")
    assert as_(people.alice).get(reverse("jobs:terminal", args=[other.uid, pod.pk])).status_code == 404


def test_pod_of_another_job_returns_404(people: People, as_: As, pod: Pod) -> None:
    other = people.submit("other")
    assert as_(people.alice).get(reverse("jobs:pod", args=[other.uid, pod.pk])).status_code == 404


def test_query_count(people: People, as_: As, pod: Pod, django_assert_max_num_queries: Callable[[int], object]) -> None:
    client = as_(people.alice)
    client.get(reverse("accounts:login_sessions"))  # the session records its last use once a minute
    with django_assert_max_num_queries(13):
        client.get(reverse("jobs:pod", args=[pod.job.uid, pod.pk]))


def test_failed_job_shows_a_pod_for_each_cause(people: People, as_: As, pod: Pod) -> None:
    Job.objects.filter(pk=pod.job.pk).update(phase="failed", finished_at=at(30), message="Told.")
    common = {"job": pod.job, "task": "main", "attempt": 1, "version": 1, "slot": 1, "address": "", "phase": "failed"}
    for index in (1, 2):
        Pod.objects.create(
            **common, index=index, exit_code=137, reason="OOMKilled", created_at=at(0), finished_at=at(9)
        )
    Pod.objects.create(**common, index=3, exit_code=143, reason="Stopped", created_at=at(0), finished_at=at(9))
    client = as_(people.alice)
    page = client.get(reverse("jobs:detail", args=[pod.job.uid])).content.decode()
    assert "and 1 other ·" in page.replace("\n", " ")
    assert page.index("exceeded its memory request") < page.index("Segmentation fault (SIGSEGV)")
    assert reverse("live:evidence", args=[Pod.objects.get(index=1).pk]) in page
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    assert "因此被停止" in client.get(reverse("jobs:detail", args=[pod.job.uid])).content.decode()


def test_live_view_needs_access_to_the_job(people: People, pod: Pod) -> None:
    (view,), params = registry.find("pod"), {"uid": str(pod.job.uid), "pod": str(pod.pk)}
    assert view.topics(people.bob, params) == {f"job:{pod.job.uid}", f"pod:{pod.pk}"}
    html = view.render(people.bob, params)
    assert {"pod-head", "pod-failure", "pod-states", "pod-attempts"} <= set(re.findall(r'id="([\w-]+)"', html))
    for user, bad_params in (
        (people.charlie, params),
        (people.bob, params | {"pod": "0"}),
        (people.bob, params | {"pod": "x"}),
        (people.bob, params | {"uid": str(people.submit("other").uid)}),
    ):
        with pytest.raises(NotFound):
            view.render(user, bad_params)


def test_deleted_logs_are_reported_as_deleted(people: People, as_: As, pod: Pod) -> None:
    Job.objects.filter(pk=pod.job.pk).update(phase="failed", deleted_at=NOW, cleaned_at=NOW, logs_purged_at=NOW)
    job = reverse("jobs:detail", args=[pod.job.uid])
    for addresses in ([reverse("jobs:pod", args=[pod.job.uid, pod.pk])], [job, f"{job}?tab=log"]):
        page = "".join(as_(people.alice).get(address).content.decode() for address in addresses)
        assert "The logs were deleted" in page
        assert "Segmentation fault (SIGSEGV)" in page
        assert reverse("live:evidence", args=[pod.pk]) not in page
        assert reverse("live:download_log", args=[pod.pk]) not in page


def test_timelines_have_the_newest_events(pod: Pod) -> None:
    """An attempt or a job with very many events: the timelines stay bounded, and keep the end."""
    with unit_of_work():
        for second in range(MOST_OF_TIMELINE + 5):
            tell(
                pod.job, events.PodBound(task="main", index=0, attempt=2, node=f"n{second}"), actor=CONTROLLER, now=NOW
            )
    found = selectors.pod_history(pod)
    assert [event.payload["node"] for event in found] == [f"n{second}" for second in range(5, MOST_OF_TIMELINE + 5)]
    kinds = ("PodBound", "JobSubmitted")
    assert [event.pk for event in selectors.newest_of_kinds(pod.job, kinds)] == [event.pk for event in found]
