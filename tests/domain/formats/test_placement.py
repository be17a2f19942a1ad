"""Tolerations, affinity, topology spread and labels in pod templates of manifests."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hekla.domain import formats
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec

POD: dict[str, Any] = {
    "tolerations": [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60},
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["16"]}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                }
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"labelSelector": {}, "topologyKey": "zone"}}
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
            "minDomains": 2,
            "nodeTaintsPolicy": "Honor",
        }
    ],
}
CONTAINER = {"command": ["run"]}


def template(**pod: Any) -> dict[str, Any]:
    labels = {"app": "x", "example.com/tier": "back"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **pod}}


Write = Callable[[dict[str, Any]], dict[str, Any]]


def torch(role: str, kind: str, roles: str, container: str) -> tuple[str, str, Write]:
    def manifest(pod: dict[str, Any]) -> dict[str, Any]:
        made = {**pod, "spec": {**pod["spec"], "containers": [{**pod["spec"]["containers"][0], "name": container}]}}
        return {"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": {roles: {role: {"template": made}}}}

    return kind, f"spec.{roles}.{role}.template", manifest


KINDS = [
    (
        "Volcano",
        "spec.tasks[0].template",
        lambda pod: {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"tasks": [{"template": pod}]}},
    ),
    ("Job", "spec.template", lambda pod: {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod}}),
    torch("Worker", "PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    torch("Worker", "TFJob", "tfReplicaSpecs", "tensorflow"),
    torch("Worker", "PaddleJob", "paddleReplicaSpecs", "paddle"),
    torch("Worker", "JAXJob", "jaxReplicaSpecs", "jax"),
]


def load(manifest: dict[str, Any]) -> Any:
    return formats.load(json.dumps({**manifest, "metadata": {"name": "a"}}))


@pytest.mark.parametrize(("name", "_path", "manifest"), KINDS, ids=[kind[0] for kind in KINDS])
def test_every_kind_is_read_in_full(name, _path, manifest):
    found = load(manifest(template(**POD)))
    assert [text for text in found.warnings if "ffinity" in text or "oleration" in text or "labels" in text] == []
    task = found.spec.document()["tasks"][0]
    assert task["labels"] == {"app": "x", "example.com/tier": "back"}
    assert task["tolerations"] == [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "spot", "value": "yes", "effect": "NoExecute", "toleration_seconds": 60},
    ]
    nodes = task["affinity"]["node_affinity"]
    assert nodes["required_during_scheduling_ignored_during_execution"]["node_selector_terms"] == [
        {"match_expressions": [{"key": "cores", "operator": "Gt", "values": ["16"]}]}
    ]
    assert task["affinity"]["pod_affinity"]["preferred_during_scheduling_ignored_during_execution"] == [
        {"weight": 1, "pod_affinity_term": {"label_selector": {}, "topology_key": "zone"}}
    ]
    (spread,) = task["topology_spread_constraints"]
    assert (spread["min_domains"], spread["node_taints_policy"]) == (2, "Honor")


@pytest.mark.parametrize(("name", "path", "manifest"), KINDS, ids=[kind[0] for kind in KINDS])
@pytest.mark.parametrize(
    ("pod", "at", "sentence"),
    [
        ({"tolerations": [{"value": "x"}]}, "tolerations[0].key", "Only the operator Exists can be without a key"),
        ({"tolerations": [{"key": "x", "effct": "NoExecute"}]}, "tolerations[0].effct", "Did you mean “effect”?"),
        ({"affinity": "near"}, "affinity", "Must be a mapping"),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            "Required.",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "topologySpreadConstraints[0].maxSkew",
            "at least 1",
        ),
    ],
)
def test_problem_has_its_path_in_the_manifest(name, path, manifest, pod, at, sentence):
    with pytest.raises(Invalid) as raised:
        load(manifest(template(**pod)))
    (problem,) = raised.value.problems
    assert problem.path == f"{path}.spec.{at}"
    assert sentence in problem.message


def test_terms_for_other_namespaces_are_reported():
    terms = [
        {"topologyKey": "zone", "labelSelector": {}, "namespaces": ["kube-system"]},
        {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}},
    ]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    found = load(KINDS[0][2](template(affinity=affinity)))
    prefix = "spec.tasks[0].template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for text in (f"{prefix}[0].namespaces: ignored: a term", f"{prefix}[1].namespaceSelector: ignored: a term"):
        assert [warning for warning in found.warnings if warning.startswith(text)]
    required = found.spec.tasks[0].affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert [term.topology_key for term in required] == ["zone", "zone"]


def test_reserved_labels_are_left_out_with_the_reason():
    pod = template()
    pod["metadata"]["labels"] |= {"hekla.dev/job": "theirs", "app.kubernetes.io/name": "web"}
    found = load(KINDS[0][2](pod))
    assert found.spec.tasks[0].labels == {"app": "x", "example.com/tier": "back"}
    ignored = [text for text in found.warnings if "are reserved" in text]
    assert [text.partition(":")[0].rpartition("labels.")[2] for text in ignored] == [
        "hekla.dev/job",
        "app.kubernetes.io/name",
    ]


def test_written_manifest_has_kubernetes_form():
    spec = load(KINDS[0][2](template(**POD))).spec
    form = next(form for form in formats.FORMATS if form.word == "volcano")
    (task,) = form.write(spec)["spec"]["tasks"]
    written = task["template"]["spec"]
    assert task["template"]["metadata"]["labels"] == {"app": "x", "example.com/tier": "back"}
    assert written["affinity"] == POD["affinity"]
    assert written["topologySpreadConstraints"] == POD["topologySpreadConstraints"]
    assert written["tolerations"][1] == {name: v for name, v in POD["tolerations"][1].items() if name != "operator"}


def test_kind_without_a_template_reports_what_it_loses():
    spec = JobSpec.parse({"name": "a", "tasks": [{"name": "node", "command": ["x"], "tolerations": [{"key": "gpu"}]}]})
    form = next(form for form in formats.FORMATS if form.word == "trainjob")
    assert [text for text in formats.write(spec, form).notes if text.startswith("tasks.0.tolerations: a TrainJob")]
