"""Invitations on the command line."""

import json

import pytest

from hekla.apps.tenancy.models import Membership

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_invitation_is_created_listed_and_revoked(console):
    assert "No open invitations" in console("invitation", "list").output
    output = console("invitation", "create", "dora@example.org", "--role", "viewer").output
    assert "Not mailed" in output
    assert "/invitations/" in output
    (listed,) = json.loads(console("invitation", "list", "--json").output)
    assert (listed["email"], listed["role"]) == ("dora@example.org", "viewer")
    assert "dora@example.org" in console("invitation", "list", "--tenant", console.world.tenant.slug).output
    assert "revoked" in console("invitation", "revoke", listed["id"]).output


def test_member_is_refused(console):
    Membership.objects.update(role="member")
    refused = console("invitation", "create")
    assert (refused.exit_code, "Only admins" in refused.output) == (1, True)
