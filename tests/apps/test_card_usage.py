"""Usage of the cards of every vendor: GPU-hours, quotas, bars of nodes and queues, and the overview."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient
from tests.apps.conftest import People
from tests.apps.test_quotas import hold_gpus, set_quota

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Cluster, Node
from hekla.apps.jobs import spending
from hekla.apps.jobs.services.quota import QuotaExceeded
from hekla.lib import clock
from hekla.scheduling import occupancy

As = Callable[[User], Client]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MIG, NPU, AMD = "nvidia.com/mig-1g.5gb", "huawei.com/Ascend910", "amd.com/gpu"
PART = "volcano.sh/gpu-memory"


@pytest.fixture
def vendors(people: People) -> People:
    """The node is real and has cards of several vendors."""
    Cluster.objects.update(kind="local")
    amounts = {"nvidia.com/gpu": "8", MIG: "7", NPU: "4", AMD: "2", PART: "8192"}
    Node.objects.update(allocatable={"cpu": "4", "memory": "8Gi", "pods": "10", **amounts})
    occupancy.forget()
    return people


def hold(people: People, name: str, hours: float, **amounts: str) -> None:
    """A job that holds these amounts since so many hours, or since the start of the month."""
    now = clock.now()
    begin = max(now - timedelta(hours=hours), spending.month_of(now))
    task = {"name": "main", "command": ["true"], "resources": amounts}
    hold_gpus(people.submit(name, tasks=[task]), begin, None)


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", MIG, NPU, AMD])
def test_hours_of_every_card_are_counted_by_its_resource(vendors: People, resource: str) -> None:
    task = {"name": "main", "command": ["true"], "resources": {resource: "2", "cpu": "1"}}
    hold_gpus(vendors.submit(tasks=[task]), NOW - timedelta(hours=3), NOW - timedelta(hours=1))
    assert spending.card_hours(vendors.lab, NOW) == {vendors.alice.pk: {resource: pytest.approx(4.0)}}


def test_hours_of_a_part_of_a_shared_card(vendors: People) -> None:
    task = {"name": "main", "command": ["true"], "resources": {PART: "2048"}}
    hold_gpus(vendors.submit(tasks=[task]), NOW - timedelta(hours=3), NOW - timedelta(hours=1))
    assert spending.card_hours(vendors.lab, NOW) == {vendors.alice.pk: {PART: pytest.approx(2.0)}}


def test_limit_of_hours_counts_all_cards(vendors: People) -> None:
    set_quota(vendors, "tenant", gpu_hours=0)
    for resource in (NPU, MIG, PART):
        with pytest.raises(QuotaExceeded, match="of 0 GPU-hours this month"):
            hold(vendors, "refused", 1, **{resource: "1"})
    hold(vendors, "cpu-only", 1, cpu="1")


def test_quotas_name_the_hours_of_each_card(vendors: People, as_: As) -> None:
    hold(vendors, "npus", 2, **{NPU: "2"})
    address = reverse("tenancy:quotas", args=["lab"])
    assert f"{NPU}," not in as_(vendors.alice).get(address).content.decode()
    hold(vendors, "gpu", 2, **{"nvidia.com/gpu": "1"})
    client = APIClient()
    client.force_authenticate(vendors.alice)
    rows = client.get("/api/v1/tenants/lab/quotas").json()
    assert {*rows[0]["card_hours"]} == {NPU, "nvidia.com/gpu"}
    assert rows[0]["gpu_hours"] == pytest.approx(sum(rows[0]["card_hours"].values()))
    page = as_(vendors.alice).get(address).content.decode()
    hours = rows[0]["card_hours"]
    assert f"({hours[NPU]:.1f} {NPU}, {hours['nvidia.com/gpu']:.1f} GPU)" in page
    assert "The cards of all vendors are added up" in page


def test_nodes_queues_and_the_overview_draw_every_card(vendors: People, as_: As) -> None:
    hold(vendors, "npus", 1, **{NPU: "1"})
    occupancy.forget()
    client = as_(vendors.alice)
    for address in ("clusters:nodes", "queues:list"):
        page = client.get(reverse(address)).content.decode()
        for words in (f"1 of 4 {NPU}", f"0 of 7 {MIG}", f"0 of 2 {AMD}", "0 of 8 GPU", "0 of 8 GiB GPU memory"):
            assert words in page, (address, words)
    home = client.get(reverse("home")).content.decode()
    assert f"3 {NPU}" in home
    assert all(f"4 {name}</th>" in home for name in (NPU, MIG, AMD, "GPU"))
    assert f"4 {PART}</th>" not in home
