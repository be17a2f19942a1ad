"""What programs are told of a replica: every attempt, what it used, and what its log holds."""

from datetime import timedelta

import pytest

from hekla.apps.jobs.models import Job, Pod
from hekla.apps.usage.models import Sample
from hekla.lib import clock

JOBS = "/api/v1/jobs"


@pytest.fixture
def pod(alice, a_job) -> Pod:
    """The second attempt of a replica; the first one failed."""
    alice.post(JOBS, a_job, format="json")
    now, job = clock.now(), Job.objects.get()
    common = {"job": job, "task": "worker", "index": 0, "version": 1, "slot": 1, "address": "", "created_at": now}
    Pod.objects.create(**common, attempt=1, phase="failed", reason="OOMKilled", exit_code=137, node="n")
    return Pod.objects.create(**common, attempt=2, phase="running", node="n")


def where(pod: Pod, what: str = "") -> str:
    return f"{JOBS}/{pod.job.uid}/pods/{pod.task}/{pod.index}{what}"


def test_every_attempt_is_told_with_what_its_end_means(alice, pod):
    first, second = alice.get(where(pod)).json()
    assert (first["attempt"], first["exit_code"], first["exit_meaning"]) == (1, 137, "137, out of memory")
    assert "exceeded its memory request" in first["cause"]
    assert first["advice"]
    assert (second["attempt"], second["exit_meaning"], second["cause"], second["advice"]) == (2, "–", "", "")


def test_what_an_attempt_used_is_told(alice, pod):
    now = clock.now()
    for n in range(2):
        at = now + timedelta(seconds=10 * n)
        Sample.objects.create(pod=pod, at=at, cpu_ms=1500 * n, memory_bytes=7, span_seconds=10, gpu_thousandths=250)
    told = alice.get(where(pod, "/use")).json()
    assert [(one["cpu_seconds"], one["memory_bytes"], one["gpus_busy"]) for one in told] == [
        (0, 7, 0.25),
        (1.5, 7, 0.25),
    ]
    assert told[0]["gpu_memory_bytes"] is None
    assert alice.get(where(pod, "/use?attempt=1")).json() == []


def test_a_log_is_searched_by_position(alice, pod):
    found = alice.get(where(pod, "/log/search"), {"q": "anything"}).json()
    assert (found["hits"], found["next_offset"], found["next_line"]) == ([], 0, 1)


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": "x" * 201}, {"q": "x", "line": 0}, {"q": "x", "limit": 999}])
def test_a_search_that_makes_no_sense_is_refused(alice, pod, query):
    assert alice.get(where(pod, "/log/search"), query).status_code == 400


@pytest.mark.parametrize("what", ["", "/use", "/log/search?q=x"])
def test_strangers_and_pods_that_are_not_there_get_nothing(alice, charlie, pod, what):
    assert charlie.get(where(pod, what)).status_code == 404
    assert alice.get(where(pod, what).replace("/worker/0", "/worker/9")).status_code == 404
