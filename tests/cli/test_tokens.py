"""Tokens and roles from the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_a_token_is_made_listed_used_and_revoked(console):
    secret = console("token", "create", "nightly", "--scope", "read", "--days", "3").output.strip()
    assert secret.startswith("hk_")
    made = json.loads(console("token", "list", "--json").output)[0]
    assert (made["name"], made["scopes"]) == ("nightly", ["read"])
    assert "nightly" in console("token", "list").output
    assert "this token may: read" in console("--token", secret, "whoami").output
    refused = console("--token", secret, "token", "create", "more")
    assert (refused.exit_code, "lacks the scope “admin”" in refused.output) == (1, True)
    assert "revoked" in console("token", "revoke", made["id"]).output
    assert "expired or revoked token" in console("--token", secret, "whoami").output


def test_a_scope_that_there_is_not_is_refused_here(console):
    assert console("token", "create", "x", "--scope", "everything").exit_code == 2


def test_who_gives_roles_reads_what_each_may_do(console, world):
    assert "PLATFORM ROLES" not in console("role", "list").output
    world.alice.platform_role = "admin"
    world.alice.save()
    told = console("role", "list").output
    assert ("TENANT ROLES" in told, "PLATFORM ROLES" in told) == (True, True)
    assert next(line for line in told.splitlines() if line.startswith("submit_jobs")).split()[1:] == ["yes", "yes", "–"]
