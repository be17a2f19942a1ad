"""Jobs that hold GPUs they do not use: warned, kept, aborted; and never on samples that are missing."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.audit.sentences import sentence
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.idleness import job_selectors, job_services, services
from hekla.apps.idleness.models import JobIdleness, SessionMinute
from hekla.apps.idleness.recording import minute_of
from hekla.apps.jobs import services as jobs
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.notifications import services as notifications
from hekla.apps.notifications.labels import sentence as notice
from hekla.apps.notifications.models import Notification
from hekla.apps.usage.models import Sample
from hekla.apps.workbench.models import ToolSession
from hekla.domain.errors import Invalid
from hekla.domain.idleness import IdleStep, KeepCause, Signal
from hekla.domain.policies import LifecycleAction
from hekla.lib import clock
from hekla.workbench import idling

__all__ = ["db", "people", "shared_people"]
MINUTE = timedelta(minutes=1)
RULE = {"gpu_job_minutes": 10, "gpu_percent": 5, "grace_minutes": 5}
CARDS = [{"resource": "nvidia.com/gpu", "index": 0}]


@pytest.fixture
def begin() -> datetime:
    return minute_of(clock.now()) - timedelta(hours=1)


@pytest.fixture
def job(people: Any, begin: datetime) -> Job:
    """Alice's running job with two pods, each with a GPU."""
    made = people.submit("train")
    facts = {"job": made, "task": "main", "version": 1, "created_at": begin, "started_at": begin, "phase": "running"}
    for index in (0, 1):
        place = {"index": index, "slot": index + 1, "attempt": 1, "address": f"127.0.0.{index + 1}"}
        Pod.objects.create(**facts, **place, cards=CARDS)
    Job.objects.filter(pk=made.pk).update(phase="running", started_at=begin)
    return Job.objects.select_related("tenant", "owner").get(pk=made.pk)


def sample(job: Job, begin: datetime, minutes: range, *percents: float | None) -> None:
    """Samples of each pod in these minutes."""
    for pod, percent in zip(job.pods.order_by("index"), percents, strict=True):
        for minute in minutes:
            gpu = None if percent is None else round(percent * 10)
            at = begin + minute * MINUTE + timedelta(seconds=20)
            facts = {"cpu_ms": minute, "memory_bytes": 1, "span_seconds": 10, "gpu_thousandths": gpu}
            Sample.objects.create(pod=pod, at=at, **facts)


def watch(begin: datetime, first: int, last: int) -> None:
    for minute in range(first, last + 1):
        idling.watch(now=begin + minute * MINUTE)


def kinds(job: Job) -> list[str]:
    wanted = ("JobIdleWarned", "JobIdleAborted", "JobCommanded")
    found = LoggedEvent.objects.filter(subject=f"job:{job.uid}", kind__in=wanted)
    return list(found.order_by("pk").values_list("kind", flat=True))


def step(job: Job, at: datetime) -> tuple[IdleStep, KeepCause, Signal | None]:
    verdict = job_selectors.activity_of(job, now=at).verdict
    assert verdict is not None
    return verdict.step, verdict.cause, verdict.signal


def test_job_with_idle_gpus_is_warned_then_aborted(people: Any, job: Job, begin: datetime) -> None:
    notifications.follow(now=begin)
    sample(job, begin, range(3), 80, 0)
    sample(job, begin, range(3, 30), 2, 0)
    watch(begin, 0, 20)
    assert kinds(job) == []  # no rule is on
    services.set_rule(people.lab, RULE, user=people.alice, now=begin)
    watch(begin, 4, 12)
    assert step(job, begin + 12 * MINUTE) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.GPU)
    watch(begin, 13, 18)
    assert kinds(job) == ["JobIdleWarned"]
    notifications.follow(now=begin + 14 * MINUTE)
    warned = Notification.objects.get(user=people.alice, moment="idle")
    assert notice(warned).startswith("The GPUs of train are idle. Unless it uses them, it is aborted at ")
    assert warned.page == reverse("idleness:job", args=[job.uid])
    watch(begin, 19, 22)
    assert kinds(job) == ["JobIdleWarned", "JobIdleAborted", "JobCommanded"]
    job.refresh_from_db()
    assert job.phase == "aborting"
    ended = LoggedEvent.objects.get(kind="JobIdleAborted")
    assert sentence(ended, "train").text == "platform aborted train, because its GPUs were idle."
    assert ended.payload["evidence"][0]["most"] == 2.0


