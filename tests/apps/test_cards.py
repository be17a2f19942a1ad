"""Cards on the pages of jobs, pods and nodes, and over REST."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Node
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.cards import HeldCard, NodeCard
from hekla.lib import clock
from hekla.scheduling import occupancy

As = Callable[[User], Client]
CARDS = [NodeCard("volcano.sh/gpu-number", index, f"GPU-{index}", "<b>A100</b>", 8192) for index in (0, 1)]
WHOLE = HeldCard("volcano.sh/gpu-number", 0, "GPU-0", "<b>A100</b>", 8192)
PART = HeldCard("volcano.sh/gpu-number", 1, "GPU-1", "<b>A100</b>", 8192, 2048)


def hold(job: Job, card: HeldCard, index: int = 0) -> Pod:
    fields: dict[str, Any] = {"task": "main", "index": index, "attempt": 1, "slot": index, "version": 1, "address": ""}
    return Pod.objects.create(
        job=job, phase="running", node="n1", cards=[card.as_data()], created_at=clock.now(), **fields
    )


@pytest.fixture
def holder(people: People) -> Job:
    """Holds the whole of one card, and a part of another."""
    Node.objects.update(cards=[card.as_data() for card in CARDS])
    occupancy.forget()
    job = people.submit("unseen")
    hold(job, WHOLE), hold(job, PART, 1)
    return job


def test_job_and_pod_show_their_cards(people: People, as_: As, holder: Job) -> None:
    client = as_(people.bob)
    page = client.get(reverse("jobs:detail", args=[holder.uid]), {"tab": "pods"}).content.decode()
    assert "Card 0</span>" in page
    assert "Card 1 (2048 of 8192 MiB)" in page
    assert "&lt;b&gt;A100" in page
    pod = Pod.objects.get(index=1)
    page = client.get(reverse("jobs:pod", args=[holder.uid, pod.pk])).content.decode()
    assert "Card 1 (2048 of 8192 MiB)" in page
    assert "volcano.sh/gpu-number 1 &lt;b&gt;A100&lt;/b&gt; GPU-1" in page


def test_page_of_a_node_names_the_pods_that_the_person_may_see(people: People, as_: As, holder: Job) -> None:
    page = as_(people.alice).get(reverse("clusters:node", args=[Node.objects.get().pk])).content.decode()
    assert all(f"#pod-{pod.pk}" in page for pod in Pod.objects.all())
    assert "&lt;b&gt;A100" in page
    page = as_(people.charlie).get(reverse("clusters:node", args=[Node.objects.get().pk])).content.decode()
    assert "unseen" not in page
    assert page.count("1 other pod") == 2
    Pod.objects.filter(index=0).update(phase="succeeded")
    page = as_(people.charlie).get(reverse("clusters:node", args=[Node.objects.get().pk])).content.decode()
    assert page.count("1 other pod") == 1
    assert ">free<" in page


def test_node_without_cards_has_no_table(people: People, as_: As) -> None:
    assert (
        'data-label="Model"'
        not in as_(people.alice).get(reverse("clusters:node", args=[Node.objects.get().pk])).content.decode()
    )


def test_cards_over_rest(people: People, holder: Job) -> None:
    client = APIClient()
    client.force_authenticate(people.alice)
    pods = client.get(reverse("api:v1:job", args=[holder.uid])).json()["pods"]
    assert [pod["cards"] for pod in pods] == [[WHOLE.as_data()], [PART.as_data()]]
    (attempt,) = client.get(reverse("api:v1:pod_attempts", args=[holder.uid, "main", 1])).json()
    assert attempt["cards"] == [PART.as_data()]
    (node,) = client.get(reverse("api:v1:nodes")).json()
    assert node["cards"] == [card.as_data() for card in CARDS]


def test_rows_of_an_earlier_version_have_no_cards(people: People) -> None:
    """It inserts without the new columns."""
    job = people.submit()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_pod (job_id, task, index, attempt, version, slot, address, phase, node, stopping, "
            "evicted, stop_reason, reason, message, created_at) "
            "VALUES (%s, 'main', 0, 1, 1, 1, '', 'pending', '', false, false, '', '', '', now())",
            [job.pk],
        )
    pod = Pod.objects.get()
    assert (pod.cards, pod.annotations) == ([], {})
