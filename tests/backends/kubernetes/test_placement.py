"""Labels and constraints of tasks on pods: as written in a tenant's own namespace, harmless in a shared one."""

from typing import Any

import pytest
from tests.backends.conftest import ClusterFixture
from tests.backends.kubernetes.test_pod_creation import manifest
from tests.backends.kubernetes.test_pod_security import pod_of
from tests.backends.kubernetes.test_volcano_state import manifest_of, spec

from hekla.backends.kubernetes import names
from hekla.domain.placement import pod_fields
from hekla.domain.task_spec import TaskSpec

REQUIRED, PREFERRED = (f"{word}_during_scheduling_ignored_during_execution" for word in ("required", "preferred"))
TERM = {"label_selector": {"match_labels": {"app": "x"}}, "match_label_keys": ["run"], "topology_key": "zone"}
TASK: dict[str, Any] = {
    "labels": {"app": "x", "run": "7"},
    "node_selector": {"disk": "ssd"},
    "tolerations": [{"key": "gpu", "effect": "NoExecute", "toleration_seconds": 5}],
    "affinity": {
        "node_affinity": {
            REQUIRED: {"node_selector_terms": [{"match_expressions": [{"key": "gpu", "operator": "Exists"}]}]}
        },
        "pod_affinity": {PREFERRED: [{"weight": 3, "pod_affinity_term": {"topology_key": "zone"}}]},
        "pod_anti_affinity": {REQUIRED: [TERM]},
    },
    "topology_spread_constraints": [
        {"max_skew": 1, "topology_key": "zone", "when_unsatisfiable": "DoNotSchedule", "label_selector": {}}
    ],
}
NODES = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    }
}


def order_fields() -> dict[str, Any]:
    task = TaskSpec(name="worker", command=("true",), **TASK)
    return {"labels": task.labels, "placement": pod_fields(task)}


def test_pod_in_a_shared_namespace_has_only_constraints_on_nodes() -> None:
    made = manifest(**order_fields())
    assert made["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert made["spec"]["tolerations"] == [{"key": "gpu", "effect": "NoExecute", "tolerationSeconds": 5}]
    assert made["spec"]["affinity"] == {"nodeAffinity": NODES}
    assert "topologySpreadConstraints" not in made["spec"]
    assert not {"app", "run"} & made["metadata"]["labels"].keys()


@pytest.mark.kubernetes
def test_pod_in_a_namespace_of_its_tenant_carries_everything(make_cluster: Any, small_cluster: Any) -> None:
    namespaced: ClusterFixture = make_cluster("kubernetes-tenants")
    made = pod_of(small_cluster, namespaced, **order_fields())
    assert made["metadata"]["labels"].items() >= TASK["labels"].items()
    assert made["metadata"]["labels"][names.TASK] == "worker"
    assert made["spec"]["affinity"]["nodeAffinity"] == NODES
    (term,) = made["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (term["topologyKey"], term["labelSelector"]["matchLabels"]) == ("zone", {"app": "x"})
    (constraint,) = made["spec"]["topologySpreadConstraints"]
    assert constraint["whenUnsatisfiable"] == "DoNotSchedule"
    assert {"key": "gpu", "effect": "NoExecute", "tolerationSeconds": 5} in made["spec"]["tolerations"]


def test_volcano_job_selects_pods_of_its_tenant_only() -> None:
    (task,) = manifest_of(spec(**TASK))["spec"]["tasks"]
    pod, labels = task["template"]["spec"], task["template"]["metadata"]["labels"]
    app, run = (f"{names.TASK_LABEL}{names.digest(name)}" for name in ("app", "run"))
    assert labels.items() >= {app: "x", run: "7", names.TENANT: "lab"}.items()
    assert not {"app", "run"} & labels.keys()
    (term,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"] == {"matchLabels": {app: "x", names.TENANT: "lab"}}
    assert term["matchLabelKeys"] == [run]
    (constraint,) = pod["topologySpreadConstraints"]
    assert constraint["labelSelector"] == {"matchLabels": {names.TENANT: "lab"}}
    (preferred,) = pod["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert "labelSelector" not in preferred["podAffinityTerm"], "it selects no pods"
    assert (pod["affinity"]["nodeAffinity"], pod["nodeSelector"]) == (NODES, {"disk": "ssd"})
    assert pod["tolerations"] == [{"key": "gpu", "effect": "NoExecute", "tolerationSeconds": 5}]


def test_two_manifests_of_a_job_are_equal() -> None:
    """Restricting selectors must not change the job itself."""
    job = spec(**TASK)
    assert manifest_of(job) == manifest_of(job)
