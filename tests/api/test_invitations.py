"""Invitations over REST."""

import pytest

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.tenancy import services as tenancy
from hekla.lib import clock

AT = "/api/v1/tenants/lab/invitations"


@pytest.fixture
def admin(world):
    tenancy.change_role(world.tenant, world.people["alice"].pk, "admin", actor=PLATFORM, now=clock.now())
    return world.as_("alice")


def test_invitation_is_created_listed_resent_and_revoked(world, admin):
    made = admin.post(AT, {"email": "dora@example.org"}, format="json")
    assert made.status_code == 201
    assert (made.json()["role"], made.json()["sent"], made.json()["invited_by"]) == ("member", False, "alice")
    assert "/invitations/" in made.json()["link"]
    (listed,) = admin.get(AT).json()
    assert ("link" not in listed, listed["mail_error"]) == (True, "")
    again = admin.post(f"{AT}/{listed['id']}")
    assert again.json()["link"] != made.json()["link"]
    assert admin.delete(f"{AT}/{listed['id']}").status_code == 204
    assert admin.get(AT).json() == []
    assert admin.delete(f"{AT}/{listed['id']}").status_code == 404


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"email": "no address"}, 400),
        ({"role": "king"}, 400),
        ({"colour": "red"}, 400),
        ({"platform_role": "admin"}, 403),
        ({}, 201),
    ],
)
def test_fields_of_an_invitation(admin, fields, status):
    assert admin.post(AT, fields, format="json").status_code == status


def test_only_tenant_admins_invite(world, bob, charlie):
    assert [client.get(AT).status_code for client in (bob, charlie)] == [403, 404]
    assert [client.post(AT, {}, format="json").status_code for client in (bob, charlie)] == [403, 404]