def test_job_chooses_its_idle_time_within_the_rule_of_its_tenant(
    people: Any, job: Job, begin: datetime, as_: Callable[[Any], Client]
) -> None:
    alice, activity = as_(people.alice), reverse("api:v1:job_gpu_activity", args=[job.uid])
    assert job_selectors.quiet_work()[0].count() == 0
    document = {**job.spec, "idle_after_seconds": 900, "idle_grace_seconds": 300}
    Job.objects.filter(pk=job.pk).update(spec=document)
    assert job_selectors.quiet_work()[0].count() == 2
    answer = alice.get(activity).json()
    assert (answer["idle_minutes"], answer["grace_minutes"], answer["is_chosen"]) == (15, 5, True)
    page = alice.get(reverse("idleness:job", args=[job.uid])).content.decode()
    assert "The job chose: a warning after 15 minutes, the end 5 minutes later." in page
    services.set_rule(people.lab, {**RULE, "grace_minutes": 60}, user=people.alice, now=begin)
    answer = alice.get(activity).json()
    assert (answer["idle_minutes"], answer["grace_minutes"], answer["is_chosen"]) == (10, 5, True)
    services.set_rule(people.lab, {"gpu_job_minutes": None}, user=people.alice, now=begin)
    sample(job, begin, range(30), 0, 0)
    watch(begin, 13, 14)
    assert kinds(job) == []
    watch(begin, 15, 21)
    assert kinds(job) == ["JobIdleWarned", "JobIdleAborted", "JobCommanded"]


def test_longer_idle_time_than_the_rule_is_refused(people: Any, begin: datetime, as_: Callable[[Any], Client]) -> None:
    services.set_rule(None, {**RULE, "gpu_job_minutes": 30}, user=people.ada, now=begin)
    gpu = [{"name": "main", "command": ["true"], "resources": {"nvidia.com/gpu": "1"}}]
    alice, jobs_ = as_(people.alice), reverse("api:v1:jobs")
    document = {"name": "long", "tasks": gpu, "idle_after_seconds": 3600, "idle_grace_seconds": 600}
    refused = alice.post(jobs_, document, content_type="application/json").json()
    messages = {one["path"]: one["message"] for one in refused["errors"]}
    assert messages["idle_after_seconds"] == "At most 30 minutes, because the idle rule of the tenant is stricter."
    assert messages["idle_grace_seconds"] == "At most 5 minutes, because the idle rule of the tenant is stricter."
    people.submit("no-gpu", idle_after_seconds=3600)  # its sessions have no rule
    with pytest.raises(Invalid, match="idle_after_seconds"):
        people.submit("alone", idle_grace_seconds=600)


def test_job_that_ends_otherwise_was_not_aborted_by_the_rule(people: Any, job: Job, begin: datetime) -> None:
    services.set_rule(None, RULE, user=people.ada, now=begin)
    sample(job, begin, range(30), 0, 0)
    watch(begin, 13, 18)
    due = begin + 22 * MINUTE
    assert (kinds(job), step(job, due)[0]) == (["JobIdleWarned"], IdleStep.END)
    jobs.command(job, LifecycleAction.ABORT_JOB, user=people.alice, now=due)
    Job.objects.filter(pk=job.pk).update(phase="aborted")  # meanwhile; its pods end last
    assert not job_services.abort_idle(job, now=due)
    assert kinds(job) == ["JobIdleWarned", "JobCommanded"]
    assert JobIdleness.objects.get(job=job).warned_at is not None


