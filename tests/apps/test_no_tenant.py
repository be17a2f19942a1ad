"""Who belongs to no tenant is told what they can do, and is offered nothing that would be refused."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.tenancy.models import Membership

As = Callable[[User], Client]
EXAMPLE = reverse("run_example", args=["digits"])


def main(client: Client, name: str) -> str:
    """What the page says inside its frame."""
    return client.get(reverse(name)).content.decode().partition("<main")[2].partition("</main>")[0]


def test_the_example_is_for_members(people: People, as_: As) -> None:
    page = main(as_(people.alice), "home")
    assert EXAMPLE in page
    assert reverse("jobs:submit") in page
    assert "You have no tenant yet" not in page


def test_who_may_only_look_on_is_offered_no_job_to_begin(people: People, as_: As) -> None:
    page = main(as_(people.bob), "home")
    assert "You have no jobs yet" in page
    for offered in (EXAMPLE, reverse("jobs:submit")):
        assert f'"{offered}"' not in page


@pytest.mark.parametrize("name", ["home", "jobs:submit", "tenancy:list"])
def test_who_can_do_nothing_alone_is_told_whom_to_ask(people: People, as_: As, name: str) -> None:
    Membership.objects.filter(user=people.charlie).delete()
    page = main(as_(people.charlie), name)
    assert "Ask an admin of your team's tenant for an invitation" in page
    for offered in (EXAMPLE, reverse("jobs:submit"), reverse("tenancy:create")):
        assert f'"{offered}"' not in page


def test_a_platform_admin_is_led_to_making_a_tenant_or_joining_one(people: People, as_: As) -> None:
    page = main(as_(people.ada), "home")
    assert f'href="{reverse("tenancy:create")}"' in page
    assert f'href="{reverse("tenancy:list")}"' in page
    assert EXAMPLE not in page
    assert "Ask an admin" not in page
