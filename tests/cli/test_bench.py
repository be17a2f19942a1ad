"""`hekla bench`: figures for every scenario and size."""

import json
from typing import Any

import pytest
from tests.cli.conftest import hekla
from tests.kubernetes.control_plane import ControlPlane

from hekla.bench.commands.worlds import SCENARIOS
from hekla.engine import cycle
from hekla.engine.policy import parse


def figures(*words: str) -> Any:
    result = hekla("bench", "engine", "--repeat", "1", "--json", *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.thorough
def test_idle_console_is_measured_with_all_processes() -> None:
    result = hekla("bench", "idle", "--seconds", "1", "--settle", "5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    names = {row["name"] for row in found["processes"]}
    assert {"manage.py up", "hekla: web", "hekla: control", "hekla: default", "postgres -D"} <= names
    assert found["pss_mib"] == pytest.approx(sum(row["pss_mib"] for row in found["processes"]), abs=1)
    assert found["cpu"] == pytest.approx(sum(row["cpu"] for row in found["processes"]), abs=0.1)


@pytest.mark.thorough
def test_first_and_second_start_are_measured() -> None:
    result = hekla("bench", "start", "--repeat", "1", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["new"]["cpu"] > found["old"]["cpu"] > 0


@pytest.mark.slow
@pytest.mark.thorough
def test_proxy_of_sessions_is_measured() -> None:
    sizes = ("--requests", "20", "--websockets", "51", "--seconds", "1", "--mebibytes", "2", "--repeat", "1")
    result = hekla("bench", "proxy", *sizes, "--keystrokes", "3", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["endpoints"]) == {"direct", "proxy"}
    for figures_of in found["endpoints"].values():
        assert all(row["p50"] > 0 for row in figures_of["connections"].values())
        assert min(figures_of[name]["mib_per_second"] for name in ("upload", "download")) > 0
    assert (found["websockets"]["count"], found["keystrokes"]["count"]) == (51, 3)
    missing = hekla("bench", "proxy", "--nginx", "no-such-nginx")
    assert (missing.exit_code, "There is no program no-such-nginx" in missing.output) == (1, True)


@pytest.mark.thorough
def test_reconciliations_are_measured() -> None:
    sizes = ("--nodes", "4", "--pods", "100", "--changed", "20", "--repeat", "1")
    result = hekla("bench", "reconcile", *sizes, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["nodes"], found["pods"], found["changed"]) == (4, 100, 20)
    changed = found["rounds"]["pods ended, jobs submitted"]
    assert changed["statements"] > found["rounds"]["no change"]["statements"] > 0
    assert {"observe", "read", "engine", "commit"} <= changed["phases"].keys()
    assert found["memory"]["peak_mib"] >= found["memory"]["start_mib"] > 0


def test_default_scenario_is_one_gang() -> None:
    found = figures("--nodes", "4", "--pods", "100")
    assert (found["scenario"], found["nodes"], found["nodes_considered"], found["placed"]) == ("gang", 4, 4, 100)
    assert found["pods_per_second_median"] > 0
    assert found["peak_memory_mib"] > 0
    assert len(found["cycle_seconds"]) == found["repeat"] == 1


def test_result_is_printed_as_a_sentence() -> None:
    output = hekla("bench", "engine", "--nodes", "2", "--pods", "3", "--repeat", "1").output
    assert "3 of 3 pods placed on 2 nodes" in output
    assert "pods/s" in output


# Placed, promised and evicted pods of each scenario on 8 nodes of 32 cores with 256 pods.
OUTCOMES = {
    "gang": (256, 0, 0),
    "size": (256, 0, 0),
    "gangs": (256, 0, 0),
    "classes": (256, 0, 0),
    "distinct": (90, 0, 0),
    "churn": (10, 0, 0),
    "queues": (256, 0, 0),
    "blocked": (256, 0, 0),
    "pending": (0, 0, 0),
    "flood": (0, 0, 0),
    "single": (2, 0, 0),
    "singles": (2, 0, 0),
    "preempt": (0, 120, 240),
    "reclaim": (0, 120, 120),
    "topology": (56, 0, 0),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_has_its_outcome(name: str) -> None:
    (found,) = figures("--scenario", name, "--nodes", "8", "--pods", "256")["runs"]
    assert (found["placed"], found["promised"], found["evicted"]) == OUTCOMES[name]


def test_distinct_pods_have_different_constraints() -> None:
    tasks = [task for job in SCENARIOS["distinct"].build(8, 256).state.jobs for task in job.pods]
    assert len({(task.request, task.constraints) for task in tasks}) == 256
    constraints = [task.constraints for task in tasks]
    kinds = (
        "required_node_terms",
        "preferred_node_terms",
        "pod_anti_affinity",
        "pod_affinity",
        "preferred_pod_affinity",
    )
    assert all(sum(bool(getattr(one, kind)) for one in constraints) >= 64 for kind in kinds)
    assert sum(bool(task.node_selector) for task in tasks) == 128


def test_topology_gangs_are_placed_within_their_tier() -> None:
    world = SCENARIOS["topology"].build(80, 300)
    binds = cycle(world.state, parse(world.policy_text), 0.0).binds
    racks = {node: domain.name for domain in world.state.hyper_nodes if domain.tier == 1 for node in domain.nodes}
    racks_of_gang = {at: {racks[bind.node] for bind in binds if bind.job == f"gang-{at}"} for at in range(3)}
    assert len(binds) == 300
    assert racks_of_gang[0] in ({"rack-0"}, {"rack-2"})
    assert {domain.tier for domain in world.state.hyper_nodes} == {1, 2, 3}


def test_churn_places_pods_in_every_cycle() -> None:
    (found,) = figures("--scenario", "churn", "--nodes", "2", "--pods", "40", "--repeat", "3")["runs"]
    assert found["placed"] == 10


def test_sizes_are_compared() -> None:
    runs = figures("--scenario", "gang", "--nodes", "2", "--nodes", "20", "--pods", "50")["runs"]
    assert [run["nodes"] for run in runs] == [2, 20]
    assert runs[0]["cost"] == 1.0
    assert runs[1]["cost"] > 0


def test_scenarios_are_printed_as_a_table() -> None:
    result = hekla("bench", "engine", "--scenario", "gang", "--scenario", "reclaim", "--nodes", "4", "--pods", "20")
    lines = result.output.splitlines()
    assert lines[0].split()[:3] == ["SCENARIO", "NODES", "PODS"]
    assert [line.split()[0] for line in lines[1:3]] == ["gang", "reclaim"]


def test_list_names_every_scenario() -> None:
    output = hekla("bench", "engine", "--list").output
    assert all(name in output for name in SCENARIOS)


def test_an_unknown_scenario_is_a_usage_error() -> None:
    assert hekla("bench", "engine", "--scenario", "nothing").exit_code == 2


SOME_PAGES = ("home", "jobs: together", "job: log", "REST search")


@pytest.mark.slow
@pytest.mark.parametrize("pages", [SOME_PAGES, pytest.param((), marks=pytest.mark.thorough)], ids=["some", "all"])
def test_console_pages_are_measured(pages: tuple[str, ...]) -> None:
    sizes = ("--jobs", "200", "--pods-per-job", "2", "--tenants", "8", "--nodes", "4", "--repeat", "1")
    named = [word for page in (*pages, "REST submission") for word in ("--page", page)] if pages else []
    result = hekla("bench", "console", *sizes, *named, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["jobs"], found["tenants"], found["nodes"]) == (200, 8, 4)
    assert found["pods"] >= 200
    measured = {(row["what"], row["who"]) for row in found["pages"]}
    submission = {("REST submission", "member")}
    assert measured >= submission | {(page, who) for page in SOME_PAGES for who in ("admin", "member")}
    assert not pages or len(measured) == 2 * len(SOME_PAGES) + 1
    assert all(0 < row["p50"] <= row["p99"] and row["queries"] for row in found["pages"])
    assert all(size > 10_000 for size in found["first_load_bytes"].values())


@pytest.mark.slow
@pytest.mark.thorough
def test_dashboards_are_measured() -> None:
    sizes = ("--nodes", "2", "--pods", "100000", "--minutes", "4", "--days", "2", "--tenants", "4", "--repeat", "1")
    result = hekla("bench", "operations", *sizes, "--page", "operations:waste", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["nodes"], found["days"], found["hours_computed"] > 1) == (2, 2, True)
    assert found["roll_up"][0]["process"] > 0
    rows = {row["table"]: row["rows"] for row in found["tables"]}
    assert rows["measures_nodegputime"] > rows["measures_clustergputime"] > 0
    assert rows["measures_gpuholding"] > 0
    assert {row["what"] for row in found["pages"]} == {"waste"}
    assert all(0 < row["p50"] <= row["p99"] and row["queries"] for row in found["pages"])


@pytest.mark.slow
@pytest.mark.thorough
def test_open_pages_are_measured() -> None:
    sizes = ("--jobs", "200", "--pods-per-job", "2", "--tenants", "4", "--nodes", "4")
    result = hekla(
        "bench", "console", *sizes, "--sockets", "12", "--changes-per-second", "2", "--seconds", "2", "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["sockets"] == 12
    assert set(found["cases"]) == {"spread", "together"}
    for case in found["cases"].values():
        assert case["changes"] == 4
        assert case["lost"] == 0
        assert 0 < case["p50"] <= case["p99"] <= case["max"]
    assert found["cases"]["together"]["deliveries"] == 4 * 12


@pytest.mark.slow
@pytest.mark.thorough
def test_pages_of_one_person_are_measured_under_the_requests_of_another() -> None:
    sizes = ("--jobs", "200", "--pods-per-job", "2", "--tenants", "4", "--nodes", "4")
    result = hekla("bench", "console", *sizes, "--requests-a-minute", "3000", "--seconds", "4", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert sum(found["answers"].values()) == 3000 / 60 * 4
    assert {"200", "429"} <= set(found["answers"]), "the console bounds what one person gets"
    for case in found["cases"].values():
        assert case["pages"] > 0
        assert case["failed"] == case["unready"] == 0
        assert 0 < case["p50"] <= case["p99"] <= case["max"]


@pytest.mark.slow
@pytest.mark.thorough
def test_cluster_binds_are_measured(small_cluster: ControlPlane) -> None:
    sizes = ("--jobs", "3", "--gang", "2", "--repeat", "1", "--seconds", "3", "--json")
    result = hekla("bench", "cluster", "--kubeconfig", str(small_cluster.home / "kubeconfig"), *sizes)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["nodes"], found["pods"]) == (2, 6)
    assert set(found["binders"]) == {
        *("no logic", "hekla"),
        *("no logic, pods made before", "hekla, pods made before by others"),
    }
    assert all(row["binds_per_second_from_the_start"] > 0 for row in found["binders"].values())
    writes = found["writes_per_pod"]
    assert writes["POST pods"] == writes["POST pods/binding"] == writes["DELETE pods"] == 1
    assert 0 < found["submit_to_bound_ms"]["p50"] <= found["submit_to_bound_ms"]["p99"]
