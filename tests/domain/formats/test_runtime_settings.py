"""Ports of nodes, pull secrets, runtime class and security context in pod templates of manifests."""

from typing import Any

import pytest
from tests.domain.formats.test_placement import CONTAINER, KINDS, Write, load

from hekla.domain import formats
from hekla.domain.errors import Invalid

PORT = {"containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "10.0.0.1", "name": "web"}
POD: dict[str, Any] = {
    "runtimeClassName": "kata",
    "imagePullSecrets": [{"name": "registry"}, {"name": "other"}],
    "securityContext": {
        "runAsUser": 1001,
        "runAsGroup": 1002,
        "runAsNonRoot": True,
        "fsGroup": 1003,
        "supplementalGroups": [7, 8],
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "hostNetwork": False,
    "resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
        {"name": "shared", "resourceClaimName": "big.gpu"},
    ],
}
CONTEXT: dict[str, Any] = {
    "runAsUser": 1009,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "capabilities": {"drop": ["ALL"]},
}
RESOURCES = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu", "request": "card"}, {"name": "shared"}]}
READ = {
    "runtime_class": "kata",
    "pull_secrets": ["registry", "other"],
    "host_ports": [{"host_port": 8080, "container_port": 80, "protocol": "UDP", "host_ip": "10.0.0.1"}],
    "security_context": {
        "run_as_user": 1009,
        "run_as_group": 1002,
        "run_as_non_root": True,
        "fs_group": 1003,
        "supplemental_groups": [7, 8],
        "read_only_root_filesystem": True,
    },
    "resource_claims": [
        {"name": "gpu", "resource_claim_template_name": "one-gpu", "requests": ["card"]},
        {"name": "shared", "resource_claim_name": "big.gpu"},
    ],
}


def manifest_with(manifest: Write, pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """A manifest of a kind, with these fields in the spec of its pods and in their container."""
    return manifest({"spec": {"containers": [{**CONTAINER, **container}], **pod}})


@pytest.mark.parametrize(("name", "_path", "manifest"), KINDS, ids=[kind[0] for kind in KINDS])
def test_every_kind_is_read_in_full(name, _path, manifest):
    more = {"ports": [PORT, {"containerPort": 9}], "securityContext": CONTEXT, "resources": RESOURCES}
    found = load(manifest_with(manifest, POD, more))
    task = found.spec.document()["tasks"][0]
    assert {field: task[field] for field in READ} == READ
    assert not [
        text for text in found.warnings if "spec.template.spec" in text or "securityContext" in text or "laim" in text
    ]


@pytest.mark.parametrize(("name", "path", "manifest"), KINDS, ids=[kind[0] for kind in KINDS])
@pytest.mark.parametrize(
    ("pod", "container", "at", "sentence"),
    [
        ({"hostNetwork": True}, {}, "hostNetwork", "no access to the network and the processes of their node"),
        ({"hostPID": True}, {}, "hostPID", "no access to the network and the processes of their node"),
        ({"hostIPC": True}, {}, "hostIPC", "no access to the network and the processes of their node"),
        ({}, {"securityContext": {"privileged": True}}, "containers[0].securityContext.privileged", "no privileges"),
        (
            {},
            {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}},
            "containers[0].securityContext.capabilities.add",
            "configuration of a cluster decides the capabilities",
        ),
        ({"securityContext": {"runAsUser": -1}}, {}, "securityContext.runAsUser", "at least 0"),
        (
            {"securityContext": {"runAsNonRoot": True}},
            {"securityContext": {"runAsUser": 0}},
            "containers[0].securityContext.runAsUser",
            "User 0 is root",
        ),
        ({}, {"ports": [{"hostPort": 9}]}, "containers[0].ports[0].containerPort", "Required"),
        ({}, {"ports": [PORT, PORT]}, "containers[0].ports[1].hostPort", "The task has this port of the node already"),
        ({}, {"ports": [{**PORT, "hostIP": "here"}]}, "containers[0].ports[0].hostIP", "“here” is not an IP address"),
        ({"imagePullSecrets": [{"name": "A b"}]}, {}, "imagePullSecrets[0].name", "not a valid name"),
        ({"imagePullSecrets": [{"name": "a"}] * 2}, {}, "imagePullSecrets", "may occur only once"),
        ({"runtimeClassName": "A b"}, {}, "runtimeClassName", "not a valid name"),
        ({"resourceClaims": [{"name": "gpu"}]}, {}, "resourceClaims[0]", "Set exactly one of"),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}] * 2},
            {},
            "resourceClaims[1].name",
            "Another claim of the task has this name",
        ),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "A b"}]},
            {},
            "resourceClaims[0].resourceClaimName",
            "not a valid name",
        ),
        (
            {},
            {"resources": {"claims": [{"name": "gpu"}]}},
            "containers[0].resources.claims",
            "The pod has no claim “gpu”",
        ),
    ],
)
def test_problem_has_its_path_in_the_manifest(name, path, manifest, pod, container, at, sentence):
    with pytest.raises(Invalid) as raised:
        load(manifest_with(manifest, pod, container))
    assert [p for p in raised.value.problems if p.path == f"{path}.spec.{at}" and sentence in p.message], raised.value


@pytest.mark.parametrize(
    ("context", "warning"),
    [
        ({"allowPrivilegeEscalation": True}, "allowPrivilegeEscalation: ignored: pods of jobs cannot gain privileges."),
        ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile.type: ignored: pods of jobs have the seccomp"),
        ({"seLinuxOptions": {"level": "s0"}}, "seLinuxOptions: ignored."),
        ({"procMount": "Unmasked"}, "procMount: ignored."),
    ],
)
def test_setting_without_effect_is_reported(context, warning):
    found = load(manifest_with(KINDS[0][2], {}, {"securityContext": context}))
    assert [text for text in found.warnings if f"containers[0].securityContext.{warning}" in text]


def test_trainjob_reports_what_it_cannot_say():
    job = load(manifest_with(KINDS[1][2], POD, {"ports": [PORT]})).spec
    trainjob = next(form for form in formats.FORMATS if form.word == "trainjob")
    notes = formats.write(job, trainjob).notes
    assert [f for f in READ if not any(note.startswith(f"tasks.0.{f}") for note in notes)] == []
