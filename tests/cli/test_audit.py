"""The audit log on the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_admin_reads_the_audit_log_of_their_tenant(console, manifest):
    console("job", "submit", manifest("talk"))
    assert "JobSubmitted" in console("audit", "list", "--person", "alice").output
    newest = json.loads(console("audit", "list", "--kind", "JobSubmitted", "--json").output)[0]
    assert newest["facts"]["name"] == "talk"
    assert "No matching events" in console("audit", "list", "--person", "nobody").output
