"""API tokens and roles on the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_token_is_created_listed_used_and_revoked(console):
    secret = console("token", "create", "nightly", "--scope", "read", "--days", "3").output.strip()
    assert secret.startswith("hk_")
    token = json.loads(console("token", "list", "--json").output)[0]
    assert (token["name"], token["scopes"]) == ("nightly", ["read"])
    assert "nightly" in console("token", "list").output
    assert "this token may: read" in console("--token", secret, "whoami").output
    refused = console("--token", secret, "token", "create", "more")
    assert (refused.exit_code, "lacks the scope “admin”" in refused.output) == (1, True)
    assert "revoked" in console("token", "revoke", token["id"]).output
    assert "expired or revoked token" in console("--token", secret, "whoami").output


def test_unknown_scope_is_a_usage_error(console):
    assert console("token", "create", "x", "--scope", "everything").exit_code == 2


def test_role_tables_are_for_admins(console, world):
    assert "PLATFORM ROLES" not in console("role", "list").output
    world.alice.platform_role = "admin"
    world.alice.save()
    output = console("role", "list").output
    assert ("TENANT ROLES" in output, "PLATFORM ROLES" in output) == (True, True)
    assert next(line for line in output.splitlines() if line.startswith("submit_jobs")).split()[1:] == [
        "yes",
        "yes",
        "–",
    ]
