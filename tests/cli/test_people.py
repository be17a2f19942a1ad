"""People on the command line, for platform admins."""

import pytest

from hekla.apps.signin import services as signin
from hekla.apps.signin.models import SecondFactor
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def test_a_lost_second_factor_is_turned_off(console):
    alice = console.world.alice
    signin.begin(alice, now=clock.now())
    assert console("person", "reset-factor", "alice").exit_code == 1
    alice.platform_role = "admin"
    alice.save()
    assert "Two-factor authentication turned off" in console("person", "reset-factor", "alice").output
    assert not SecondFactor.objects.exists()
    assert "Unknown person" in console("person", "reset-factor", "nobody").output


def test_people_are_imported_from_a_table(console, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("E-mail;Role\ndora@example.org;viewer\n")
    command = ("person", "import", file, "--tenant", console.world.tenant.slug)
    preview = console(*command, "--dry-run")
    assert (preview.exit_code, "invited: 1" in preview.output) == (0, True)
    assert "/invitations/" in console(*command).output
    assert "nothing: 1" in console(*command).output
    file.write_text("E-mail\nnobody\n")
    result = console(*command)
    assert (result.exit_code, "email: Enter a valid email address." in result.output) == (1, True)
