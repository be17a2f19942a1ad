"""A replica over REST: its attempts, its resource usage and the search in its log."""

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


def url_of(pod: Pod, suffix: str = "") -> str:
    return f"{JOBS}/{pod.job.uid}/pods/{pod.task}/{pod.index}{suffix}"


def test_each_attempt_has_exit_meaning_cause_and_advice(alice, pod):
    first, second = alice.get(url_of(pod)).json()
    assert (first["attempt"], first["exit_code"], first["exit_meaning"]) == (1, 137, "137, out of memory")
    assert "exceeded its memory request" in first["cause"]
    assert first["advice"]
    assert (second["attempt"], second["exit_meaning"], second["cause"], second["advice"]) == (2, "–", "", "")


def test_resource_usage_of_an_attempt(alice, pod):
    now = clock.now()
    for n in range(2):
        at = now + timedelta(seconds=10 * n)
        Sample.objects.create(pod=pod, at=at, cpu_ms=1500 * n, memory_bytes=7, span_seconds=10, gpu_thousandths=250)
    samples = alice.get(url_of(pod, "/usage")).json()
    assert [(one["cpu_seconds"], one["memory_bytes"], one["gpus_busy"]) for one in samples] == [
        (0, 7, 0.25),
        (1.5, 7, 0.25),
    ]
    assert samples[0]["gpu_memory_bytes"] is None
    assert alice.get(url_of(pod, "/usage?attempt=1")).json() == []


def test_log_search(alice, pod):
    found = alice.get(url_of(pod, "/log/search"), {"q": "anything"}).json()
    assert (found["hits"], found["next_offset"], found["next_line"]) == ([], 0, 1)


@pytest.mark.parametrize("query", [{}, {"q": ""}, {"q": "x" * 201}, {"q": "x", "line": 0}, {"q": "x", "limit": 999}])
def test_invalid_log_search_is_refused(alice, pod, query):
    assert alice.get(url_of(pod, "/log/search"), query).status_code == 400


@pytest.mark.parametrize("suffix", ["", "/usage", "/log/search?q=x"])
def test_outsiders_and_unknown_pods_get_404(alice, charlie, pod, suffix):
    assert charlie.get(url_of(pod, suffix)).status_code == 404
    assert alice.get(url_of(pod, suffix).replace("/worker/0", "/worker/9")).status_code == 404
