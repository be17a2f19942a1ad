"""Departments on the command line."""

import pytest

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.tenancy import departments
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_head_lists_and_shows_their_department(console, world):
    assert "No departments" in console("department", "list").output
    department = {"slug": "science", "name": "Science", "heads": [world.alice], "tenants": [world.tenant]}
    departments.create(**department, actor=PLATFORM, now=clock.now())
    assert "science" in console("department", "list").output
    output = console("department", "show", "science").output
    assert "Science, heads: alice" in output
    assert [line.split()[0] for line in output.splitlines()[2:]] == ["TENANT", world.tenant.slug, "together"]
    assert console("department", "show", "arts").exit_code == 1
