"""Settings of queues for plugins of the scheduler: the form, its preview, and the page of the queue."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.clusters.models import Node

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
FIELDS = {
    "weight": "1", "priority": "0", "reclaimable": "on", "job_order": "fair", "required_node_groups": "a100, h100",
    "preferred_node_groups": "h100", "excluded_node_groups": "old", "avoided_node_groups": "",
    "node_group_limits": "a100: nvidia.com/gpu=4, cpu=8\nh100: cpu=1", "hierarchy": "root/science/vision",
    "hierarchy_weights": "1/2/4", "card_quota": "NVIDIA-A100=8, NVIDIA-H100/mig-1g.10gb-mixed=16",
}  # fmt: skip


def save(client: Client, **changes: str) -> str:
    address = reverse("queues:edit", args=["default"])
    return client.post(address, FIELDS | changes, follow=True).content.decode()


def test_settings_are_saved_and_shown(people: People, as_: As) -> None:
    Node.objects.update(labels={"volcano.sh/nodegroup-name": "a100"})
    ada = as_(people.ada)
    page = save(ada)
    assert "is in node groups h100, old (label" in page
    assert "Node groups: no effect, because the policy of cluster sim does not use nodegroup." in page
    assert "Card limits: no effect, because the policy of cluster sim does not use capacity-card." in page
    assert "has cards of the models NVIDIA-A100, NVIDIA-H100/mig-1g.10gb-mixed. It has: –." in page
    people.queue.refresh_from_db()
    assert people.queue.required_node_groups == ["a100", "h100"]
    assert people.queue.node_group_limits == {"a100": {"nvidia.com/gpu": "4", "cpu": "8"}, "h100": {"cpu": "1"}}
    assert people.queue.card_quota == {"NVIDIA-A100": 8, "NVIDIA-H100/mig-1g.10gb-mixed": 16}
    assert (people.queue.job_order, people.queue.hierarchy_weights) == ("fair", "1/2/4")

    form = ada.get(reverse("queues:edit", args=["default"])).content.decode()
    assert 'value="a100, h100"' in form
    assert "a100: cpu=8, nvidia.com/gpu=4\nh100: cpu=1</textarea>" in form
    address = reverse("queues:detail", args=["default"])
    assert "Card limits: no effect" in ada.get(address).content.decode()  # what she can mend
    detail = as_(people.bob).get(address).content.decode()
    assert "no effect" not in detail
    assert "0 of 8 NVIDIA-A100" not in detail  # no bar for a limit that the policy ignores
    settings = detail.partition('id="queue-settings"')[2]
    assert "fair share" in settings
    assert "a100: cpu=8, nvidia.com/gpu=4; h100: cpu=1" in settings
    assert "NVIDIA-A100=8, NVIDIA-H100/mig-1g.10gb-mixed=16" in settings
    assert "root/science/vision (1/2/4)" in settings
    assert "Avoided node groups" not in settings


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("required_node_groups", "a100, -b-", "“-b-” is not the value of a node label"),
        ("excluded_node_groups", "h100", "“h100” is in another list of node groups too."),
        ("node_group_limits", "a100 nvidia.com/gpu=4", "is not in the form group: resource=amount."),
        ("node_group_limits", "a100: cpu=lots", "“lots” is not an amount"),
        ("node_group_limits", "a100: cpu=1\na100: cpu=2", "“a100” has two lines."),
        ("card_quota", "A100", "“A100” is not in the form model=number."),
        ("card_quota", "A100=-1", "“A100=-1” is not in the form model=number."),
        ("card_quota", "#=1", "“#” is not the model of a card."),
        ("hierarchy", "science/vision", "Start with “root/”"),
        ("hierarchy_weights", "1/2", "one weight for each of the 3 names"),
        ("job_order", "dice", "Select a valid choice"),
    ],
)
def test_wrong_settings_are_refused_and_kept_in_the_form(
    people: People, as_: As, field: str, text: str, message: str
) -> None:
    page = save(as_(people.ada), **{field: text, "description": "Kept"})
    assert message in page
    assert 'value="Kept"' in page
    assert field == "job_order" or text in page
    people.queue.refresh_from_db()
    assert people.queue.required_node_groups == []


def test_preview_warns_of_settings_without_effect(people: People, as_: As) -> None:
    page = as_(people.ada).post(reverse("queues:preview", args=["default"]), FIELDS).content.decode()
    assert "Hierarchy: no effect, because the policy of cluster sim does not use drf" in page
    people.queue.refresh_from_db()
    assert people.queue.hierarchy == ""
