"""Clusters on the command line."""

import json

import pytest

pytestmark = pytest.mark.parametrize("world", ["simulated"], indirect=True)
SECRET = "token-that-nobody-is-shown"
KUBECONFIG = """\
apiVersion: v1
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: token-that-nobody-is-shown}}]
"""


@pytest.fixture
def operator(world):
    world.alice.platform_role = "operator"
    world.alice.save()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"nodes": [{"name": "gpu", "allocatable": {"cpu": "4"}}]}))
    return path


@pytest.mark.usefixtures("operator")
def test_cluster_is_added_listed_and_removed(console, config):
    tried = console("cluster", "set", "lab", "--kind", "simulated", "--config", config, "--try")
    assert "No permission is missing" in tried.output
    assert "lab was added: http" in console("cluster", "set", "lab", "--kind", "simulated", "--config", config).output
    assert "lab" in console("cluster", "list").output
    assert "(simulated)" in console("cluster", "show", "lab").output
    assert "lab was changed" in console("cluster", "set", "lab", "--pause").output
    assert json.loads(console("cluster", "show", "lab", "--json").output)["is_paused"] is True
    assert "The connection works" in console("cluster", "check", "lab").output
    assert "lab was deleted" in console("cluster", "delete", "lab").output
    assert [one["name"] for one in json.loads(console("cluster", "list", "--json").output)] == ["simulated"]
    refused = console("cluster", "delete", "simulated")
    assert (refused.exit_code, "has queues or jobs" in refused.output) == (1, True)


@pytest.mark.usefixtures("operator")
def test_credentials_are_read_from_file_or_stdin_and_never_printed(console, tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    refused = console("cluster", "set", "far", "--kubeconfig", file)
    assert (refused.exit_code, "kubeconfig: The server does not answer" in refused.output) == (1, True)
    assert "was added" in console("cluster", "set", "far", "--kubeconfig", file, "--anyway").output
    output = console("cluster", "show", "far").output
    assert "unreachable (silent)" in output
    assert "for https://127.0.0.1:1" in output
    by_token = ("cluster", "set", "far", "--server", "https://127.0.0.1:2", "--token-file", "-", "--anyway")
    changed = console(*by_token, input=f"{SECRET}\n")
    assert "far was changed" in changed.output
    tried = console("cluster", "check", "far")
    assert (tried.exit_code, "does not answer" in tried.output) == (1, True)
    assert SECRET not in output + changed.output + tried.output + console("cluster", "show", "far", "--json").output
    assert "The credentials of far were deleted." in console("cluster", "delete", "far", "--key").output


def test_members_list_but_do_not_change_clusters(console, config):
    assert console("cluster", "list").exit_code == 0
    assert console("cluster", "set", "lab", "--kind", "simulated", "--config", config).exit_code == 1
