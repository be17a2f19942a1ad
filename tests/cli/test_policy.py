"""Scheduling policies on the command line."""

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
POLICY = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: %s}]\n"


@pytest.fixture
def policy_file(world, tmp_path):
    world.alice.platform_role = "operator"
    world.alice.save()

    def write(plugin: str):
        path = tmp_path / "policy.yaml"
        path.write_text(POLICY % plugin)
        return path

    return write


def test_policy_is_activated_with_the_warnings_of_its_plugins(console, policy_file):
    made = console("policy", "set", "simulated", policy_file("usage"), "--note", "for idle nodes")
    assert (made.exit_code, made.stdout) == (0, "Version 1 is active from the next cycle on.\n")
    assert "Warning: tiers[0].plugins[1].name: “usage” needs an input" in made.stderr
    active = console("policy", "show", "simulated")
    assert active.stdout == POLICY % "usage"
    assert "Warning: tiers[0].plugins[1].name" in active.stderr


def test_policy_that_cannot_work_is_previewed_and_refused(console, policy_file):
    tried = console("policy", "preview", "simulated", policy_file("nodegroup"))
    assert tried.exit_code == 0
    assert "no job starts" in tried.stderr
    refused = console("policy", "set", "simulated", policy_file("nodegroup"))
    assert refused.exit_code != 0
    assert "tiers[0].plugins[1].name" in refused.output
    assert "nodegroup" not in console("policy", "show", "simulated").output
