"""Users without a tenant: they see the next step, and no action that would be refused."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.tenancy.models import Membership

__all__ = ["db", "people", "shared_people"]

As = Callable[[User], Client]
EXAMPLE = reverse("run_example", args=["digits"])


def main(client: Client, name: str) -> str:
    """The content of the page's main element."""
    return client.get(reverse(name)).content.decode().partition("<main")[2].partition("</main>")[0]


def test_members_see_the_example(people: People, as_: As) -> None:
    page = main(as_(people.alice), "home")
    assert EXAMPLE in page
    assert reverse("jobs:submit") in page
    assert "You have no tenant yet" not in page


def test_viewers_see_no_submit_links(people: People, as_: As) -> None:
    page = main(as_(people.bob), "home")
    assert "You have no jobs yet" in page
    for link in (EXAMPLE, reverse("jobs:submit")):
        assert f'"{link}"' not in page


@pytest.mark.parametrize("name", ["home", "jobs:submit", "tenancy:list"])
def test_users_without_a_tenant_see_whom_to_ask(people: People, as_: As, name: str) -> None:
    Membership.objects.filter(user=people.charlie).delete()
    page = main(as_(people.charlie), name)
    assert "Ask an admin of your team's tenant for an invitation" in page
    for link in (EXAMPLE, reverse("jobs:submit"), reverse("tenancy:create")):
        assert f'"{link}"' not in page


def test_platform_admin_can_create_or_join_a_tenant(people: People, as_: As) -> None:
    page = main(as_(people.ada), "home")
    assert f'href="{reverse("tenancy:create")}"' in page
    assert f'href="{reverse("tenancy:list")}"' in page
    assert EXAMPLE not in page
    assert "Ask an admin" not in page
