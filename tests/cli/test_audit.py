"""The audit from the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_an_admin_reads_what_was_done_in_their_tenant(console, manifest):
    console("submit", manifest("talk"))
    assert "JobSubmitted" in console("audit", "--person", "alice").output
    newest = json.loads(console("audit", "--kind", "JobSubmitted", "--json").output)[0]
    assert newest["facts"]["name"] == "talk"
    assert "No matching events" in console("audit", "--person", "nobody").output
