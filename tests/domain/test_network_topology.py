"""The network topology of a job: its rules, and its form in manifests."""

from typing import Any

import pytest

from hekla.domain.errors import Invalid
from hekla.domain.formats import manifests
from hekla.domain.formats.pytorchjob import PYTORCHJOB
from hekla.domain.jobspec import JobSpec

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: near}
spec:
  NEAR
  tasks:
  - {name: worker, replicas: 2, template: {spec: {containers: [{name: main, image: tool, command: [work]}]}}}
"""
GROUP = """\
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {networkTopology: {mode: hard, highestTierAllowed: 2}}
"""


def job(**topology: Any) -> JobSpec:
    tasks = [{"name": "worker", "replicas": 2, "command": ["work"], "image": "tool"}]
    return JobSpec.parse({"name": "near", "network_topology": topology, "tasks": tasks})


@pytest.mark.parametrize(
    ("topology", "path", "message"),
    [
        ({"mode": "close"}, "network_topology.mode", "hard"),
        ({"highest_tier_allowed": -1}, "network_topology.highest_tier_allowed", "at least 0"),
        ({"highest_tier_allowed": "1"}, "network_topology.highest_tier_allowed", "integer"),
        ({"highest_tier_name": "a" * 400}, "network_topology.highest_tier_name", "317"),
        ({"highest_tier_name": "rack", "highest_tier_allowed": 1}, "network_topology.highest_tier_name", "not both"),
        ({"tier": 1}, "network_topology.tier", ""),
    ],
)
def test_invalid_topologies_are_refused(topology: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        job(**topology)
    (problem,) = refusal.value.problems
    assert (problem.path, message in problem.message) == (path, True), problem


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"min_partitions": 1}, "min_partitions", "not divided"),
        ({"partition_topology": {}}, "partition_topology", "not divided"),
        ({"partition_size": 2, "min_partitions": 3}, "min_partitions", "has 2 partitions"),
        ({"partition_size": 2, "min_partitions": 1, "min_available": 3}, "min_partitions", "cannot be 3"),
        ({"partition_size": 2, "min_partitions": 0}, "min_partitions", "at least 1"),
    ],
)
def test_minimum_and_topology_of_partitions_must_agree(fields: dict[str, Any], path: str, message: str) -> None:
    task = {"name": "worker", "replicas": 4, "command": ["work"], **fields}
    with pytest.raises(Invalid) as refusal:
        JobSpec.parse({"name": "near", "tasks": [task]})
    assert [(one.path, message in one.message) for one in refusal.value.problems] == [(f"tasks.0.{path}", True)]


def test_tier_of_a_soft_topology_has_no_effect() -> None:
    (remark,) = job(mode="soft", highest_tier_allowed=1).remarks
    assert remark.startswith("network_topology.highest_tier_allowed: Without effect")
    assert job(mode="hard", highest_tier_allowed=1).remarks == job(mode="soft").remarks == ()


@pytest.mark.parametrize(
    ("topology", "written"),
    [
        ({}, {"mode": "hard"}),
        ({"mode": "soft"}, {"mode": "soft"}),
        ({"highest_tier_allowed": 0}, {"mode": "hard", "highestTierAllowed": 0}),
        ({"highest_tier_name": "rack"}, {"mode": "hard", "highestTierName": "rack"}),
    ],
)
def test_manifest_has_the_fields_of_volcano(topology: dict[str, Any], written: dict[str, Any]) -> None:
    (document,) = manifests.documents(job(**topology))
    assert document["spec"]["networkTopology"] == written
    assert manifests.load_documents([document]).spec == job(**topology)


def test_problems_have_their_path_in_the_manifest() -> None:
    with pytest.raises(Invalid) as refusal:
        manifests.load(JOB.replace("NEAR", "networkTopology: {mode: near, highestTier: 1}"))
    assert [problem.path for problem in refusal.value.problems] == [
        "spec.networkTopology.highestTier",
        "spec.networkTopology.mode",
    ]


def test_topology_of_the_pod_group_takes_precedence() -> None:
    alone = manifests.load(JOB.replace("NEAR", "queue: default") + GROUP)
    both = manifests.load(JOB.replace("NEAR", "networkTopology: {mode: soft}") + GROUP)
    assert alone.spec.network_topology == both.spec.network_topology == job(highest_tier_allowed=2).network_topology
    assert [warning for warning in alone.warnings if "opology" in warning] == []
    assert [warning.partition(":")[0] for warning in both.warnings if "opology" in warning] == ["spec.networkTopology"]


def test_kind_without_the_field_says_so() -> None:
    notes = manifests.write(job(mode="soft"), PYTORCHJOB).notes
    assert [note for note in notes if "network_topology" in note], notes