def test_missing_samples_of_one_pod_never_abort_a_job(people: Any, job: Job, begin: datetime) -> None:
    services.set_rule(None, RULE, user=people.ada, now=begin)
    sample(job, begin, range(30), 0, None)
    assert step(job, begin + 30 * MINUTE) == (IdleStep.KEEP, KeepCause.UNKNOWN, Signal.GPU)
    Sample.objects.filter(pod__index=1).delete()
    assert step(job, begin + 30 * MINUTE) == (IdleStep.KEEP, KeepCause.UNKNOWN, Signal.GPU)
    Sample.objects.all().delete()
    assert step(job, begin + 30 * MINUTE)[:2] == (IdleStep.KEEP, KeepCause.GAP)
    sample(job, begin, range(15, 30), 0, 0)
    assert step(job, begin + 24 * MINUTE)[:2] == (IdleStep.KEEP, KeepCause.GAP)  # since the window's start
    assert step(job, begin + 26 * MINUTE)[0] is IdleStep.WARN
    Pod.objects.filter(index=1).update(started_at=begin + 20 * MINUTE)
    assert step(job, begin + 26 * MINUTE)[:2] == (IdleStep.KEEP, KeepCause.START)  # a new pod gets the whole time
    Pod.objects.update(cards=[])
    assert job_selectors.activity_of(job, now=begin + 26 * MINUTE).verdict is None
    assert job_selectors.quiet(now=begin + 26 * MINUTE) == []


def test_work_in_a_session_keeps_the_job(people: Any, job: Job, begin: datetime) -> None:
    services.set_rule(None, RULE, user=people.ada, now=begin)
    sample(job, begin, range(30), 0, 0)
    made = {"pod": job.pods.get(index=0), "owner": people.alice, "created_at": begin, "ready_at": begin}
    session = ToolSession.objects.create(slug="a" * 26, tool="jupyterlab", **made)
    SessionMinute.objects.create(session=session, at=begin + 25 * MINUTE, kernel=1)
    assert step(job, begin + 30 * MINUTE) == (IdleStep.KEEP, KeepCause.SIGNAL, Signal.KERNEL)
    assert step(job, begin + 36 * MINUTE)[0] is IdleStep.KEEP  # the samples have ended: a gap
    SessionMinute.objects.create(session=session, at=begin + 27 * MINUTE, kernel=None)
    assert step(job, begin + 30 * MINUTE) == (IdleStep.KEEP, KeepCause.UNKNOWN, Signal.KERNEL)


def test_page_and_rest_show_the_signals_and_keep_the_job_once(
    people: Any, job: Job, begin: datetime, as_: Callable[[Any], Client]
) -> None:
    alice, page = as_(people.alice), reverse("idleness:job", args=[job.uid])
    assert "no idle rule for jobs is on" in alice.get(page).content.decode()
    services.set_rule(None, RULE, user=people.ada, now=begin)
    assert "Nothing is recorded." in alice.get(page).content.decode()
    sample(job, begin, range(60), 3, 0)
    page_text = alice.get(page).content.decode()
    assert "The GPUs of this job are idle." in page_text
    assert "Keep this job" in page_text
    assert "Keep this job" not in as_(people.bob).get(page).content.decode()
    assert as_(people.charlie).get(page).status_code == 404
    keep = reverse("idleness:keep_job", args=[job.uid])
    assert "It loads data." in alice.post(keep, {"hours": "0", "reason": "It loads data."}).content.decode()
    assert alice.post(keep, {"hours": "2", "reason": "It loads data."}).status_code == 302
    found = alice.get(reverse("api:v1:job_gpu_activity", args=[job.uid])).json()
    assert (found["step"], found["keep_reason"], found["signals"][0]["most"]) == ("keep", "It loads data.", 3.0)
    again = alice.post(
        reverse("api:v1:job_keep", args=[job.uid]), {"hours": 2, "reason": "x"}, content_type="application/json"
    )
    assert (again.status_code, "kept once already" in again.json()["detail"]) == (409, True)
